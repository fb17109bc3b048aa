//! A router's memory for frames and connections.

use aqmlab_network::stages;
use aqmlab_params::{Settings, Value};
use aqmlab_scenario::{ClassPlan, LinkPlan, Opens, Plan};
use aqmlab_traffic::Distribution;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use crate::addresses::MOST_CLIENT_PORTS;
use crate::error::LiveError;

/// Number of frames for which a router has memory, and their maximum lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameBudget {
    /// Maximum number of frames in the network at the same time.
    pub frames: usize,
    /// The largest packet of each class, in octets.
    pub largest: Vec<usize>,
}

/// Minimum and maximum number of slots for frames, although there may be fewer slots for large
/// frames. With packets of 1500 octets, they take 47 and 94 MiB. Crowds start in bursts that arrive
/// much faster than a link sends, and wait in delay stages: with 18,000 users at 100 Mbit/s, 8,192
/// slots were too few.
const FRAMES: std::ops::RangeInclusive<u64> = 32_768..=65_536;

/// Amount of memory that any machine can spare for frames. A router touches and locks all of it,
/// and uses more only if a plan needs it.
const AMPLE: u64 = 256 << 20;
/// Upper limit on the memory for frames.
const MOST: u64 = 1 << 30;

impl FrameBudget {
    /// Returns a budget of at least 32,768 and at most 65,536 frames: as many packets of the mean size as the
    /// plan's queues hold, plus twice as many as its links carry in the longest mean round-trip time. If that
    /// takes more than 256 MiB, as with an MTU of 65,535, the budget is smaller, but never smaller than what
    /// the queues hold plus what the links carry in one such round-trip time. The books show whether the
    /// budget was large enough.
    ///
    /// # Errors
    /// If even the smaller budget takes more than 1 GiB.
    pub fn of(plan: &Plan, largest: Vec<usize>) -> Result<Self, LiveError> {
        let slot = largest.iter().copied().max().unwrap_or(0) as u64;
        let (needed, wanted) = frames(plan);
        let frames = wanted.min(needed.max(AMPLE / slot.max(1)));
        if frames * slot > MOST {
            return Err(LiveError::Unsupported(format!(
                "its queues and links hold {frames} packets; memory for that many packets of up to {slot} bytes is {} MiB, but at \
                 most {} MiB are allowed; choose shorter queues or smaller segments",
                (frames * slot).div_ceil(1 << 20),
                MOST >> 20
            )));
        }
        Ok(FrameBudget { frames: frames as usize, largest })
    }
}

/// Maximum number of client ports of a class of users or arrivals, unless its users need more: twice the
/// number for which most machines have descriptors.
const AMPLE_PORTS: u64 = 1 << 17;
/// Maximum number of client ports of all classes together; a connection takes about 3 KiB in the router.
const MOST_PORTS: u64 = 1 << 20;

/// Returns the number of client ports of each class, which is the number of connections that it may have open
/// at the same time. A flow of a list has its own port. Other connections share ports if more of them are
/// expected than there can be ports. Each user then has at least two ports, one in use and one at rest.
///
/// # Errors
/// If there are too many client ports.
pub fn client_ports(plan: &Plan) -> Result<Vec<u32>, LiveError> {
    let rows: Vec<u64> = plan.classes.iter().enumerate().map(|class| ports_of(plan, class)).collect();
    let sum = rows.iter().copied().fold(0, u64::saturating_add);
    let most = MOST_PORTS.min(MOST_CLIENT_PORTS.into());
    if sum > most {
        return Err(LiveError::Unsupported(format!(
            "its classes have up to {sum} connections at the same time, but there is room only for {most}; choose fewer flows or users"
        )));
    }
    Ok(rows.into_iter().map(|rows| rows as u32).collect())
}

