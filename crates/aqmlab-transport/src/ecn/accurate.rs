//! AccECN feedback (RFC 9768): what both halves of an endpoint know of marks, once both sides have agreed to it.

use aqmlab_units::Ecn;

use super::counters::{EcnCounters, ace, least_bytes, least_packets, packets_of_bytes, safest_packets};
use super::option::AccEcnOption;
use crate::bits::Bits;
use crate::profile::{EcnOption, EcnPathTest, Profile};

/// The next pure acknowledgment answers a SYN-ACK, whose code point it reports (section 3.2.2.1).
const ANSWERS_SYN_ACK: u8 = 1;
/// An option is due with the next segment, whether or not a counter has changed.
const OPTION_DUE: u8 = 1 << 1;
/// An option is due with the first data (section 3.2.3.2.1).
const FIRST_DATA: u8 = 1 << 2;
/// No options are sent any longer (section 3.2.3.2.2).
const SENDS_NONE: u8 = 1 << 3;
/// The first data has left with an option.
const TESTED: u8 = 1 << 4;
/// An option of the other side was zeroed, so that none counts (section 3.2.3.2.4).
const ZEROED: u8 = 1 << 5;
/// No feedback has arrived since the handshake.
const UNHEARD: u8 = 1 << 6;
/// Feedback of marks is ignored, because the other side does not use AccECN after all, or something on the path
/// clears ACE (sections 3.2.2.1, note 1, and 3.2.2.4).
const DEAF: u8 = 1 << 7;

/// The counters of bytes, as bits.
const ECT0: u8 = 1;
const CE: u8 = 1 << 1;
const ECT1: u8 = 1 << 2;

/// The average number of packets that an acknowledgment acknowledges, above which ACE often seems to have wrapped
/// although it has not; appendix A.2.1: "well below 8".
const MOST_PACKETS: f32 = 4.0;
/// Weight of the latest acknowledgment in this average.
const WEIGHT: f32 = 1.0 / 64.0;

/// In how many rounds all packets must be marked before marks are deemed continuous (section 3.2.2.3: "the first
/// three or four").
const MARKED_ROUNDS: u8 = 4;

/// AccECN state of one endpoint, for both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct AccEcn {
    /// r.cep, r.ceb, r.e0b and r.e1b.
    received: EcnCounters,
    /// s.cep, s.ceb, s.e0b and s.e1b.
    heard: EcnCounters,
    notes: Bits,
    /// Counters of bytes that have ever changed, and those that have since the latest option.
    changed: Bits,
    unreported: Bits,
    /// Marked packets that have arrived since the latest acknowledgment left.
    ce_since_ack: u8,
    /// Code points of the latest packet, of the latest SYN or SYN-ACK that arrived, and of ours.
    latest: Ecn,
    syn: Ecn,
    own_syn: Ecn,
    /// A SYN or SYN-ACK of ours was marked.
    own_syn_marked: bool,
    /// How many packets an acknowledgment acknowledges, on average; 0 before the first one.
    acked: f32,
    /// The feedback of the segment that is being processed.
    marks: Option<Marks>,
    /// A SYN-ACK that arrived was marked.
    syn_ack_marked: bool,
    /// An option has arrived.
    option_heard: bool,
    /// The segment that arrives next has a newer time stamp than all before.
    newer_stamp: bool,
    /// Data that has arrived again, and whether an acknowledgment of it had an option.
    again: Option<(u64, u64)>,
    again_answered: bool,
    rounds: Option<MarkedRounds>,
    /// The latest option that was sent.
    pub option: AccEcnOption,
}

/// The rounds since the beginning, as long as each packet in them has been reported as marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MarkedRounds {
    passed: u8,
    /// The round ends when everything below this offset is acknowledged.
    end: u64,
}

/// The feedback of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub ace: u8,
    /// The segment has newer data than all others, whether or not it acknowledges anything new.
    pub newer: bool,
    pub option: AccEcnOption,
}

/// What an acknowledgment says about marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Heard {
    /// Number of packets that are newly reported as marked.
    pub ce: u32,
    /// Something on the path or the other side is at fault, so that nothing may be ECN-capable any longer.
    pub faulty: bool,
}

