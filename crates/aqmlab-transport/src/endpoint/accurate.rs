//! AccECN in an endpoint (RFC 9768): which segments it counts, what it reports in those that leave, and what it
//! learns from those that arrive. The state is in [`AccEcn`].

use alloc::boxed::Box;

use aqmlab_units::Ecn;

use super::output::code_point;
use super::{Endpoint, REFLECTING};
use crate::connection::State;
use crate::ecn::{AccEcn, AccEcnOption, EcnCounters, Heard, Marks, SynAgain};
use crate::profile::{EcnFallback, EcnOption, EcnPathTest, Profile};
use crate::sack::{BLOCK_BYTES, Options};
use crate::segment::{Extras, Flags, Segment};
use crate::sequence::from_wire;

/// Bytes of TCP options for which a header has room (RFC 9293, section 3.1).
const MOST_OPTIONS: u32 = 40;
/// Bytes of a header without options, IP and TCP.
const PLAIN_HEADER: u32 = 40;
/// An option of AccECN leaves room for this many SACK blocks, if there are as many (section 3.2.3.3).
const PRECEDING_BLOCKS: u32 = 2;

impl Endpoint {
    /// Returns whether both sides have agreed on AccECN feedback (RFC 9768).
    pub fn uses_accurate_ecn(&self) -> bool {
        self.ecn.is_accurate()
    }

    /// Returns, with AccECN, what this side has received with each code point, and what it has heard that the other
    /// side has received.
    pub fn ecn_counters(&self) -> Option<(EcnCounters, EcnCounters)> {
        self.troubles.get().accurate.as_ref().map(|accurate| accurate.counters())
    }

    #[inline]
    fn accurate(&mut self) -> Option<&mut AccEcn> {
        self.troubles.get_mut().and_then(|trouble| trouble.accurate.as_deref_mut())
    }

    /// Creates the state of AccECN if it has been agreed on by a SYN or SYN-ACK with this code point.
    #[cold]
    fn begin_accurate(&mut self, syn: Ecn, own_syn: Ecn) -> Option<&mut AccEcn> {
        if !self.ecn.is_accurate() {
            return None;
        }
        self.notes.set(REFLECTING);
        let accurate = &mut self.troubles.note().accurate;
        Some(accurate.insert(Box::new(AccEcn::new(syn, own_syn))))
    }

    /// Passive side: agrees on a kind of feedback, if the SYN requests one.
    pub(super) fn agree_on_feedback(&mut self, syn: &Segment, profile: &Profile) {
        self.ecn.on_syn(syn.flags, profile);
        self.begin_accurate(syn.ecn, Ecn::NotEct);
    }

    /// Active side: learns from a SYN-ACK which kind of feedback is agreed on.
    pub(super) fn learn_feedback(&mut self, syn_ack: &Segment, options: &Options, profile: &Profile) {
        let own_syn = code_point(self.ecn.asks(profile) && profile.ect_on_syn);
        self.ecn.on_syn_ack(syn_ack.flags, profile);
        let Some(accurate) = self.begin_accurate(syn_ack.ecn, own_syn) else { return };
        let faulty = accurate.hear_handshake(syn_ack.flags.ace());
        accurate.on_syn_ack(syn_ack.ecn);
        accurate.test_option(&options.accurate_ecn);
        if faulty && profile.ecn_path_test != EcnPathTest::Off {
            self.ecn.send_nothing_capable();
        }
    }

    /// Processes a SYN or SYN-ACK that arrives again. Returns false if it contradicts an earlier one, so that the
    /// connection is reset.
    #[cold]
    pub(super) fn hear_syn_again(&mut self, seg: &Segment, profile: &Profile) -> bool {
        if self.state == State::SynReceived {
            if self.ecn.on_syn_again(seg.flags, profile) == SynAgain::Contradicts {
                self.abort();
                return false;
            }
            if let Some(accurate) = self.accurate() {
                accurate.syn_again(seg.ecn);
            }
        } else if seg.flags.has(Flags::ACK) {
            self.hear_late_syn_ack(seg.ecn);
        }
        true
    }

    /// Notes that a SYN-ACK has arrived again once the connection is established. Its flags are ignored; the
    /// acknowledgment that answers it reports its code point (sections 3.1.5 and 3.2.2.1).
    #[cold]
    pub(crate) fn hear_late_syn_ack(&mut self, ecn: Ecn) {
        if let Some(accurate) = self.accurate() {
            accurate.on_syn_ack(ecn);
        }
    }

    /// Notes whether the segment that arrives next has a newer time stamp than all before.
    pub(crate) fn note_newer_stamp(&mut self, newer: bool) {
        if let Some(accurate) = self.accurate() {
            accurate.note_stamp(newer);
        }
    }

    /// Returns whether segments have options of AccECN when there is a reason for one.
    pub(crate) fn sends_accurate_options(&self, profile: &Profile) -> bool {
        self.troubles.get().accurate.as_ref().is_some_and(|accurate| accurate.sends_options(profile))
    }

