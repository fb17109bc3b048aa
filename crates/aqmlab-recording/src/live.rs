//! What a manifest says of a live run: how faithful it was, what the machine had to do, and what its kernels were set to.
//!
//! Plain data with the unit in each name, as it stands in the manifest's object `live`. No digest has any of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What only the live router knows of its run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveReport {
    /// Whether every check passed.
    pub faithful: bool,
    /// Whether a person ended the run before its time.
    pub interrupted: bool,
    /// The sentences of the checks that failed.
    pub reasons: Vec<String>,
    /// The conditions of a faithful run.
    pub checks: Vec<Check>,
    /// How late packets were written.
    pub lateness: TimeDistribution,
    /// The first stalls of the router, at most 64.
    pub stalls: Vec<Stall>,
    /// The number of all stalls.
    pub stall_count: u64,
    /// The longest of all stalls.
    pub longest_stall_ns: u64,
    /// Processor time of the router's thread, percent of the time of the run.
    pub duty_percent: f64,
    /// How the router's thread was scheduled.
    pub policy: Policy,
    /// Whether the router's memory cannot be paged out.
    pub memory_locked: bool,
    /// How the router waited: `hybrid` or `epoll`.
    pub wait: &'static str,
    /// Share of the measured interval for which a `hybrid` router was too busy to spin, percent.
    pub without_spin_percent: f64,
    /// What came in from the hosts.
    pub frames: Frames,
    /// The most packets in the network at one time.
    pub most_held: u64,
    /// What came in and went nowhere, outside of the disciplines.
    pub drops: LiveDrops,
    /// Congestion marks over the whole run.
    pub marks: LiveMarks,
    /// What the kernels' TCP does in its own way, and what a capture lacks: a sentence each.
    pub remarks: Vec<String>,
    /// By class, what the hosts' kernels were set to.
    pub stack: BTreeMap<String, serde_json::Map<String, Value>>,
    /// By class, what the hosts' interfaces and routes were given.
    pub routes: BTreeMap<String, RouteMetrics>,
    /// By class, what the hosts' kernels counted.
    pub counters: BTreeMap<String, HostCounters>,
    /// How the traffic generator fared.
    pub generator: GeneratorReport,
    /// By port, packets that were captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<BTreeMap<String, CapturedCounts>>,
    /// Why there is no file of captured packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_failure: Option<CaptureStopped>,
    /// Round trips between two hosts without any router, just before the run.
    pub ping: TimeDistribution,
    /// Packets that this machine carries.
    pub capacity: CapacityReport,
    /// The machine; absent where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFacts>,
}

/// One condition of a faithful run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Check {
    /// Its name: `lateness`.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// Figure and limit in words; what is wrong if it does not hold.
    pub sentence: String,
    /// The figure.
    pub value: f64,
    /// The most that it may be.
    pub limit: f64,
    /// The unit of both: `s`, `%`, `packets`.
    pub unit: &'static str,
}

/// Count and quantiles of times, and the bins that they are of.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimeDistribution {
    /// Values.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// 90 % are no larger.
    pub p90_ns: u64,
    /// 99 % are no larger.
    pub p99_ns: u64,
    /// 99.9 % are no larger.
    pub p999_ns: u64,
    /// The largest, to within its bin.
    pub max_ns: u64,
    /// `[low_ns, high_ns, count]`, both ends included.
    pub bins: Vec<[u64; 3]>,
}

/// A time for which the router did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stall {
    /// Its begin, since the start of the run.
    pub at_ns: u64,
    /// How long it lasted.
    pub length_ns: u64,
}

/// How a thread is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// In real time: `SCHED_FIFO`.
    Fifo,
    /// As an ordinary thread.
    #[default]
    Other,
}

/// What came in from the hosts, in packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Frames {
    /// All of them.
    pub read: u64,
    /// Those that entered the network.
    pub let_in: u64,
    /// Of these, fragments.
    pub fragments: u64,
    /// Of these, packets that belong to no flow of the plan.
    pub of_no_flow: u64,
    /// By what is wrong with them, those that did not enter.
    pub malformed: BTreeMap<&'static str, u64>,
}

/// Packets that no discipline dropped and that did not arrive either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveDrops {
    /// Packets that are no sound IP.
    pub malformed: u64,
    /// Packets larger than their interface allows.
    pub oversize: u64,
    /// Packets for which the router had no room.
    pub no_slot: u64,
    /// Packets that their host refused.
    pub write_error: u64,
    /// Packets that the hosts' devices dropped.
    pub tun: u64,
    /// Packets under way when the router stopped; these are not lost.
    pub still_held: u64,
}

/// Congestion marks over the whole run, in delivered packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveMarks {
    /// Marked by a queue of this network.
    pub marked: u64,
    /// With CE, set by a queue here or elsewhere.
    pub ce_delivered: u64,
    /// With CE, as the hosts' kernels counted them.
    pub ce_received: u64,
}

/// What the interfaces and routes of a class's hosts were given; `null` is the kernel's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RouteMetrics {
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Initial receive window, in segments.
    pub initial_receive_window: Option<u32>,
    /// Receive window, in bytes.
    pub receive_window: Option<u32>,
    /// Least retransmission timeout.
    pub min_rto_ms: Option<u32>,
    /// Whether acknowledgments are never delayed.
    pub quick_ack: bool,
}

/// What the kernels of a class's two hosts counted, by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HostCounters {
    /// The client's.
    pub client: BTreeMap<String, u64>,
    /// The server's.
    pub server: BTreeMap<String, u64>,
}

/// How the traffic generator fared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GeneratorReport {
    /// How late sources and sessions did what they do.
    pub lateness: TimeDistribution,
    /// Processor time of its thread, percent of the time of the run.
    pub processor_percent: f64,
    /// What failed at the hosts' sockets, by what it was.
    pub trouble: BTreeMap<&'static str, u64>,
}

/// Packets of a port that were to be captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CapturedCounts {
    /// In the file.
    pub packets: u64,
    /// Not in the file.
    pub missed: u64,
}

/// Why a capture ended before the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CaptureStopped {
    /// When, since the start of the run.
    pub at_ns: u64,
    /// What the operating system said.
    pub reason: String,
}

/// Packets that a machine carries, and those that a plan sends.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CapacityReport {
    /// Processor time for a packet.
    pub per_packet_ns: u64,
    /// Processor time to fall asleep and wake up again.
    pub per_wake_ns: u64,
    /// With all of a processor.
    pub packets_per_s: f64,
    /// The most that a plan may send.
    pub limit_packets_per_s: f64,
    /// The most that this plan sends.
    pub demand_packets_per_s: f64,
}

/// A machine: kernel, processors, clock, and what else it had to do. What it does not tell is `null`.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MachineFacts {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processors' architecture.
    pub architecture: &'static str,
    /// Processors that the process may use.
    pub processors: Option<usize>,
    /// Whether the kernel runs on a hypervisor.
    pub is_guest: Option<bool>,
    /// What the kernel takes the time from.
    pub clocksource: Option<String>,
    /// The kernel's tick.
    pub tick_ns: u64,
    /// How the first processor's frequency is chosen.
    pub governor: Option<String>,
    /// Threads that wanted to run or waited for a disk, mean over the last minute.
    pub load: Option<f64>,
    /// Processor time that other guests had meanwhile, percent.
    pub stolen_percent: Option<f64>,
    /// Share of the time that real-time threads may have, percent; `null` is all.
    pub real_time_share_percent: Option<f64>,
    /// Congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
}
