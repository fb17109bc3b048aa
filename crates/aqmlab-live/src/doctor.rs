//! Checks whether this machine has what live runs need: each item is tried, and each deficiency is
//! reported with a remedy.
//!
//! The calling process leaves the namespace in which it was started, and requests real-time scheduling, so it
//! should end afterwards.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use aqmlab_recording::live::MachineFacts;
use aqmlab_units::{Instant, Span};
use serde_json::{Value, json};

use crate::data_plane::Clock;
use crate::error::LiveError;
use crate::faithfulness::format_span;
use crate::host::refusal;
use crate::host::{Namespace, lacks, leave_host_namespace};
use crate::machine::{Machine, descriptor_limit, processors};
use crate::priority;
use crate::sys;

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The item is as it should be.
    Ok,
    /// Live runs work, but may not be faithful.
    Warning,
    /// No live run works here.
    Fail,
}

impl Severity {
    /// Returns the severity as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Fail => "fail",
        }
    }
}

/// The finding on one item.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The item, such as `"user namespaces"`.
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The observation.
    pub finding: String,
    /// A remedy in one line; empty if none is needed.
    pub remedy: String,
}

impl Finding {
    fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Finding { name, severity: Severity::Ok, finding: finding.into(), remedy: String::new() }
    }

    fn warning(name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { name, severity: Severity::Warning, finding: finding.into(), remedy: remedy.into() }
    }

    /// Returns a warning if `bad`, otherwise an `ok` finding; the text of the finding is the same in both
    /// cases.
    fn unless(bad: bool, name: &'static str, finding: String, remedy: &str) -> Self {
        if bad { Finding::warning(name, finding, remedy) } else { Finding::ok(name, finding) }
    }

    fn refused(name: &'static str, error: LiveError) -> Self {
        let (finding, remedy) = match error {
            LiveError::Machine { what, remedy } => (what, remedy),
            other => (other.to_string(), String::new()),
        };
        Finding { name, severity: Severity::Fail, finding, remedy }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "severity": self.severity.name(),
            "finding": self.finding,
            "remedy": self.remedy,
        })
    }
}

/// All findings.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnosis {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
    /// The machine as the manifest of a live run would describe it.
    pub machine: MachineFacts,
}

impl Diagnosis {
    /// Whether a live run works here at all.
    pub fn can_run(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Fail)
    }

    /// Returns the report as plain data.
    pub fn to_json(&self) -> Value {
        let findings: Vec<_> = self.findings.iter().map(Finding::to_json).collect();
        json!({ "can_run": self.can_run(), "findings": findings, "machine": self.machine })
    }
}

/// Checks everything; takes about a second.
pub fn examine() -> Diagnosis {
    let machine = Machine::this();
    let before = machine.processor_time();
    let mut findings = vec![
        kernel(&machine),
        processor_count(processors()),
        congestion_controls(&machine.congestion_controls()),
    ];
    findings.push(descriptors(descriptor_limit()));
    // The load must be read before the demanding checks start, because they would add to it.
    findings.push(load(machine.load(), processors()));
    findings.push(governor(machine.governor().as_deref()));
    findings.push(real_time(&machine));
    findings.push(wake_ups(&late_wake_ups()));
    findings.push(clock(&machine));
    let stolen = before.zip(machine.processor_time()).and_then(|(then, now)| now.stolen_percent_since(then));
    findings.push(steal(stolen));
    findings.extend(network());
    Diagnosis { findings, machine: machine.facts(before) }
}

/// The first release with `epoll_pwait2`, which waits with nanosecond resolution.
const FIRST_KERNEL: (u32, u32) = (5, 11);

fn kernel(machine: &Machine) -> Finding {
    let finding = machine.kernel().map_or_else(|| "unknown".into(), |release| format!("Linux {release}"));
    match machine.kernel_version() {
        Some(version) if version < FIRST_KERNEL => Finding {
            name: "kernel",
            severity: Severity::Fail,
            finding,
            remedy: format!("use kernel version {}.{} or newer", FIRST_KERNEL.0, FIRST_KERNEL.1),
        },
        _ => Finding::ok("kernel", finding),
    }
}

