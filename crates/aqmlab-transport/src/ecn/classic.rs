//! The classic ECN echo (RFC 3168, section 6.1), and the echo of DCTCP (RFC 8257, section 3.2).
//!
//! What both sides have agreed on, including AccECN (RFC 9768, section 3.1), is kept here too.

use super::Feedback;
use crate::bits::Bits;
use crate::profile::Profile;
use crate::segment::Flags;

/// Both sides have agreed to use ECN, so data may be ECN-capable.
const AGREED: u8 = 1;
/// Receiving half: CE has been received, and no CWR has been received since.
const ECHO: u8 = 1 << 1;
/// Receiving half: CE has been received since the last acknowledgment left.
const CE_SINCE_ACK: u8 = 1 << 2;
/// Sending half: the window has been reduced, and the other side has not yet been notified.
const CWR_DUE: u8 = 1 << 3;
/// Sending half: an echo called for a reduction at a window of one segment, so nothing may leave
/// until the timer fires.
const WAITING: u8 = 1 << 4;
/// Sending half, ns-2's variant: the latest echo arrived at a window of one segment.
const AT_ONE: u8 = 1 << 5;

/// A SYN or SYN-ACK that does not request ECN has been sent or received, so ECN is not used from
/// then on.
const REFUSED: u8 = 1 << 6;

/// Both sides have agreed on AccECN feedback, which remains in use even if nothing may be ECN-capable any longer.
const ACCURATE: u8 = 1 << 7;

/// The flags AE, CWR and ECE of an ECN-setup SYN of RFC 3168, and of a SYN that requests AccECN.
const CLASSIC_SETUP: u8 = 0b011;
const ACCURATE_SETUP: u8 = 0b111;

/// What a SYN that arrives again leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SynAgain {
    /// The handshake continues.
    Continues,
    /// The connection must be reset, because the SYN requests another kind of feedback (RFC 9768, section 3.1.5).
    Contradicts,
}

/// ECN state of one endpoint, for both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClassicEcn(Bits);

impl ClassicEcn {
    /// Returns the flags of the SYN (RFC 3168, 6.1.1: an ECN-setup SYN has ECE and CWR set).
    /// One that requests AccECN also has AE (RFC 9768, 3.1.1).
    pub(crate) fn syn_flags(&self, profile: &Profile) -> Flags {
        let setup = if profile.accurate { ACCURATE_SETUP } else { CLASSIC_SETUP };
        Flags::SYN.with_ace(if self.asks(profile) { setup } else { 0 })
    }

    /// Returns whether SYNs request ECN.
    pub(crate) fn asks(&self, profile: &Profile) -> bool {
        profile.ecn && !self.0.any(REFUSED)
    }

    /// Returns the flags of the SYN-ACK (an ECN-setup SYN-ACK has ECE set but not CWR).
    pub(crate) fn syn_ack_flags(&self) -> Flags {
        (Flags::SYN | Flags::ACK).with_if(Flags::ECE, self.agreed())
    }

    /// Passive side: processes a SYN with these flags.
    ///
    /// With AccECN, any combination that RFC 3168 does not know requests it (RFC 9768, 3.1.2 and 3.1.3).
    pub(crate) fn on_syn(&mut self, flags: Flags, profile: &Profile) {
        let known = matches!(flags.ace(), 0 | CLASSIC_SETUP);
        self.0.put(ACCURATE, profile.accurate && self.asks(profile) && !known);
        self.0.put(AGREED, self.is_accurate() || self.asks(profile) && is_setup_syn(flags));
    }

    /// Processes a repeated SYN with these flags, or a SYN-ACK in SYN-RECEIVED. A segment that does not
    /// request ECN disables it (RFC 3168, 6.1.1); one that requests ECN cannot enable it again.
    ///
    /// With AccECN, the kind of feedback never changes, but an endpoint that has received both kinds of SYN sends
    /// nothing that is ECN-capable (RFC 9768, 3.1.5).
    pub(crate) fn on_syn_again(&mut self, flags: Flags, profile: &Profile) -> SynAgain {
        let ace = flags.ace();
        if self.is_accurate() {
            if ace == 0 {
                self.0.clear(AGREED);
            } else if ace == CLASSIC_SETUP && !flags.has(Flags::ACK) {
                return SynAgain::Contradicts;
            }
            return SynAgain::Continues;
        }
        if profile.accurate && self.agreed() && !flags.has(Flags::ACK) && !matches!(ace, 0 | CLASSIC_SETUP) {
            return SynAgain::Contradicts;
        }
        let setup = if flags.has(Flags::ACK) { is_setup_syn_ack(flags) } else { is_setup_syn(flags) };
        if !setup {
            self.refuse();
        }
        SynAgain::Continues
    }

    /// Disables ECN for this connection: later SYNs do not request it, and a later agreement by the
    /// other side is ignored.
    pub(crate) fn refuse(&mut self) {
        self.0.set(REFUSED);
        self.0.clear(AGREED);
    }

    /// Active side: processes a SYN-ACK with these flags. With AccECN, the first SYN-ACK decides, even if the
    /// latest SYN did not request ECN (RFC 9768, table 2 and 3.1.4.1).
    pub(crate) fn on_syn_ack(&mut self, flags: Flags, profile: &Profile) {
        let accurate = profile.accurate && matches!(flags.ace(), 0b010..=0b110);
        self.0.put(ACCURATE, accurate);
        let reflected = profile.accurate && flags.ace() == ACCURATE_SETUP;
        self.0.put(AGREED, accurate || self.asks(profile) && is_setup_syn_ack(flags) && !reflected);
    }

