//! Tests that captured packets go from the data plane to the file in order and completely, and that
//! the data plane never waits for the file.
mod support;

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};

use aqmlab_live::capture::{self, CaptureObserver, CaptureWriter};
use aqmlab_live::router::{FrameAtPort, Router};
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Cause, Ecn, Observer, Reason, Registry};
use aqmlab_random::Stream;
use aqmlab_recording::capture::{
    CaptureFile, CaptureReport, CapturedPort, Frame, PacketAtPort, PortCapture, Reasons,
};
use aqmlab_storage::Capture;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use proptest::prelude::*;
use support::capture_report::{Sink, read, total};
use support::{Kept, datagram, frame_budget, plan};

/// A disk that accepts nothing until it is released.
struct Stuck(Receiver<()>, Sink);

impl Write for Stuck {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const SNAP: u32 = 96;

fn file(sink: Box<dyn Write + Send>) -> Box<dyn CaptureFile> {
    let port = |name: &str| CapturedPort { name: name.into(), rate: Rate::mbit(10) };
    Box::new(Capture::on(sink, Path::new("packets.pcapng"), &[port("a"), port("b")], SNAP).unwrap())
}

/// Number of slots that the script uses.
const SLOTS: u32 = 7;
/// Links 3 and 1 of a plan are ports 0 and 1 of the capture.
const LINKS: [usize; 2] = [3, 1];

fn start(sink: Box<dyn Write + Send>, ring: usize) -> (CaptureObserver, CaptureWriter) {
    let capture = PortCapture { links: LINKS.to_vec(), file: file(sink) };
    capture::start_with(capture, SLOTS as usize, ring).unwrap()
}

/// Notifies an observer of everything that happens to a packet, from its arrival on.
fn observe(observer: &mut CaptureObserver, (packet, octets): &(PacketAtPort, Vec<u8>), n: u64) {
    let arrived = Instant::from_ns(packet.at.as_ns() - packet.waited.as_ns());
    let (link, slot) = (LINKS[packet.port as usize], n as u32 % SLOTS);
    let frame = FrameAtPort { link, arrived, slot, id: packet.id, octets };
    observer.enqueued(arrived, &frame);
    for reason in packet.marked.iter() {
        observer.marked(packet.at, &frame, Cause::of(reason));
    }
    match packet.dropped {
        Some(reason) => observer.dropped(packet.at, frame, Cause::of(reason)),
        None => observer.dequeued(packet.at, &frame),
    }
}

/// Returns packet number `n` of a script, and its bytes.
fn scripted(n: u64, len: usize) -> (PacketAtPort, Vec<u8>) {
    let mut marked = Reasons::NONE;
    if n.is_multiple_of(3) {
        marked.insert(Reason::Early);
    }
    let packet = PacketAtPort {
        port: (n % 2) as u32,
        id: n << 33 | n,
        at: Instant::from_ns(n << 20 | 1 << 40),
        waited: Span::ns(n * 7),
        marked,
        dropped: n.is_multiple_of(5).then_some(Reason::ALL[(n % 4) as usize]),
        wire_len: Bytes::new(len as u64),
    };
    (packet, (0..len).map(|i| (n as usize * 31 + i) as u8).collect())
}

/// Returns the number of packets in the file.
fn written(report: &CaptureReport) -> u64 {
    report.ports.iter().map(|port| port.written).sum()
}

fn direct(script: &[(PacketAtPort, Vec<u8>)]) -> Vec<u8> {
    let sink = Sink::default();
    let mut file = file(Box::new(sink.clone()));
    for (packet, bytes) in script {
        file.note(packet, Frame { head: bytes, len: bytes.len() as u32 });
    }
    file.finish(Instant::from_ns(u64::MAX >> 1), &[0, 0]).unwrap();
    sink.0.lock().unwrap().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The file equals one that is written without a thread in between.
    #[test]
    fn what_goes_in_comes_out_in_order(lengths in prop::collection::vec(0usize..200, 0..400)) {
        let script: Vec<_> = (0..).zip(&lengths).map(|(n, &len)| scripted(n, len)).collect();
        let sink = Sink::default();
        let (mut observer, writer) = start(Box::new(sink.clone()), 400 * 140);
        (0..).zip(&script).for_each(|(n, packet)| observe(&mut observer, packet, n));
        let report = writer.finish(Instant::from_ns(u64::MAX >> 1)).unwrap();
        prop_assert_eq!(report.missed(), 0);
        prop_assert_eq!(written(&report), script.len() as u64);
        prop_assert!(*sink.0.lock().unwrap() == direct(&script));
    }
}

#[test]
fn what_happens_at_other_ports_is_not_captured() {
    let (mut observer, writer) = start(Box::new(io::sink()), 1000);
    for link in [0, 2, 4, 1000, 1] {
        let frame = FrameAtPort { link, arrived: Instant::ZERO, slot: 0, id: 0, octets: &[0x45] };
        observer.dequeued(Instant::ZERO, &frame);
    }
    drop(observer);
    let report = writer.finish(Instant::ZERO).unwrap();
    assert_eq!(
        report.ports.iter().map(|port| (&*port.port, port.written)).collect::<Vec<_>>(),
        [("a", 0), ("b", 1)]
    );
}

/// A ring of eight packets wraps around ten thousand times. Packets that did not fit are counted, port by
/// port, and the others are in the file.
#[test]
fn nothing_is_lost_uncounted_when_the_ring_overflows() {
    let sink = Sink::default();
    let (mut observer, writer) = start(Box::new(sink.clone()), 1024);
    const PACKETS: u64 = 80_000;
    for n in 0..PACKETS {
        observe(&mut observer, &scripted(n, 100), n);
    }
    drop(observer);
    let report = writer.finish(Instant::ZERO).unwrap();
    for port in &report.ports {
        assert_eq!(port.written + port.missed, PACKETS / 2, "{report:?}");
        assert!(port.written > 0);
    }
}

#[test]
fn a_disk_that_is_stuck_does_not_hold_the_data_plane_up() {
    let (release, wait): (SyncSender<()>, _) = mpsc::sync_channel(0);
    let sink = Sink::default();
    let (mut observer, writer) = start(Box::new(Stuck(wait, sink.clone())), 1 << 16);
    // These packets take more than half a megabyte, which is more than the buffer in front of the
    // disk holds, so a thread that wrote them directly would have to wait.
    const PACKETS: u64 = 20_000;
    for n in 0..PACKETS {
        observe(&mut observer, &scripted(n, 100), n);
        if n % 64 == 0 {
            std::thread::yield_now();
        }
    }
    assert!(writer.missed() > 0, "the ring is full, and this thread continues");
    assert_eq!(sink.0.lock().unwrap().len(), 0, "nothing has been written");
    drop(release);
    let report = writer.finish(Instant::ZERO).unwrap();
    assert_eq!(written(&report) + report.missed(), PACKETS);
    let bytes = sink.0.lock().unwrap();
    let found = bytes.windows(4).filter(|window| *window == b"ueue").count() as u64;
    assert_eq!(found, written(&report));
}

/// All packets handed over count as missed, because there is no file.
#[test]
fn a_full_disk_is_told_at_the_end() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return eprintln!("skipped: no /dev/full");
    };
    let (mut observer, writer) = start(Box::new(full), 1 << 20);
    for n in 0..20_000 {
        observe(&mut observer, &scripted(n, 100), n);
    }
    drop(observer);
    let failure = writer.finish(Instant::ZERO).unwrap_err();
    assert!(failure.error.is_host_limit(), "{failure}");
    assert!(failure.at > Instant::ZERO, "part of it was in the buffer");
    let missed: Vec<_> = failure.ports.iter().map(|port| (port.written, port.missed)).collect();
    assert_eq!(missed, [(0, 10_000); 2]);
}

