//! How much room a router needs.

use aqmlab_params::Value;
use aqmlab_scenario::{LinkPlan, Plan};
use aqmlab_units::text::Size;

/// How much room a router has for frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// Most frames in the network at once.
    pub frames: usize,
    /// The largest packet of each class, in octets.
    pub largest: Vec<usize>,
}

/// Room for frames in any case, and the most that is taken: 96 MiB of packets of 1500 octets.
const FRAMES: std::ops::RangeInclusive<u64> = 8_192..=65_536;

impl Room {
    /// Room for what the queues of a plan hold and twice what its links carry in the longest mean round-trip time, in
    /// packets of the mean size; at least 8,192 frames and at most 65,536. Whether it was enough is on the books.
    pub fn of(plan: &Plan, largest: Vec<usize>) -> Self {
        let rtt =
            plan.classes.iter().filter_map(|class| class.access.as_ref()).map(|access| access.rtt.mean());
        let rtt = rtt.max().map_or(0.0, |rtt| rtt.as_secs_f64());
        let of_link = |link: &LinkPlan| {
            let per_s = link.rate.packets_per_s(link.queue.link.mean_packet);
            queue_limit(link) + (2.0 * per_s * (rtt + link.delay.as_secs_f64())) as u64
        };
        let frames = plan.links.iter().map(of_link).fold(0u64, u64::saturating_add);
        Room { frames: frames.clamp(*FRAMES.start(), *FRAMES.end()) as usize, largest }
    }
}

/// How many packets of mean size a link's queue holds.
fn queue_limit(link: &LinkPlan) -> u64 {
    match link.queue.settings.get("limit") {
        Some(Value::Size(Size::Packets(packets))) => packets.get(),
        Some(Value::Size(Size::Bytes(bytes))) => bytes.get() / link.queue.link.mean_packet.get(),
        _ => 0,
    }
}
