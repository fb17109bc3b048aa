//! The receiving side of frames: which are complete, late or lost, and when the picture freezes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_traffic::End;
use aqmlab_units::{Instant, Span};

use crate::talk::{LIFETIME, Noticed, Unfinished};

/// The mean time between shown frames is that of this many frames.
const SHOWN: usize = 30;
/// A freeze is a gap above this multiple of the mean, and above the mean by the class's allowance: the definition of
/// `freezeCount` in W3C's "Identifiers for WebRTC's Statistics API".
const FREEZE_FACTOR: u64 = 3;

/// A frame on its way. Both ends of a flow share this record, which stands for the headers of its packets.
#[derive(Clone, Copy, Debug)]
struct Frame {
    captured: Instant,
    /// Packets of the frame that have not arrived; 0 if the frame is complete or given up.
    missing: u32,
}

/// Frames from one end to the other.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    to: End,
    deadline: Span,
    freeze_after: Span,
    first: u64,
    frames: VecDeque<Frame>,
    /// The number of the last frame shown, when it was, and the gaps before it.
    shown: Option<(u64, Instant)>,
    gaps: VecDeque<Span>,
}

impl Frames {
    pub(crate) fn new(to: End, deadline: Span, freeze_after: Span) -> Self {
        let (first, frames, shown, gaps) = (0, VecDeque::new(), None, VecDeque::new());
        Frames { to, deadline, freeze_after, first, frames, shown, gaps }
    }

    /// Notes a frame of this many packets; frames are numbered from 0. Frames that have been on their way for too long
    /// are given up.
    pub(crate) fn captured(&mut self, now: Instant, packets: u32, noticed: &mut Vec<Noticed>) {
        self.frames.push_back(Frame { captured: now, missing: packets });
        while let Some(&Frame { captured, missing }) = self.frames.front()
            && (missing == 0 || now.saturating_since(captured) > LIFETIME)
        {
            if missing > 0 {
                noticed.push(Noticed::Incomplete { to: self.to, captured, discarded: false });
            }
            self.frames.pop_front();
            self.first += 1;
        }
    }

    /// Gives up a frame of which the sender discards a packet.
    pub(crate) fn discard(&mut self, frame: u64, noticed: &mut Vec<Noticed>) {
        if let Some(Frame { captured, missing }) = self.frame(frame)
            && *missing > 0
        {
            *missing = 0;
            let captured = *captured;
            noticed.push(Noticed::Incomplete { to: self.to, captured, discarded: true });
        }
    }

    fn frame(&mut self, number: u64) -> Option<&mut Frame> {
        self.frames.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// Notes the arrival of a packet of a frame.
    pub(crate) fn arrived(&mut self, now: Instant, number: u64, noticed: &mut Vec<Noticed>) {
        let (to, deadline) = (self.to, self.deadline);
        let Some(frame) = self.frame(number) else { return };
        let delay = now.saturating_since(frame.captured);
        let late = delay > deadline;
        if late {
            noticed.push(Noticed::LatePacket { to });
        }
        if frame.missing == 0 {
            return;
        }
        frame.missing -= 1;
        if frame.missing == 0 {
            noticed.push(Noticed::Complete { to, captured: frame.captured, delay, late });
            self.show(now, number, noticed);
        }
    }

    /// Shows a complete frame, unless a later one has been shown.
    fn show(&mut self, now: Instant, number: u64, noticed: &mut Vec<Noticed>) {
        if let Some((last, at)) = self.shown {
            if number < last {
                return;
            }
            let gap = now.saturating_since(at);
            let count = self.gaps.len() as u64;
            if count > 0 {
                let sum = self.gaps.iter().fold(Span::ZERO, |sum, &gap| sum + gap);
                let mean = sum.div(count);
                if gap >= (mean * FREEZE_FACTOR).max(mean + self.freeze_after) {
                    noticed.push(Noticed::Froze { to: self.to, gap });
                }
            }
            self.gaps.push_back(gap);
            if self.gaps.len() > SHOWN {
                self.gaps.pop_front();
            }
        }
        self.shown = Some((number, now));
    }

    /// Iterates over the frames that are neither complete nor given up.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        let open = self.frames.iter().filter(|frame| frame.missing > 0);
        open.map(|frame| Unfinished {
            to: self.to,
            captured: frame.captured,
            due: frame.captured + self.deadline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    fn frames() -> (Frames, Vec<Noticed>) {
        (Frames::new(End::Server, Span::ms(100), Span::ms(150)), Vec::new())
    }

    #[test]
    fn a_frame_is_complete_when_its_last_packet_arrives() {
        let (mut frames, mut noticed) = frames();
        frames.captured(at(0), 2, &mut noticed);
        frames.captured(at(33), 1, &mut noticed);
        frames.arrived(at(50), 0, &mut noticed);
        assert!(noticed.is_empty());
        frames.arrived(at(133), 1, &mut noticed);
        frames.arrived(at(150), 0, &mut noticed);
        let complete = |captured, delay, late| Noticed::Complete {
            to: End::Server,
            captured: at(captured),
            delay: Span::ms(delay),
            late,
        };
        let late = Noticed::LatePacket { to: End::Server };
        assert_eq!(noticed, [complete(33, 100, false), late, complete(0, 150, true)]);
        assert_eq!(frames.unfinished().count(), 0);
    }

    /// Frames 33 ms apart: a gap of 3 * 33 = 99 ms is no freeze, because 33 + 150 = 183 ms is the larger limit.
    #[test]
    fn a_gap_is_a_freeze_beyond_both_limits() {
        let gap = |last_ms: u64| {
            let (mut frames, mut noticed) = frames();
            for n in 0..10 {
                frames.captured(at(33 * n), 1, &mut noticed);
                frames.arrived(at(33 * n), n, &mut noticed);
            }
            frames.captured(at(330), 1, &mut noticed);
            frames.arrived(at(297 + last_ms), 10, &mut noticed);
            noticed.into_iter().find(|what| matches!(what, Noticed::Froze { .. }))
        };
        assert_eq!(gap(182), None);
        assert_eq!(gap(183), Some(Noticed::Froze { to: End::Server, gap: Span::ms(183) }));
    }

    #[test]
    fn frames_that_never_arrive_are_given_up_once() {
        let (mut frames, mut noticed) = frames();
        frames.captured(at(0), 1, &mut noticed);
        frames.captured(at(10), 3, &mut noticed);
        frames.discard(1, &mut noticed);
        frames.discard(1, &mut noticed);
        frames.arrived(at(20), 1, &mut noticed);
        let waits = Unfinished { to: End::Server, captured: at(0), due: at(100) };
        assert_eq!(frames.unfinished().collect::<Vec<_>>(), [waits]);
        frames.captured(at(120_001), 1, &mut noticed);
        let given_up =
            |captured, discarded| Noticed::Incomplete { to: End::Server, captured: at(captured), discarded };
        assert_eq!(noticed, [given_up(10, true), given_up(0, false)]);
    }
}
