//! Tests of what arrives, before the endpoint sees it (RFC 9293, 3.10.7; RFC 5961; RFC 7323, 5.3).

use aqmlab_units::{Instant, Span};

use super::segment::is_below;
use super::{WireEndpoint, WireSegment};
use crate::connection::State;
use crate::sack::Options;
use crate::segment::{Extras, Flags, Segment};
use crate::stamps::{Stamps, is_before};

/// Bytes of a SACK option without its blocks, and of a block (RFC 2018, 3).
const SACK_BYTES: u8 = 2;
const BLOCK_BYTES: u8 = 8;

/// How many answers to segments that may be forged leave in a period (RFC 5961, 7).
const MOST_CHALLENGES: u32 = 10;
/// The length of such a period.
const PERIOD: Span = Span::s(5);

/// What becomes of a segment.
enum Verdict {
    /// The endpoint processes it.
    Pass,
    /// It is dropped, and an acknowledgment says what is expected.
    Acknowledge,
    /// The same, but such acknowledgments are limited in number, because the segment may be forged.
    Challenge,
    /// It is dropped.
    Drop,
    /// It is dropped and answered with a RST.
    Refuse,
}

impl WireEndpoint {
    /// Processes an arriving segment.
    pub fn on_segment(&mut self, now: Instant, seg: &WireSegment) {
        match self.judge(seg) {
            Verdict::Drop => return,
            Verdict::Refuse => self.answer = seg.refusal(),
            Verdict::Challenge if !self.may_challenge(now) => {}
            Verdict::Acknowledge | Verdict::Challenge => self.endpoint.acknowledge(),
            Verdict::Pass => self.pass(now, seg),
        }
        self.endpoint.acknowledge_apart(&self.profile);
        self.fetch_events(now);
        self.watch_window(now);
    }

    fn judge(&mut self, seg: &WireSegment) -> Verdict {
        match self.endpoint.state() {
            State::Closed => Verdict::Refuse,
            State::Listen if seg.flags.has(Flags::RST) => Verdict::Drop,
            State::Listen if seg.flags.has(Flags::ACK) => Verdict::Refuse,
            State::Listen if !seg.flags.has(Flags::SYN) => Verdict::Drop,
            State::SynSent => self.judge_answer(seg),
            State::Listen => {
                self.agree(seg);
                Verdict::Pass
            }
            _ => self.judge_synchronised(seg),
        }
    }

    /// RFC 9293, 3.10.7.3.
    fn judge_answer(&mut self, seg: &WireSegment) -> Verdict {
        let wrong = seg.flags.has(Flags::ACK) && seg.ack != self.endpoint.newest(&self.profile);
        match () {
            () if wrong && seg.flags.has(Flags::RST) => Verdict::Drop,
            () if wrong => Verdict::Refuse,
            () if seg.flags.has(Flags::SYN) && !seg.flags.has(Flags::RST) => {
                self.agree(seg);
                Verdict::Pass
            }
            () => Verdict::Pass,
        }
    }

    /// RFC 9293, 3.10.7.4, with the changes of RFC 5961 and RFC 7323.
    fn judge_synchronised(&mut self, seg: &WireSegment) -> Verdict {
        let (next, reset) = (self.endpoint.expected(), seg.flags.has(Flags::RST));
        if self.agreed.stamps && !reset {
            // RFC 7323, 5.3, R1.
            let old = seg.options.stamps.is_some_and(|(value, _)| is_before(value, self.recent));
            if old {
                return Verdict::Acknowledge;
            }
        }
        let opening = self.endpoint.state() == State::SynReceived;
        if opening && seg.flags.has(Flags::SYN) && !reset {
            return Verdict::Pass; // the SYN again, or a simultaneous open
        }
        if reset {
            return self.judge_reset(seg, next);
        }
        if !self.is_acceptable(seg, next) {
            return Verdict::Acknowledge;
        }
        if seg.flags.has(Flags::SYN) {
            if seg.flags.has(Flags::ACK) {
                self.endpoint.hear_late_syn_ack(seg.ecn);
            }
            return Verdict::Challenge; // RFC 5961, 4.2
        }
        if !seg.flags.has(Flags::ACK) {
            return Verdict::Drop;
        }
        let (oldest, newest) = (self.endpoint.oldest(&self.profile), self.endpoint.newest(&self.profile));
        // RFC 5961, 5.2.
        let acceptable =
            !is_below(newest, seg.ack) && !is_below(seg.ack, oldest.wrapping_sub(self.largest_peer_window));
        if opening && (!acceptable || seg.ack == oldest) {
            return Verdict::Refuse; // RFC 9293, 3.10.7.4, fifth
        }
        if !acceptable {
            return Verdict::Challenge;
        }
        if self.deaf && seg.len > 0 && is_below(next, seg.end()) {
            self.endpoint.abort(); // RFC 1122, 4.2.2.13
            while self.endpoint.poll_transmit(Instant::ZERO, &self.profile).is_some() {}
            return Verdict::Refuse;
        }
        self.note_stamp(seg);
        Verdict::Pass
    }

    /// RFC 5961, 3.2: only a RST with exactly the expected number resets the connection.
    fn judge_reset(&mut self, seg: &WireSegment, next: u32) -> Verdict {
        let reach = self.buffer.reach(next);
        match seg.seq.wrapping_sub(next) {
            0 => Verdict::Pass,
            ahead if ahead < reach => Verdict::Challenge,
            _ => Verdict::Drop,
        }
    }

