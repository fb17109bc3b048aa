//! A manifest's description of a live run: its faithfulness, the load of the machine, and the settings of the
//! hosts' kernels.
//!
//! The types hold plain data with the unit in each name, in the form of the manifest's `live` object, which
//! no digest includes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The facts that only the live router knows about its run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveReport {
    /// Whether every check passed.
    pub faithful: bool,
    /// Whether the user interrupted the run.
    pub interrupted: bool,
    /// One sentence for each check that failed.
    pub reasons: Vec<String>,
    /// The conditions that a faithful run must meet.
    pub checks: Vec<Check>,
    /// Lateness of packets written to hosts.
    pub lateness: TimeDistribution,
    /// The first stalls of the router, at most 64.
    pub stalls: Vec<Stall>,
    /// The total number of stalls.
    pub stall_count: u64,
    /// The length of the longest stall.
    pub longest_stall_ns: u64,
    /// Processor time of the router's thread, as a percentage of the run's duration.
    pub duty_percent: f64,
    /// Scheduling of the router's thread.
    pub policy: Policy,
    /// Whether the router's memory is locked, so that it cannot be paged out.
    pub memory_locked: bool,
    /// How the router waited: `hybrid` or `epoll`.
    pub wait: &'static str,
    /// Whether the kernel ran in virtual time, in which work takes no time.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pub virtual_time: bool,
    /// How packets were joined in super-segments, if the hosts used offloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadReport>,
    /// Share of the measured interval during which a `hybrid` router was too busy to spin, in percent.
    pub without_spin_percent: f64,
    /// Frames read from the hosts.
    pub frames: Frames,
    /// Maximum number of packets in the network at the same time.
    pub most_held: u64,
    /// Losses that no discipline caused.
    pub drops: LiveDrops,
    /// Congestion marks over the whole run.
    pub marks: LiveMarks,
    /// Differences between the kernels' TCP and the plan, and gaps in a capture, one sentence each.
    pub remarks: Vec<String>,
    /// Settings of the hosts' kernels, by class.
    pub stack: BTreeMap<String, serde_json::Map<String, Value>>,
    /// Settings of the hosts' interfaces and routes, by class.
    pub routes: BTreeMap<String, RouteMetrics>,
    /// Counters of the hosts' kernels, by class.
    pub counters: BTreeMap<String, HostCounters>,
    /// Performance of the traffic generator.
    pub generator: GeneratorReport,
    /// Kernel queues, by link.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub kernel_queues: BTreeMap<String, KernelQueueReport>,
    /// The programs that ran, in the order of their classes; of each class, the server comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub programs: Vec<ProgramReport>,
    /// Captured packets, by port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<BTreeMap<String, CapturedCounts>>,
    /// Why there is no file of captured packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_failure: Option<CaptureStopped>,
    /// Round-trip times between two hosts without a router between them, measured just before the
    /// run.
    pub ping: TimeDistribution,
    /// Packet rate that this machine can handle.
    pub capacity: CapacityReport,
    /// The machine; absent if it was not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFacts>,
}

/// Returns whether a value is false. A false value is left out, so manifests of runs in real time
/// do not mention virtual time.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A program that ran in a host.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProgramReport {
    /// Its class.
    pub class: String,
    /// `client` or `server`.
    pub role: &'static str,
    /// Its number among the clients of its class; 0 for a server.
    pub index: u64,
    /// The command as executed: the program and its arguments.
    pub command: Vec<String>,
    /// Its start, relative to the start of the run; a server starts earlier, and this is then negative.
    pub start_ns: i64,
    /// Its end, relative to the start of the run.
    pub end_ns: i64,
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the run asked it to end.
    pub asked_to_end: bool,
    /// Processor time in user mode.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Largest resident memory.
    pub most_resident_bytes: u64,
}

/// One condition that a faithful run must meet.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Check {
    /// Its name: `lateness`.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// Describes the figure and the limit or, if the condition does not hold, how it is violated.
    pub sentence: String,
    /// The figure.
    pub value: f64,
    /// The largest allowed figure.
    pub limit: f64,
    /// The unit of the figure and the limit: `s`, `%`, `packets`.
    pub unit: &'static str,
}

/// Count and quantiles of times, with the underlying bins.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimeDistribution {
    /// Number of values.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// 90 % of the values are no larger than this one.
    pub p90_ns: u64,
    /// 99 % of the values are no larger than this one.
    pub p99_ns: u64,
    /// 99.9 % of the values are no larger than this one.
    pub p999_ns: u64,
    /// The largest value, to within the width of its bin.
    pub max_ns: u64,
    /// `[low_ns, high_ns, count]` of each bin, both limits included.
    pub bins: Vec<[u64; 3]>,
}

