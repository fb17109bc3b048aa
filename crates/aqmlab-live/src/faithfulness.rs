//! Faithfulness of a live run: its measurements compared with limits.
//!
//! A run is faithful if, to the extent that hosts can observe it, the router did what its plan
//! specifies at the specified instants, and if only the disciplines lost packets. Each violation is
//! reported with its figure and its limit.

use std::fmt;

use aqmlab_recording::live::Check;
use aqmlab_scenario::Plan;
use aqmlab_units::Span;

use crate::capacity::MOST_DUTY;
use crate::router::{DataPackets, lateness_limit};

/// Verdict on a live run.
#[derive(Clone, PartialEq, Debug)]
pub struct Faithfulness {
    /// All the checks.
    pub checks: Vec<Check>,
    /// Whether a user ended the run early. The completed part may still be faithful.
    pub interrupted: bool,
}

/// Measurements of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observed {
    /// The length of the measured interval; zero if the run ended during its warm-up.
    pub measured: Span,
    /// Packets that left the network in the measured interval.
    pub left: u64,
    /// 99 % of the packets that left the network were written at most this long after their ideal instants.
    pub lateness_p99: Span,
    /// Packets that were written later than the limit at the rates that held; `None` if no rate changes.
    pub beyond_limit: Option<u64>,
    /// Number of stalls of the router, each a silence longer than allowed.
    pub stalls: u64,
    /// Length of the longest stall.
    pub longest_stall: Span,
    /// Share of the time during which the router's thread had a processor.
    pub duty: f64,
    /// 99 % of datagrams and session events were at most this late; `None` if there were none.
    pub traffic_lateness_p99: Option<Span>,
    /// Packets that could not be written to their hosts.
    pub write_errors: u64,
    /// Packets larger than their interface allows, which means that offloaded segmentation is active where it
    /// should not be.
    pub oversize: u64,
    /// Packets that the router lost for lack of a buffer.
    pub no_room: u64,
    /// Packets lost within the hosts, by place.
    pub hidden_drops: Vec<(String, u64)>,
    /// Connections and datagrams that failed on their hosts' sockets, by kind of failure.
    pub at_sockets: Vec<(String, u64)>,
    /// The number of packets that the router has handed to hosts, with joined segments counted as one packet,
    /// and the number that the hosts' interfaces have counted.
    pub handed_over: (u64, u64),
    /// For each host, the number of CE-marked packets that the router handed to it, and the number of such
    /// packets that its kernel counted.
    pub marks: Vec<(u64, u64)>,
    /// Measurements of the kernel queues.
    pub kernels: Vec<KernelObserved>,
}

/// Measurements of a kernel queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelObserved {
    /// Name of its link.
    pub link: String,
    /// 99 % of the packets that waited left at most this long after the link had become free; `None` if the
    /// discipline itself holds packets, or none waited.
    pub lateness_p99: Option<Span>,
    /// Packets handed to the queue.
    pub offered: u64,
    /// Packets that returned from the queue.
    pub returned: u64,
    /// Packets that came out of the queue without having entered it.
    pub strays: u64,
    /// Packets that the queue's discipline counts as dropped.
    pub dropped: u64,
    /// Packets that wait in the queue.
    pub waiting: u64,
}

/// Time scales with which lateness is compared.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeScales {
    /// Shortest transmission time of a data packet on any link of its path.
    pub packet_time: Span,
    /// The name of that link.
    pub link: String,
    /// The shortest base round-trip time of any flow.
    pub least_rtt: Span,
}

/// Longest time that the router may be silent. A longer silence is a stall, because frames that arrive during
/// it get a wrong arrival time.
pub const LONGEST_SILENCE: Span = Span::ms(10);

/// Percentage of packets that may be later than their limit.
const MOST_BEYOND: f64 = 1.0;

impl TimeScales {
    /// Returns the time scales of a plan whose flows have at least this base round-trip time.
    pub fn of(plan: &Plan, least_rtt: Span) -> Self {
        let time = DataPackets::of(plan).shortest_time(|link| plan.links[link].rate);
        let (packet_time, link) = time.unwrap_or((Span::ZERO, 0));
        let link = plan.links.get(link).map(|link| link.name.clone()).unwrap_or_default();
        TimeScales { packet_time, link, least_rtt }
    }

