//! Processing with SACK: acknowledgments update the scoreboard, which decides what is sent as long
//! as it has any entry (RFC 6675, section 5).

use aqmlab_units::Instant;

use super::{Endpoint, SELECTIVE};
use crate::profile::{Profile, Recovery, SackPipe};
use crate::recovery::{Hole, Scoreboard};
use crate::sack::Sack;
use crate::segment::{Extras, Segment};
use crate::sequence::from_wire;

/// The next data to send, chosen by the scoreboard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// The start of a hole.
    Hole(Hole),
    /// Data not sent yet.
    New,
    /// The end of the outstanding data, which is sent again because nothing else would show whether
    /// it arrived.
    Rescue(Hole),
}

impl Endpoint {
    /// Returns how losses are repaired; SACK is used only if both sides have permitted it.
    #[inline]
    pub(super) fn scheme(&self, profile: &Profile) -> Recovery {
        match profile.recovery {
            Recovery::Sack if !self.uses_sack() => Recovery::NewReno,
            scheme => scheme,
        }
    }

    /// Processes a SYN or SYN-ACK: RFC 2018, section 2.
    pub(super) fn negotiate_sack(&mut self, seg: &Segment, profile: &Profile) {
        self.receiver
            .permit_sack(seg.extras.has(Extras::SACK_PERMITTED) && profile.recovery == Recovery::Sack);
    }

    /// Update() of RFC 6675, section 4. Returns true if the acknowledgment reports new arrivals beyond its
    /// acknowledgment number: section 2 then defines it as a duplicate, whatever else it does.
    pub(super) fn update_scoreboard(
        &mut self,
        seg: &Segment,
        ack: u64,
        sack: &Sack,
        profile: &Profile,
    ) -> bool {
        let trouble = self.troubles.get();
        let in_use =
            trouble.recovery.is_recovering() || trouble.board.as_ref().is_some_and(|b| !b.is_empty());
        if sack.blocks().is_empty() && !in_use {
            return false;
        }
        let (una, sent) = (self.una, self.sent());
        let trouble = self.troubles.note();
        let board = trouble.board.get_or_insert_default();
        if !in_use {
            board.clear(una);
        }
        let ns2 = profile.sack_pipe == SackPipe::Ns2;
        if ns2 && ack <= una && (trouble.recovery.is_deaf() || ack < una && !trouble.recovery.is_recovering())
        {
            return false;
        }
        if ns2 && trouble.recovery.is_recovering() && seg.sequence_len() == 0 {
            board.counter -= 1;
        }
        board.acknowledge(una.max(ack));
        let offset = |number| from_wire(profile.initial_sequence, number, una);
        let mut news = 0;
        for (from, to) in sack.blocks() {
            if let (Some(from), Some(to)) = (offset(*from), offset(*to)) {
                news += board.sack(from, to, sent);
            }
        }
        news > 0 && (!ns2 || ack == una)
    }

    /// Notes, after an acknowledgment, whether the scoreboard decides what is sent and must
    /// therefore see the next acknowledgment.
    pub(super) fn note_scoreboard(&mut self, profile: &Profile) {
        let trouble = self.troubles.get();
        let told =
            profile.sack_pipe == SackPipe::Rfc6675 && trouble.board.as_ref().is_some_and(|b| !b.is_empty());
        let decides = told || trouble.recovery.is_recovering();
        self.notes.put(SELECTIVE, decides);
        self.unsettled |= decides;
    }

    /// RFC 6675, section 4: returns whether the first unacknowledged octet counts as lost.
    pub(super) fn first_is_lost(&self, profile: &Profile) -> bool {
        let board = self.troubles.get().board.as_ref();
        board.is_some_and(|board| board.lost(profile).covers(self.una))
    }

    /// Begins recovery; RFC 6675, section 5, steps 4.3 and 4.4 follow as segments leave.
    pub(super) fn begin_selective_recovery(&mut self, profile: &Profile) {
        let outstanding = i64::from(self.unacked / profile.mss);
        let board =
            self.troubles.note().board.as_mut().expect("new reports have already created the scoreboard");
        board.begin();
        board.counter = outstanding - i64::from(profile.dupthresh);
        self.notes.set(SELECTIVE);
        if profile.sack_pipe == SackPipe::Ns2 {
            self.burst = 0; // the retransmission alone
        }
    }