fn ports_of(plan: &Plan, (number, class): (usize, &ClassPlan)) -> u64 {
    let opens_until = class.stop_at.map_or(plan.stop.at, |at| at.min(plan.stop.at)).as_secs_f64();
    match class.traffic.opens() {
        Opens::Listed => class.count,
        // A cloud opens connections in bursts on all time scales, hence the large margin.
        Opens::AtRate { per_s, bursty: true } => ((4.0 * per_s * opens_until) as u64 + 64).min(AMPLE_PORTS),
        // Six standard deviations above the mean; only one run in 10^9 opens more connections.
        Opens::AtRate { per_s, bursty: false } => {
            let mean = per_s * opens_until;
            ((mean + 6.0 * mean.sqrt()) as u64 + 16).min(AMPLE_PORTS)
        }
        Opens::ByUsers { think, pages } => {
            let of_page = pages.map_or(1, |pages| pages.opened.mean().0 + 1);
            opened_by_users(plan, number, think, of_page)
        }
    }
}

/// Returns the number of client ports of users who open `at_a_time` connections after each think time.
fn opened_by_users(plan: &Plan, number: usize, think: &Distribution, at_a_time: u64) -> u64 {
    let class = &plan.classes[number];
    let opens_until = class.stop_at.map_or(plan.stop.at, |at| at.min(plan.stop.at)).as_secs_f64();
    let cycle = think.mean() + plan.propagation(number) + own_round_trip(plan, number);
    let connections = 1.0 + opens_until / cycle.as_secs_f64().max(1e-3);
    let expected = ((class.count * at_a_time) as f64 * connections) as u64;
    expected.min(AMPLE_PORTS).max((class.count * at_a_time).saturating_mul(2))
}

/// Returns the minimum number of frames that a plan needs, and the number reserved if frames are small.
fn frames(plan: &Plan) -> (u64, u64) {
    let rtt = (0..plan.classes.len()).map(|class| own_round_trip(plan, class)).max();
    let rtt = rtt.map_or(0.0, |rtt| rtt.as_secs_f64());
    let under_way = |link: &LinkPlan, round_trips: f64| {
        let per_s = link.rate.packets_per_s(link.queue.link().mean_packet);
        (round_trips * per_s * (rtt + link.delay.as_secs_f64())) as u64
    };
    let with = |round_trips| {
        let of_link = |link: &LinkPlan| {
            let queue = queue_limit(&link.queue, link.queue.link().mean_packet);
            queue.saturating_add(under_way(link, round_trips))
        };
        plan.links.iter().map(of_link).fold(0u64, u64::saturating_add)
    };
    (with(1.0).min(*FRAMES.end()), with(2.0).clamp(*FRAMES.start(), *FRAMES.end()))
}

/// Returns the mean round-trip time of a class: the time for its path and access links, plus what its delay
/// stages add.
pub fn own_round_trip(plan: &Plan, class: usize) -> Span {
    let access = plan.classes[class].access.as_ref().map_or(Span::ZERO, |access| access.rtt.mean());
    let places = [0, 1]
        .into_iter()
        .flat_map(|direction| stages(plan, class, direction).map(move |place| (direction, place)));
    let stages = places.filter_map(|(direction, place)| plan.delay_stage(class, direction, place));
    stages.fold(access, |sum, stage| sum + stage.mean_pipe(&plan.classes[class]).delay())
}

/// Returns the number of packets of this mean size that a queue with these settings holds: its own
/// limit, or the sum over all queues inside it.
fn queue_limit(settings: &Settings, mean_packet: Bytes) -> u64 {
    match settings.get("limit") {
        Some(Value::Size(Size::Packets(packets))) => packets.get(),
        Some(Value::Size(Size::Bytes(bytes))) => bytes.get() / mean_packet.get(),
        _ => settings
            .iter()
            .map(|setting| inner_limit(&setting.value, mean_packet))
            .fold(0, u64::saturating_add),
    }
}

