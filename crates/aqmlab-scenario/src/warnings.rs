//! Warnings about allowed but suspicious settings.

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::disc::pi_phase_margin;
use aqmlab_traffic::{LARGEST_DATAGRAM, Quantity, SMALLEST_DATAGRAM, exponential_scale};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Rate};

use crate::crossing;
use crate::plan::{ChangingRate, ClassPlan, LinkPlan, Plan};
use crate::queue::in_packets;
use crate::traffic::{Carries, DatagramFlow, Traffic};

/// Returns a sentence for each setting in `plan` that may be unintended.
pub(crate) fn of(plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    late_starts(plan, &mut all);
    unused_ecn(plan, &mut all);
    empty_l4s_queues(plan, &mut all);
    small_buffers(plan, &mut all);
    floods(plan, &mut all);
    narrow_access(plan, &mut all);
    peaks_beyond_access(plan, &mut all);
    unstable_controllers(plan, &mut all);
    clipped_sizes(plan, &mut all);
    short_deadlines(plan, &mut all);
    heavy_pings(plan, &mut all);
    sizes_of_ethernet(plan, &mut all);
    all
}

fn late_starts(plan: &Plan, all: &mut Vec<String>) {
    for class in &plan.classes {
        let latest = class.start.latest();
        if latest >= plan.stop.at {
            all.push(format!("some flows of `{}` start at `{latest}`, when the run is over", class.name));
        } else if latest > plan.warmup && !class.traffic.completes() {
            all.push(format!(
                "the warm-up of `{}` ends before the last flows of `{}` start at `{latest}`",
                plan.warmup, class.name
            ));
        }
    }
}

/// Returns what marks packets at a link because the scenario says so: its queue, or the faults in front of it.
fn marker(link: &LinkPlan) -> Option<&'static str> {
    if has_ecn(&link.queue) {
        Some("the queue")
    } else {
        (!link.faults.mark.is_empty()).then_some("`faults.mark`")
    }
}

/// Returns whether a queue, or one of those inside it, marks whatever its parameters are.
fn always_marks(kind: &str, settings: &Settings) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Discipline { kind, settings } => always_marks(kind, settings),
            Value::Table(settings) => always_marks("", settings),
            Value::List(items) => items.iter().any(within),
            _ => false,
        }
    }
    matches!(kind, "cake" | "dualpi2") || settings.iter().any(|setting| within(&setting.value))
}

/// Returns whether a queue, or one of those inside it, marks packets if its parameter `ecn` is on.
fn has_ecn(settings: &Settings) -> bool {
    settings.iter().any(|setting| {
        setting.name == "ecn" && setting.value == Value::Flag(true) || inner(&setting.value).any(has_ecn)
    })
}

/// Iterates over the tables of settings that are directly within a value.
fn inner(value: &Value) -> Box<dyn Iterator<Item = &Settings> + '_> {
    match value {
        Value::Table(settings) | Value::Discipline { settings, .. } => Box::new(std::iter::once(settings)),
        Value::List(items) => Box::new(items.iter().flat_map(inner)),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns whether data of a class crosses a link.
fn has_data_on(class: &ClassPlan, link: usize) -> bool {
    class.ways_of_data().any(|way| way.contains(&link))
}

fn unused_ecn(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let Some(who) = marker(link) else { continue };
        if !plan.classes.iter().any(|c| c.traffic.ecn_capable() && has_data_on(c, i)) {
            all.push(format!("{who} of `{}` marks packets, but no flow that crosses it uses ECN", link.name));
        }
    }
    for class in plan.classes.iter().filter(|c| c.traffic.ecn_capable()) {
        let marks = |link: &LinkPlan| marker(link).is_some() || always_marks(link.queue.kind(), &link.queue);
        if !class.ways_of_data().flatten().any(|&l| marks(&plan.links[l])) {
            all.push(format!(
                "the flows of `{}` use ECN, but no queue on their path marks packets",
                class.name
            ));
        }
    }
}