fn processor_count(count: Option<usize>) -> Finding {
    let finding = count.map_or_else(|| "an unknown number".into(), |count| count.to_string());
    Finding::unless(
        count.is_some_and(|count| count < 2),
        "processors",
        finding,
        "use at least two: one for the router and one for the hosts' TCP",
    )
}

/// Reports the congestion controls of the kernel. Every kernel has `reno`, so a kernel with a single
/// congestion control has only `reno`, although scenarios may request others.
fn congestion_controls(names: &[String]) -> Finding {
    let finding = if names.is_empty() { "none known".into() } else { names.join(", ") };
    Finding::unless(
        names.len() == 1,
        "congestion controls",
        finding,
        "to add another, run `modprobe tcp_NAME`, for example `modprobe tcp_cubic` or `modprobe tcp_bbr`",
    )
}

/// Number of descriptors that a run with a thousand flows needs: two sockets for each flow, and
/// some others.
const DESCRIPTORS: u64 = 2_200;

fn descriptors(limit: Option<u64>) -> Finding {
    let finding =
        limit.map_or_else(|| "any number of files".into(), |limit| format!("at most {limit} open files"));
    Finding::unless(
        limit.is_some_and(|limit| limit < DESCRIPTORS),
        "file descriptors",
        finding,
        "for a thousand flows, add `YOU - nofile 4096` to /etc/security/limits.conf and log in again",
    )
}

fn load(load: Option<f64>, processors: Option<usize>) -> Finding {
    let finding =
        load.map_or_else(|| "not known".into(), |load| format!("load {load:.1} in the last minute"));
    let much = load.zip(processors).is_some_and(|(load, processors)| load > 0.5 * processors as f64);
    Finding::unless(much, "other programs", finding, "end other programs on this machine")
}

fn governor(name: Option<&str>) -> Finding {
    let slow = matches!(name, Some("powersave" | "conservative" | "ondemand"));
    let finding = name.unwrap_or("chosen by the host").to_owned();
    Finding::unless(slow, "processor frequency", finding, "cpupower frequency-set -g performance")
}

fn real_time(machine: &Machine) -> Finding {
    let share = machine.real_time_share_percent();
    let limit = share.map_or_else(String::new, |share| format!(", {share:.0} % of each second at most"));
    match priority::favour_router() {
        Some(priority) => Finding::ok("SCHED_FIFO", format!("allowed, priority {priority}{limit}")),
        None => Finding::warning(
            "SCHED_FIFO",
            "refused, so other programs can delay packets",
            "add `YOU - rtprio 50` to /etc/security/limits.conf and log in again; or run as root",
        ),
    }
}

/// Half of the transmission time of a full-sized packet at 10 Mbit/s: the limit for a faithful run at that
/// rate.
const LATE: Span = Span::us(600);

/// Puts the thread to sleep 200 times, for a millisecond each; returns how late it woke each time, in
/// ascending order.
fn late_wake_ups() -> Vec<Span> {
    let clock = Clock::start();
    let nap = Span::ms(1);
    let mut late: Vec<Span> = (0..200)
        .map(|_| {
            let due = clock.now() + nap;
            thread::sleep(Duration::from_nanos(nap.as_ns()));
            clock.now().saturating_since(due)
        })
        .collect();
    late.sort_unstable();
    late
}

fn wake_ups(late: &[Span]) -> Finding {
    let p99 = late[late.len() * 99 / 100 - 1];
    let most = late[late.len() - 1];
    let finding = format!(
        "99 % of {} sleeps ended at most {} late, and the latest ended {} late",
        late.len(),
        format_span(p99),
        format_span(most)
    );
    Finding::unless(
        p99 > LATE,
        "wake-ups",
        finding,
        "allow SCHED_FIFO, or end other programs on this machine",
    )
}

/// If a reading takes longer than this, the clock is a slow hardware device rather than the processor's own
/// counter; the router reads the clock twice per packet.
const SLOW_CLOCK: Span = Span::us(1);

fn clock(machine: &Machine) -> Finding {
    const READINGS: u64 = 10_000;
    let clock = Clock::start();
    let last = (0..READINGS).fold(Instant::ZERO, |_, _| clock.now());
    let each = last.saturating_since(Instant::ZERO).div(READINGS);
    let source = machine.clocksource().unwrap_or_else(|| "unknown".into());
    Finding::unless(
        each > SLOW_CLOCK,
        "clock",
        format!("{source}, {} per reading", format_span(each)),
        "boot with `clocksource=tsc`, if this machine's TSC is stable",
    )
}