    /// Processes new data acknowledged during recovery.
    pub(super) fn on_partial_ack_with_sack(&mut self, now: Instant, ack: u64, profile: &Profile) {
        self.rto.arm(now, profile); // RFC 6675, section 6; RFC 6298, 5.3
        match profile.sack_pipe {
            SackPipe::Rfc6675 | SackPipe::Segments => self.rto.partially_acked(ack),
            SackPipe::Ns2 => {
                self.rto.forget_backoff();
                // A partial ACK takes two segments off the counter: one that has arrived, as for
                // any ACK, and the lost one before it, which is subtracted here.
                self.troubles.note().board.as_mut().expect("recovery has one").counter -= 1;
            }
        }
    }

    /// Returns whether an acknowledgment that covers no new data ends recovery. ns-2's Sack1 agent
    /// ends it at any acknowledgment that covers its `recover_`, which does not change if a mark
    /// has already reduced the window.
    pub(super) fn ends_by_repetition(&self, ack: u64, profile: &Profile) -> bool {
        let recovery = &self.troubles.get().recovery;
        ack == self.una
            && profile.sack_pipe == SackPipe::Ns2
            && recovery.is_recovering()
            && ack >= recovery.recover()
    }

    /// Handles an acknowledgment of new data outside recovery: if the sender follows ns-2's Sack1
    /// agent, it forgets the scoreboard.
    pub(super) fn forget_scoreboard_in_ns2(&mut self, profile: &Profile) {
        let told = self.troubles.get().board.as_ref().is_some_and(|board| !board.is_empty());
        if told && profile.sack_pipe == SackPipe::Ns2 {
            let una = self.una;
            self.board_mut().clear(una);
        }
    }

    /// Returns the segment at `una`, for a fast retransmit (RFC 5681, 3.2, step 3; RFC 6675,
    /// section 5, step 4.3).
    pub(super) fn retransmit_first(&mut self, now: Instant, profile: &Profile) -> Segment {
        if self.scheme(profile) != Recovery::Sack {
            return self.data(now, 0, u32::MAX, profile).0;
        }
        let hole = self.board().gap_from(self.una);
        let (segment, to) = self.send_hole(now, hole, profile);
        self.board_mut().first_retransmitted(to);
        segment
    }

    /// Returns the next segment as long as the scoreboard has any entry.
    pub(super) fn transmit_selectively(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if self.burst == 0 {
            return None;
        }
        let segment = if !self.is_recovering() {
            self.transmit_past_sacked(now, profile)?
        } else {
            let choice = match profile.sack_pipe {
                SackPipe::Rfc6675 | SackPipe::Segments => self.next_seg(profile)?,
                SackPipe::Ns2 => self.next_seg_in_ns2(profile)?,
            };
            self.board_mut().counter += 1;
            self.transmit_choice(now, choice, profile)
        };
        self.burst -= 1;
        Some(segment)
    }

    /// Returns whether [`Endpoint::transmit_selectively`] would return a segment, provided the limit on
    /// bursts permits it. ns-2's Sack1 agent checks only its counter before it waits, and may find after
    /// the wait that nothing fits.
    pub(super) fn wants_to_send_selectively(&mut self, profile: &Profile) -> bool {
        match profile.sack_pipe {
            _ if !self.is_recovering() => self.fits_past_sacked(profile),
            SackPipe::Rfc6675 | SackPipe::Segments => self.next_seg(profile).is_some(),
            SackPipe::Ns2 => {
                self.has_room_in_ns2(profile) && (self.has_data() || self.board().next_hole().is_some())
            }
        }
    }

    /// RFC 6675, section 5, steps (C) and C.1: returns the result of NextSeg(), defined in section
    /// 4, if the pipe has room.
    fn next_seg(&self, profile: &Profile) -> Option<Choice> {
        let (board, sent) = (self.board(), self.sent());
        let lost = board.lost(profile);
        let mss = u64::from(profile.mss);
        if board.pipe(lost, sent) + mss > self.usable_segments(profile) * mss {
            return None;
        }
        let hole = board.next_hole();
        if let Some(hole) = hole.filter(|hole| lost.covers(hole.from)) {
            return Some(Choice::Hole(hole)); // rule 1
        }
        if self.has_data() && self.fits(self.reach(profile), profile) {
            return Some(Choice::New); // rule 2
        }
        // rule 3, then rule 4
        hole.map(Choice::Hole).or_else(|| board.rescue(sent, profile.mss).map(Choice::Rescue))
    }