    /// Returns the limit for the 99th percentile of lateness, and the basis of that limit.
    pub fn limit(&self) -> (Span, String) {
        let limit = lateness_limit(self.packet_time, self.least_rtt);
        if limit == self.packet_time.div(2) {
            (limit, format!("half a packet time at `{}`", self.link))
        } else {
            (limit, "1 % of the shortest base RTT".to_owned())
        }
    }
}

impl Faithfulness {
    /// Returns the verdict on a run with these time scales.
    pub fn of(observed: &Observed, time_scales: &TimeScales, interrupted: bool) -> Self {
        let mut checks = vec![
            carried(observed, interrupted),
            lateness(observed, time_scales),
            stalls(observed),
            duty(observed),
            none("write_errors", observed.write_errors, "refused by the destination host"),
            none(
                "oversize",
                observed.oversize,
                "larger than the interface allows, as with offloaded segmentation",
            ),
            none("no_room", observed.no_room, "lost for lack of memory in the router"),
        ];
        checks.extend(traffic(observed));
        checks.push(hidden_drops(observed));
        checks.push(at_sockets(observed));
        checks.push(handed_over(observed));
        checks.push(marks(observed));
        checks.extend(kernel_shaper(observed, time_scales));
        checks.extend(kernel_books(observed));
        Faithfulness { checks, interrupted }
    }

    /// Returns whether all checks hold.
    pub fn is_faithful(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    /// Returns a sentence for each check that does not hold.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().filter(|check| !check.passed).map(|check| check.sentence.as_str())
    }
}

impl fmt::Display for Faithfulness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_faithful() {
            f.write_str("faithful")?;
        } else {
            write!(f, "NOT FAITHFUL: {}", self.reasons().collect::<Vec<_>>().join("; "))?;
        }
        if self.interrupted { f.write_str(" (interrupted)") } else { Ok(()) }
    }
}

/// Checks that packets were carried at all: without any, all other checks would pass.
fn carried(observed: &Observed, interrupted: bool) -> Check {
    let passed = observed.left > 0;
    let sentence = if passed {
        format!("{} packets were carried in the measured interval", observed.left)
    } else if interrupted && observed.measured.is_zero() {
        "interrupted during the warm-up, so nothing was measured".to_owned()
    } else {
        "no packet was carried in the measured interval".to_owned()
    };
    Check { name: "carried", passed, sentence, value: observed.left as f64, limit: 1.0, unit: "packets" }
}

fn lateness(observed: &Observed, time_scales: &TimeScales) -> Check {
    if let Some(beyond) = observed.beyond_limit {
        return lateness_at_changing_rates(observed, beyond);
    }
    let p99 = observed.lateness_p99;
    let (limit, why) = time_scales.limit();
    let passed = p99 < limit;
    let than = if passed { "limit" } else { "above" };
    Check {
        name: "lateness",
        passed,
        sentence: format!("p99 lateness {}, {than} {} ({why})", format_span(p99), format_span(limit)),
        value: p99.as_secs_f64(),
        limit: limit.as_secs_f64(),
        unit: "s",
    }
}

/// Checks the lateness of a router in which the rates of links change: the limit is that at the rates that held when a packet left.
/// For a constant rate, this is the same condition as that of [`lateness`].
fn lateness_at_changing_rates(observed: &Observed, beyond: u64) -> Check {
    let value = 100.0 * beyond as f64 / observed.left.max(1) as f64;
    let passed = value < MOST_BEYOND;
    let than = if passed { "limit" } else { "above" };
    let sentence = format!(
        "{value:.2} % of the packets later than half a packet time at the rates that held, or 1 % of the shortest base RTT if that \
         is longer, {than} {MOST_BEYOND} % (p99 lateness {})",
        format_span(observed.lateness_p99)
    );
    Check { name: "lateness", passed, sentence, value, limit: MOST_BEYOND, unit: "%" }
}