/// Beyond this limit, a hypervisor's other guests affect the tail of the distribution of lateness.
const STOLEN_PERCENT: f64 = 1.0;

fn steal(percent: Option<f64>) -> Finding {
    let finding = percent.map_or_else(|| "not known".into(), |percent| format!("{percent:.1} % of a second"));
    Finding::unless(
        percent.is_some_and(|percent| percent > STOLEN_PERCENT),
        "stolen processor time",
        finding,
        "use a host that is not overcommitted, or a machine without a hypervisor",
    )
}

const NAMESPACES: &str = "namespaces";
const SETTINGS: &str = "settings in /proc/sys/net";
const TUN_FILE: &str = "/dev/net/tun";
const TUN: &str = "TUN interface";
/// The interface created for the test.
const DEVICE: &str = "aqmlab0";

/// Creates the parts of a live run's host once, and keeps them until the process ends.
fn network() -> Vec<Finding> {
    let is_root = rustix::process::geteuid().is_root();
    if let Err(error) = leave_host_namespace(Namespace::current).and_then(|_| Namespace::new()) {
        return vec![Finding::refused(NAMESPACES, error)];
    }
    let how = if is_root { "allowed, as root" } else { "allowed, as an ordinary user" };
    let mut findings = vec![Finding::ok(NAMESPACES, how), settings()];
    match OpenOptions::new().read(true).write(true).open(TUN_FILE) {
        Err(error) => findings.push(Finding::refused(TUN_FILE, refusal::tun_file(&error))),
        Ok(file) => {
            findings.push(Finding::ok(TUN_FILE, "may be opened"));
            findings.extend(tun(&file));
            findings.push(kernel_queues(lacks(&KERNEL_QUEUES)));
        }
    }
    findings
}

/// The shaper of arms with a kernel queue, and disciplines that such arms are likely to use.
const KERNEL_QUEUES: [&str; 9] = [
    "htb",
    "red limit 150000 min 22500 max 67500 avpkt 1500 burst 25 bandwidth 10mbit",
    "codel",
    "pie",
    "fq_codel",
    "choke limit 100 bandwidth 10mbit",
    "sfb",
    "cake",
    "dualpi2",
];

/// Reports the disciplines that the kernel lacks, which is not an error, because only arms of the kind `tc`
/// need them.
fn kernel_queues(lacking: Result<Vec<&str>, LiveError>) -> Finding {
    const NAME: &str = "kernel queues";
    let finding = match lacking {
        Ok(lacking) if lacking.is_empty() => {
            KERNEL_QUEUES.map(|spec| spec.split(' ').next().unwrap_or(spec)).join(", ")
        }
        Ok(lacking) => format!(
            "not available to arms of the kind `tc`: {}; load them with `modprobe -a sch_{}`",
            lacking.join(", "),
            lacking.join(" sch_")
        ),
        Err(error) => format!("not known ({error}); only arms of the kind `tc` need them"),
    };
    Finding::ok(NAME, finding)
}

fn settings() -> Finding {
    let path = "/proc/sys/net/ipv4/tcp_no_metrics_save";
    match std::fs::write(path, "1") {
        Ok(()) => Finding::ok(SETTINGS, "may be written"),
        Err(error) => Finding::refused(SETTINGS, refusal::sysctl(path, error)),
    }
}

fn tun(file: &File) -> Vec<Finding> {
    match sys::attach_tun(file.as_fd(), DEVICE, false) {
        Ok(()) => vec![Finding::ok(TUN, "can be made"), offloads(sys::offloads(DEVICE))],
        Err(error) => vec![Finding::refused(TUN, refusal::tun_interface(&error))],
    }
}

