//! The data plane on this machine's clock, between sockets. The assertions hold even on the busiest machine:
//! nothing is early, every loss is recorded, and books balance.
#![cfg(target_os = "linux")]
mod support;

use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Duration;

use aqmlab_live::data_plane::{Clock, DataPlane, DataPlaneControl, DataPlaneSettings, FdDevice};
use aqmlab_live::router::Router;
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Ecn, Registry};
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::Wait;
use aqmlab_units::{Instant, Span};
use support::{datagram, frame_budget, plan};

const CLIENT: HostId = HostId { class: 0, side: End::Client };

fn pair() -> (FdDevice<UnixDatagram>, UnixDatagram) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (FdDevice(ours), theirs)
}

/// Returns the round-trip times of echoed packets, each of which is sent after the previous one has returned.
fn echoes(wait: Wait, realtime: bool, packets: u16) -> Vec<Span> {
    let plan = plan(
        r#"
        duration = "60s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "2ms"
        queue = { kind = "droptail", limit = "20p" }
        [[traffic]]
        name = "x"
        kind = "cbr"
        rate = "1Mbit"
        size = "1250B"
        access_rate = "none"
        "#,
    );
    let router = Router::new(&plan, 1, &Registry::builtin(), &frame_budget(&plan, 1000)).unwrap();
    let ((near, client), (far, server)) = (pair(), pair());
    let clock = Clock::start();
    let (spin, gather) = (Span::us(30), Span::ZERO);
    let settings = DataPlaneSettings { wait, spin, gather, offload: false, realtime, virtual_time: false };
    let data_plane = DataPlane::new(router, vec![near, far], clock, settings).unwrap();
    let control = DataPlaneControl::default();
    let (times, outcome) = thread::scope(|scope| {
        let data_plane = scope.spawn(|| data_plane.run(&control));
        while !control.is_ready() {
            thread::yield_now();
        }
        let mut times = Vec::new();
        let (there, mut buffer) = (datagram(CLIENT, Some(0), Ecn::Ect0, 1250), [0; 2000]);
        let back = datagram(CLIENT.opposite(), Some(0), Ecn::NotEct, 125);
        for _ in 0..packets {
            let sent = clock.now();
            client.send(&there).unwrap();
            let length = server.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], there);
            server.send(&back).unwrap();
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], back);
            times.push(clock.now() - sent);
        }
        // A frame that is not a packet is refused, without consequences.
        client.send(&[0; 100]).unwrap();
        control.end_at(clock.now(), StoppedBy::Interrupted);
        while control.ended().is_none() || control.held() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        control.finish();
        (times, data_plane.join().unwrap().unwrap())
    });
    assert!(control.is_gone());
    let (record, report) = (&outcome.router, &outcome.report);
    assert_eq!(record.stopped_by, StoppedBy::Interrupted);
    assert_eq!(record.hosts[0].read.packets, u64::from(packets) + 1);
    assert_eq!((record.hosts[0].refused(), record.hosts[1].refused()), (1, 0));
    assert_eq!(
        (record.hosts[0].left.packets, record.hosts[1].left.packets),
        (packets.into(), packets.into())
    );
    assert_eq!((report.write_errors, record.still_held), (0, 0));
    assert_eq!(report.lateness.total(), 2 * u64::from(packets));
    assert!(report.duty > 0.0 && report.duty <= 1.0, "{}", report.duty);
    assert!(record.t1 > Instant::ZERO && outcome.devices.len() == 2);
    times
}

#[test]
fn an_echo_takes_its_time_and_never_less() {
    for (wait, realtime) in [(Wait::Epoll, false), (Wait::Hybrid, true)] {
        let times = echoes(wait, realtime, 40);
        // Propagation takes 2 ms each way; sending takes 1 ms on one link and 0.1 ms on the other.
        let least = Span::us(5_100);
        assert!(times.iter().all(|time| *time >= least), "{wait:?}: {:?}", times.iter().min());
    }
}