/// Checks how late the generator was. The limit for the router's silence suffices here too: a source's actions
/// are either seconds apart, so that such a delay is negligible, or so frequent that their lateness averages
/// out.
fn traffic(observed: &Observed) -> Option<Check> {
    let p99 = observed.traffic_lateness_p99?;
    let passed = p99 < LONGEST_SILENCE;
    let than = if passed { "limit" } else { "above" };
    let sentence =
        format!("p99 lateness of sources {}, {than} {}", format_span(p99), format_span(LONGEST_SILENCE));
    let (value, limit) = (p99.as_secs_f64(), LONGEST_SILENCE.as_secs_f64());
    Some(Check { name: "traffic", passed, sentence, value, limit, unit: "s" })
}

fn stalls(observed: &Observed) -> Check {
    let passed = observed.stalls == 0;
    let sentence = if passed {
        format!("no stall (longest silence allowed: {})", format_span(LONGEST_SILENCE))
    } else {
        format!(
            "{} above {}, the longest {}",
            counted(observed.stalls, "stall"),
            format_span(LONGEST_SILENCE),
            format_span(observed.longest_stall)
        )
    };
    Check {
        name: "stalls",
        passed,
        sentence,
        value: observed.longest_stall.as_secs_f64(),
        limit: LONGEST_SILENCE.as_secs_f64(),
        unit: "s",
    }
}

fn duty(observed: &Observed) -> Check {
    let (value, limit) = (100.0 * observed.duty, 100.0 * MOST_DUTY);
    let passed = value < limit;
    let than = if passed { "limit" } else { "above" };
    let sentence = format!("the router used {value:.1} % of a processor, {than} {limit:.0} %");
    Check { name: "duty", passed, sentence, value, limit, unit: "%" }
}

/// Returns a count with its noun, such as `1 stall` or `2 stalls`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Checks that no packet of a forbidden kind occurred.
fn none(name: &'static str, count: u64, which: &str) -> Check {
    let passed = count == 0;
    let sentence =
        if passed { format!("no packet {which}") } else { format!("{} {which}", counted(count, "packet")) };
    Check { name, passed, sentence, value: count as f64, limit: 0.0, unit: "packets" }
}

fn hidden_drops(observed: &Observed) -> Check {
    let phrases = ("no packet lost within a host", "packets lost within hosts");
    none_of("hidden_drops", &observed.hidden_drops, phrases, "packets")
}

fn at_sockets(observed: &Observed) -> Check {
    let phrases =
        ("no connection or datagram failed at its hosts", "connections and datagrams failed at their hosts");
    none_of("at_sockets", &observed.at_sockets, phrases, "flows or packets")
}

/// Checks that all counts are zero. The check's sentence is the first phrase if they are, and
/// begins with the second if they are not.
fn none_of(
    name: &'static str,
    counts: &[(String, u64)],
    (none, some): (&str, &str),
    unit: &'static str,
) -> Check {
    let count: u64 = counts.iter().map(|(_, count)| count).sum();
    let parts: Vec<String> = counts.iter().map(|(what, n)| format!("{what} {n}")).collect();
    let sentence = if count == 0 { none.to_owned() } else { format!("{some}: {}", parts.join(", ")) };
    Check { name, passed: count == 0, sentence, value: count as f64, limit: 0.0, unit }
}

fn handed_over(observed: &Observed) -> Check {
    let (handed, counted) = observed.handed_over;
    let amiss = handed.abs_diff(counted);
    let received = if amiss == 0 { "as many".to_owned() } else { counted.to_string() };
    Check {
        name: "handed_over",
        passed: amiss == 0,
        sentence: format!("{handed} packets handed over, and {received} counted by the interfaces"),
        value: amiss as f64,
        limit: 0.0,
        unit: "packets",
    }
}

fn marks(observed: &Observed) -> Check {
    let delivered: u64 = observed.marks.iter().map(|(delivered, _)| delivered).sum();
    let received: u64 = observed.marks.iter().map(|(_, received)| received).sum();
    // Hosts are compared one by one, so that a surplus at one does not make up for a deficit at another.
    let amiss: u64 = observed.marks.iter().map(|(delivered, received)| delivered.abs_diff(*received)).sum();
    let counted = if amiss == 0 { "as many".to_owned() } else { received.to_string() };
    Check {
        name: "marks",
        passed: amiss == 0,
        sentence: format!("{delivered} packets with CE delivered, and {counted} counted by the hosts"),
        value: amiss as f64,
        limit: 0.0,
        unit: "packets",
    }
}