    /// ns-2's Sack1 agent: if its counter is below the window, returns the next hole below a SACKed
    /// segment or, if there is no such hole, new data.
    fn next_seg_in_ns2(&self, profile: &Profile) -> Option<Choice> {
        if !self.has_room_in_ns2(profile) {
            return None;
        }
        let reach = self.reach(profile);
        match self.board().next_hole() {
            Some(hole) => {
                (hole.from - self.una + u64::from(profile.mss) <= reach).then_some(Choice::Hole(hole))
            }
            None => (self.has_data() && self.fits(reach, profile)).then_some(Choice::New),
        }
    }

    fn has_room_in_ns2(&self, profile: &Profile) -> bool {
        self.board().counter < self.usable_segments(profile) as i64
    }

    fn transmit_choice(&mut self, now: Instant, choice: Choice, profile: &Profile) -> Segment {
        match choice {
            Choice::New => self.new_data(now, profile),
            Choice::Hole(hole) => {
                let (segment, to) = self.send_hole(now, hole, profile);
                self.board_mut().retransmitted(hole.from, to);
                // After a timeout, the sending position may not yet have reached this point.
                self.flight = self.flight.max((to - self.una) as u32);
                segment
            }
            Choice::Rescue(hole) => {
                let recover = self.troubles.get().recovery.recover();
                let (segment, _) = self.send_hole(now, hole, profile);
                self.board_mut().rescued(recover);
                segment
            }
        }
    }

    /// Returns a segment that starts at the beginning of a hole, and the offset up to which it
    /// fills the hole.
    fn send_hole(&mut self, now: Instant, hole: Hole, profile: &Profile) -> (Segment, u64) {
        let most = (hole.to - hole.from).min(u64::from(u32::MAX)) as u32;
        let again = hole.from < self.sent();
        let (segment, end) = self.data(now, (hole.from - self.una) as u32, most, profile);
        let to = (self.una + u64::from(end)).min(hole.to);
        if again {
            self.rto.retransmitted(hole.from, to);
        }
        (segment, to)
    }

    /// Outside recovery, returns the segment at the current sending position, after skipping SACKed
    /// data. The window counts only data in the network, without SACKed data. Limited transmit thus
    /// sends according to pipe and cwnd (RFC 6675, section 5, step 3), and after a timeout, the
    /// "filling in" of section 5.1 goes from hole to hole.
    fn transmit_past_sacked(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if !self.fits_past_sacked(profile) {
            return None;
        }
        let again = self.flight < self.unacked;
        let window = self.usable_segments(profile) * u64::from(profile.mss);
        let hole = self.board().gap_from(self.next());
        let (segment, to) = self.send_hole(now, hole, profile);
        self.flight = (to - self.una) as u32;
        if !again && u64::from(self.flight) > window {
            self.troubles.note().recovery.sent_limited(segment.len);
        }
        Some(segment)
    }

    /// Moves the sending position past SACKed data, and returns whether the segment there may
    /// leave.
    fn fits_past_sacked(&mut self, profile: &Profile) -> bool {
        let next = self.board().gap_from(self.next()).from;
        self.flight = (next - self.una) as u32;
        let again = self.flight < self.unacked;
        let arrived = if again || profile.limited_transmit { self.board().sacked_below(next) } else { 0 };
        let window = self.usable_segments(profile) * u64::from(profile.mss);
        self.has_data() && self.fits((window + arrived).min(self.reach(profile)), profile)
    }

    /// Returns how far segments may reach beyond `una`, in bytes, regardless of the congestion
    /// window.
    pub(super) fn reach(&self, profile: &Profile) -> u64 {
        (u64::from(profile.max_window) * u64::from(profile.mss)).min(u64::from(self.peer_window))
    }

    fn board(&self) -> &Scoreboard {
        self.troubles.get().board.as_deref().expect("the scoreboard decides what is sent")
    }

    fn board_mut(&mut self) -> &mut Scoreboard {
        self.troubles.note().board.as_deref_mut().expect("the scoreboard decides what is sent")
    }
}
