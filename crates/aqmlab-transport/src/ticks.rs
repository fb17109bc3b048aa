//! Timers that count ticks of a clock (`timer_tick`), on a hierarchical timing wheel (G. Varghese,
//! T. Lauck, "Hashed and hierarchical timing wheels", SOSP 1987) of 64 slots per level, each level
//! eight times as coarse as the one before.

use aqmlab_units::{Instant, Span};

/// The maximum distance of a timer on one level, in slots.
const REACH: u64 = 63;
/// Factor by which each level is coarser than the one before.
const COARSER: u64 = 8;

/// Returns the latest tick of a clock, or `now` if the clock has no ticks.
pub(crate) fn last_tick(now: Instant, tick: Span) -> Instant {
    if tick.is_zero() { now } else { Instant::from_ns(now.as_ns() - now.as_ns() % tick.as_ns()) }
}

/// Returns `span` rounded up to whole ticks of a clock.
pub(crate) fn whole_ticks(span: Span, tick: Span) -> Span {
    if tick.is_zero() { span } else { Span::ns(span.as_ns().next_multiple_of(tick.as_ns())) }
}

/// Returns the instant at which a timer set at `now` for `span` fires; it never fires early.
#[inline]
pub(crate) fn fires_at(now: Instant, span: Span, tick: Span) -> Instant {
    if tick.is_zero() { now.saturating_add(span) } else { fires_with_tick(now, span, tick) }
}

#[inline(never)]
fn fires_with_tick(now: Instant, span: Span, tick: Span) -> Instant {
    let ns = tick.as_ns();
    let ticks = span.as_ns().div_ceil(ns);
    let (mut step, mut reach) = (1, REACH);
    while ticks >= reach {
        (step, reach) = (step * COARSER, reach.saturating_mul(COARSER));
    }
    let last = (now.as_ns() / ns).saturating_add(ticks);
    Instant::from_ns((last / step + 1).saturating_mul(step).saturating_mul(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a wheel with ticks of 1 ms, a timer set at 5.3 ms for 40 ms is due in tick 45 and fires at tick 46.
    #[test]
    fn a_timer_fires_with_the_tick_after_its_last_and_far_ones_with_every_eighth() {
        let at = |us, span| {
            let fires = fires_at(Instant::ZERO + Span::us(us), span, Span::ms(1)) - Instant::ZERO;
            fires.as_ns() / 1_000_000
        };
        assert_eq!(at(5_300, Span::ms(40)), 46);
        assert_eq!(at(5_300, Span::us(39_001)), 46, "whole ticks");
        assert_eq!(at(5_300, Span::ms(62)), 68);
        assert_eq!(at(5_300, Span::ms(63)), 72, "68 lies in the group of eight ticks from 64 on");
        assert_eq!(at(5_300, Span::ms(200)), 208);
        assert_eq!(at(0, Span::ms(504)), 512, "by 64");
        let exact = Instant::ZERO + Span::us(5_300);
        assert_eq!(fires_at(exact, Span::ms(40), Span::ZERO), exact + Span::ms(40));
    }
}