/// Checks the lateness of the kernel's shaper, which replaces the link's own clock; the limit is the same as
/// for writing. It is not known of a discipline that holds packets itself.
fn kernel_shaper(observed: &Observed, time_scales: &TimeScales) -> Option<Check> {
    let p99 = observed.kernels.iter().filter_map(|kernel| kernel.lateness_p99).max()?;
    let (limit, why) = time_scales.limit();
    let passed = p99 < limit;
    let than = if passed { "limit" } else { "above" };
    let sentence = format!(
        "p99 lateness of the kernel's shaper {}, {than} {} ({why})",
        format_span(p99),
        format_span(limit)
    );
    let (value, limit) = (p99.as_secs_f64(), limit.as_secs_f64());
    Some(Check { name: "kernel_shaper", passed, sentence, value, limit, unit: "s" })
}

/// Checks that every packet that entered a kernel queue has come out, has been dropped or waits, according to
/// the kernel's own counts.
fn kernel_books(observed: &Observed) -> Option<Check> {
    let amiss = |kernel: &KernelObserved| {
        kernel.strays + kernel.offered.abs_diff(kernel.returned + kernel.dropped + kernel.waiting)
    };
    let worst = observed.kernels.iter().max_by_key(|kernel| amiss(kernel))?;
    let value = amiss(worst);
    let KernelObserved { link, offered, returned, dropped, waiting, .. } = worst;
    let sentence = format!(
        "the kernel's queue at `{link}` took {offered} packets: {returned} came back, and it counts {dropped} dropped and \
         {waiting} waiting"
    );
    Some(Check {
        name: "kernel_books",
        passed: value == 0,
        sentence,
        value: value as f64,
        limit: 0.0,
        unit: "packets",
    })
}

