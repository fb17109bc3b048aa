//! Tests of a kernel queue at a port, with a script in the role of the kernel: dropped, marked and
//! late packets are detected.
mod support;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};

use aqmlab_live::frame::internet_checksum;
use aqmlab_live::kernel_queue::{KernelPath, KernelState};
use aqmlab_live::router::Router;
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Ecn, Registry};
use aqmlab_scenario::{Plan, parse};
use aqmlab_units::{Instant, Span};
use support::{Kept, datagram, frame_budget, plan};

const CLIENT: HostId = HostId { class: 0, side: End::Client };

/// The packets that the script's kernel holds, has forwarded, and has dropped.
#[derive(Default)]
struct Kernel {
    waiting: VecDeque<Vec<u8>>,
    gone: VecDeque<Vec<u8>>,
    drops: u32,
    /// Number of packets that the kernel will drop on arrival, starting with the next one.
    refuse: u32,
    /// Whether the kernel's link is free; if so, an arriving packet leaves immediately.
    free: bool,
}

#[derive(Clone)]
struct Script {
    kernel: Arc<Mutex<Kernel>>,
    socket: Arc<UnixDatagram>,
}

impl Script {
    fn new() -> Self {
        let socket = Arc::new(UnixDatagram::unbound().unwrap());
        Script { kernel: Arc::default(), socket }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Kernel) -> T) -> T {
        change(&mut self.kernel.lock().unwrap())
    }

    /// Lets the n-th waiting packet leave, with or without a mark.
    fn release(&self, nth: usize, mark: bool) {
        self.with(|kernel| {
            let mut packet = kernel.waiting.remove(nth).expect("it waits");
            packet[1] |= if mark { 3 } else { 0 };
            packet[8] -= 1;
            kernel.gone.push_back(packet);
        });
    }

    /// Drops the n-th waiting packet.
    fn lose(&self, nth: usize) {
        self.with(|kernel| {
            kernel.waiting.remove(nth).expect("it waits");
            kernel.drops += 1;
        });
    }
}

impl KernelPath for Script {
    fn offer(&mut self, packet: &[u8]) -> io::Result<()> {
        assert_eq!(internet_checksum(&packet[..20]), 0, "the kernel checks the header");
        self.with(|kernel| {
            if kernel.refuse > 0 {
                (kernel.refuse, kernel.drops) = (kernel.refuse - 1, kernel.drops + 1);
            } else if std::mem::take(&mut kernel.free) {
                kernel.gone.push_back(packet.to_vec());
            } else {
                kernel.waiting.push_back(packet.to_vec());
            }
        });
        Ok(())
    }

    fn take(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        let gone = self.with(|kernel| kernel.gone.pop_front());
        Ok(gone.map(|gone| {
            packet[..gone.len()].copy_from_slice(&gone);
            gone.len()
        }))
    }

