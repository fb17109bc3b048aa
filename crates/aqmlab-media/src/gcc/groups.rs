//! Groups of packets, and how the delay changes from one group to the next: draft-ietf-rmcat-gcc-02, sections 5.1 and
//! 5.2.

use aqmlab_units::{Instant, Span};

/// Packets sent within this time of each other form a group (`burst_time`).
const BURST: Span = Span::ms(5);

/// How the delay of a group differs from that of the group before it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variation {
    /// The difference between the groups' arrivals, less that between their departures, in milliseconds (`d`).
    pub delay_ms: f64,
    /// The difference between the groups' departures, in milliseconds.
    pub departures_ms: f64,
    /// When the group's last packet arrived.
    pub at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Instant,
    last_sent: Instant,
    last_arrived: Instant,
}

/// Forms groups from arrivals.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
}

impl Groups {
    /// Adds the next packet; packets are added in the order in which they arrived. If the packet begins a group, returns
    /// the variation of the group that it ends.
    pub fn add(&mut self, sent: Instant, arrived: Instant) -> Option<Variation> {
        let Some(group) = &mut self.current else {
            self.current = Some(Group { first_sent: sent, last_sent: sent, last_arrived: arrived });
            return None;
        };
        if sent < group.first_sent {
            return None; // reordered: the groups of earlier packets are complete
        }
        let gap = arrived.saturating_since(group.last_arrived);
        let catches_up = gap < BURST && gap < sent.saturating_since(group.last_sent);
        if sent.saturating_since(group.first_sent) <= BURST || catches_up {
            group.last_sent = group.last_sent.max(sent);
            group.last_arrived = group.last_arrived.max(arrived);
            return None;
        }
        let ended = *group;
        self.current = Some(Group { first_sent: sent, last_sent: sent, last_arrived: arrived });
        let before = self.previous.replace(ended)?;
        let ms = |later: Instant, earlier: Instant| (later.as_secs_f64() - earlier.as_secs_f64()) * 1000.0;
        let departures_ms = ms(ended.last_sent, before.last_sent);
        let delay_ms = ms(ended.last_arrived, before.last_arrived) - departures_ms;
        Some(Variation { delay_ms, departures_ms, at: ended.last_arrived })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    /// Groups sent at 0, 3 | 20, 24 | 40; arrivals 10, 14 | 32, 39 | 61. The variation of the second group is
    /// (39 - 14) - (24 - 3) = 4 ms.
    #[test]
    fn the_variation_is_that_of_the_last_packets_of_groups() {
        let mut groups = Groups::default();
        let packets = [(0, 10), (3, 14), (20, 32), (24, 39), (40, 61)];
        let variations = packets.map(|(sent, arrived)| groups.add(at(sent), at(arrived)));
        assert_eq!(variations[..4], [None; 4]);
        let variation = variations[4].expect("a third group ends the second");
        assert!((variation.delay_ms - 4.0).abs() < 1e-9 && (variation.departures_ms - 21.0).abs() < 1e-9);
        assert_eq!(variation.at, at(39));
    }

    /// Packets that an outage has held back arrive together, and belong to one group although they were sent apart.
    #[test]
    fn packets_that_arrive_in_a_burst_belong_to_the_group_in_front() {
        let mut groups = Groups::default();
        for (sent, arrived) in [(0, 10), (20, 30), (40, 130), (60, 131), (80, 132), (100, 133)] {
            groups.add(at(sent), at(arrived));
        }
        let variation = groups.add(at(150), at(170)).expect("a group ends");
        assert!((variation.departures_ms - 80.0).abs() < 1e-9, "from 20 to 100 ms");
        assert!((variation.delay_ms - (103.0 - 80.0)).abs() < 1e-9);
    }
}
