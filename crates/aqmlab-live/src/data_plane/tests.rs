//! Tests of the event loop between in-memory devices, on a scripted clock that imitates a machine
//! that is punctual, late, stalled, flooded or suspended.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use aqmlab_network::FlowPath;
use aqmlab_qdisc::Registry;
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::{ClassPlan, Plan, Wait, parse};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};

use super::clock::Poller;
use super::control::DataPlaneControl;
use super::device::Device;
use super::event_loop::{EventLoop, Parts};
use super::settings::DataPlaneSettings;
use crate::addresses::{FIRST_CLIENT_PORT, SERVER_PORT};
use crate::error::LiveError;
use crate::frame::internet_checksum;
use crate::frame::offload::HEADER;
use crate::router::{FrameBudget, Router};

/// A clock that advances when a caller waits, or when an operation takes time.
struct Time {
    now: Cell<Instant>,
    /// Duration of one read.
    read_takes: Span,
    /// How much longer than requested each wait for an instant lasts.
    oversleep: Span,
    /// The only stall: the time at which everything stops, and the length of the stop.
    stall: Cell<Option<(Instant, Span)>>,
    /// Share of the time during which the thread has a processor, in percent.
    busy: u64,
    suspended_from: Instant,
    /// Arrival time of the next packet, by device.
    next: RefCell<Vec<Instant>>,
    ends: Instant,
    control: DataPlaneControl,
    spun: Cell<bool>,
}

impl Time {
    fn new(ends: Instant) -> Self {
        Time {
            now: Cell::new(Instant::ZERO),
            read_takes: Span::ZERO,
            oversleep: Span::ZERO,
            stall: Cell::new(None),
            busy: 0,
            suspended_from: Instant::FAR_FUTURE,
            next: RefCell::new(vec![Instant::FAR_FUTURE; 2]),
            ends,
            control: DataPlaneControl::default(),
            spun: Cell::new(false),
        }
    }
}

impl Poller for Rc<Time> {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn wait(&mut self, until: Instant, spin: Span, ready: &mut [bool]) -> io::Result<()> {
        let next = self.next.borrow();
        let first = next.iter().copied().min().unwrap();
        let woken = if first <= until { first } else { (until + self.oversleep).min(first) };
        let mut now = woken.max(self.now.get());
        if let Some((_, length)) = self.stall.get().filter(|(at, _)| *at <= now) {
            now += length;
            self.stall.set(None);
        }
        self.now.set(now);
        for (ready, next) in ready.iter_mut().zip(&*next) {
            *ready |= *next <= now;
        }
        self.spun.set(self.spun.get() || !spin.is_zero());
        if now >= self.ends {
            self.control.finish();
        }
        Ok(())
    }

    fn thread_time(&self) -> Span {
        Span::ns(self.now.get().as_ns() / 100 * self.busy)
    }

    fn suspended(&self) -> Span {
        if self.now.get() >= self.suspended_from { Span::s(3) } else { Span::ZERO }
    }
}

/// A device whose packets arrive at scripted instants.
struct Scripted {
    number: usize,
    time: Rc<Time>,
    arrivals: VecDeque<(Instant, Vec<u8>)>,
    /// Packets written to the device: time and number of octets.
    written: Vec<(Instant, usize)>,
    refuses: bool,
    breaks: bool,
    null: File,
}

impl Scripted {
    fn new(number: usize, time: &Rc<Time>, arrivals: VecDeque<(Instant, Vec<u8>)>) -> Self {
        let first = arrivals.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        time.next.borrow_mut()[number] = first;
        let (time, null) = (Rc::clone(time), File::open("/dev/null").unwrap());
        let written = Vec::with_capacity(100_000);
        Scripted { number, time, arrivals, written, refuses: false, breaks: false, null }
    }
}