/// Warns of DualPI2 where no packet is ECN-capable, or where none that flows send belongs to its L queue: TCP sends
/// ECT(0), which is Classic, unless it is Prague.
fn empty_l4s_queues(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let Some(takes_ect0) = dualpi2_in(link.queue.kind(), &link.queue) else { continue };
        let mut capable =
            plan.classes.iter().filter(|c| c.traffic.ecn_capable() && has_data_on(c, i)).peekable();
        if capable.peek().is_none() {
            all.push(format!(
                "no flow that crosses `{}` uses ECN, so the L queue of DualPI2 stays empty; write `ecn = true` in \
                 `tcp` of some traffic",
                link.name
            ));
        } else if !takes_ect0 && capable.all(|c| c.traffic.tcp().is_some_and(|tcp| !tcp.sends_ect1())) {
            all.push(format!(
                "the flows that cross `{}` send ECT(0), so the L queue of DualPI2 stays empty; write \
                 `classifier = \"any_ect\"` if they are scalable, as DCTCP is",
                link.name
            ));
        }
    }
}

/// Returns, for a queue that is DualPI2 or has one inside, whether ECT(0) belongs to the L queue.
fn dualpi2_in(kind: &str, settings: &Settings) -> Option<bool> {
    if kind == "dualpi2" {
        return Some(settings.get("classifier") == Some(&Value::Choice("any_ect")));
    }
    fn within(value: &Value) -> Option<bool> {
        match value {
            Value::Discipline { kind, settings } => dualpi2_in(kind, settings),
            Value::Table(settings) => dualpi2_in("", settings),
            Value::List(items) => items.iter().find_map(within),
            _ => None,
        }
    }
    settings.iter().find_map(|setting| within(&setting.value))
}

fn small_buffers(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let carries_tcp = plan.classes.iter().any(|c| c.traffic.tcp().is_some() && has_data_on(c, i));
        let context = link.queue.link();
        let (true, Some(rtt), Ok(limit)) = (carries_tcp, context.rtt, link.queue.size("limit")) else {
            continue;
        };
        let bdp = context.packets_per_s() * rtt.as_secs_f64();
        if let Some(packets) = in_packets(limit, context.mean_packet)
            && packets < 0.1 * bdp
        {
            all.push(format!(
                "the buffer of `{}`, `{limit}`, is below a tenth of the bandwidth-delay product of {bdp:.0} packets",
                link.name
            ));
        }
    }
}

/// Warns of unresponsive traffic that by itself exceeds a link's rate.
fn floods(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let crossing = plan.classes.iter().filter(|c| c.path.contains(&i));
        let offered = crossing.fold(0u64, |sum, c| {
            let rate = c.traffic.mean_rate().map_or(0, Rate::as_bps);
            sum.saturating_add(rate.saturating_mul(c.expected_flows()))
        });
        if offered > link.rate.as_bps() {
            all.push(format!(
                "unresponsive traffic of `{}` exceeds the `{}` of `{}`",
                Rate::bps(offered),
                link.rate,
                link.name
            ));
        }
    }
}

/// Warns of access links that are slower than the rate at which a flow sends datagrams over them.
fn narrow_access(plan: &Plan, all: &mut Vec<String>) {
    for class in &plan.classes {
        let (Some(access), Carries::Datagrams(datagrams)) = (&class.access, class.traffic.carries()) else {
            continue;
        };
        if let Some(rate) = datagrams.rate.filter(|rate| access.rate < *rate) {
            all.push(format!(
                "the access links of `{}` have a rate of `{}`, below the `{rate}` at which its flows send",
                class.name, access.rate
            ));
        }
    }
}

/// Warns of links whose changing rate rises above what the access links of all flows that cross them carry together.
fn peaks_beyond_access(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let Some(peak) = link.changes.as_ref().and_then(ChangingRate::peak) else { continue };
        let crossing =
            || plan.classes.iter().filter(|class| class.ways_of_data().any(|way| way.contains(&i)));
        if crossing().any(|class| class.access.is_none()) {
            continue;
        }
        let together = crossing().filter_map(|class| {
            Some(class.access.as_ref()?.rate.as_bps().saturating_mul(class.expected_flows()))
        });
        let together = Rate::bps(together.fold(0, u64::saturating_add));
        if together > Rate::default() && together < peak {
            all.push(format!(
                "the rate of `{}` reaches `{peak}`, but the access links of its flows carry only `{together}` together; \
                 write a larger `access_rate`",
                link.name
            ));
        }
    }
}