#[test]
fn to_hand_over_allocates_nothing() {
    let (mut observer, writer) = start(Box::new(io::sink()), 1 << 16);
    let script: Vec<_> = (0..1000).map(|n| scripted(n, 1500)).collect();
    let counted = allocation_counter::measure(|| {
        (0..).zip(&script).for_each(|(n, packet)| observe(&mut observer, packet, n));
    });
    assert_eq!(counted.count_total, 0);
    drop(observer);
    let report = writer.finish(Instant::ZERO).unwrap();
    assert_eq!(written(&report) + report.missed(), 1000);
}

/// A router's capture agrees with its ports' books, and contains the packets in the form in which they left.
#[test]
fn the_packets_of_a_port_are_its_books() {
    let mut plan = plan(
        r#"
        duration = "8s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = { kind = "red", limit = "15p", min_th = "3p", max_th = "9p", max_p = 0.1, w_q = 0.05, gentle = false, ecn = true }
        [[traffic]]
        name = "x"
        kind = "cbr"
        count = 3
        rate = "1Mbit"
        size = "1250B"
        access_rate = "none"
        "#,
    );
    plan.links[0].faults.mark = (100..200).collect();
    let sink = Sink::default();
    let capture = PortCapture { links: vec![0, 1], file: file(Box::new(sink.clone())) };
    let budget = frame_budget(&plan, 64);
    let (observer, writer) = capture::start(capture, &budget).unwrap();
    let mut router = Router::new(&plan, 1, &Registry::builtin(), &budget).unwrap();
    router.observe_ports(Box::new(observer));
    let (mut out, mut draws, mut at) = (Kept::default(), Stream::new(3, "arrivals"), 0);
    for n in 0u64.. {
        // Occasionally, a train of packets arrives all at once, before the average reflects it.
        at += if n % 400 < 25 { 0 } else { draws.below(1_400_000) };
        if at > 7_000_000_000 {
            break;
        }
        let side = if draws.hit(0.8) { End::Client } else { End::Server };
        let ecn = if draws.hit(0.5) { Ecn::Ect0 } else { Ecn::NotEct };
        let host = HostId { class: 0, side };
        let packet = datagram(host, Some(draws.below(3) as u16), ecn, 1250);
        router.accept(Instant::from_ns(at), host, &packet, &mut out).unwrap();
    }
    let end = Instant::from_ns(8_000_000_000);
    router.advance(end, &mut out);
    drop(router.take_observer());
    let report = writer.finish(end).unwrap();
    assert_eq!(report.missed(), 0);
    let record = router.finish().unwrap();
    let packets = read(&sink.0.lock().unwrap());
    // Each queue has a row for all classes and one for the only class.
    for (port, row) in [(0, 0), (1, 2)] {
        let book = |column: &str| total(&record.ports.summary, column, row);
        let here: Vec<_> = packets.iter().filter(|packet| packet.interface == port).collect();
        let counted = |words: &str| here.iter().filter(|packet| packet.says(words)).count() as u128;
        for reason in Reason::ALL.map(Reason::name) {
            for what in ["dropped", "marked"] {
                let column = format!("{what}_{reason}_packets");
                assert_eq!(counted(&format!("{what} {reason}")), book(&column), "port {port}: {column}");
            }
        }
        let left: Vec<_> = here.iter().filter(|packet| packet.leaves()).collect();
        assert_eq!(left.len() as u128, book("departures_packets"));
        assert_eq!(left.iter().map(|packet| packet.waited_ns()).sum::<u128>(), book("sojourn_sum_ns"));
        // Sending takes a millisecond and propagation five; no bit of the header changes in
        // between.
        let to = if port == 0 { End::Server } else { End::Client };
        let arrived: Vec<_> = out.0.iter().filter(|(_, host, ..)| host.side == to).collect();
        assert_eq!(arrived.len(), left.len());
        for (packet, (at, _, _, octets)) in left.iter().zip(arrived) {
            assert_eq!(packet.at_ns + 6_000_000, at.as_ns());
            assert_eq!(packet.head, octets[..SNAP as usize]);
        }
    }
    for reason in ["marked early", "marked injected", "dropped early", "dropped overflow"] {
        let seen = packets.iter().filter(|packet| packet.says(reason)).count();
        assert!(seen > 5, "{reason}: {seen}");
    }
}
