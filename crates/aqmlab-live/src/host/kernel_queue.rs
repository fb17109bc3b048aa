//! A kernel queue at a link: a namespace with two interfaces, between which the kernel forwards packets, and
//! tc's discipline inside a shaper at the outgoing interface. Like all namespaces of a run, it has no name
//! and ends with the process.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Output, Stdio};

use aqmlab_scenario::{IpVersion, LinkPlan, Plan, spec_words};

use super::counters::Counters;
use super::interface::{self, Tun};
use super::namespace::{Namespace, Sysctl, apply};
use super::netlink::Netlink;
use super::refusal;
use crate::data_plane::Device;
use crate::error::LiveError;
use crate::kernel_queue::{KernelPath, KernelState};
use crate::sys;

/// The interface through which packets enter the kernel.
const ENTRANCE: &str = "aqmlab1";
/// The interface with the discipline.
const EXIT: &str = "aqmlab2";
/// The only class of the shaper, `1:1`, whose queue is the discipline.
const CLASS: u32 = 0x0001_0001;

/// A kernel queue.
pub struct LinuxQueue {
    entrance: Tun,
    exit: Tun,
    netlink: Netlink,
    index: u32,
}

/// The data kept about a kernel queue while the router owns the queue itself.
#[derive(Debug)]
pub struct KernelHost {
    /// Index of its link.
    pub link: usize,
    /// Its specification.
    pub spec: String,
    namespace: Namespace,
    /// Keeps the interface with the discipline alive after the router has ended.
    _exit: OwnedFd,
}

/// Creates the kernel queues of a plan. Afterwards, the calling thread is in `home` again.
///
/// # Errors
/// If tc refuses a specification, the plan cannot be carried out, or the machine lacks something that is
/// needed.
pub fn kernel_queues(
    plan: &Plan,
    mtu: u32,
    home: &Namespace,
) -> Result<Vec<(KernelHost, LinuxQueue)>, LiveError> {
    let mut made = Vec::new();
    for (link, of) in plan.links.iter().enumerate() {
        if let Some(spec) = of.kernel_spec() {
            made.push(make(link, of, &spec, mtu, plan.live.ip)?);
        }
    }
    if !made.is_empty() {
        home.enter()?;
    }
    Ok(made)
}

fn make(
    link: usize,
    plan: &LinkPlan,
    spec: &str,
    mtu: u32,
    ip: IpVersion,
) -> Result<(KernelHost, LinuxQueue), LiveError> {
    if ip != IpVersion::V4 {
        return Err(LiveError::Unsupported(format!(
            "the kernel's queue at `{}` distinguishes packets by a field that only IPv4 has; write `ip = 4` in [live]",
            plan.name
        )));
    }
    let namespace = Namespace::new()?;
    apply(&[
        Sysctl::new("ipv4/conf/all/rp_filter", 0),
        Sysctl::new("ipv4/conf/default/rp_filter", 0),
        Sysctl::new("ipv4/conf/all/send_redirects", 0),
        Sysctl::new("ipv4/conf/default/send_redirects", 0),
        Sysctl::new("ipv6/conf/all/disable_ipv6", 1),
        Sysctl::new("ipv6/conf/default/disable_ipv6", 1),
        Sysctl::new("ipv4/ip_forward", 1),
    ])?;
    let entrance = interface::make_plain(ENTRANCE, mtu)?;
    let exit = interface::make_plain(EXIT, mtu)?;
    interface::route_all(EXIT)?;
    let rate = format!("{}bit", plan.rate.as_bps());
    let overhead = plan.overhead.get().to_string();
    let mtu = mtu.to_string();
    tc(&["qdisc", "replace", "dev", EXIT, "root", "handle", "1:", "htb", "default", "1"])
        .and_then(|output| accepted(&output).map_err(|words| lacking("htb", &words)))?;
    // With the smallest bursts, each packet leaves when its predecessor has been sent, to within a
    // microsecond.
    let mut class = vec!["class", "add", "dev", EXIT, "parent", "1:", "classid", "1:1", "htb", "rate", &rate];
    class.extend(["burst", "15", "cburst", "15", "quantum", &mtu, "mtu", &mtu]);
    if plan.overhead.get() > 0 {
        class.extend(["overhead", &overhead]);
    }
    tc(&class).and_then(|output| {
        accepted(&output).map_err(|words| {
            LiveError::Unsupported(format!("tc cannot limit `{}` to {}: {words}", plan.name, plan.rate))
        })
    })?;
    let mut leaf = vec!["qdisc", "add", "dev", EXIT, "parent", "1:1", "handle", "2:"];
    leaf.extend(spec_words(spec));
    let output = tc(&leaf)?;
    accepted(&output).map_err(|words| refused(link, spec, &words))?;
    let netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
    let index = netlink.index_of(EXIT).map_err(LiveError::io("find", EXIT))?;
    let kept = exit.0.try_clone().map_err(LiveError::io("keep", EXIT))?;
    let host = KernelHost { link, spec: spec.to_owned(), namespace, _exit: kept };
    Ok((host, LinuxQueue { entrance, exit, netlink, index }))
}

/// Returns the discipline that a specification names.
fn discipline(spec: &str) -> &str {
    spec_words(spec).next().unwrap_or_default()
}

/// Returns the error for a specification that tc has refused, either because the kernel lacks the discipline
/// or because the specification itself is wrong.
fn refused(link: usize, spec: &str, words: &str) -> LiveError {
    if is_lack(words) {
        return lacking(discipline(spec), words);
    }
    LiveError::TcRefuses { link, spec: spec.to_owned(), words: words.to_owned() }
}

