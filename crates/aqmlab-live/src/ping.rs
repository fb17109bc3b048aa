//! Round-trip times between hosts through bare devices: the floor of this machine, below which no router on it can go.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use aqmlab_network::End;
use aqmlab_qdisc::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};

use crate::capacity;
use crate::data_plane::Clock;
use crate::error::LiveError;
use crate::host::{Hosts, Tun};
use crate::host_id::HostId;
use crate::traffic::sockets;

/// Pings, one after the other: with their pauses a fifth of a second.
const PINGS: u32 = 100;
/// Between them everybody falls asleep.
const PAUSE: Duration = Duration::from_millis(2);
/// So many are waited for that do not come back.
const MOST_LOST: u32 = 3;
/// Small enough for any interface.
const PAYLOAD: [u8; 36] = [0; 36];

/// Measures them between the two hosts of [`capacity::plan`], in nanoseconds. A ping that is lost has none.
///
/// # Errors
/// If the machine refuses.
pub fn measure(hosts: &Hosts, tuns: &mut [Tun]) -> Result<Histogram, LiveError> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let pinger = scope.spawn(|| {
            let _ending = capacity::Ending(&ended);
            ping_all(hosts)
        });
        capacity::carry(tuns, &ended)?;
        pinger.join().expect("the pinger does not panic")
    })
}

fn ping_all(hosts: &Hosts) -> Result<Histogram, LiveError> {
    let failed = |operation| LiveError::io(operation, "a socket");
    let (from, to) =
        (hosts.addresses.client(0, 0).expect("a class has a first flow"), hosts.addresses.server(0));
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

/// There and back. Did it arrive?
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
