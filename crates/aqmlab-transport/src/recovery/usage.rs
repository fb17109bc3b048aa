//! Whether the window limits the sender, or the application and the other side's window do: congestion window
//! validation (RFC 2861, section 3.1).

use crate::congestion::Window;

/// Use of the window since the data outstanding at some earlier time was acknowledged.
///
/// DEVIATES from RFC 2861, as Linux does: in slow start, a window that is not full opens up to twice the
/// largest number of outstanding segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Usage {
    /// Whether the window was full.
    full: bool,
    /// The largest number of outstanding segments.
    most: u32,
    /// One past the highest offset sent when these values were last set.
    end: u64,
}

impl Usage {
    pub(crate) const fn new() -> Self {
        Usage { full: false, most: 0, end: 0 }
    }

    /// Notes that the window is full, with all data below `sent` sent.
    #[inline(always)]
    pub(crate) fn fills(&mut self, sent: u64) {
        (self.full, self.end) = (true, sent);
    }

    /// Notes that a segment has left, after which the window still has room.
    #[inline(always)]
    pub(crate) fn leaves_room(&mut self, una: u64, sent: u64, outstanding: u32) {
        if una >= self.end || !self.full && outstanding > self.most {
            *self = Usage { full: false, most: outstanding, end: sent };
        }
    }

    /// Returns whether the window was full.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns whether an acknowledgment may open the window.
    #[inline(always)]
    pub(crate) fn opens(&self, window: &Window) -> bool {
        self.full || window.is_below_ssthresh() && window.cwnd() < 2.0 * f64::from(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// Linux 6.1, `drawn_reno_app_0` and others: six segments are sent with a window of ten, which then opens to
    /// twelve and no further. A full window opens always.
    #[test]
    fn a_window_that_is_not_full_opens_up_to_twice_the_data_in_slow_start() {
        let mut window = Window::new(&Profile::named("linux").expect("built in"));
        let mut usage = Usage::new();
        (1..=6).for_each(|n| usage.leaves_room(0, n, n as u32));
        for (segments, opens) in [(10, true), (11, true), (12, false), (13, false)] {
            window.set(segments);
            assert_eq!(usage.opens(&window), opens, "{segments}");
        }
        usage.fills(20);
        assert!(usage.opens(&window));
        usage.leaves_room(19, 21, 2);
        assert!(usage.opens(&window), "data of the full window is outstanding");
        usage.leaves_room(20, 21, 1);
        assert!(!usage.opens(&window));
    }
}