/// Returns whether tc's message means that the kernel lacks the discipline: it is the kernel's own message,
/// or ENOENT from an older kernel.
fn is_lack(words: &str) -> bool {
    ["qdisc kind is unknown", "No such file or directory"].iter().any(|lack| words.contains(lack))
}

/// Returns the error for a discipline that could not be set up: either this kernel does not have it, or tc's
/// message gives another reason.
fn lacking(discipline: &str, words: &str) -> LiveError {
    match is_lack(words) {
        true => LiveError::NoDiscipline { name: discipline.to_owned() },
        false => LiveError::Machine {
            what: format!("tc cannot set up `{discipline}` ({words})"),
            remedy: "see `aqmlab doctor`".into(),
        },
    }
}

/// Runs tc in the namespace of the calling thread.
fn tc(words: &[&str]) -> Result<Output, LiveError> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut tc = Command::new("tc");
    tc.args(words).env("PATH", format!("{path}:/usr/sbin:/sbin")).env("LC_ALL", "C").stdin(Stdio::null());
    let outcome = sys::end_with_this_thread(&mut tc).output();
    outcome.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refusal::no_tc(),
        _ => LiveError::io("run", "tc")(error),
    })
}

/// Returns tc's message as the error if tc has failed.
fn accepted(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(if lines.is_empty() { output.status.to_string() } else { lines.join("; ") })
}

/// Returns those of the disciplines named in the specifications that this kernel lacks. The
/// disciplines are tested in a separate namespace, in which the calling thread stays. Each
/// specification must have all options that tc requires; otherwise, tc rejects it without
/// consulting the kernel.
///
/// # Errors
/// If there is no tc, or if the interface for the test cannot be created.
pub fn lacks<'a>(specs: &[&'a str]) -> Result<Vec<&'a str>, LiveError> {
    let _namespace = Namespace::new()?;
    let _exit = interface::make_plain(EXIT, 1500)?;
    let mut lacking = Vec::new();
    for &spec in specs {
        let mut words = vec!["qdisc", "replace", "dev", EXIT, "root"];
        words.extend(spec_words(spec));
        if accepted(&tc(&words)?).is_err_and(|words| is_lack(&words)) {
            lacking.push(discipline(spec));
        }
    }
    Ok(lacking)
}

/// The kernel's statistics of a queue after a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelCounts {
    /// Index of the queue's link.
    pub link: usize,
    /// Its specification.
    pub spec: String,
    /// The discipline and its counts as `tc -s` prints them.
    pub shown: String,
    /// Packets that the discipline has dropped.
    pub dropped: u32,
    /// Packets that are still waiting.
    pub waiting: u32,
    /// Counters of the queue's namespace and of its outgoing interface.
    pub counters: Counters,
}

/// Reads the counts of the kernel queues. Afterwards, the calling thread is in `home` again.
///
/// # Errors
/// Any error from the operating system.
pub fn look_at_queues(queues: Vec<KernelHost>, home: &Namespace) -> Result<Vec<KernelCounts>, LiveError> {
    let looked = !queues.is_empty();
    let counts = queues.into_iter().map(KernelHost::look).collect::<Result<Vec<_>, _>>()?;
    if looked {
        home.enter()?;
    }
    Ok(counts)
}

impl KernelHost {
    fn look(self) -> Result<KernelCounts, LiveError> {
        self.namespace.enter()?;
        let output = tc(&["-s", "qdisc", "show", "dev", EXIT])?;
        accepted(&output).map_err(|words| LiveError::Machine {
            what: format!("tc no longer shows the queue ({words})"),
            remedy: "see `aqmlab doctor`".into(),
        })?;
        let shown = leaf_of(&String::from_utf8_lossy(&output.stdout)).to_owned();
        let mut netlink = Netlink::open().map_err(LiveError::io("open", "a netlink socket"))?;
        let index = netlink.index_of(EXIT).map_err(LiveError::io("find", EXIT))?;
        let (waiting, dropped) =
            netlink.queue_counts(index, CLASS).map_err(LiveError::io("query", "the kernel's queue"))?;
        let counters = Counters::read(EXIT)?;
        Ok(KernelCounts { link: self.link, spec: self.spec, shown, dropped, waiting, counters })
    }
}

/// Returns the part of the output of `tc -s qdisc show` that describes the shaper's only queue, which comes
/// second.
fn leaf_of(text: &str) -> &str {
    let second = text.match_indices("qdisc ").map(|(at, _)| at).nth(1);
    second.map_or(text, |at| &text[at..]).trim()
}

impl KernelPath for LinuxQueue {
    fn offer(&mut self, packet: &[u8]) -> io::Result<()> {
        self.entrance.write(packet)
    }

    fn take(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        self.exit.read(packet)
    }

    fn state(&mut self) -> io::Result<KernelState> {
        let (waiting, drops) = self.netlink.queue_counts(self.index, CLASS)?;
        Ok(KernelState { waiting, drops })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.exit.fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_the_kernel_is_told_from_words_that_tc_does_not_take() {
        for words in
            ["Error: Specified qdisc kind is unknown.", "RTNETLINK answers: No such file or directory"]
        {
            assert!(
                matches!(refused(0, "red limit 9", words), LiveError::NoDiscipline { name } if name == "red")
            );
        }
        let words = "RED: set bandwidth; Required parameter (avpkt) is missing";
        match refused(3, "red limit 9", words) {
            LiveError::TcRefuses { link: 3, spec, words: told } => {
                assert_eq!((spec.as_str(), told.as_str()), ("red limit 9", words));
            }
            other => panic!("{other}"),
        }
    }
}