/// Warns of deadlines that the propagation delay alone exceeds.
fn short_deadlines(plan: &Plan, all: &mut Vec<String>) {
    for (number, class) in plan.classes.iter().enumerate() {
        let Some(deadline) = class.traffic.deadline() else { continue };
        let rtt = class.access.as_ref().map_or(plan.propagation(number), |access| access.rtt.mean());
        let one_way = rtt.div(2);
        if deadline < one_way {
            all.push(format!(
                "the deadline of `{}` is `{deadline}`, below its one-way propagation delay of about `{one_way}`, so \
                 everything is late",
                class.name
            ));
        }
    }
}

/// The share of a link that probes may take: `PTC` of draft-ietf-ippm-responsiveness.
const PROBES_SHARE: f64 = 0.05;

/// Warns of pings that load the links that they measure.
fn heavy_pings(plan: &Plan, all: &mut Vec<String>) {
    for class in &plan.classes {
        let (Traffic::Ping(ping), Some(rate)) = (&class.traffic, class.traffic.mean_rate()) else { continue };
        let together = Rate::bps(rate.as_bps().saturating_mul(class.count));
        for &link in class.path.iter() {
            let link = &plan.links[link];
            if together > link.rate.times(PROBES_SHARE) {
                all.push(format!(
                    "the requests of `{}` take `{together}` of the `{}` of `{}`, more than 5 %, so they load what they \
                     measure; write a longer `period` than `{}`",
                    class.name,
                    link.rate,
                    link.name,
                    ping.plan.period.mean()
                ));
                break;
            }
        }
    }
}

/// Warns of PI gains that make the control loop with TCP oscillate.
fn unstable_controllers(plan: &Plan, all: &mut Vec<String>) {
    for link in plan.links.iter().filter(|l| l.queue.kind() == "pi") {
        let Ok(Some((tcp, margin))) = pi_phase_margin(&link.queue) else {
            continue;
        };
        if margin <= 0.0 {
            all.push(format!(
                "the gains of PI at `{}` are unstable for {} flows, {:.0} packets/s and a round-trip time of {:.0} ms: the \
                 phase margin is {margin:.0} degrees; write gains = \"auto\" or smaller a and b",
                link.name,
                tcp.flows,
                tcp.packets_per_s,
                1e3 * tcp.rtt_s
            ));
        }
    }
}

/// The share of datagrams of the smallest or largest size above which exponential sizes are reported (our
/// choice).
const CLIPPED: f64 = 0.2;

/// Warns of exponential sizes of which a noticeable share would be smaller or larger than datagrams can be.
fn clipped_sizes(plan: &Plan, all: &mut Vec<String>) {
    for class in &plan.classes {
        let Carries::Datagrams(DatagramFlow { mean_size: mean, largest: None, .. }) = class.traffic.carries()
        else {
            continue;
        };
        let Some(scale) = exponential_scale(mean) else { continue };
        let below = -libm::expm1(-SMALLEST_DATAGRAM.as_f64() / scale);
        let above = libm::exp(-LARGEST_DATAGRAM.as_f64() / scale);
        for (share, size, which) in
            [(below, SMALLEST_DATAGRAM, "smallest"), (above, LARGEST_DATAGRAM, "largest")]
        {
            if share > CLIPPED {
                all.push(format!(
                    "{:.0} % of the datagrams of `{}` have the {which} size, `{size}`: with a mean of `{mean}`, their \
                     sizes are far from exponential",
                    100.0 * share,
                    class.name
                ));
            }
        }
    }
}

/// The ratio of sizes above which a setting is taken to be made for other packets (our choice). ns-2's mean
/// packet of 500 B with packets of 1500 B is below it.
const OTHER_PACKETS: f64 = 4.0;

