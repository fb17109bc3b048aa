//! Delivery rate estimation: how fast the data of a flow is delivered, measured by each acknowledgment over the
//! time since the segment that it acknowledges left (draft-cheng-iccrg-delivery-rate-estimation-02;
//! draft-ietf-ccwg-bbr, section 4.1).
//!
//! DEVIATES from the drafts, as Linux does: amounts are in segments, like the window, and the SYN counts as one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use crate::congestion::{Lost, Repair, Sample};

/// What was known when an outstanding segment last left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Departure {
    /// One past the segment's last offset.
    end: u64,
    /// P.delivered.
    delivered: u64,
    /// P.delivered_time.
    delivered_at: Instant,
    /// P.first_sent_time.
    first_left: Instant,
    /// P.is_app_limited.
    app_limited: bool,
    /// P.tx_in_flight.
    in_flight: u32,
    /// P.lost.
    lost: u64,
}

/// The most recently sent segment among those that an acknowledgment reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Newest {
    departure: Departure,
    /// When the segment left.
    left: Instant,
}

/// What an acknowledgment measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    /// RS.delivered and RS.interval; `None` if the acknowledgment measures no rate.
    pub rate: Option<(u64, Span)>,
    /// RS.prior_delivered.
    pub prior_delivered: u64,
    /// RS.is_app_limited.
    pub app_limited: bool,
    /// RS.tx_in_flight, which is zero if the acknowledgment reports no segment.
    pub tx_in_flight: u32,
    /// RS.lost.
    pub lost_since: u64,
}

/// The state of the connection, and of each outstanding segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rates {
    /// The outstanding segments, in the order of the stream.
    departures: VecDeque<Departure>,
    /// C.delivered.
    delivered: u64,
    /// C.delivered_time.
    delivered_at: Instant,
    /// C.first_sent_time.
    first_left: Instant,
    /// C.app_limited; 0 if the application does not limit the flow.
    app_limited: u64,
    /// How many segments have been reported as marked.
    delivered_ce: u64,
    /// C.lost: how many segments have been declared lost; a segment may count several times.
    lost: u64,
    newest: Option<Newest>,
    /// Bytes of a full segment.
    mss: u32,
    /// C.has_selective_acks.
    selective: bool,
    /// The segments declared lost since they were last taken; `None` if they are only counted.
    losses: Option<Vec<Lost>>,
}

