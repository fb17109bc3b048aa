//! The classic ECN echo (RFC 3168, section 6.1), and DCTCP's (RFC 8257, section 3.2).

use super::Feedback;
use crate::bits::Bits;
use crate::profile::Profile;
use crate::segment::Flags;

/// Both sides have agreed to use it.
const AGREED: u8 = 1;
/// Receiving half: CE has been received, and no CWR since.
const ECHO: u8 = 1 << 1;
/// Receiving half: CE has been received since the last acknowledgment left.
const CE_SINCE_ACK: u8 = 1 << 2;
/// Sending half: the window has been reduced, and the other side has not yet been notified.
const CWR_DUE: u8 = 1 << 3;
/// Sending half: reduced at a window of one segment; nothing may leave until the timer fires.
const WAITING: u8 = 1 << 4;
/// Sending half, ns-2's variant: the latest echo arrived at a window of one segment.
const AT_ONE: u8 = 1 << 5;

/// A SYN or SYN-ACK that does not request ECN was sent or received: ECN is not used afterwards.
const REFUSED: u8 = 1 << 6;

/// ECN state of one endpoint, for both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClassicEcn(Bits);

impl ClassicEcn {
    /// Returns the flags of the SYN (RFC 3168, 6.1.1: ECN-setup SYN has ECE and CWR).
    pub(crate) fn syn_flags(&self, profile: &Profile) -> Flags {
        Flags::SYN.with_if(Flags::ECE | Flags::CWR, self.asks(profile))
    }

    /// Returns whether SYNs ask for ECN.
    pub(crate) fn asks(&self, profile: &Profile) -> bool {
        profile.ecn && !self.0.any(REFUSED)
    }

    /// Returns the flags of the SYN-ACK (ECN-setup SYN-ACK has ECE and not CWR).
    pub(crate) fn syn_ack_flags(&self) -> Flags {
        (Flags::SYN | Flags::ACK).with_if(Flags::ECE, self.agreed())
    }

    /// Passive side: processes a SYN with these flags.
    pub(crate) fn on_syn(&mut self, flags: Flags, profile: &Profile) {
        self.0.put(AGREED, self.asks(profile) && is_setup_syn(flags));
    }

    /// Processes a repeated SYN with these flags, or a SYN-ACK in SYN-RECEIVED: one that does not request ECN
    /// disables it (RFC 3168, 6.1.1), and one that requests ECN does not enable it again.
    pub(crate) fn on_syn_again(&mut self, flags: Flags) {
        let setup = if flags.has(Flags::ACK) { is_setup_syn_ack(flags) } else { is_setup_syn(flags) };
        if !setup {
            self.refuse();
        }
    }

    /// Disables ECN for this connection: later SYNs do not request it, and later agreement is ignored.
    pub(crate) fn refuse(&mut self) {
        self.0.set(REFUSED);
        self.0.clear(AGREED);
    }

    /// Active side: processes a SYN-ACK with these flags.
    pub(crate) fn on_syn_ack(&mut self, flags: Flags, profile: &Profile) {
        self.0.put(AGREED, self.asks(profile) && is_setup_syn_ack(flags));
    }

    /// Returns whether both sides have agreed.
    #[inline]
    pub(crate) fn agreed(&self) -> bool {
        self.0.any(AGREED)
    }

    /// Receiving half: processes a segment with payload. CWR ends the echo, unless CE came with it
    /// or waits to be reported: a delayed acknowledgment has ECE if any segment it covers has CE
    /// (RFC 3168, 6.1.3).
    #[inline]
    pub(crate) fn on_data(&mut self, flags: Flags, ce: bool) {
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

    /// Receiving half, for DCTCP: processes a segment with payload. Returns whether its mark differs from
    /// that of the previous segment; the echo then follows the new mark (DCTCP.CE).
    pub(crate) fn turns(&mut self, marked: bool) -> bool {
        let (marked, before) = (self.agreed() && marked, self.0.any(ECHO));
        self.0.put(ECHO, marked);
        marked != before
    }

    /// Returns whether ECE or CWR must report anything, or must be reset after a report.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.0.any(ECHO | CE_SINCE_ACK | CWR_DUE)
    }

    /// Receiving half: returns the ECE flag of an acknowledgment that leaves.
    #[inline]
    pub(crate) fn take_echo(&mut self) -> bool {
        self.0.clear(CE_SINCE_ACK);
        self.0.any(ECHO)
    }

    /// Sending half: reads an acknowledgment's flags. The ECE of a SYN-ACK responds to a SYN (RFC 3168,
    /// 6.1.1).
    #[inline]
    pub(crate) fn on_ack(&mut self, flags: Flags) -> Feedback {
        let congestion = self.agreed() && flags.has(Flags::ECE) && !flags.has(Flags::SYN);
        if !congestion {
            self.0.clear(AT_ONE);
        }
        Feedback { congestion }
    }

    /// Sending half: notes that the window has been reduced, for any reason (RFC 3168, 6.1.2).
    pub(crate) fn reduced(&mut self) {
        self.0.put(CWR_DUE, self.agreed());
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

    /// RFC 3168, 6.1.2: stops the sender until its timer fires, after an echo at a window of one
    /// segment.
    pub(crate) fn wait(&mut self) {
        self.0.set(WAITING);
    }

    /// Returns whether the sender waits for its timer because of an echo.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.any(WAITING)
    }

    /// Notes that the timer has fired. Returns true if the sender was waiting for it.
    pub(crate) fn stop_waiting(&mut self) -> bool {
        self.0.take(WAITING)
    }

    /// ns-2: notes whether this reaction occurred at a window of one segment. Returns true if the previous
    /// one did, too.
    pub(crate) fn reacted_at_one(&mut self, at_one: bool) -> bool {
        let before = self.0.take(AT_ONE);
        self.0.put(AT_ONE, at_one);
        before && at_one
    }

    /// ns-2: returns whether the back-off outlasts this acknowledgment.
    pub(crate) fn keeps_backoff(&self) -> bool {
        self.0.any(AT_ONE)
    }
}

/// Returns whether a SYN with these flags asks for ECN (RFC 3168, 6.1.1: ECN-setup SYN).
fn is_setup_syn(flags: Flags) -> bool {
    flags.has(Flags::ECE | Flags::CWR)
}

/// Returns whether a SYN-ACK with these flags agrees (ECN-setup SYN-ACK). A SYN-ACK that reflects
/// the SYN's flags does not.
fn is_setup_syn_ack(flags: Flags) -> bool {
    flags.has(Flags::ECE) && !flags.has(Flags::CWR)
}
