//! The Timestamps option (RFC 7323, section 3), reduced to what distinguishes the copies of a segment.
//!
//! Only retransmissions carry their value, and an acknowledgment carries an echo only if it echoes such a value.
//! Nothing is lost: a segment that was sent only once left when its sender remembers, and an acknowledgment
//! without an echo echoes a segment that was sent for the first time.

use aqmlab_units::{Instant, Span};

/// The tick of the clock of timestamps (RFC 7323, section 5.4: between 1 ms and 1 s; Linux: 1 ms).
const TICK: Span = Span::ms(1);

/// A value of the Timestamps option, in ticks; `None` if it is that of a first transmission.
pub(crate) type Stamp = Option<u32>;

/// The Timestamps option of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stamps {
    /// TSval, if the segment is a retransmission.
    pub(crate) value: Stamp,
    /// TSecr, if it echoes a retransmission.
    pub(crate) echo: Stamp,
}

impl Stamps {
    /// No value and no echo.
    pub const NONE: Stamps = Stamps { value: None, echo: None };

    /// Returns the option of a segment that echoes the time stamp of a retransmission sent at `sent`.
    pub fn echoing(sent: Instant) -> Stamps {
        Stamps { value: None, echo: Some(stamp(sent)) }
    }
}

/// Returns what the clock of timestamps shows.
pub(crate) fn stamp(now: Instant) -> u32 {
    (now.as_ns() / TICK.as_ns()) as u32
}

/// Returns the time from one value of the clock to `now`, at least one tick.
pub(crate) fn since(then: u32, now: Instant) -> Span {
    TICK.saturating_mul(u64::from(stamp(now).wrapping_sub(then)).max(1))
}

/// Returns whether the value `a` is older than `b`.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