/// Formats a time for display, with three digits in a suitable unit.
pub(crate) fn format_span(span: Span) -> String {
    let ns = span.as_ns() as f64;
    let (value, unit) = match span.as_ns() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        100.0.. => format!("{value:.0} {unit}"),
        10.0..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_scales() -> TimeScales {
        TimeScales { packet_time: Span::us(1200), link: "bottleneck".into(), least_rtt: Span::ms(40) }
    }

    fn good() -> Observed {
        Observed {
            measured: Span::s(20),
            left: 20_000,
            lateness_p99: Span::us(55),
            duty: 0.12,
            marks: vec![(0, 0), (31, 31)],
            ..Observed::default()
        }
    }

    fn faithfulness(change: impl FnOnce(&mut Observed)) -> Faithfulness {
        let mut observed = good();
        change(&mut observed);
        Faithfulness::of(&observed, &time_scales(), false)
    }

    #[test]
    fn a_run_interrupted_in_its_warm_up_is_called_that() {
        let nothing = Observed { left: 0, ..good() };
        let verdict = |measured, interrupted| {
            let observed = Observed { measured, ..nothing.clone() };
            Faithfulness::of(&observed, &time_scales(), interrupted).to_string()
        };
        assert_eq!(
            verdict(Span::ZERO, true),
            "NOT FAITHFUL: interrupted during the warm-up, so nothing was measured (interrupted)"
        );
        for (measured, interrupted) in [(Span::s(1), true), (Span::ZERO, false)] {
            assert!(verdict(measured, interrupted).contains("no packet was carried"));
        }
    }

    #[test]
    fn a_good_run_is_faithful() {
        let faithfulness = faithfulness(|_| ());
        assert!(faithfulness.is_faithful());
        assert_eq!(faithfulness.to_string(), "faithful");
        assert_eq!(faithfulness.reasons().count(), 0);
    }

    #[test]
    fn each_defect_alone_makes_it_unfaithful_and_is_named_with_its_figure() {
        type Defect = fn(&mut Observed);
        let defects: [(&str, &str, Defect); 12] = [
            ("at_sockets", "connections and datagrams failed at their hosts: reset 5", |o| {
                o.at_sockets = vec![("reset".into(), 5)];
            }),
            ("handed_over", "99 counted", |o| o.handed_over = (100, 99)),
            ("traffic", "12.0 ms", |o| o.traffic_lateness_p99 = Some(Span::ms(12))),
            ("lateness", "600 us", |o| o.lateness_p99 = Span::us(600)),
            ("stalls", "31.0 ms", |o| (o.stalls, o.longest_stall) = (2, Span::ms(31))),
            ("duty", "70.0 %", |o| o.duty = 0.7),
            ("write_errors", "3 packets", |o| o.write_errors = 3),
            ("carried", "no packet was carried", |o| o.left = 0),
            ("oversize", "1 packet larger than", |o| o.oversize = 1),
            ("no_room", "9 packets lost for lack of memory", |o| o.no_room = 9),
            ("hidden_drops", "dev.tx_dropped 4", |o| o.hidden_drops = vec![("dev.tx_dropped".into(), 4)]),
            ("marks", "30 counted", |o| o.marks[1].1 = 30),
        ];
        for (name, figure, defect) in defects {
            let faithfulness = faithfulness(defect);
            let failed: Vec<_> = faithfulness.checks.iter().filter(|check| !check.passed).collect();
            assert_eq!(failed.iter().map(|check| check.name).collect::<Vec<_>>(), [name]);
            assert!(failed[0].sentence.contains(figure), "{}", failed[0].sentence);
            assert!(faithfulness.to_string().starts_with("NOT FAITHFUL: "), "{faithfulness}");
        }
    }

    #[test]
    fn one_is_not_many() {
        let stalls = |n| faithfulness(|o| (o.stalls, o.longest_stall) = (n, Span::ms(31))).to_string();
        assert_eq!(stalls(1), "NOT FAITHFUL: 1 stall above 10.0 ms, the longest 31.0 ms");
        assert_eq!(stalls(2), "NOT FAITHFUL: 2 stalls above 10.0 ms, the longest 31.0 ms");
    }

    #[test]
    fn lateness_is_compared_with_the_milder_of_both_limits() {
        // 1 % of the RTT of 200 ms is more than half of the packet time of 1.2 ms.
        let time_scales = TimeScales { least_rtt: Span::ms(200), ..time_scales() };
        let late = |us| Observed { lateness_p99: Span::us(us), ..good() };
        assert!(Faithfulness::of(&late(1999), &time_scales, false).is_faithful());
        let faithfulness = Faithfulness::of(&late(2000), &time_scales, true);
        assert_eq!(
            faithfulness.to_string(),
            "NOT FAITHFUL: p99 lateness 2.00 ms, above 2.00 ms (1 % of the shortest base RTT) (interrupted)"
        );
    }

    #[test]
    fn at_changing_rates_the_share_of_packets_beyond_their_limits_counts() {
        let beyond = |count| Observed { lateness_p99: Span::s(1), beyond_limit: Some(count), ..good() };
        assert!(Faithfulness::of(&beyond(199), &time_scales(), false).is_faithful());
        let faithfulness = Faithfulness::of(&beyond(200), &time_scales(), false);
        assert_eq!(
            faithfulness.to_string(),
            "NOT FAITHFUL: 1.00 % of the packets later than half a packet time at the rates that held, or 1 % of the shortest \
             base RTT if that is longer, above 1 % (p99 lateness 1.00 s)"
        );
    }

    #[test]
    fn the_pace_is_that_of_data_at_the_fastest_link_of_its_path() {
        let text = "title = \"t\"\nduration = \"1s\"\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                    [[traffic]]\nname = \"a\"\nkind = \"bulk\"\ntcp = { profile = \"linux\" }\n\
                    [[traffic]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"500B\"\n";
        let plan = aqmlab_scenario::parse(text, "test").unwrap().arms.remove(0);
        let time_scales = TimeScales::of(&plan, Span::ms(2));
        // 500 bytes at 10 Mbit/s.
        assert_eq!(
            (time_scales.packet_time, time_scales.link.as_str()),
            (Span::us(400), plan.links[plan.classes[0].path[0]].name.as_str())
        );
    }

    #[test]
    fn marks_are_compared_host_by_host() {
        let faithfulness = faithfulness(|o| o.marks = vec![(1, 0), (30, 31)]);
        assert!(!faithfulness.is_faithful());
        assert_eq!(faithfulness.checks.iter().find(|check| check.name == "marks").unwrap().value, 2.0);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let faithfulness = faithfulness(|o| (o.duty, o.write_errors) = (0.95, 1));
        assert_eq!(faithfulness.reasons().count(), 2);
        assert!(faithfulness.to_string().contains("; "));
    }
}
