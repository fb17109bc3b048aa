//! The packet numbers that have arrived, and when they are acknowledged (RFC 9000, section 13.2).

use aqmlab_units::{Instant, Span};

use super::frame::{AckFrame, REACH};

/// The packet numbers that have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    frame: AckFrame,
    /// When the packet with the largest number arrived.
    at: Instant,
    /// Number of packets that have arrived since the latest ACK frame left.
    unreported: u32,
}

impl Received {
    pub(crate) fn new() -> Self {
        Received { frame: AckFrame::default(), at: Instant::ZERO, unreported: 0 }
    }

    /// Notes the arrival of a packet, marked with CE or not. Returns whether it must be acknowledged immediately: it does
    /// not directly follow the largest number so far, it is marked (section 13.2.1), or `every` packets are
    /// unacknowledged (section 13.2.2).
    pub(crate) fn arrives(&mut self, now: Instant, number: u64, marked: bool, every: u32) -> bool {
        let frame = &mut self.frame;
        frame.ce += u32::from(marked);
        let follows = number == frame.largest + 1;
        if number > frame.largest {
            shift(&mut frame.bits, number - frame.largest);
            frame.largest = number;
            self.at = now;
        }
        let below = frame.largest - number;
        if below < REACH {
            frame.bits[below as usize / 32] |= 1 << (below % 32);
        }
        self.unreported += 1;
        !follows || marked || self.unreported >= every
    }

    /// Returns the frame that reports what has arrived since the latest one, if anything has.
    pub(crate) fn take(&mut self, now: Instant) -> Option<AckFrame> {
        if self.unreported == 0 {
            return None;
        }
        self.unreported = 0;
        let delay = (now.saturating_since(self.at).as_ns() / Span::us(1).as_ns()) as u32;
        Some(AckFrame { delay, ..self.frame })
    }
}

/// Moves the bits to higher places.
fn shift(bits: &mut [u32], by: u64) {
    let (words, rest) = ((by / 32) as usize, by % 32);
    for at in (0..bits.len()).rev() {
        let word = |back: usize| at.checked_sub(back).map_or(0, |place| bits[place]);
        let (same, below) = (word(words), word(words + 1));
        bits[at] = if rest == 0 { same } else { same << rest | below >> (32 - rest) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, sections 13.2.1 and 13.2.2: every second packet; at once if a packet is out of order, leaves a gap or is
    /// marked.
    #[test]
    fn packets_out_of_order_and_marks_are_acknowledged_at_once() {
        let mut received = Received::new();
        let mut arrives =
            |number, marked| (received.arrives(Instant::ZERO, number, marked, 2), received.unreported);
        assert_eq!(arrives(1, false), (false, 1));
        assert_eq!(arrives(2, false), (true, 2), "the second packet");
        received.take(Instant::ZERO);
        for (number, marked, at_once, why) in [
            (3, false, false, "the next"),
            (5, false, true, "a gap"),
            (4, false, true, "late"),
            (6, false, false, "the next"),
            (7, true, true, "marked"),
        ] {
            assert_eq!(received.arrives(Instant::ZERO, number, marked, 2), at_once, "{why}");
            received.take(Instant::ZERO);
        }
    }

    /// A frame says how long the packet with the largest number has waited, and reports all of the latest 256.
    #[test]
    fn a_frame_reports_the_latest_numbers_and_its_delay() {
        let mut received = Received::new();
        let odd = |number: &u64| number % 2 == 1;
        for number in (1..=501).filter(odd) {
            received.arrives(Instant::ZERO + Span::ms(number), number, number == 7, 2);
        }
        let frame = received.take(Instant::ZERO + Span::ms(504)).expect("something has arrived");
        assert_eq!((frame.largest, frame.delay(), frame.ce, frame.ranges()), (501, Span::ms(3), 1, 128));
        assert!((frame.lowest()..=501).all(|number| frame.covers(number) == odd(&number)));
        assert_eq!(received.take(Instant::ZERO), None);
    }
}