    /// Returns whether a SYN or SYN-ACK of this side is known to have been marked. The connection then begins with a
    /// window of one segment (RFC 5562, section 3).
    pub(super) fn own_syn_was_marked(&self) -> bool {
        self.troubles.get().accurate.as_ref().is_some_and(|accurate| accurate.own_syn_was_marked())
    }

    /// Passive side: processes what the segment that acknowledges the SYN-ACK says about it.
    #[cold]
    pub(super) fn hear_answer(&mut self, seg: &Segment, options: &Options, profile: &Profile) {
        let Some(accurate) = self.accurate() else { return };
        accurate.test_option(&options.accurate_ecn);
        let encoded = seg.sequence_len() == 0 && options.sack.blocks().is_empty();
        if !encoded {
            return;
        }
        accurate.forget_marks();
        let ace = seg.flags.ace();
        if accurate.hear_answer(ace) && (ace == 0 || profile.ecn_path_test != EcnPathTest::Off) {
            self.ecn.send_nothing_capable();
        }
    }

    /// Notes the feedback of a segment; [`Endpoint::hear_marks`] processes it once it is known how much the segment
    /// acknowledges.
    #[cold]
    pub(super) fn note_marks(&mut self, seg: &Segment, options: &Options) {
        let newer = seg.len > 0 && (seg.seq.wrapping_sub(self.receiver.next_on_wire()) as i32) >= 0;
        let marks = Marks { ace: seg.flags.ace(), newer, option: options.accurate_ecn };
        if !seg.flags.has(Flags::SYN)
            && let Some(accurate) = self.accurate()
        {
            accurate.note_marks(marks);
        }
    }

    /// Processes the feedback of a segment that newly acknowledges this number of packets, and everything below the
    /// offset `una`. Returns how many packets it newly reports as marked.
    #[cold]
    pub(super) fn hear_marks(&mut self, packets: u32, una: u64, profile: &Profile) -> u32 {
        let sent = self.sent();
        let Heard { ce, faulty } =
            self.accurate().map_or(Heard::default(), |accurate| accurate.hear(packets, una, sent, profile));
        if faulty {
            self.ecn.send_nothing_capable();
        }
        ce
    }

    /// Counts a segment that arrives at the offset `from`, if it is acceptable, and requests an immediate
    /// acknowledgment if its mark requires one.
    #[cold]
    pub(super) fn reflect(&mut self, from: u64, seg: &Segment, profile: &Profile) {
        let (next, end) = (self.receiver.next(), from + seg.sequence_len());
        if seg.len > 0
            && end <= next
            && let Some(accurate) = self.accurate()
        {
            accurate.arrived_again(from, end);
        }
        let acceptable = if end == from {
            next <= from && from < next + u64::from(profile.receive_window)
        } else {
            self.receiver.accepts(from, end, profile) || profile.echo_outside_window
        };
        if !acceptable || seg.flags.has(Flags::SYN) {
            return;
        }
        let waits = seg.len > 0 || self.receiver.delays_ack();
        if self.accurate().is_some_and(|accurate| accurate.arrived(seg.ecn, seg.len, waits, profile)) {
            self.receiver.ack_now();
        }
    }

    /// Completes a SYN-ACK, which has these flags, if AccECN is agreed on: it reports the code point of the latest
    /// SYN, with an option unless it is sent again; after its second timeout, it does not agree any longer (sections
    /// 3.1.1 and 3.2.3.2.2).
    #[cold]
    pub(super) fn accurate_syn_ack(&mut self, segment: &mut Segment, again: bool, profile: &Profile) {
        let repeated = self.syns_repeated();
        let falls_back = profile.ecn_fallback != EcnFallback::Off && repeated > 1;
        let ecn = segment.ecn;
        let Some(accurate) = self.accurate() else { return };
        accurate.sends_syn_ack(ecn, again);
        let ace = if falls_back { 0 } else { accurate.handshake_ace() };
        segment.flags = segment.flags.with_ace(ace);
        if falls_back {
            segment.ecn = Ecn::NotEct;
            self.ecn.send_nothing_capable(); // 3.1.5
        } else {
            (segment.sack_len, segment.extras) = self.accurate_option(true, 0, segment.extras, profile);
        }
    }

    /// Returns ECT(1) in place of ECT(0) for a scalable sender (RFC 9331, 4.1). Without AccECN, it does not hear how many
    /// segments are marked, and does not claim to be scalable (4.2).
    pub(super) fn scalable(&self, ecn: Ecn, profile: &Profile) -> Ecn {
        if ecn == Ecn::Ect0 && profile.answers_marks() { Ecn::Ect1 } else { ecn }
    }