impl AccEcn {
    /// Creates the state when AccECN is agreed on. The SYN or SYN-ACK that agreed on it arrived with the code point
    /// `syn`; ours left, or will leave, with the code point `own_syn`.
    pub(crate) fn new(syn: Ecn, own_syn: Ecn) -> Self {
        let mut notes = Bits::none();
        notes.set(UNHEARD | OPTION_DUE);
        AccEcn {
            received: EcnCounters::INITIAL,
            heard: EcnCounters::INITIAL,
            notes,
            changed: Bits::none(),
            unreported: Bits::none(),
            ce_since_ack: 0,
            latest: Ecn::NotEct,
            syn,
            own_syn,
            own_syn_marked: false,
            acked: 0.0,
            marks: None,
            syn_ack_marked: false,
            option_heard: false,
            newer_stamp: false,
            again: None,
            again_answered: false,
            rounds: Some(MarkedRounds { passed: 0, end: 0 }),
            option: AccEcnOption::NONE,
        }
    }

    /// Returns what this side has received, and what the other side has reported.
    pub(crate) fn counters(&self) -> (EcnCounters, EcnCounters) {
        (self.received, self.heard)
    }

    /// Returns whether our SYN or SYN-ACK was marked.
    pub(crate) fn own_syn_was_marked(&self) -> bool {
        self.own_syn_marked
    }

    // Handshake.

    /// Notes that another SYN or SYN-ACK has arrived with this code point: the latest one is reported (section
    /// 3.1.5).
    pub(crate) fn syn_again(&mut self, ecn: Ecn) {
        self.syn = ecn;
        self.notes.clear(OPTION_DUE); // 3.2.3.2.2
    }

    /// Notes the code point of our SYN-ACK, and that it has no option if it is sent `again`.
    pub(crate) fn sends_syn_ack(&mut self, ecn: Ecn, again: bool) {
        self.own_syn = ecn;
        if again {
            self.notes.clear(OPTION_DUE);
        }
    }

    /// Active side: notes that a SYN-ACK has arrived with the code point `ecn`.
    pub(crate) fn on_syn_ack(&mut self, ecn: Ecn) {
        self.syn = ecn;
        self.notes.set(ANSWERS_SYN_ACK | OPTION_DUE | FIRST_DATA);
        if ecn == Ecn::Ce && !core::mem::replace(&mut self.syn_ack_marked, true) {
            self.received.ce_packets = self.received.ce_packets.wrapping_add(1); // 3.2.2.2: "no more than once"
        }
    }

    /// Returns the handshake encoding of the code point that the latest SYN or SYN-ACK had (tables 2 and 3).
    pub(crate) fn handshake_ace(&self) -> u8 {
        match self.syn {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        }
    }

    /// Returns the value of ACE if the pure acknowledgment that leaves now answers a SYN-ACK.
    pub(crate) fn take_answer(&mut self) -> Option<u8> {
        self.notes.take(ANSWERS_SYN_ACK).then(|| self.handshake_ace())
    }

    /// Processes the handshake encoding of the code point with which our SYN or SYN-ACK arrived, and returns
    /// whether something on the path changes code points (section 3.2.2.3), or the other side does not use AccECN
    /// after all.
    pub(crate) fn hear_handshake(&mut self, ace: u8) -> bool {
        let arrived = match ace {
            0b000 => {
                self.notes.set(DEAF); // table 4, note 1
                self.notes.clear(UNHEARD);
                return true;
            }
            0b010 => Ecn::NotEct,
            0b011 => Ecn::Ect1,
            0b100 => Ecn::Ect0,
            0b110 => Ecn::Ce,
            _ => return false, // unused or reserved: as if unchanged
        };
        self.own_syn_marked = arrived == Ecn::Ce;
        let valid = arrived == self.own_syn || arrived == Ecn::Ce && self.own_syn.is_capable();
        !valid
    }

    /// Passive side: processes the pure acknowledgment of our SYN-ACK (table 4).
    pub(crate) fn hear_answer(&mut self, ace: u8) -> bool {
        let faulty = self.hear_handshake(ace);
        if self.own_syn_marked {
            self.heard.ce_packets = EcnCounters::INITIAL.ce_packets + 1;
        }
        faulty
    }

    /// Tests the option of the SYN-ACK, or of the segment that acknowledges it (section 3.2.3.2.4).
    pub(crate) fn test_option(&mut self, option: &AccEcnOption) {
        self.option_heard |= option.is_present();
        let [ect0, _, ect1] = option.fields();
        self.notes.put(ZEROED, ect0 == Some(0) || ect1 == Some(0));
    }