/// Packets that hosts and router exchanged in super-segments, from the start of the run to the end of the
/// drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OffloadReport {
    /// Reads from hosts, each of one packet or one super-segment.
    pub reads: u64,
    /// Packets in these reads.
    pub packets_read: u64,
    /// Writes to hosts, each of one packet or one super-segment.
    pub writes: u64,
    /// Packets in these writes.
    pub packets_written: u64,
}

/// A period during which the router did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stall {
    /// Its beginning, as the time since the start of the run.
    pub at_ns: u64,
    /// Its duration.
    pub length_ns: u64,
}

/// Scheduling of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Real time: `SCHED_FIFO`.
    Fifo,
    /// Ordinary.
    #[default]
    Other,
}

/// Frames read from the hosts, counted in packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Frames {
    /// All frames.
    pub read: u64,
    /// Frames that entered the network.
    pub let_in: u64,
    /// Fragments among these.
    pub fragments: u64,
    /// Packets in these frames that belong to no flow of the plan.
    pub of_no_flow: u64,
    /// Frames that did not enter the network, by kind of error.
    pub malformed: BTreeMap<&'static str, u64>,
}

/// Packets that did not reach the receiver although no discipline dropped them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveDrops {
    /// Packets that are not valid IP.
    pub malformed: u64,
    /// Packets larger than their interface allows.
    pub oversize: u64,
    /// Packets for which the router had no room.
    pub no_slot: u64,
    /// Packets that the destination host refused.
    pub write_error: u64,
    /// Packets that the hosts' devices dropped.
    pub tun: u64,
    /// Packets in the router when it stopped; these are not lost.
    pub still_held: u64,
}

/// Congestion marks on delivered packets, over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LiveMarks {
    /// Packets marked by a queue of this network.
    pub marked: u64,
    /// Packets with CE, set by a queue here or elsewhere.
    pub ce_delivered: u64,
    /// Packets with CE, as counted by the hosts' kernels.
    pub ce_received: u64,
}

/// Settings of the interfaces and routes of a class's hosts; `null` stands for the kernel's
/// default.
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
    /// Minimum retransmission timeout.
    pub min_rto_ms: Option<u32>,
    /// Whether acknowledgments are never delayed.
    pub quick_ack: bool,
}

/// Counters of the kernels of a class's two hosts, by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HostCounters {
    /// The client's.
    pub client: BTreeMap<String, u64>,
    /// The server's.
    pub server: BTreeMap<String, u64>,
}

/// Performance of the traffic generator.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GeneratorReport {
    /// Lateness of the actions of sources and sessions.
    pub lateness: TimeDistribution,
    /// Processor time of its thread, as a percentage of the run's duration.
    pub processor_percent: f64,
    /// Failures on the hosts' sockets, by kind.
    pub trouble: BTreeMap<&'static str, u64>,
}

/// Activity of a kernel queue, from the start of the run to the end of the drain.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KernelQueueReport {
    /// The discipline and its options, as passed to tc.
    pub spec: String,
    /// Packets handed to the kernel.
    pub offered: u64,
    /// Packets that returned.
    pub returned: u64,
    /// Packets that the kernel did not return.
    pub dropped: u64,
    /// Packets that the kernel returned with a mark.
    pub marked: u64,
    /// Drops as counted by the discipline.
    pub kernel_dropped: u64,
    /// Lengths of the periods in which the link was idle although a packet waited.
    pub lateness: TimeDistribution,
    /// The output of `tc -s` for the discipline at the end.
    pub shown: String,
}

/// Counts of the packets at a captured port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CapturedCounts {
    /// Packets in the file.
    pub packets: u64,
    /// Packets missing from the file.
    pub missed: u64,
}

/// When and why a capture ended before the end of the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CaptureStopped {
    /// When the capture ended, as the time since the start of the run.
    pub at_ns: u64,
    /// The operating system's error.
    pub reason: String,
}

/// The packet rate that a machine can handle, and the packet rate of a plan; `null` if work takes
/// no time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CapacityReport {
    /// Processor time per packet.
    pub per_packet_ns: Option<u64>,
    /// Processor time per sleep and wake-up.
    pub per_wake_ns: Option<u64>,
    /// Packet rate that a whole processor could handle.
    pub packets_per_s: Option<f64>,
    /// Maximum packet rate that a plan may have.
    pub limit_packets_per_s: Option<f64>,
    /// Maximum packet rate of this plan.
    pub demand_packets_per_s: f64,
}

/// A machine: its kernel, processors, clock, and other load. Unknown values are `null`.
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
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// The kernel's tick.
    pub tick_ns: u64,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Mean number of threads that were runnable or waiting for a disk, over the last minute.
    pub load: Option<f64>,
    /// Processor time taken by other guests during the run, in percent.
    pub stolen_percent: Option<f64>,
    /// Share of processor time that real-time threads may use, in percent; `null` means all of it.
    pub real_time_share_percent: Option<f64>,
    /// Congestion control algorithms that are loaded.
    pub congestion_controls: Vec<String>,
}