    /// Returns the segment that `poll` returns, completed with what it says about marks. This is apart from
    /// [`super::output`], so that other endpoints build their segments in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn reflecting(
        &mut self,
        poll: impl FnOnce(&mut Self) -> Option<Segment>,
        profile: &Profile,
    ) -> Option<Segment> {
        let sent = self.sent();
        self.notes.clear(REFLECTING);
        let segment = poll(self);
        self.notes.set(REFLECTING);
        segment.map(|segment| self.with_marks(segment, sent, profile))
    }

    /// Completes a segment that leaves now; everything below the offset `sent` had been sent before it.
    fn with_marks(&mut self, mut segment: Segment, sent: u64, profile: &Profile) -> Segment {
        if segment.flags.has(Flags::SYN) {
            return segment; // completed by `accurate_syn_ack`
        }
        (segment.flags, segment.sack_len, segment.extras) =
            self.accurate_report(segment.flags, segment.sack_len, segment.extras, profile);
        if segment.len > 0 {
            let from = from_wire(profile.initial_sequence, segment.seq, sent).unwrap_or(sent);
            (segment.sack_len, segment.extras) =
                self.accurate_data(from, from < sent, segment.sack_len, segment.extras, profile);
        } else if !segment.flags.has(Flags::RST) {
            if !segment.flags.has(Flags::FIN) {
                segment.flags = self.accurate_answer(&segment);
            }
            if profile.ect_on_ack && self.ecn.agreed() {
                segment.ecn = Ecn::Ect0;
            }
        }
        segment.ecn = self.scalable(segment.ecn, profile);
        segment
    }

    /// Returns the flags and the options of the segment that leaves now: ACE, and an option if one is due and there
    /// is room.
    #[cold]
    pub(super) fn accurate_report(
        &mut self,
        flags: Flags,
        sack_len: u8,
        extras: Extras,
        profile: &Profile,
    ) -> (Flags, u8, Extras) {
        let ace = self.accurate().map_or(0, AccEcn::report);
        let (sack_len, extras) = self.accurate_option(false, sack_len, extras, profile);
        (flags.with_ace(ace), sack_len, extras)
    }

    /// Adds an option, if one is due and there is room: first to those that a segment has, whose SACK option may then
    /// have fewer blocks.
    fn accurate_option(
        &mut self,
        syn_ack: bool,
        sack_len: u8,
        extras: Extras,
        profile: &Profile,
    ) -> (u8, Extras) {
        if profile.has_packet_numbers() {
            return (sack_len, extras); // a datagram has no options, and its ACK frame takes this length
        }
        let others = profile.header.saturating_sub(PLAIN_HEADER);
        let room = MOST_OPTIONS.saturating_sub(others);
        let overhead = profile.sack_overhead;
        let Some(accurate) = self.accurate().filter(|accurate| accurate.owes_option(syn_ack, profile)) else {
            return (sack_len, extras);
        };
        let blocks = u32::from(sack_len).saturating_sub(overhead) / BLOCK_BYTES;
        let (order, wanted, needed) = accurate.wanted(profile);
        for count in (needed..=wanted).rev() {
            let len = AccEcnOption::padded(count);
            let left = room.saturating_sub(u32::from(len));
            let most = left.saturating_sub(overhead) / BLOCK_BYTES;
            if u32::from(len) > room || most < blocks.min(PRECEDING_BLOCKS) {
                continue;
            }
            accurate.sends_option(order, count);
            let kept = blocks.min(most);
            let sack_len = if kept == 0 { 0 } else { (overhead + kept * BLOCK_BYTES) as u8 };
            return (sack_len, extras.with_accurate_ecn(len));
        }
        (sack_len, extras)
    }

    /// Returns the options of data that leaves now, given those that its acknowledgment needs: the first data has an
    /// option that tests the path; if it is sent again, it has none (sections 3.2.3.2.1 and 3.2.3.2.2).
    #[cold]
    pub(super) fn accurate_data(
        &mut self,
        from: u64,
        again: bool,
        sack_len: u8,
        extras: Extras,
        profile: &Profile,
    ) -> (u8, Extras) {
        let has_option = extras.accurate_ecn_len() > 0;
        // If each segment has an option, so have those that are known to have arrived: options get through.
        let arrived = profile.ecn_option == EcnOption::Each && self.info(profile).sacked > 0;
        let Some(accurate) = self.accurate() else { return (sack_len, extras) };
        if again {
            if from == 1 && !arrived {
                accurate.first_data_is_lost();
                return (sack_len, extras.with_accurate_ecn(0));
            }
            return (sack_len, extras);
        }
        if accurate.sends_data() && !has_option {
            return self.accurate_option(false, sack_len, extras, profile);
        }
        (sack_len, extras)
    }

    /// Returns the flags of a pure acknowledgment: the first one after a SYN-ACK reports its code point (section
    /// 3.2.2.1).
    #[cold]
    pub(super) fn accurate_answer(&mut self, segment: &Segment) -> Flags {
        let answer = if segment.sack_len == 0 { self.accurate().and_then(AccEcn::take_answer) } else { None };
        answer.map_or(segment.flags, |ace| segment.flags.with_ace(ace))
    }
}