    // Receiving half.

    /// Notes that an acceptable packet with `len` bytes of payload has arrived. Returns whether it must be
    /// acknowledged at once; `waits` means that data is unacknowledged (section 3.2.2.5.1).
    pub(crate) fn arrived(&mut self, ecn: Ecn, len: u32, waits: bool, profile: &Profile) -> bool {
        let marked = ecn == Ecn::Ce;
        let changes = len > 0 && marked != (self.latest == Ecn::Ce) && (marked || profile.ack_each_change);
        self.latest = ecn;
        if let Some(counter) = self.received.bytes_mut(ecn).filter(|_| len > 0) {
            *counter = counter.wrapping_add(len);
            let bit = [0, ECT1, ECT0, CE][ecn as usize];
            self.changed.set(bit);
            self.unreported.set(bit);
        }
        if !marked {
            return changes;
        }
        self.received.ce_packets = self.received.ce_packets.wrapping_add(1);
        self.ce_since_ack = self.ce_since_ack.saturating_add(1);
        changes || self.ce_since_ack >= if waits { 2 } else { 3 }
    }

    /// Returns the value of ACE in the segment that leaves now, and notes that it acknowledges.
    pub(crate) fn report(&mut self) -> u8 {
        self.ce_since_ack = 0;
        ace(self.received.ce_packets)
    }

    /// Returns whether segments have options when there is a reason for one.
    pub(crate) fn sends_options(&self, profile: &Profile) -> bool {
        profile.ecn_option != EcnOption::Nothing
            && !self.notes.any(SENDS_NONE)
            && (self.option_heard || !profile.ecn_option_if_heard)
    }

    /// Returns whether the segment that leaves now, which may be a SYN-ACK, has an option: if there is news, or if an
    /// option tests the path.
    pub(crate) fn owes_option(&self, syn_ack: bool, profile: &Profile) -> bool {
        if syn_ack {
            return profile.ecn_option != EcnOption::Nothing && self.notes.any(OPTION_DUE);
        }
        let due = self.notes.any(OPTION_DUE) || !self.unreported.is_empty();
        self.sends_options(profile) && (due || profile.ecn_option == EcnOption::Each)
    }

    /// Notes that data arrives of which nothing is new. If it had also arrived again before, and the acknowledgment of
    /// that had an option, then acknowledgments with options do not seem to reach the other side, and no segment has
    /// an option from now on (section 3.2.3.2.2).
    pub(crate) fn arrived_again(&mut self, from: u64, end: u64) {
        if self.again.replace((from, end)) == Some((from, end)) && self.again_answered {
            self.notes.set(SENDS_NONE);
        }
        self.again_answered = false;
    }

    /// Notes that data leaves for the first time. Returns whether it needs an option although there is no news,
    /// because it tests the path.
    pub(crate) fn sends_data(&mut self) -> bool {
        let first = self.notes.take(FIRST_DATA);
        if first {
            self.notes.set(TESTED | OPTION_DUE);
        }
        first
    }

    /// Notes that the first data is sent again. If it had an option, no segment has one from now on (section
    /// 3.2.3.2.2).
    pub(crate) fn first_data_is_lost(&mut self) {
        if self.notes.any(TESTED) {
            self.notes.set(SENDS_NONE);
        }
    }

    /// Returns the order of the option to send, and how many fields it should and must have (section 3.2.3.3).
    pub(crate) fn wanted(&self, profile: &Profile) -> (u8, u8, u8) {
        let count = |order: u8, counters: Bits| {
            let (first, last) = if order == 0 { (ECT0, ECT1) } else { (ECT1, ECT0) };
            if counters.any(last) {
                3
            } else if counters.any(CE) {
                2
            } else {
                u8::from(counters.any(first))
            }
        };
        let full = profile.ecn_option != EcnOption::Simple;
        let order = u8::from(full || self.changed.any(ECT1) && !self.changed.any(ECT0));
        let wanted = if full || self.notes.any(OPTION_DUE) { 3 } else { count(order, self.changed) };
        (order, wanted, count(order, self.unreported))
    }

    /// Notes that an option leaves with this many fields.
    pub(crate) fn sends_option(&mut self, order: u8, count: u8) {
        self.option = AccEcnOption::new(&self.received, order, count);
        self.unreported = Bits::none();
        self.notes.clear(OPTION_DUE);
        self.again_answered = true;
    }

