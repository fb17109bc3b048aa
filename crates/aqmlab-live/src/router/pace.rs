//! How late packets may leave: the limit of lateness at the rates that hold.

use aqmlab_scenario::Plan;
use aqmlab_units::{Bytes, Rate, Span};

/// The smallest data packet of each link that carries data. Acknowledgments do not count, because they are small, and no flow is
/// sensitive to the lateness of a single acknowledgment; nor do links over which classes send only acknowledgments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPackets(Vec<Option<Bytes>>);

impl DataPackets {
    /// Returns those of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut smallest = vec![None; plan.links.len()];
        for class in &plan.classes {
            let size = class.traffic.data_packet();
            for &link in class.ways_of_data().flatten() {
                let known = &mut smallest[link];
                *known = Some(known.map_or(size, |known: Bytes| known.min(size)));
            }
        }
        DataPackets(smallest)
    }

    /// Returns the shortest transmission time of a data packet, and its link. Links that stand still are left out.
    pub fn shortest_time(&self, rate: impl Fn(usize) -> Rate) -> Option<(Span, usize)> {
        let packets = self.0.iter().enumerate().filter_map(|(link, size)| Some((link, (*size)?)));
        let moving =
            packets.map(|(link, size)| (link, size, rate(link))).filter(|(.., rate)| *rate > Rate::default());
        moving.map(|(link, size, rate)| (rate.time_for(size), link)).min()
    }
}

/// Returns the limit of lateness: half of this transmission time or 1 % of this round-trip time, whichever is larger.
pub fn lateness_limit(packet_time: Span, least_rtt: Span) -> Span {
    packet_time.div(2).max(least_rtt.div(100))
}

/// The limit of lateness in a network in which the rates of links change.
pub struct Pace {
    packets: DataPackets,
    least_rtt: Span,
    limit: Span,
}

impl Pace {
    /// Returns the pace of a network at these rates.
    pub fn new(plan: &Plan, least_rtt: Span, rate: impl Fn(usize) -> Rate) -> Self {
        let mut pace = Pace { packets: DataPackets::of(plan), least_rtt, limit: Span::MAX };
        pace.change(rate);
        pace
    }

    /// Changes the rates. If all links stand still, the limit remains, because packets may still be on their way.
    pub fn change(&mut self, rate: impl Fn(usize) -> Rate) {
        if let Some((time, _)) = self.packets.shortest_time(rate) {
            self.limit = lateness_limit(time, self.least_rtt);
        }
    }

    /// Returns the limit at present.
    pub const fn limit(&self) -> Span {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_the_fastest_link_that_moves() {
        let text = "title = \"t\"\nduration = \"1s\"\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = \"droptail\" }\n\
                    [[traffic]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"500B\"\n";
        let plan = aqmlab_scenario::parse(text, "test").unwrap().arms.remove(0);
        let data = plan.classes[0].path[0];
        let mut pace =
            Pace::new(&plan, Span::ms(2), |link| if link == data { Rate::mbit(1) } else { Rate::mbit(100) });
        // 500 bytes take 4 ms; the link back carries no data.
        assert_eq!(pace.limit(), Span::ms(2));
        pace.change(|_| Rate::mbit(4));
        assert_eq!(pace.limit(), Span::us(500));
        pace.change(|_| Rate::default());
        assert_eq!(pace.limit(), Span::us(500), "packets may still be on their way");
        pace.change(|_| Rate::mbit(400));
        assert_eq!(pace.limit(), Span::us(20), "1 % of the RTT");
    }
}