    /// Returns whether another answer to a segment that may be forged may leave, and counts it.
    fn may_challenge(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.challenges.0) >= PERIOD {
            self.challenges = (now, 0);
        }
        self.challenges.1 += 1;
        self.challenges.1 <= MOST_CHALLENGES
    }

    /// RFC 9293, 3.10.7.4, first: whether the segment is in the window, with which the buffer can store it.
    fn is_acceptable(&mut self, seg: &WireSegment, next: u32) -> bool {
        let (reach, offered) = (self.buffer.reach(next), self.buffer.offered(next));
        let ahead = seg.seq.wrapping_sub(next) as i32;
        let end = seg.end().wrapping_sub(next) as i32;
        let empty = seg.len == 0 && !seg.flags.has(Flags::FIN);
        if end <= 0 && seg.len > 0 {
            return true; // all of it has arrived already, which the endpoint may report (RFC 2883)
        }
        if end < 0 || ahead > 0 && ahead as u32 >= reach && !(empty && ahead as u32 == reach) {
            return false;
        }
        if empty {
            return true;
        }
        if seg.len == 0 {
            return true; // a FIN needs no room
        }
        if !self.settings.refuses_excess {
            return offered > 0;
        }
        let in_window = if ahead > 0 { (ahead as u32) < offered } else { offered > 0 };
        let fits = end as u32 <= reach || self.buffer.unread() == 0;
        let stores = in_window && fits && !self.buffer.is_exhausted();
        if !stores && ahead < 0 {
            self.endpoint.report_duplicate(seg.seq, next, &self.profile);
        }
        stores
    }

    /// RFC 7323, 4.3: TS.Recent is the stamp of the segment that the next acknowledgment answers.
    fn note_stamp(&mut self, seg: &WireSegment) {
        self.newer_stamp = false;
        let Some((value, _)) = seg.options.stamps.filter(|_| self.agreed.stamps) else { return };
        self.newer_stamp = is_before(self.recent, value);
        if !is_before(value, self.recent) && !is_below(self.last_ack, seg.seq) {
            self.recent = value;
        }
    }

    /// Hands a segment to the endpoint.
    fn pass(&mut self, now: Instant, seg: &WireSegment) {
        let syn = seg.flags.has(Flags::SYN);
        let scale = if syn { 0 } else { self.agreed.peer_scale.unwrap_or(0) };
        let window = u32::from(seg.window) << scale;
        self.largest_peer_window = self.largest_peer_window.max(window);
        let next = self.endpoint.expected();
        let in_order = !is_below(next, seg.seq) && seg.len > 0;
        let excess = in_order && seg.end().wrapping_sub(next) as i32 > self.buffer.reach(next) as i32;
        let full = seg.flags.has(Flags::FIN) && self.buffer.is_exhausted();
        if seg.len > 0 && is_below(next, seg.end()) && self.endpoint.state().is_synchronised() {
            self.buffer.store(seg.len);
        }
        // What was accepted here must be acceptable to the endpoint.
        let end = seg.end().wrapping_sub(next);
        let reach = self.buffer.reach(next).max(self.profile.mss);
        self.profile.receive_window = if (end as i32) > 0 { reach.max(end) } else { reach };
        let echo = seg.options.stamps.map(|(_, echo)| echo);
        let again = echo.filter(|echo| self.first_again.is_some_and(|first| !is_before(*echo, first)));
        let stamps = Stamps { value: None, echo: again.filter(|_| self.agreed.stamps) };
        let blocks = seg.options.sack.blocks().len() as u8;
        let accurate_ecn = seg.options.accurate_ecn;
        let accurate_ecn_bytes =
            if accurate_ecn.is_present() { (accurate_ecn.wire_len() as u8).next_multiple_of(4) } else { 0 };
        let segment = Segment {
            seq: seg.seq,
            ack: seg.ack,
            len: seg.len,
            flags: seg.flags,
            window,
            ecn: seg.ecn,
            extras: Extras::NONE
                .with_if(Extras::SACK_PERMITTED, syn && seg.options.sack_permitted)
                .with_if(Extras::STAMPED, stamps.echo.is_some())
                .with_accurate_ecn(accurate_ecn_bytes),
            sack_len: if blocks == 0 { 0 } else { SACK_BYTES + BLOCK_BYTES * blocks },
        };
        self.endpoint.note_newer_stamp(core::mem::take(&mut self.newer_stamp));
        if segment.has_options() && (!syn || accurate_ecn.is_present()) {
            let options = Options { sack: seg.options.sack, stamps, accurate_ecn };
            self.endpoint.on_segment_with_options(now, &segment, &options, &self.profile);
        } else {
            self.endpoint.on_segment(now, &segment, &self.profile);
        }
        self.limit_segments();
        if full {
            self.endpoint.acknowledge();
        } else if excess && self.settings.refuses_excess {
            self.endpoint.postpone_acknowledgment(now, &self.profile); // Linux: the window has closed
        }
        if self.endpoint.oldest(&self.profile) == self.endpoint.newest(&self.profile) {
            self.first_again = None;
        }
        if self.is_closed() {
            self.answer = None;
        }
    }
}