    fn state(&mut self) -> io::Result<KernelState> {
        Ok(self.with(|kernel| KernelState { waiting: kernel.waiting.len() as u32, drops: kernel.drops }))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn text(queue: &str) -> String {
    format!(
        r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = {queue}
        reverse_queue = {{ kind = "droptail", limit = "10p" }}
        [record]
        queues = "100ms"
        [[traffic]]
        name = "x"
        kind = "cbr"
        count = 3
        rate = "1Mbit"
        size = "1250B"
        access_rate = "none"
        "#
    )
}

fn of_spec(spec: &str) -> Plan {
    plan(&text(&format!(r#"{{ kind = "tc", spec = "{spec}" }}"#)))
}

fn connected(plan: &Plan) -> (Router, Script) {
    let mut router = Router::new(plan, 1, &Registry::builtin(), &frame_budget(plan, 100)).unwrap();
    let script = Script::new();
    router.connect(0, Box::new(script.clone()));
    assert_eq!(router.kernel_fds().count(), 1);
    (router, script)
}

const fn ms(n: u64) -> Instant {
    Instant::from_ns(n * 1_000_000)
}

fn packet(flow: u16) -> Vec<u8> {
    datagram(CLIENT, Some(flow), Ecn::Ect0, 1250)
}

/// A packet is on the link for 1 ms after the kernel forwards it, then propagates for 5 ms.
#[test]
fn packets_leave_when_the_kernel_lets_them_go_and_as_they_came() {
    let plan = of_spec("pfifo limit 9");
    let ((mut router, script), mut out) = (connected(&plan), Kept::default());
    script.with(|kernel| kernel.free = true);
    for flow in 0..3 {
        router.accept(ms(10), CLIENT, &packet(flow), &mut out).unwrap();
    }
    // The first packet leaves immediately. The second is released a little before the link is
    // free, and the third 50 us after the link is free.
    assert_eq!(router.next_due(), Some(ms(11)));
    script.release(0, false);
    router.collect(Instant::from_ns(10_999_000), 0, &mut out).unwrap();
    script.release(0, true);
    router.collect(ms(12) + Span::us(50), 0, &mut out).unwrap();
    router.advance(ms(30), &mut out);
    let left: Vec<_> = out.0.iter().map(|(at, _, flow, _)| (*at, flow.unwrap())).collect();
    assert_eq!(left, [(ms(16), 0), (ms(17), 1), (ms(18) + Span::us(50), 2)]);
    assert_eq!((&out.0[0].3, &out.0[1].3), (&packet(0), &packet(1)), "not an octet has changed");
    assert_eq!(out.0[2].3[1], Ecn::Ce as u8);
    assert_eq!(internet_checksum(&out.0[2].3[..20]), 0);
    assert_eq!(out.0[2].3[8], 64, "time to live");
    let record = router.finish().unwrap();
    assert_eq!(record.hosts[1].left_marked, 1);
    let (link, books) = &record.kernels[0];
    assert_eq!((*link, books.offered, books.returned, books.dropped, books.marked), (0, 3, 3, 0, 1));
    assert_eq!((books.lateness.total(), books.strays), (1, 0));
    assert!(books.lateness.total() == 1 && record.still_held == 0);
}

/// A shaper holds packets although the link is idle, which is no lateness; it drops only arrivals.
#[test]
fn the_time_for_which_a_shaper_holds_packets_is_no_lateness() {
    for (spec, at_once) in [
        ("tbf rate 8mbit burst 5000 latency 50ms", true),
        ("cake bandwidth 8mbit besteffort", false),
        ("netem delay 5ms", false),
    ] {
        let plan = of_spec(spec);
        let ((mut router, script), mut out) = (connected(&plan), Kept::default());
        for flow in 0..2 {
            router.accept(ms(10), CLIENT, &packet(flow), &mut out).unwrap();
        }
        script.with(|kernel| kernel.refuse = 1);
        router.accept(ms(10), CLIENT, &packet(2), &mut out).unwrap();
        for at in [15, 25] {
            script.release(0, false);
            router.collect(ms(at), 0, &mut out).unwrap();
        }
        router.advance(ms(40), &mut out);
        assert_eq!(out.0.len(), 2, "{spec}");
        let record = router.finish().unwrap();
        let (_, books) = &record.kernels[0];
        assert_eq!((books.offered, books.returned), (3, 2), "{spec}");
        assert_eq!(books.lateness.total(), 0, "{spec}");
        assert_eq!(books.dropped, u64::from(at_once), "{spec}");
    }
    let unlimited = of_spec("cake unlimited besteffort flows");
    let ((mut router, script), mut out) = (connected(&unlimited), Kept::default());
    router.accept(ms(10), CLIENT, &packet(0), &mut out).unwrap();
    script.release(0, false);
    router.collect(ms(15), 0, &mut out).unwrap();
    router.advance(ms(40), &mut out);
    assert_eq!(router.finish().unwrap().kernels[0].1.lateness.total(), 1);
}

/// RED and pfifo drop packets on arrival, so the books record each drop at the packet's arrival.
#[test]
fn a_drop_at_arrival_is_known_at_once() {
    let plan = of_spec("red limit 9000 avpkt 1000");
    let ((mut router, script), mut out) = (connected(&plan), Kept::default());
    for flow in 0..3 {
        script.with(|kernel| kernel.refuse = u32::from(flow == 1));
        router.accept(ms(10), CLIENT, &packet(flow), &mut out).unwrap();
    }
    assert_eq!(router.held(), 2);
    script.release(0, false);
    script.release(0, false);
    router.collect(ms(11), 0, &mut out).unwrap();
    router.advance(ms(30), &mut out);
    let flows: Vec<_> = out.0.iter().map(|(.., flow, _)| flow.unwrap()).collect();
    assert_eq!(flows, [0, 2]);
    let record = router.finish().unwrap();
    assert_eq!((record.flows[1].all[0].dropped, record.kernels[0].1.dropped), (1, 1));
}

/// CoDel drops packets that are about to leave, so a drop becomes known only when a later packet leaves.
/// fq_codel lets flows overtake each other, and only the packets of one flow keep their order.
#[test]
fn a_drop_on_leaving_is_known_when_a_later_packet_leaves() {
    for (spec, held) in [("codel", 1), ("fq_codel", 3)] {
        let plan = of_spec(spec);
        let ((mut router, script), mut out) = (connected(&plan), Kept::default());
        for flow in [0, 1, 0, 2] {
            router.accept(ms(10), CLIENT, &packet(flow), &mut out).unwrap();
        }
        if spec == "codel" {
            script.lose(0);
            script.lose(0);
        }
        // With CoDel, the second packet of flow 0 is next; with fq_codel, the packet of flow 2
        // leaves before all others.
        script.release(if spec == "codel" { 0 } else { 3 }, false);
        router.collect(ms(11), 0, &mut out).unwrap();
        router.advance(ms(12), &mut out);
        assert_eq!(router.held(), held + 1, "{spec}: and one is in flight");
        if spec == "fq_codel" {
            script.lose(0);
            script.release(1, false);
            router.collect(ms(13), 0, &mut out).unwrap();
            router.advance(ms(14), &mut out);
            assert_eq!(
                router.held(),
                3,
                "the first packet of flow 0 was dropped, flow 1 waits, and two are in flight"
            );
        }
        script.release(0, false);
        router.collect(ms(15), 0, &mut out).unwrap();
        router.advance(ms(40), &mut out);
        assert_eq!(router.held(), 0, "{spec}");
        let record = router.finish().unwrap();
        let dropped: u64 = record.flows.iter().map(|flow| flow.all[0].dropped).sum();
        assert_eq!((dropped, out.0.len()), if spec == "codel" { (2, 2) } else { (1, 3) });
    }
}

/// A packet that the kernel has dropped stays in the mirror until a later packet of its flow leaves, even
/// when packet numbers are reused because all have been used once.
#[test]
fn packets_keep_their_order_when_numbers_are_used_again() {
    let plan = of_spec("fq_codel");
    let ((mut router, script), mut out) = (connected(&plan), Kept::default());
    let small = |flow| datagram(CLIENT, Some(flow), Ecn::Ect0, 60);
    router.accept(ms(1), CLIENT, &small(0), &mut out).unwrap();
    script.lose(0);
    let (mut at, mut left) = (ms(1), 0);
    for waiting in std::iter::repeat_n(1, 65_533).chain([4]) {
        for _ in 0..waiting {
            router.accept(at, CLIENT, &small(1), &mut out).unwrap();
        }
        (0..waiting).for_each(|_| script.release(0, false));
        router.collect(at, 0, &mut out).unwrap();
        at += Span::ms(1);
        router.advance(at, &mut out);
        left += out.0.drain(..).count();
    }
    router.advance(at + Span::ms(10), &mut out);
    assert_eq!((left + out.0.len(), router.held()), (65_533 + 4, 1));
}

/// A packet that comes out of the kernel but never went into it belongs to no flow.
#[test]
fn strays_are_counted_and_change_nothing() {
    let plan = of_spec("pfifo limit 9");
    let ((mut router, script), mut out) = (connected(&plan), Kept::default());
    let mut stray = packet(0);
    stray[4..6].copy_from_slice(&777u16.to_be_bytes());
    script.with(|kernel| kernel.gone.extend([stray, vec![0x60; 40], vec![1]]));
    router.collect(ms(5), 0, &mut out).unwrap();
    router.advance(ms(20), &mut out);
    assert!(out.0.is_empty());
    assert_eq!(router.finish().unwrap().kernels[0].1.strays, 3);
}

/// Internal events must be punctual if a kernel queue is on the path: none may be delayed.
#[test]
fn nothing_waits_in_front_of_a_kernel() {
    let plan = of_spec("pfifo limit 9");
    let ((mut router, script), mut out) = (connected(&plan), Kept::default());
    script.with(|kernel| kernel.free = true);
    router.accept(ms(10), CLIENT, &packet(0), &mut out).unwrap();
    assert_eq!(router.next_inside(), router.next_due());
}

#[test]
fn a_specification_begins_with_a_discipline_and_says_no_place() {
    for spec in ["", "qdisc add red", "dev eth0 red", "red limit 9 parent 1:", "Red limit 9", "; reboot"] {
        let error = parse(&text(&format!(r#"{{ kind = "tc", spec = "{spec}" }}"#)), "test.toml");
        let refused = error.is_err_and(|e| e.to_string().contains("write the discipline first"));
        assert!(refused || spec == "qdisc add red", "{spec}");
    }
    let error = parse(&text(r#""tc""#), "test.toml").unwrap_err().to_string();
    assert!(error.contains("spec"), "{error}");
    let inside =
        r#"{ kind = "policer", rate = "1Mbit", burst = "9kB", queue = { kind = "tc", spec = "red" } }"#;
    let error = parse(&text(inside), "test.toml").unwrap_err().to_string();
    assert!(error.contains("a kernel queue belongs to a link"), "{error}");
}
