//! Creation of the hosts of a plan.

use std::fs;
use std::iter;

use aqmlab_network::End;
use aqmlab_scenario::{IpVersion, LivePlan, Plan};

use super::counters::Counters;
use super::interface;
use super::namespace::Namespace;
use super::namespace::{Applied, Sysctl, apply};
use super::refusal;
use super::stack::Stack;
use super::wire::{Attached, Wires};
use crate::addresses::{Addresses, HostId};
use crate::error::LiveError;
use crate::router::client_ports;

/// A host: its namespace and its settings.
#[derive(Debug)]
pub struct Host {
    /// Namespace in which its sockets are opened.
    pub namespace: Namespace,
    /// The namespace's settings.
    pub applied: Applied,
}

/// All hosts of a plan.
#[derive(Debug)]
pub struct Hosts {
    /// Their addresses.
    pub addresses: Addresses,
    /// Namespace of the process itself, which contains nothing.
    pub home: Namespace,
    /// The hosts, in the order of [`HostId::number`].
    pub hosts: Vec<Host>,
    /// The stacks, by class.
    pub stacks: Vec<Stack>,
}

/// Creates a namespace for each end of each class, with an interface, an address and a route, unless interfaces of
/// this machine are in its place (`wires`, by class; empty if there are none). Returns the devices, in the order of [`HostId::number`]. The
/// process must have left its original namespace.
///
/// # Errors
/// If the plan cannot be realised, or if the machine refuses a necessary operation.
///
/// # Panics
/// If there are more than [`Addresses::MOST_CLASSES`] classes, which [`feasible::check`](crate::feasible::check) refuses.
pub fn set_up(plan: &Plan, wires: Wires) -> Result<(Hosts, Vec<Attached>), LiveError> {
    let live = &plan.live;
    let ip = live.ip;
    let ports = client_ports(plan)?;
    let mut stacks = plan.classes.iter().map(|class| Stack::of(class, ip)).collect::<Result<Vec<_>, _>>()?;
    for (stack, [wire, _]) in
        stacks.iter_mut().zip(&wires).filter_map(|(stack, wires)| Some((stack, wires.as_ref()?)))
    {
        // What lies behind an interface has settings of its own.
        (stack.mtu, stack.tcp) = (wire.mtu(), None);
    }
    let mut hosts =
        Hosts { addresses: Addresses(ip), home: Namespace::current()?, hosts: Vec::new(), stacks };
    let mut devices = Vec::new();
    for ((class, plan), wires) in
        plan.classes.iter().enumerate().zip(wires.into_iter().chain(iter::repeat_with(|| None)))
    {
        if let Some(wires) = wires {
            for wire in wires {
                hosts.hosts.push(Host { namespace: hosts.home.again()?, applied: Applied::default() });
                devices.push(Attached::Wire(wire));
            }
            continue;
        }
        hosts.check_congestion_control(class, &plan.name)?;
        for side in End::ALL {
            let (host, tun) = hosts.one(HostId { class, side }, ports[class], live)?;
            if side == End::Server && plan.has_uplink() {
                let clients = hosts.addresses.prefix(HostId { class, side: End::Client });
                interface::own_all_addresses(clients, &hosts.stacks[class].metrics)?;
            }
            hosts.hosts.push(host);
            devices.push(Attached::Host(tun));
        }
    }
    hosts.home.enter()?;
    Ok((hosts, devices))
}

impl Hosts {
    /// Returns a host.
    pub fn of(&self, id: HostId) -> &Host {
        &self.hosts[id.number()]
    }

    /// Returns a sentence for each setting of the plan that the kernel lacks, without repetitions.
    pub fn remarks(&self) -> Vec<String> {
        let of_stacks = self.stacks.iter().flat_map(|stack| &stack.remarks);
        let of_hosts = self.hosts.iter().flat_map(|host| &host.applied.remarks);
        let mut remarks: Vec<String> = Vec::new();
        for remark in of_stacks.chain(of_hosts) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        remarks
    }

