//! The best performance of which this machine is capable, measured just before each run and stored with the
//! run's result: the rate at which it can carry packets, and the round-trip times between hosts through bare
//! devices. Through a router on this machine, round-trip times cannot be shorter than these.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use aqmlab_network::End;
use aqmlab_qdisc::Histogram;
use aqmlab_recording::live::CapacityReport;
use aqmlab_scenario::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};

use crate::addresses::{HostId, SERVER_PORT};
use crate::capacity::{self, Capacity};
use crate::data_plane::Clock;
use crate::error::LiveError;
use crate::host::{self, Attached, Hosts};
use crate::threads::spawn;
use crate::traffic::sockets;

/// Best performance of this machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// The rate at which the machine can carry packets; `None` if the kernel runs in virtual time, in which
    /// work takes no time.
    pub capacity: Option<Capacity>,
    /// Round-trip times of small datagrams between two hosts without any router, in nanoseconds.
    pub ping_ns: Histogram,
}

impl Calibration {
    /// Measures the machine's performance between two hosts created for this purpose, with or
    /// without offloads. The measurement takes less than half a second.
    ///
    /// # Errors
    /// If the machine refuses a necessary operation.
    pub fn measure(offload: bool) -> Result<Self, LiveError> {
        let plan = capacity::plan(offload);
        let (hosts, mut tuns) = host::set_up(&plan, Vec::new())?;
        // The pings are measured first: leftovers of the connections that measure the capacity, such as
        // pending timers, would wake a thread during a ping.
        let ping_ns = measure_pings(&hosts, &mut tuns)?;
        let capacity = match Clock::stands_still() {
            true => None,
            false => Some(capacity::measure(&plan, &hosts, &mut tuns)?),
        };
        Ok(Calibration { capacity, ping_ns })
    }

    /// Returns whether the kernel runs in virtual time, in which the clock stands still while any thread
    /// computes.
    pub const fn in_virtual_time(&self) -> bool {
        self.capacity.is_none()
    }

    /// Returns the machine's capacity and the demand of `plan`.
    pub fn capacity_for(&self, plan: &Plan) -> CapacityReport {
        CapacityReport {
            per_packet_ns: self.capacity.map(|capacity| capacity.per_packet.as_ns()),
            per_wake_ns: self.capacity.map(|capacity| capacity.per_wake.as_ns()),
            packets_per_s: self.capacity.map(|capacity| capacity.packets_per_s()),
            limit_packets_per_s: self.capacity.map(|capacity| capacity.limit()),
            demand_packets_per_s: capacity::demand(plan),
        }
    }
}

/// Number of pings. They are sent one after the other; together, they take a fifth of a second, pauses
/// included.
const PINGS: u32 = 100;
/// Pause between pings, during which all threads fall asleep.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of lost pings after which no more are sent.
const MOST_LOST: u32 = 3;
/// Size of a ping, small enough for any interface.
const PAYLOAD: [u8; 36] = [0; 36];

/// Measures round-trip times between the two hosts of [`capacity::plan`], in nanoseconds. A lost
/// ping contributes no time.
///
/// # Errors
/// If the machine refuses a necessary operation.
fn measure_pings(hosts: &Hosts, tuns: &mut [Attached]) -> Result<Histogram, LiveError> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let pinger = spawn(scope, "pings", || {
            let _ending = capacity::Ending(&ended);
            ping_all(hosts)
        })?;
        capacity::carry(tuns, &ended, u64::MAX, |_| 1)?;
        pinger.join().expect("the pinger does not panic")
    })
}

fn ping_all(hosts: &Hosts) -> Result<Histogram, LiveError> {
    let failed = |operation| LiveError::io(operation, "a socket");
    let (from, to) = (hosts.addresses.client(0, 0), hosts.addresses.server(0, SERVER_PORT));
    let host = |side| hosts.of(HostId { class: 0, side });
    let client = sockets::datagram_client(host(End::Client), from, to).map_err(failed("open"))?;
    let server = sockets::datagram_server(host(End::Server), to).map_err(failed("open"))?;
    let clock = Clock::start();
    let (mut times, mut lost) = (Histogram::new(), 0);
    for _ in 0..PINGS {
        thread::sleep(PAUSE);
        let begun = clock.now();
        if ping(&client, &server, from).map_err(|error| failed("ping through")(error.into()))? {
            times.add(clock.now().saturating_since(begun).as_ns(), 1);
        } else {
            lost += 1;
            if lost == MOST_LOST {
                break;
            }
        }
    }
    Ok(times)
}

/// Sends a ping to the server and back; returns whether it arrived both times.
fn ping(client: &OwnedFd, server: &OwnedFd, from: SocketAddr) -> rustix::io::Result<bool> {
    let mut answer = [0; PAYLOAD.len()];
    rustix::net::send(client, &PAYLOAD, SendFlags::empty())?;
    if !is_readable(server)? {
        return Ok(false);
    }
    rustix::net::recv(server, &mut answer[..], RecvFlags::empty())?;
    rustix::net::sendto(server, &answer, SendFlags::empty(), &from)?;
    if !is_readable(client)? {
        return Ok(false);
    }
    rustix::net::recv(client, &mut answer[..], RecvFlags::empty())?;
    Ok(true)
}

fn is_readable(socket: &OwnedFd) -> rustix::io::Result<bool> {
    const LONGEST: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    Ok(poll(&mut fds, Some(&LONGEST))? > 0)
}