/// Reports the offloads that the interface leaves to the program at its other end. With any of them, the
/// router would read packets that cannot occur on a wire.
fn offloads(on: io::Result<Vec<&'static str>>) -> Finding {
    const NAME: &str = "offloads";
    match on {
        Ok(on) if on.is_empty() => {
            Finding::ok(NAME, "none: the kernel itself segments packets and computes checksums")
        }
        Ok(on) => Finding {
            name: NAME,
            severity: Severity::Fail,
            finding: format!(
                "a new TUN interface has {}: packets may be longer than the MTU, or lack a checksum",
                on.join(", ")
            ),
            remedy: "use a kernel whose new TUN interfaces have no offloads, and report this kernel to us"
                .into(),
        },
        Err(error) => Finding::ok(NAME, format!("not known ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_of_a_new_interface_are_a_failure() {
        assert_eq!(offloads(Ok(Vec::new())).severity, Severity::Ok);
        let on = offloads(Ok(vec!["segmentation of TCP"]));
        assert_eq!(on.severity, Severity::Fail);
        assert!(on.finding.contains("segmentation of TCP") && !on.remedy.is_empty());
        let unknown = offloads(Err(io::Error::from_raw_os_error(libc::EPERM)));
        assert!(unknown.severity == Severity::Ok && unknown.finding.contains("not known"));
    }

    #[test]
    fn queues_that_the_kernel_lacks_are_named_with_their_modules() {
        let none = kernel_queues(Ok(Vec::new()));
        assert_eq!(none.finding, "htb, red, codel, pie, fq_codel, choke, sfb, cake, dualpi2");
        let some = kernel_queues(Ok(vec!["htb", "red"]));
        assert_eq!(
            some.finding,
            "not available to arms of the kind `tc`: htb, red; load them with `modprobe -a sch_htb sch_red`"
        );
        let unknown = kernel_queues(Err(LiveError::Machine { what: "no tc".into(), remedy: String::new() }));
        assert!(unknown.finding.contains("no tc") && unknown.finding.contains("not known"), "{unknown:?}");
    }

    fn severities(findings: [Finding; 2]) -> [Severity; 2] {
        for finding in &findings {
            assert_eq!(finding.remedy.is_empty(), finding.severity == Severity::Ok, "{finding:?}");
        }
        findings.map(|finding| finding.severity)
    }

    #[test]
    fn each_finding_has_a_remedy_exactly_where_something_is_wrong() {
        let expected = [Severity::Ok, Severity::Warning];
        assert_eq!(severities([processor_count(Some(2)), processor_count(Some(1))]), expected);
        let names = ["reno".to_owned(), "cubic".to_owned()];
        assert_eq!(severities([congestion_controls(&names), congestion_controls(&names[..1])]), expected);
        assert_eq!(severities([descriptors(Some(4096)), descriptors(Some(1024))]), expected);
        assert_eq!(severities([descriptors(None), descriptors(Some(0))]), expected);
        assert_eq!(severities([load(Some(0.9), Some(2)), load(Some(1.1), Some(2))]), expected);
        assert_eq!(severities([governor(Some("performance")), governor(Some("powersave"))]), expected);
        assert_eq!(severities([steal(Some(0.5)), steal(Some(5.0))]), expected);
        let (prompt, late) = ([LATE; 200], [LATE + Span::ns(1); 200]);
        assert_eq!(severities([wake_ups(&prompt), wake_ups(&late)]), expected);
        // Two late wake-ups in 200 are allowed; three are not.
        let (mut one, mut three) = ([LATE; 200], [LATE; 200]);
        one[198..].fill(Span::s(1));
        three[197..].fill(Span::s(1));
        assert_eq!(severities([wake_ups(&one), wake_ups(&three)]), expected);
    }

    #[test]
    fn what_is_not_known_is_no_fault() {
        for finding in [
            processor_count(None),
            congestion_controls(&[]),
            descriptors(None),
            load(None, Some(2)),
            governor(None),
            steal(None),
        ] {
            assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
        }
    }

    #[test]
    fn one_failure_is_enough() {
        let refused = Finding::refused("x", LiveError::Machine { what: "no".into(), remedy: "do".into() });
        assert_eq!((refused.finding.as_str(), refused.remedy.as_str()), ("no", "do"));
        let warning = Finding::warning("y", "slow", "wait");
        let diagnosis = |findings| Diagnosis { findings, machine: Machine::below("/nowhere").facts(None) };
        assert!(diagnosis(vec![Finding::ok("z", ""), warning.clone()]).can_run());
        let failed = diagnosis(vec![warning, refused]);
        assert!(!failed.can_run());
        assert_eq!(failed.to_json()["findings"][1]["severity"], "fail");
    }
}