    /// Returns whether both sides have agreed, so that data may be ECN-capable.
    #[inline]
    pub(crate) fn agreed(&self) -> bool {
        self.0.any(AGREED)
    }

    /// Returns whether both sides have agreed on AccECN feedback.
    #[inline]
    pub(crate) fn is_accurate(&self) -> bool {
        self.0.any(ACCURATE)
    }

    /// Stops sending anything that is ECN-capable; the kind of feedback stays as it is.
    pub(crate) fn send_nothing_capable(&mut self) {
        self.0.clear(AGREED);
    }

    /// Returns whether a segment with no flag other than ACK may change this state, or say something about marks.
    #[inline]
    pub(crate) fn hears_plain_ack(&self) -> bool {
        self.0.any(AT_ONE | ACCURATE)
    }

    /// Receiving half: processes a segment with payload. CWR ends the echo, unless this segment has
    /// CE too, or an earlier CE has not been reported yet: a delayed acknowledgment has ECE if any
    /// segment it covers has CE (RFC 3168, 6.1.3).
    #[inline]
    pub(crate) fn on_data(&mut self, flags: Flags, ce: bool) {
        if self.is_accurate() {
            return;
        }
        if flags.has(Flags::CWR) {
            self.0.clear(ECHO);
        }
        if self.agreed() && ce {
            self.0.set(CE_SINCE_ACK);
        }
        if self.0.any(CE_SINCE_ACK) {
            self.0.set(ECHO);
        }
    }

    /// Receiving half, for DCTCP: processes a segment with payload. Returns true if the segment is marked and
    /// the previous one was not, or vice versa; from then on, the echo reports the new state (DCTCP.CE).
    pub(crate) fn turns(&mut self, marked: bool) -> bool {
        let (marked, before) = (self.agreed() && marked, self.0.any(ECHO));
        self.0.put(ECHO, marked);
        marked != before
    }

    /// Returns whether the next segment may have to carry ECE or CWR, or may change this state.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.0.any(ECHO | CE_SINCE_ACK | CWR_DUE)
    }

    /// Receiving half: returns the ECE flag of the acknowledgment that leaves now.
    #[inline]
    pub(crate) fn take_echo(&mut self) -> bool {
        self.0.clear(CE_SINCE_ACK);
        self.0.any(ECHO)
    }

    /// Sending half: reads an acknowledgment's flags. The ECE of a SYN-ACK is not an echo but the
    /// answer to a SYN (RFC 3168, 6.1.1).
    #[inline]
    pub(crate) fn on_ack(&mut self, flags: Flags) -> Feedback {
        let congestion =
            self.agreed() && !self.is_accurate() && flags.has(Flags::ECE) && !flags.has(Flags::SYN);
        if !congestion {
            self.0.clear(AT_ONE);
        }
        Feedback { congestion }
    }

    /// Sending half: notes that the window has been reduced, for any reason (RFC 3168, 6.1.2).
    pub(crate) fn reduced(&mut self) {
        // RFC 9768, 3.1.5: with AccECN, nothing says that the window has been reduced.
        self.0.put(CWR_DUE, self.agreed() && !self.is_accurate());
    }

    /// Sending half: returns the CWR flag of the data segment that leaves now.
    #[inline]
    pub(crate) fn take_cwr(&mut self, retransmission: bool, profile: &Profile) -> bool {
        (!retransmission || profile.cwr_on_retransmission) && self.0.take(CWR_DUE)
    }

    /// Returns whether a data segment may be sent as ECN-capable.
    #[inline]
    pub(crate) fn ect(&self, retransmission: bool, fin: bool, profile: &Profile) -> bool {
        // RFC 3168, 6.1.5: not on retransmissions
        self.agreed() && (!retransmission || profile.ect_on_retransmission) && (!fin || profile.ect_on_fin)
    }

    /// RFC 3168, 6.1.2: after an echo at a window of one segment, stops the sender until its timer
    /// fires.
    pub(crate) fn wait(&mut self) {
        self.0.set(WAITING);
    }

    /// Returns whether the sender is waiting for its timer because of an echo.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.any(WAITING)
    }

    /// Notes that the timer has fired. Returns true if the sender was waiting for it.
    pub(crate) fn stop_waiting(&mut self) -> bool {
        self.0.take(WAITING)
    }

    /// ns-2: notes whether this reaction to an echo occurs at a window of one segment. Returns true
    /// if both this reaction and the previous one occur at such a window.
    pub(crate) fn reacted_at_one(&mut self, at_one: bool) -> bool {
        let before = self.0.take(AT_ONE);
        self.0.put(AT_ONE, at_one);
        before && at_one
    }

    /// ns-2: returns whether the timer stays backed off after this acknowledgment.
    pub(crate) fn keeps_backoff(&self) -> bool {
        self.0.any(AT_ONE)
    }
}

/// Returns whether a SYN with these flags requests ECN (RFC 3168, 6.1.1: ECN-setup SYN).
fn is_setup_syn(flags: Flags) -> bool {
    flags.has(Flags::ECE | Flags::CWR)
}

/// Returns whether a SYN-ACK with these flags agrees to ECN (ECN-setup SYN-ACK). A SYN-ACK that
/// merely reflects the SYN's flags does not.
fn is_setup_syn_ack(flags: Flags) -> bool {
    flags.has(Flags::ECE) && !flags.has(Flags::CWR)
}