impl Device for Scripted {
    fn read(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        if self.breaks {
            return Err(io::Error::from_raw_os_error(5));
        }
        if self.arrivals.front().is_none_or(|(at, _)| *at > self.time.now.get()) {
            return Ok(None);
        }
        let (_, octets) = self.arrivals.pop_front().unwrap();
        self.time.next.borrow_mut()[self.number] =
            self.arrivals.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        self.time.now.set(self.time.now.get() + self.time.read_takes);
        frame[..octets.len()].copy_from_slice(&octets);
        Ok(Some(octets.len()))
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.refuses {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.written.push((self.time.now.get(), frame.len()));
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }
}

/// Returns a plan with a link of 10 Mbit/s, on which 1250 octets take a millisecond, and four flows.
fn plan(queue: &str) -> Plan {
    plan_of(4, queue)
}

fn plan_of(flows: u16, queue: &str) -> Plan {
    let text = format!(
        r#"
        duration = "100s"
        warmup = "500ms"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = {{ {queue} }}
        [[traffic]]
        name = "x"
        kind = "cbr"
        count = {flows}
        rate = "1Mbit"
        size = "1250B"
        rtt = {{ uniform = ["20ms", "30ms"] }}
        "#
    );
    parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}")).arms.remove(0)
}

const DROPTAIL: &str = r#"kind = "droptail", limit = "50p""#;

/// Returns an ECN-capable datagram of one of the client's flows.
fn datagram(index: u16, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    octets[..10].copy_from_slice(&[0x45, 2, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, 17]);
    octets[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 19, 0, 1]);
    octets[20..22].copy_from_slice(&(FIRST_CLIENT_PORT + index).to_be_bytes());
    octets[22..24].copy_from_slice(&SERVER_PORT.to_be_bytes());
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Returns `count` packets, one every `gap`.
fn stream(count: u64, gap: Span) -> VecDeque<(Instant, Vec<u8>)> {
    stream_of(4, count, gap)
}

fn stream_of(flows: u16, count: u64, gap: Span) -> VecDeque<(Instant, Vec<u8>)> {
    let flow = |n: u64| (n % u64::from(flows)) as u16;
    let one = |n: u64| (Instant::ZERO + gap * n, datagram(flow(n), 200 + (n * 37 % 1200) as usize));
    (0..count).map(one).collect()
}

fn devices(time: &Rc<Time>, arrivals: VecDeque<(Instant, Vec<u8>)>) -> Vec<Scripted> {
    vec![Scripted::new(0, time, arrivals), Scripted::new(1, time, VecDeque::new())]
}

fn event_loop(plan: &Plan, time: &Rc<Time>, devices: Vec<Scripted>) -> EventLoop<Scripted, Rc<Time>> {
    let router =
        Router::new(plan, 1, &Registry::builtin(), &FrameBudget { frames: 8192, largest: vec![1500] })
            .unwrap();
    EventLoop::new(router, devices, Rc::clone(time), SETTINGS)
}

fn run(queue: &str, time: Time, arrivals: VecDeque<(Instant, Vec<u8>)>) -> Parts<Scripted> {
    let (plan, time) = (plan(queue), Rc::new(time));
    let devices = devices(&time, arrivals);
    event_loop(&plan, &time, devices).run(&time.control).unwrap()
}

const SETTINGS: DataPlaneSettings = DataPlaneSettings {
    wait: Wait::Hybrid,
    spin: Span::us(30),
    gather: Span::ZERO,
    offload: false,
    realtime: false,
    virtual_time: false,
};