/// Returns the number of packets that the queues in a parameter's value hold.
fn inner_limit(value: &Value, mean_packet: Bytes) -> u64 {
    match value {
        Value::Discipline { settings, .. } | Value::Table(settings) => queue_limit(settings, mean_packet),
        Value::List(values) => {
            values.iter().map(|value| inner_limit(value, mean_packet)).fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the budget of a plan with a thousand data packets of 1500 bytes per second, and as
    /// many acknowledgments of 40 bytes in the reverse direction: 125 of each are in flight,
    /// because the flow's round-trip time is 124 ms and the link's delay is 1 ms. The forward queue
    /// holds `limit` packets and the reverse queue 10.
    fn room(limit: u64, largest: usize) -> Result<FrameBudget, LiveError> {
        room_with(limit, largest, "rtt = \"124ms\"")
    }

    fn room_with(limit: u64, largest: usize, delays: &str) -> Result<FrameBudget, LiveError> {
        room_behind(&format!("kind = \"droptail\", limit = \"{limit}p\""), largest, delays)
    }

    fn room_behind(queue: &str, largest: usize, delays: &str) -> Result<FrameBudget, LiveError> {
        let text = format!(
            "title = \"t\"\nduration = \"1s\"\n\
             [topology]\nkind = \"dumbbell\"\nrate = \"12Mbit\"\nreverse_rate = \"320kbit\"\ndelay = \"1ms\"\n\
             queue = {{ {queue} }}\n\
             reverse_queue = {{ kind = \"droptail\", limit = \"10p\" }}\n\
             [[traffic]]\nname = \"a\"\nkind = \"bulk\"\ntcp = {{ mss = \"1460B\" }}\n{delays}\n"
        );
        let plan = aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        FrameBudget::of(&plan, vec![576, largest])
    }

    fn frames(limit: u64, largest: usize) -> usize {
        room(limit, largest).unwrap().frames
    }

    #[test]
    fn small_frames_have_room_for_twice_what_is_under_way() {
        assert_eq!(frames(10, 1500), 32_768);
        assert_eq!(frames(40_000, 1500), 40_000 + 10 + 4 * 125);
        assert_eq!(frames(70_000, 1500), 65_536);
    }

    #[test]
    fn queues_inside_of_others_need_room_too() {
        let classes = "kind = \"classes\", class = [\
             { name = \"a\", traffic = [\"a\"], queue = { kind = \"red\", limit = \"35000p\" } }, \
             { name = \"rest\", queue = { kind = \"droptail\", limit = \"7MB\" } }]";
        let policed =
            format!("kind = \"policer\", rate = \"6Mbit\", burst = \"9kB\", queue = {{ {classes} }}");
        for queue in [classes, &policed] {
            let frames = room_behind(queue, 1500, "rtt = \"124ms\"").unwrap().frames;
            assert_eq!(frames, 35_000 + 7_000_000 / 1500 + 10 + 4 * 125, "{queue}");
        }
    }

    #[test]
    fn what_is_under_way_in_delay_stages_needs_room_too() {
        let stage = |delay| {
            format!(
                "rtt = \"24ms\"\n[[delay]]\nclass = \"a\"\ndelay = \"{delay}\"\ndirection = \"to_receiver\"\n"
            )
        };
        let frames = |delay| room_with(40_000, 1500, &stage(delay)).unwrap().frames;
        assert_eq!(frames("100ms"), 40_000 + 10 + 4 * 125);
        assert_eq!(frames("600ms"), 40_000 + 10 + 4 * 625);
    }

    #[test]
    fn large_frames_have_room_for_what_the_plan_needs() {
        // 256 MiB are 4096 frames of 65,535 octets.
        assert_eq!(frames(10, 65_535), 4_096);
        assert_eq!(frames(5_000, 65_535), 5_000 + 10 + 2 * 125);
        // 256 MiB are also 29,826 frames of 9000 octets.
        assert_eq!(
            (frames(70_000, 9000), frames(20_000, 9000), frames(29_500, 9000)),
            (65_536, 29_826, 29_826)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_figure() {
        let refusal = room(20_000, 65_535).unwrap_err();
        assert!(matches!(refusal, LiveError::Unsupported(_)));
        let refusal = refusal.to_string();
        assert!(refusal.contains("65535 bytes") && refusal.contains("at most 1024"), "{refusal}");
    }
}