/// Warns of settings in bytes that are made for packets of Ethernet's size where much larger or much smaller
/// packets cross the link.
fn sizes_of_ethernet(plan: &Plan, all: &mut Vec<String>) {
    for (i, link) in plan.links.iter().enumerate() {
        let largest = crossing::largest_data_packet(i, &plan.classes);
        if let Some(largest) = largest {
            sizes_in(&link.name, &link.queue, largest, link.queue.link().mean_packet, all);
        }
    }
}

/// Returns whether a discipline with these parameters acts once packets have waited longer than a target for an
/// interval, as CoDel and all disciplines with its law do.
fn controls_waits(settings: &Settings) -> bool {
    ["target", "interval"].iter().all(|name| settings.get(name).is_some())
}

/// Returns whether a discipline with these parameters has tins; its `mtu` then spares no packets.
fn divides_by_tins(settings: &Settings) -> bool {
    settings.get("tins").is_some()
}

/// Warns of such settings of a queue, or of one of those inside it.
fn sizes_in(link: &str, settings: &Settings, largest: Bytes, mean: Bytes, all: &mut Vec<String>) {
    let bytes = |name: &str| match settings.get(name) {
        Some(Value::Size(Size::Bytes(n))) => Some(*n),
        _ => None,
    };
    if let Some(mtu) = bytes("mtu").filter(|_| controls_waits(settings)) {
        if mtu < largest && divides_by_tins(settings) {
            all.push(format!(
                "packets of `{largest}` cross `{link}`, but `mtu` of its queue is `{mtu}`, for which it sets the \
                 targets of slow tins; write `mtu = \"{largest}\"`"
            ));
        } else if mtu < largest {
            all.push(format!(
                "packets of `{largest}` cross `{link}`, but CoDel's `mtu` is `{mtu}`: it drops even where \
                 a single packet stays behind; write `mtu = \"{largest}\"`"
            ));
        } else if mtu.as_f64() > OTHER_PACKETS * largest.as_f64() && !divides_by_tins(settings) {
            let spared = mtu.get() / largest.get();
            all.push(format!(
                "the packets that cross `{link}` have at most `{largest}`, but CoDel's `mtu` is `{mtu}`: it drops nothing while \
                 {spared} packets or fewer wait; write `mtu = \"{largest}\"`"
            ));
        }
    }
    let by_largest = matches!(settings.get("byte_mode"), Some(Value::Choice("paper" | "max")));
    let most = bytes("max_packet").filter(|_| by_largest);
    if let Some(most) =
        most.filter(|most| *most < largest || most.as_f64() > OTHER_PACKETS * largest.as_f64())
    {
        all.push(format!(
                "the largest packets that cross `{link}` have `{largest}`, but `max_packet` of its queue is `{most}`, by which \
                 it scales probabilities; write `max_packet = \"{largest}\"`"
            ));
    }
    if let Some(own) = bytes("mean_packet") {
        let ratio = own.as_f64() / mean.as_f64();
        if !(1.0 / OTHER_PACKETS..=OTHER_PACKETS).contains(&ratio) {
            all.push(format!(
                "the packets that cross `{link}` have a mean size of `{mean}`, but `mean_packet` of its queue is `{own}`; write \
                 `mean_packet = \"auto\"`"
            ));
        }
    }
    let by_bytes = settings.get("scheduler") == Some(&Value::Choice("drr"));
    if let Some(quantum) = bytes("quantum").filter(|quantum| by_bytes && *quantum < largest) {
        all.push(format!(
            "packets of `{largest}` cross `{link}`, but a `quantum` of its queue is `{quantum}`: a class of weight 1 sends \
             such a packet in one of several rounds; write at least `{largest}`"
        ));
    }
    for setting in settings.iter() {
        nested(link, &setting.value, largest, mean, all);
    }
}

fn nested(link: &str, value: &Value, largest: Bytes, mean: Bytes, all: &mut Vec<String>) {
    match value {
        Value::Table(settings) | Value::Discipline { settings, .. } => {
            sizes_in(link, settings, largest, mean, all);
        }
        Value::List(items) => items.iter().for_each(|item| nested(link, item, largest, mean, all)),
        _ => (),
    }
}
