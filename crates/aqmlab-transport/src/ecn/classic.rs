//! The classic ECN echo (RFC 3168, section 6.1).

use super::Feedback;
use crate::profile::Profile;
use crate::segment::Flags;

/// ECN state of one endpoint, for both directions.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ClassicEcn {
    /// Both sides have agreed to use it.
    agreed: bool,
    /// Receiving half: CE has been seen and CWR has not since.
    echo: bool,
    /// Receiving half: CE has been seen since the last acknowledgment left.
    ce_since_ack: bool,
    /// Sending half: the window was reduced and the other side has not been told.
    cwr_due: bool,
    /// Sending half: reduced at a window of one segment; nothing may leave until the timer fires.
    waiting: bool,
    /// Sending half, ns-2's variant: the latest echo came at a window of one segment.
    at_one: bool,
}

impl ClassicEcn {
    /// Flags of the SYN (RFC 3168, 6.1.1: ECN-setup SYN has ECE and CWR).
    pub(crate) fn syn_flags(profile: &Profile) -> Flags {
        Flags::SYN.with_if(Flags::ECE | Flags::CWR, profile.ecn)
    }

    /// Flags of the SYN-ACK (ECN-setup SYN-ACK has ECE and not CWR).
    pub(crate) fn syn_ack_flags(&self) -> Flags {
        (Flags::SYN | Flags::ACK).with_if(Flags::ECE, self.agreed)
    }

    /// Passive side: a SYN with these flags arrives.
    pub(crate) fn on_syn(&mut self, flags: Flags, profile: &Profile) {
        self.agreed = profile.ecn && flags.has(Flags::ECE | Flags::CWR);
    }

    /// Active side: a SYN-ACK with these flags arrives.
    pub(crate) fn on_syn_ack(&mut self, flags: Flags, profile: &Profile) {
        self.agreed = profile.ecn && flags.has(Flags::ECE) && !flags.has(Flags::CWR);
    }

    /// Have both sides agreed?
    #[inline]
    pub(crate) fn agreed(&self) -> bool {
        self.agreed
    }

    /// Receiving half: a segment with payload arrives. CWR ends the echo, unless CE came with it or waits to
    /// be reported: a delayed acknowledgment has ECE if any segment it covers has CE (RFC 3168, 6.1.3).
    #[inline]
    pub(crate) fn on_data(&mut self, flags: Flags, ce: bool) {
        self.ce_since_ack |= self.agreed && ce;
        self.echo = (self.echo && !flags.has(Flags::CWR)) || self.ce_since_ack;
    }

    /// Receiving half: an acknowledgment leaves. Its ECE flag.
    #[inline]
    pub(crate) fn take_echo(&mut self) -> bool {
        self.ce_since_ack = false;
        self.echo
    }

    /// Sending half: reads an acknowledgment's flags.
    #[inline]
    pub(crate) fn on_ack(&mut self, flags: Flags) -> Feedback {
        let congestion = self.agreed && flags.has(Flags::ECE);
        self.at_one &= congestion;
        Feedback { congestion }
    }

    /// Sending half: the window has been reduced, for whatever reason (RFC 3168, 6.1.2).
    pub(crate) fn reduced(&mut self) {
        self.cwr_due = self.agreed;
    }

    /// Sending half: the CWR flag of the data segment that leaves now.
    #[inline]
    pub(crate) fn take_cwr(&mut self, retransmission: bool, profile: &Profile) -> bool {
        let now = self.cwr_due && (!retransmission || profile.cwr_on_retransmission);
        self.cwr_due &= !now;
        now
    }

    /// May a data segment be sent as ECN-capable?
    #[inline]
    pub(crate) fn ect(&self, retransmission: bool, fin: bool, profile: &Profile) -> bool {
        // RFC 3168, 6.1.5: not on retransmissions
        self.agreed && (!retransmission || profile.ect_on_retransmission) && (!fin || profile.ect_on_fin)
    }

    /// RFC 3168, 6.1.2: an echo at a window of one segment; wait for the timer.
    pub(crate) fn wait(&mut self) {
        self.waiting = true;
    }

    /// Is the sender waiting for its timer because of an echo?
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// The timer has fired. True if the sender was waiting for it.
    pub(crate) fn stop_waiting(&mut self) -> bool {
        core::mem::take(&mut self.waiting)
    }

    /// ns-2: notes whether this reaction happened at a window of one segment. True if the one before did too.
    pub(crate) fn reacted_at_one(&mut self, at_one: bool) -> bool {
        core::mem::replace(&mut self.at_one, at_one) && at_one
    }

    /// ns-2: does the back-off outlast this acknowledgment?
    pub(crate) fn keeps_backoff(&self) -> bool {
        self.at_one
    }
}