impl Rates {
    /// Creates the state when the handshake ends. With `lists`, each lost segment is listed.
    pub(crate) fn new(now: Instant, mss: u32, selective: bool, lists: bool) -> Self {
        Rates {
            departures: VecDeque::new(),
            delivered: 1,
            delivered_at: now,
            first_left: now,
            app_limited: 1,
            delivered_ce: 0,
            lost: 0,
            newest: None,
            mss,
            selective,
            losses: lists.then(Vec::new),
        }
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Records that `segments` more segments are reported as marked.
    pub(crate) fn reported_ce(&mut self, segments: u32) {
        self.delivered_ce += u64::from(segments);
    }

    /// Returns whether the application limits the flow, or did so recently.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Records that a segment is leaving, which covers `[from, end)`; section 3.2 of the draft. `in_flight` is the
    /// number of segments in flight with this one; `idle` is true if no other is outstanding.
    pub(crate) fn sent(&mut self, now: Instant, from: u64, end: u64, in_flight: u32, idle: bool) {
        if idle {
            (self.first_left, self.delivered_at) = (now, now);
        }
        let departure = Departure {
            end,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_left: self.first_left,
            app_limited: self.is_app_limited(),
            in_flight,
            lost: self.lost,
        };
        if self.departures.back().is_none_or(|last| last.end < end) {
            // The last data may leave again together with the FIN.
            while self.departures.back().is_some_and(|last| last.end > from) {
                self.departures.pop_back();
            }
            self.departures.push_back(departure);
            return;
        }
        let begin = self.departures.partition_point(|known| known.end <= from);
        let after = self.departures.partition_point(|known| known.end <= end);
        if after > begin {
            self.departures[begin] = departure;
            self.departures.drain(begin + 1..after);
        } else {
            self.departures.insert(begin, departure); // segments have become smaller
        }
    }

    /// Records that the segment that ends at `end`, and that last left at `left`, has arrived (section 3.3).
    pub(crate) fn arrived(&mut self, left: Instant, end: u64) {
        self.delivered += 1;
        let Some(departure) = self.departure(end) else { return };
        let is_newer = |newest: Newest| (left, end) > (newest.left, newest.departure.end);
        if self.newest.is_none_or(is_newer) {
            self.newest = Some(Newest { departure, left });
            self.first_left = left;
        }
    }

    /// Returns what is known about the segment that ends at `end`: usually the first one.
    #[inline]
    fn departure(&self, end: u64) -> Option<Departure> {
        let first = self.departures.front()?;
        if first.end == end {
            return Some(*first);
        }
        let place = self.departures.partition_point(|known| known.end < end);
        self.departures.get(place).copied().filter(|known| known.end == end)
    }

    /// Records that the segment `[from, end)` is declared lost.
    pub(crate) fn declared_lost(&mut self, from: u64, end: u64) {
        self.lost += 1;
        let Some(losses) = &mut self.losses else { return };
        let place = self.departures.partition_point(|known| known.end < end);
        if let Some(departure) = self.departures.get(place) {
            losses.push(Lost {
                from,
                end,
                tx_in_flight: departure.in_flight,
                lost_since: self.lost - departure.lost,
                app_limited: departure.app_limited,
                selective: self.selective,
            });
        }
    }

    /// Returns whether segments have been declared lost and listed.
    pub(crate) fn has_losses(&self) -> bool {
        self.losses.as_ref().is_some_and(|losses| !losses.is_empty())
    }

    /// Takes the list of the segments declared lost.
    pub(crate) fn take_losses(&mut self) -> Vec<Lost> {
        self.losses.as_mut().map_or_else(Vec::new, core::mem::take)
    }

    /// Ends the processing of an acknowledgment of everything below `una` (section 3.3). A sample shorter than
    /// `min_rtt` is not used.
    pub(crate) fn measure(&mut self, now: Instant, una: u64, min_rtt: Span) -> Measured {
        while self.departures.front().is_some_and(|first| first.end <= una) {
            self.departures.pop_front();
        }
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Some(Newest { departure, left }) = self.newest.take() else {
            return Measured {
                rate: None,
                prior_delivered: 0,
                app_limited: false,
                tx_in_flight: 0,
                lost_since: 0,
            };
        };
        self.delivered_at = now;
        let interval = (left - departure.first_left).max(now - departure.delivered_at);
        let rate = (interval >= min_rtt && !interval.is_zero())
            .then_some((self.delivered - departure.delivered, interval));
        Measured {
            rate,
            prior_delivered: departure.delivered,
            app_limited: departure.app_limited,
            tx_in_flight: departure.in_flight,
            lost_since: self.lost - departure.lost,
        }
    }

    /// Returns the sample that `measured` and the lost segments make; what does not follow from rates is as if the
    /// acknowledgment had nothing else to say.
    #[inline]
    pub(crate) fn sample<'l>(&self, now: Instant, measured: &Measured, losses: &'l [Lost]) -> Sample<'l> {
        Sample {
            now,
            delivered: self.delivered,
            lost: self.lost,
            prior_delivered: measured.prior_delivered,
            rate: measured.rate,
            app_limited: measured.app_limited,
            tx_in_flight: measured.tx_in_flight,
            lost_since: measured.lost_since,
            limited_by_window: false,
            selective: self.selective,
            losses,
            newly_acked: 0,
            newly_lost: 0,
            prior_in_flight: 0,
            in_flight: 0,
            rtt: None,
            srtt: None,
            marked: false,
            delivered_ce: self.delivered_ce,
            newly_ce: 0,
            repair: Repair::Nothing,
            departs: now,
        }
    }

    /// Notes, before the application writes, that the flow is limited by the application if only `unsent` bytes
    /// wait to be sent, the window has room beyond the segments `in_flight`, and no lost segment waits
    /// (section 3.4).
    pub(crate) fn check_application(&mut self, unsent: u64, in_flight: u32, has_room: bool, repaired: bool) {
        if unsent < u64::from(self.mss) && has_room && repaired {
            self.limit(in_flight);
        }
    }

    /// Treats the segments that are in flight as limited by the application, and those sent until they have
    /// been delivered.
    pub(crate) fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::ms(n)
    }

    fn rates() -> Rates {
        Rates::new(ms(0), 1000, true, true)
    }

    /// Ten segments leave at once; the first two arrive after 40 ms and the others 10 ms apart: the rate is
    /// what has been delivered since the segment left, per the time since then. After all have arrived and the
    /// flow has been idle, the pause does not count.
    #[test]
    fn the_rate_is_what_was_delivered_since_the_segment_left() {
        let mut rates = rates();
        (0..10).for_each(|n| rates.sent(ms(0), 1 + 1000 * n, 1001 + 1000 * n, 1, n == 0));
        for (at, segments, expected) in [(40, 0..2, 2), (50, 2..3, 3), (60, 3..10, 10)] {
            let until = 1 + 1000 * segments.end;
            segments.for_each(|n| rates.arrived(ms(0), 1001 + 1000 * n));
            let measured = rates.measure(ms(at), until, Span::ms(40));
            assert_eq!(measured.rate, Some((expected, Span::ms(at))));
            assert_eq!((measured.prior_delivered, measured.app_limited), (1, true));
        }
        assert!(!rates.is_app_limited());
        rates.sent(ms(900), 10_001, 11_001, 1, true);
        rates.arrived(ms(900), 11_001);
        let measured = rates.measure(ms(941), 11_001, Span::ms(40));
        assert_eq!(measured.rate, Some((1, Span::ms(41))));
    }

    /// Acknowledgments that were held back arrive together: the segments took longer to leave, so the rate is
    /// the one at which they left (section 2.3).
    #[test]
    fn a_rate_is_at_most_the_rate_at_which_segments_left() {
        let mut rates = rates();
        (0..4).for_each(|n| rates.sent(ms(100 * n), 1 + 1000 * n, 1001 + 1000 * n, 1, n == 0));
        rates.arrived(ms(0), 1001);
        rates.measure(ms(301), 1001, Span::ZERO);
        rates.sent(ms(400), 4001, 5001, 1, false);
        (1..4).for_each(|n| rates.arrived(ms(100 * n), 1001 + 1000 * n));
        assert_eq!(rates.measure(ms(302), 4001, Span::ZERO).rate, Some((4, Span::ms(302))));
        rates.arrived(ms(400), 5001);
        let (delivered, interval) = rates.measure(ms(403), 5001, Span::ZERO).rate.expect("a sample");
        assert_eq!((delivered, interval), (4, Span::ms(400)), "it left 400 ms after the first segment");
    }

    /// A copy that leaves in place of a segment replaces what was known about it, also if it is shorter or
    /// reaches over two segments.
    #[test]
    fn a_copy_replaces_what_it_covers() {
        let mut rates = rates();
        (0..4).for_each(|n| rates.sent(ms(n), 1 + 1000 * n, 1001 + 1000 * n, 1, n == 0));
        let ends = |rates: &Rates| rates.departures.iter().map(|known| known.end).collect::<Vec<_>>();
        rates.sent(ms(5), 1001, 2001, 1, false);
        assert_eq!(ends(&rates), [1001, 2001, 3001, 4001]);
        rates.sent(ms(5), 1001, 1501, 1, false);
        assert_eq!(ends(&rates), [1001, 1501, 2001, 3001, 4001]);
        rates.sent(ms(6), 2001, 4002, 1, false);
        assert_eq!(ends(&rates), [1001, 1501, 2001, 4002]);
        rates.sent(ms(6), 1, 2001, 1, false);
        assert_eq!(ends(&rates), [2001, 4002]);
    }

    #[test]
    fn the_application_limits_a_flow_only_if_it_lacks_data_for_an_open_window() {
        for (unsent, has_room, repaired, expected) in [
            (999, true, true, true),
            (1000, true, true, false),
            (0, false, true, false),
            (0, true, false, false),
        ] {
            let mut rates = rates();
            rates.sent(ms(0), 1, 1001, 1, true);
            rates.arrived(ms(0), 1001);
            rates.measure(ms(40), 1001, Span::ZERO);
            assert!(!rates.is_app_limited());
            rates.check_application(unsent, 3, has_room, repaired);
            assert_eq!(rates.is_app_limited(), expected);
        }
    }
}