    /// Returns the kernel's counters for each host, in the order of [`HostId::number`]. They cover the whole
    /// run, because each host's namespace is as old as the run. `devices` are those of the hosts.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn counters(&self, devices: &[Attached]) -> Result<Vec<Counters>, LiveError> {
        let read = |(host, device): (&Host, &Attached)| match device.wire() {
            Some(wire) => wire.counters().map(Counters::of),
            None => {
                host.namespace.enter()?;
                Counters::read(interface::NAME)
            }
        };
        let counters = self.hosts.iter().zip(devices).map(read).collect::<Result<Vec<_>, _>>()?;
        self.home.enter()?;
        Ok(counters)
    }

    fn one(
        &self,
        id: HostId,
        client_ports: u32,
        live: &LivePlan,
    ) -> Result<(Host, interface::Tun), LiveError> {
        let namespace = Namespace::new()?;
        let stack = &self.stacks[id.class];
        let settings: Vec<Sysctl> =
            of_every_host(live.ip).into_iter().chain(stack.sysctls.iter().cloned()).collect();
        let applied = apply(&settings)?;
        let tun = interface::make(self.addresses.all(id, client_ports), stack, live)?;
        Ok((Host { namespace, applied }, tun))
    }

    fn check_congestion_control(&self, class: usize, name: &str) -> Result<(), LiveError> {
        const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let Some(tcp) = &self.stacks[class].tcp else { return Ok(()) };
        let available = fs::read_to_string(AVAILABLE).map_err(LiveError::io("read", AVAILABLE))?;
        match available.split_whitespace().any(|word| word == tcp.congestion) {
            true => Ok(()),
            false => Err(refusal::congestion_control(&tcp.congestion, name, available.trim())),
        }
    }
}

/// Returns the settings of every host: no state is carried over from one connection to the next, only flows
/// send packets, and features that the profiles lack are off.
fn of_every_host(ip: IpVersion) -> Vec<Sysctl> {
    let without_ipv6 = u8::from(ip == IpVersion::V4);
    vec![
        // Otherwise, a flow would inherit the ssthresh and RTT of an earlier one.
        Sysctl::wanted("ipv4/tcp_no_metrics_save", 1, "flows may inherit ssthresh and RTT from earlier ones"),
        Sysctl::new("ipv4/ip_local_port_range", "1024 65535"),
        // A client port is reused only after a pause. If its TIME-WAIT state ends too early, the host answers
        // late packets with a RST.
        Sysctl::new("ipv4/tcp_tw_reuse", 1),
        Sysctl::new("ipv4/tcp_max_tw_buckets", 1 << 20),
        // A thousand flows may start at the same time.
        Sysctl::new("core/somaxconn", 65_535),
        Sysctl::new("ipv4/tcp_max_syn_backlog", 65_535),
        Sysctl::new("ipv4/tcp_syncookies", 0),
        Sysctl::new("ipv4/tcp_window_scaling", 1),
        Sysctl::new("ipv4/tcp_wmem", "4096 65536 67108864"),
        Sysctl::new("ipv4/tcp_mtu_probing", 0),
        Sysctl::new("ipv4/tcp_fastopen", 0),
        // Acknowledgments are delayed only as the plan specifies, and writes are not held back.
        Sysctl::new("ipv4/tcp_backlog_ack_defer", 0),
        Sysctl::new("ipv4/tcp_autocorking", 0),
        // RFC 6298, 5.5: the timeout of a SYN doubles at every expiry, including the first.
        Sysctl::new("ipv4/tcp_syn_linear_timeouts", 0),
        Sysctl::new("ipv6/conf/all/disable_ipv6", without_ipv6),
        Sysctl::new("ipv6/conf/default/disable_ipv6", without_ipv6),
        // Without a link-local address, the host looks for no neighbours and announces nothing.
        Sysctl::new("ipv6/conf/default/addr_gen_mode", 1),
        Sysctl::new("ipv6/conf/default/accept_ra", 0),
        Sysctl::new("ipv6/conf/default/router_solicitations", 0),
        Sysctl::new("ipv6/conf/default/accept_dad", 0),
    ]
}