const fn at(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

#[test]
fn a_punctual_machine_is_never_late() {
    let (router, devices, report) = run(DROPTAIL, Time::new(at(3000)), stream(2000, Span::us(900)));
    assert_eq!(report.lateness_max, Span::ZERO);
    assert!(report.lateness.total() > 1000);
    assert_eq!((report.stalls, report.write_errors, report.duty), (0, 0, 0.0));
    assert_eq!(devices[1].written.len() as u64, router.hosts()[1].left.packets);
    assert_eq!(router.held(), 0);
    router.finish().unwrap();
}

/// Lateness is recorded and changes nothing else: tables and octets are the same as on a punctual machine.
#[test]
fn a_late_machine_writes_late_and_decides_alike() {
    let red = r#"kind = "red", limit = "50p", min_th = "5p", max_th = "20p", ecn = true"#;
    let route = |oversleep| {
        let (mut plan, time) = (plan(red), Rc::new(Time { oversleep, ..Time::new(at(3000)) }));
        plan.stop.at = Span::ms(1100);
        let devices = devices(&time, stream(2000, Span::us(600)));
        event_loop(&plan, &time, devices).run(&time.control).unwrap()
    };
    let (punctual, late) = (route(Span::ZERO), route(Span::us(700)));
    assert!(
        late.2.lateness_max > Span::us(400) && late.2.lateness_max <= Span::us(700),
        "{}",
        late.2.lateness_max
    );
    let sizes = |devices: &[Scripted]| devices[1].written.iter().map(|(_, len)| *len).collect::<Vec<_>>();
    assert_eq!(sizes(&punctual.1), sizes(&late.1));
    let (punctual, late) = (punctual.0.finish().unwrap(), late.0.finish().unwrap());
    assert!(punctual.hosts[1].left_marked > 50);
    assert_eq!(punctual.ports.summary.digest(), late.ports.summary.digest());
    assert_eq!(punctual.ports.histograms.digest(), late.ports.histograms.digest());
    assert_eq!(punctual.flows, late.flows);
}

#[test]
fn a_silence_is_a_stall_with_its_instant_and_length() {
    let time = Time::new(at(3000));
    time.stall.set(Some((at(1500), Span::ms(15))));
    let (.., report) = run(DROPTAIL, time, stream(2000, Span::us(1500)));
    assert_eq!((report.stalls, report.first_stalls.len()), (1, 1));
    let stall = report.first_stalls[0];
    assert!(stall.length >= Span::ms(15) && stall.length < Span::ms(20), "{}", stall.length);
    assert!(stall.at <= at(1500) && stall.at > at(1495), "{:?}", stall.at);
    assert!(report.lateness_max >= Span::ms(13), "{}", report.lateness_max);
    // Shorter silences, and those before the end of the warm-up, are not stalls.
    for (from, length) in [(1500, 5), (200, 15)] {
        let time = Time::new(at(3000));
        time.stall.set(Some((at(from), Span::ms(length))));
        assert_eq!(run(DROPTAIL, time, stream(2000, Span::us(1500))).2.stalls, 0, "{length} ms at {from} ms");
    }
}

/// Due events are processed between packets, even if a sender never pauses and always has another packet
/// waiting.
#[test]
fn a_flood_keeps_no_link_waiting() {
    let (plan, time) = (plan(DROPTAIL), Rc::new(Time { read_takes: Span::us(10), ..Time::new(at(1200)) }));
    // All packets wait from the beginning; reading all of them would take longer than the test runs.
    let flood = (0..150_000u32).map(|n| (Instant::ZERO, datagram((n % 4) as u16, 100))).collect();
    let devices = devices(&time, flood);
    let (router, devices, report) = event_loop(&plan, &time, devices).run(&time.control).unwrap();
    assert!(time.now.get() < at(1201), "the request to end was noticed late: {:?}", time.now.get());
    assert!(report.lateness_max <= Span::us(10), "{}", report.lateness_max);
    // After about 13 ms, the link is never idle, because each packet of 100 octets takes 80 us at 10 Mbit/s.
    assert!(devices[1].written.len() > 14_500, "{}", devices[1].written.len());
    assert_eq!(report.stalls, 0);
    router.finish().unwrap();
}

#[test]
fn a_suspended_machine_voids_the_run() {
    let (plan, time) = (plan(DROPTAIL), Rc::new(Time { suspended_from: at(700), ..Time::new(at(3000)) }));
    let devices = devices(&time, stream(100, Span::ms(5)));
    let error = event_loop(&plan, &time, devices).run(&time.control).err().unwrap();
    let LiveError::Suspended { at: noticed, lost } = error else { panic!("{error}") };
    assert_eq!(lost, Span::s(3));
    assert!(noticed >= at(700) && noticed <= at(900), "{noticed:?}");
}

#[test]
fn what_a_device_refuses_is_counted_and_a_broken_one_is_named() {
    let (plan, time) = (plan(DROPTAIL), Rc::new(Time::new(at(500))));
    let mut pair = devices(&time, stream(10, Span::ms(5)));
    pair[1].refuses = true;
    let (router, _, report) = event_loop(&plan, &time, pair).run(&time.control).unwrap();
    assert_eq!((report.write_errors, router.hosts()[1].left.packets), (10, 10));
    router.finish().unwrap();

    let time = Rc::new(Time::new(at(500)));
    let mut pair = devices(&time, stream(10, Span::ms(5)));
    pair[1].breaks = true;
    let error = event_loop(&plan, &time, pair).run(&time.control).err().unwrap().to_string();
    assert!(error.starts_with("cannot read from the server of class 1: "), "{error}");
}

#[test]
fn a_thread_that_is_too_busy_does_not_spin() {
    for (busy, spins) in [(50, true), (90, false)] {
        let (plan, time) = (plan(DROPTAIL), Rc::new(Time { busy, ..Time::new(at(3000)) }));
        let devices = devices(&time, stream(1000, Span::ms(2)));
        let event_loop = event_loop(&plan, &time, devices);
        // Only after the first window is it known that the thread is busy.
        let (.., report) = event_loop.run(&time.control).unwrap();
        assert!(time.spun.get(), "at first, the loop may spin");
        assert_eq!(report.without_spin.is_zero(), spins, "{busy} %: {}", report.without_spin);
        assert!((report.duty - busy as f64 / 100.0).abs() < 0.01, "{}", report.duty);
    }
}

#[test]
fn the_measured_interval_ends_when_somebody_wants_it() {
    let (plan, time) = (plan(DROPTAIL), Rc::new(Time::new(at(2000))));
    time.control.end_at(at(1000), StoppedBy::Completed);
    let devices = devices(&time, stream(1000, Span::ms(2)));
    let (router, _, report) = event_loop(&plan, &time, devices).run(&time.control).unwrap();
    let (ended, why) = time.control.ended().unwrap();
    assert!(ended >= at(1000) && ended <= at(1004), "{ended:?}");
    assert_eq!(why, StoppedBy::Completed);
    assert!(
        time.control.held().abs_diff(router.held() as u64) <= 2,
        "this count was taken a few milliseconds earlier"
    );
    // After 500 ms, one packet leaves every 2 ms, and the packets of about the last 17 ms are still in flight
    // at the end.
    assert!((240..=260).contains(&report.lateness.total()), "{}", report.lateness.total());
    let record = router.finish().unwrap();
    assert_eq!((record.t1, record.stopped_by), (ended, StoppedBy::Completed));
    assert!(
        record.flows.iter().map(|f| f.drained[0].delivered.packets).sum::<u64>() > 980,
        "frames continued"
    );
}

/// The loop allocates nothing from its first pass to its last, whatever the discipline does, with
/// four flows or a thousand, and even with a queue longer than those for which the disciplines
/// themselves reserve memory.
#[test]
fn a_running_loop_allocates_nothing() {
    for (flows, gap_us, queue) in [
        (4, 620, DROPTAIL),
        (4, 620, r#"kind = "red", limit = "50p", min_th = "5p", max_th = "20p", ecn = true"#),
        (4, 620, r#"kind = "ared", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "pi", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "rem", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "blue", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "scred", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "fred", limit = "50p", ecn = true"#),
        (4, 620, r#"kind = "redpd", limit = "50p", min_th = "5p", max_th = "20p", ecn = true"#),
        (1000, 620, r#"kind = "fred", limit = "50p", ecn = true"#),
        (1000, 620, r#"kind = "redpd", limit = "50p", min_th = "5p", max_th = "20p", ecn = true"#),
        (1000, 390, r#"kind = "droptail", limit = "5000p""#),
        (1000, 390, r#"kind = "fred", limit = "5000p", min_th = "4000p", max_th = "4999p""#),
    ] {
        let plan = plan_of(flows, queue);
        let time = Rc::new(Time { oversleep: Span::us(50), ..Time::new(at(8000)) });
        let devices = devices(&time, stream_of(flows, 8_000_000 / gap_us, Span::us(gap_us)));
        let event_loop = event_loop(&plan, &time, devices);
        let mut parts = None;
        let counted = allocation_counter::measure(|| parts = Some(event_loop.run(&time.control).unwrap()));
        let (router, devices, _) = parts.unwrap();
        assert_eq!(counted.count_total, 0, "{flows} flows: {queue}");
        let left = devices[1].written.len() as u64;
        assert!(
            left > 5_000 && left < router.hosts()[0].read.packets - 50,
            "{queue}: {left} packets have left; expected more than 5000, and at least 51 fewer than arrived"
        );
        router.finish().unwrap();
    }
}

/// The loop also allocates nothing if connections constantly open and close, and reuse the client ports of
/// earlier ones.
#[test]
fn connections_that_come_and_go_allocate_nothing() {
    const PORTS: u32 = 50;
    let mut plan = plan_of(4, DROPTAIL);
    plan.classes[0] = users();
    let time = Rc::new(Time { oversleep: Span::us(50), ..Time::new(at(8000)) });
    // Each connection consists of a SYN and three segments, which arrive out of order.
    let segments = |n: u64| {
        (0..4).map(move |i| (at(7 * n) + Span::us(700) * i, segment((n % u64::from(PORTS)) as u32, n, i)))
    };
    let devices = devices(&time, (0..1000).flat_map(segments).collect());
    let mut router =
        Router::new(&plan, 1, &Registry::builtin(), &FrameBudget { frames: 8192, largest: vec![1500] })
            .unwrap();
    let mut announcer = router.announcer();
    for n in 0..1000u32 {
        let of = Identity { user: n % 3, serial: n / 3 };
        let path = FlowPath::new(&plan, 0, plan.propagation(0), Some(of), 1);
        announcer.announce(0, n % PORTS, of.user, &path).unwrap();
    }
    let event_loop = EventLoop::new(router, devices, Rc::clone(&time), SETTINGS);
    let mut parts = None;
    let counted = allocation_counter::measure(|| parts = Some(event_loop.run(&time.control).unwrap()));
    assert_eq!(counted.count_total, 0);
    let (router, ..) = parts.unwrap();
    assert_eq!(router.hosts()[0].of_no_flow, 0);
    let record = router.finish().unwrap();
    assert_eq!(record.flows.iter().map(|flow| flow.all[0].sent.packets).sum::<u64>(), 4000);
    assert!(record.flows.iter().all(|flow| flow.all[0].received_bytes > 100_000), "{:?}", record.flows);
}

/// Returns a class of three users, each with losses, its own round-trip time, and access links.
fn users() -> ClassPlan {
    let text = "duration = \"100s\"\ntopology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"50p\" } }\n\
                [[traffic]]\nname = \"x\"\nkind = \"requests\"\nusers = 3\nthink = \"1s\"\nrequest = \"100B\"\nresponse = \"1kB\"\nloss = 0.01\n\
                rtt = { uniform = [\"20ms\", \"30ms\"] }\n";
    let plan = parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}")).arms.remove(0);
    plan.classes[0].clone()
}

/// Returns segment `i` of connection `n` from the client; segment 0 of each connection is its SYN.
fn segment(port: u32, n: u64, i: u64) -> Vec<u8> {
    let (len, payload): (usize, u32) = if i == 0 { (40, 0) } else { (340, 300) };
    let mut octets = datagram(port as u16, len);
    octets[9] = 6;
    // After the SYN come the third segment, the second, and the third once more.
    let place = [0, 2, 1, 2][i as usize];
    let seq = (n as u32).wrapping_mul(1_000_003) + u32::from(i > 0) + payload * place;
    octets[24..28].copy_from_slice(&seq.to_be_bytes());
    octets[32..34].copy_from_slice(&[5 << 4, if i == 0 { 2 } else { 16 }]);
    octets[10..12].fill(0);
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Sends segments of one connection over a link of 1 Gbit/s, one every `gap`, through a loop that
/// joins segments that leave within 100 us of each other.
fn joined(count: u64, gap: Span) -> Parts<Scripted> {
    let text = r#"
        duration = "100s"
        topology = { kind = "dumbbell", rate = "1Gbit", delay = "5ms", queue = { kind = "droptail", limit = "500p" } }
        traffic = [{ name = "x", kind = "cbr", rate = "1Mbit", size = "1250B", access_rate = "none" }]
    "#;
    let plan = parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}")).arms.remove(0);
    let time = Rc::new(Time::new(at(3000)));
    let arrivals =
        (0..count).map(|n| (at(1) + gap * n, [vec![0; HEADER], data(n as u32)].concat())).collect();
    let devices = devices(&time, arrivals);
    let budget = FrameBudget { frames: 8192, largest: vec![1500] };
    let router = Router::new(&plan, 1, &Registry::builtin(), &budget).unwrap();
    let settings = DataPlaneSettings { gather: Span::us(100), offload: true, ..SETTINGS };
    let event_loop = EventLoop::new(router, devices, Rc::clone(&time), settings);
    let mut parts = None;
    let counted = allocation_counter::measure(|| parts = Some(event_loop.run(&time.control).unwrap()));
    assert_eq!(counted.count_total, 0);
    let parts = parts.unwrap();
    let counts = parts.2.offload;
    assert_eq!((counts.packets_read, counts.packets_written, parts.2.write_errors), (count, count, 0));
    assert_eq!(counts.writes, parts.1[1].written.len() as u64);
    let written: usize = parts.1[1].written.iter().map(|(_, len)| len - HEADER - 40).sum();
    assert_eq!(written as u64, 1210 * count);
    assert_eq!(parts.2.lateness.total(), count, "each packet has its own lateness");
    parts
}

/// Returns the n-th segment of the client's connection, which carries 1210 bytes of data.
fn data(n: u32) -> Vec<u8> {
    let mut octets = datagram(0, 1250);
    octets[4..6].copy_from_slice(&(n as u16).to_be_bytes());
    octets[9] = 6;
    octets[24..28].copy_from_slice(&(1210 * n).to_be_bytes());
    octets[32..34].copy_from_slice(&[5 << 4, 16]);
    octets[10..12].fill(0);
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

#[test]
fn segments_that_leave_soon_after_each_other_are_written_at_once() {
    let (.., report) = joined(20_000, Span::us(10));
    // Eleven segments leave within 100 us; the last ones need not wait, because no more segments follow.
    assert!((20_000 / 12..20_000 / 10).contains(&report.offload.writes), "{:?}", report.offload);
    assert!((Span::us(90)..=Span::us(100)).contains(&report.lateness_max), "{}", report.lateness_max);
}

#[test]
fn a_segment_does_not_wait_for_one_that_leaves_much_later() {
    for gap in [Span::us(110), Span::ms(1)] {
        let (.., report) = joined(1000, gap);
        assert_eq!((report.offload.writes, report.lateness_max), (1000, Span::ZERO), "{gap}");
    }
}

/// A router that has been too busy to spin writes packets together if they leave within `gather` of each
/// other; otherwise, no packet waits.
#[test]
fn a_busy_router_writes_packets_together() {
    for busy in [50, 90] {
        let time = Rc::new(Time { busy, ..Time::new(at(3000)) });
        // A packet of 200 octets, which takes 160 us on the link, arrives every 200 us.
        let arrivals =
            (0..10_000u64).map(|n| (Instant::ZERO + Span::us(200) * n, datagram(0, 200))).collect();
        let (plan, devices) = (plan(DROPTAIL), devices(&time, arrivals));
        let router =
            Router::new(&plan, 1, &Registry::builtin(), &FrameBudget { frames: 8192, largest: vec![1500] })
                .unwrap();
        let settings = DataPlaneSettings { gather: Span::us(700), ..SETTINGS };
        let event_loop = EventLoop::new(router, devices, Rc::clone(&time), settings);
        let (_, devices, report) = event_loop.run(&time.control).unwrap();
        let written = &devices[1].written;
        let waited = report.lateness_max;
        assert_eq!((written.len(), report.write_errors), (10_000, 0));
        assert!(if busy == 90 { waited == Span::us(700) } else { waited.is_zero() }, "{busy}: {waited}");
        assert_eq!(report.offload.writes, if busy == 90 { report.offload.packets_written } else { 0 });
    }
}