    // Sending half.

    /// Notes whether the segment that arrives next has a newer time stamp than all before; it then supersedes them
    /// (appendix A.1).
    pub(crate) fn note_stamp(&mut self, newer: bool) {
        self.newer_stamp = newer;
    }

    /// Notes the feedback of a segment without SYN.
    pub(crate) fn note_marks(&mut self, marks: Marks) {
        self.option_heard |= marks.option.is_present();
        self.marks = Some(marks);
    }

    /// Discards the feedback of a segment, because it is an answer to a SYN-ACK.
    pub(crate) fn forget_marks(&mut self) {
        self.marks = None;
    }

    /// Processes the feedback of a segment that acknowledges this number of `packets` for the first time (sections
    /// 3.2.2.2 and 3.2.3.1). A segment that shows no progress may be older than others, so its feedback is ignored.
    /// Everything below the offset `una` is acknowledged now, and everything below `sent` has been sent.
    pub(crate) fn hear(&mut self, packets: u32, una: u64, sent: u64, profile: &Profile) -> Heard {
        let newer_stamp = core::mem::take(&mut self.newer_stamp);
        let Some(Marks { ace, newer, option }) = self.marks.take() else { return Heard::default() };
        if self.notes.take(UNHEARD) && ace == 0 && profile.ecn_path_test != EcnPathTest::Off {
            self.notes.set(DEAF); // 3.2.2.4
            return Heard { ce: 0, faulty: true };
        }
        if packets == 0 && !newer && !newer_stamp {
            return Heard::default();
        }
        let bytes = self.read_option(&option);
        let least = least_packets(ace, self.heard.ce_packets);
        let safest = safest_packets(least, packets);
        if self.acked == 0.0 {
            self.acked = packets as f32;
        } else if packets > 0 {
            self.acked += (packets as f32 - self.acked) * WEIGHT;
        }
        let ce = match bytes {
            Some(bytes) => packets_of_bytes(least, safest, bytes, profile.mss),
            None if self.acked >= MOST_PACKETS => least,
            None => safest,
        };
        self.heard.ce_packets = self.heard.ce_packets.wrapping_add(ce);
        // 3.2.3.2.5: the counter of bytes grows without that of packets, which cannot have wrapped.
        let mut faulty = bytes.is_some_and(|bytes| bytes > 0) && ce == 0 && packets < 8;
        if profile.ecn_path_test == EcnPathTest::Rounds && packets > 0 {
            faulty |= self.marks_are_continuous(ce >= packets, una, sent);
        }
        Heard { ce: if self.notes.any(DEAF) { 0 } else { ce }, faulty }
    }

    /// Notes whether `all` packets that are newly acknowledged are marked. Returns whether all those of the first
    /// rounds have been, so that marks do not count any longer (section 3.2.2.3).
    fn marks_are_continuous(&mut self, all: bool, una: u64, sent: u64) -> bool {
        let Some(rounds) = self.rounds.as_mut().filter(|_| all) else {
            self.rounds = None;
            return false;
        };
        if rounds.end == 0 {
            rounds.end = sent;
        }
        if una >= rounds.end {
            *rounds = MarkedRounds { passed: rounds.passed + 1, end: sent.max(una + 1) };
        }
        let continuous = rounds.passed >= MARKED_ROUNDS;
        if continuous {
            self.rounds = None;
            self.notes.set(DEAF);
        }
        continuous
    }

    /// Updates the counters of bytes. Returns the number of newly marked bytes, if the option tells it.
    fn read_option(&mut self, option: &AccEcnOption) -> Option<u32> {
        if !option.is_present() || self.notes.any(ZEROED) {
            return None;
        }
        let grow = |counter: &mut u32, field: Option<u32>| {
            field.map(|field| {
                let more = least_bytes(field, *counter);
                *counter = counter.wrapping_add(more);
                more
            })
        };
        let [ect0, ce, ect1] = option.fields();
        grow(&mut self.heard.ect0_bytes, ect0);
        grow(&mut self.heard.ect1_bytes, ect1);
        let marked = grow(&mut self.heard.ce_bytes, ce);
        // A counter that has never changed may be left out.
        marked.or_else(|| (self.heard.ce_bytes == 0).then_some(0))
    }
}
