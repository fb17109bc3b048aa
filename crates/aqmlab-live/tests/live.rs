//! Whole live runs between real TCP stacks, in namespaces. Nothing here depends on the speed of the machine.

mod alone;
mod support;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use aqmlab_live::host::Stack;
use aqmlab_live::{LiveError, LiveRun, Options, live, live_captured};
use aqmlab_qdisc::Reason;
use aqmlab_recording::capture::{CapturedPort, PortCapture};
use aqmlab_recording::{ColumnData, RecordingError, StoppedBy};
use aqmlab_scenario::{LinkPlan, Plan};
use aqmlab_storage::{Capture, Folder};
use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use support::capture_report::{Sink, read, total};

fn main() -> ExitCode {
    alone::main(&[
        ("marks_of_red_are_those_that_the_receivers_count", || marked(4, false)),
        ("marks_over_ipv6", || marked(6, false)),
        ("marks_of_segments_that_were_joined", || marked(4, true)),
        ("marks_of_segments_that_were_joined_over_ipv6", || marked(6, true)),
        ("captured_packets_are_the_books_of_their_ports", || captured(4, false)),
        ("packets_are_captured_over_ipv6", || captured(6, false)),
        ("captured_segments_are_as_on_a_wire_with_offloads", || captured(4, true)),
        ("captured_segments_are_as_on_a_wire_with_offloads_over_ipv6", || captured(6, true)),
        ("an_interrupted_run_leaves_what_there_is", interrupted),
        ("a_run_ends_when_enough_flows_have_completed", completed),
        ("requests_are_timed_from_the_hand_over_to_the_last_byte", requests),
        ("users_and_arrivals_open_connections_as_long_as_the_run_lasts", populations),
        ("users_fetch_pages_over_several_connections_at_a_time", pages),
        ("clouds_and_browsers_open_connections_as_in_the_simulator", clouds),
        ("a_run_interrupted_in_its_warm_up_has_measured_nothing", interrupted_early),
        ("a_run_ends_when_a_queue_has_dropped_enough", condition),
        ("a_link_sends_what_its_rate_adds_up_to", changing),
        ("a_shaper_is_adjusted_by_the_delay_of_datagrams", adjusted),
        ("what_a_machine_cannot_is_refused_before_anything_flows", refused),
    ])
}

fn plan(head: &str, queue: &str, traffic: &str) -> Plan {
    plan_at("\"10Mbit\"", head, queue, traffic)
}

fn plan_at(rate: &str, head: &str, queue: &str, traffic: &str) -> Plan {
    let text = format!(
        "title = \"t\"\n{head}\n[topology]\nkind = \"dumbbell\"\nrate = {rate}\nreverse_rate = \"10Mbit\"\ndelay = \"5ms\"\naccess_rate = \"100Mbit\"\n\
         queue = {queue}\nreverse_queue = {{ kind = \"droptail\", limit = \"1000p\" }}\n{traffic}\n[record]\nqueues = \"100ms\"\nflows = \"200ms\"\n"
    );
    let read = aqmlab_scenario::parse_within(&text, "test", Default::default(), &Folder::of("test"));
    read.unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
}

fn run(plan: &Plan, cancel_when: impl Fn(f64) -> bool) -> Result<LiveRun, LiveError> {
    let cancel = AtomicBool::new(false);
    let run = live(
        plan,
        1,
        &Options::default(),
        &mut |progress| {
            if cancel_when(progress.done.as_secs_f64()) {
                cancel.store(true, Ordering::Relaxed);
            }
        },
        &cancel,
    )?;
    println!("  {}", run.faithfulness);
    Ok(run)
}

/// Returns the sum of a column of numbers; absent values count as zero.
fn sum(run: &LiveRun, table: &str, column: &str) -> u64 {
    let table = run.recording.tables.iter().find(|t| t.name == table).expect("the table is there");
    match table.column(column) {
        Some(ColumnData::U64(values)) => values.iter().sum(),
        Some(ColumnData::NullableU64(values)) => values.iter().flatten().sum(),
        other => panic!("{column}: {other:?}"),
    }
}

const RED: &str = r#"{ kind = "red", limit = "100p", min_th = "5p", max_th = "60p", ecn = true }"#;

fn marked(ip: u32, offload: bool) -> Result<(), LiveError> {
    let head = format!("duration = \"3s\"\nwarmup = \"500ms\"\nlive = {{ ip = {ip}, offload = {offload} }}");
    let traffic = "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\ncount = 4\nrtt = \"40ms\"\ntcp = { profile = \"linux\", ecn = true }\n\
                   [[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"400kbit\"\nsize = \"500B\"\n";
    let plan = plan(&head, RED, traffic);
    let run = run(&plan, |_| false)?;
    let live = run.recording.manifest.live.as_ref().expect("a live run has a report");
    assert_eq!(run.recording.manifest.stopped_by, StoppedBy::Time);
    assert_eq!(run.recording.manifest.parts, aqmlab_live::ENGINE.parts(&plan));
    // Unbalanced books would have been an error. The receivers' kernels have seen all delivered marks.
    let marks = live.marks;
    assert_eq!(marks.ce_delivered, marks.ce_received);
    assert_eq!(marks.ce_delivered, marks.marked, "no sender sets CE");
    assert!(marks.marked > 0, "{live:#?}");
    for name in ["marks", "oversize", "no_room", "write_errors", "hidden_drops", "at_sockets", "handed_over"]
    {
        let check = run.faithfulness.checks.iter().find(|check| check.name == name).expect("it was checked");
        assert!(check.passed, "{}", check.sentence);
    }
    assert_eq!(live.drops.malformed, 0);
    assert_eq!(live.offload.is_some(), offload);
    if let Some(joined) = live.offload {
        assert_eq!(joined.packets_read, live.frames.read);
        assert!(joined.reads < joined.packets_read && joined.writes <= joined.packets_written, "{joined:?}");
    }
    let frames = &live.frames;
    assert_eq!(frames.read, frames.let_in);
    assert_eq!((frames.fragments, frames.malformed["checksum"]), (0, 0));
    assert!(live.most_held > 5, "{live:#?}");
    // On no machine does a round trip take less than a microsecond.
    let ping = &live.ping;
    assert!((1..=100).contains(&ping.count), "{ping:#?}");
    assert!(ping.p50_ns > 1_000 && ping.p50_ns <= ping.p99_ns, "{ping:#?}");
    assert!(live.capacity.packets_per_s.unwrap() > 100.0 && !live.virtual_time, "{live:#?}");
    let stack = Stack::of(&plan.classes[0], plan.live.ip)?;
    let route = &live.routes["tcp"];
    assert_eq!((route.mtu, route.quick_ack), (stack.mtu, stack.metrics.quick_ack));
    // Four connections share 10 Mbit/s with the datagrams. Even a busy machine carries a tenth of this rate.
    // No machine carries more than what leaves the link in 3 s. The warm-up is included, because data that
    // waits for a reader is measured only when it is read.
    let delivered = sum(&run, "flows", "measured_delivered_bytes");
    assert!((300_000..=3_750_000).contains(&delivered), "{delivered} bytes in 2.5 s");
    assert!(sum(&run, "flows", "ce_received") <= marks.ce_delivered, "some arrive in the drain");
    assert!(sum(&run, "flows", "measured_ce_received") > 0);
    // The end-to-end books of the measured interval balance.
    let books = |name| sum(&run, "run", name);
    assert_eq!(
        books("sent_packets"),
        books("delivered_packets")
            + books("dropped_packets")
            + books("lost_outside_queues_packets")
            + books("in_flight_packets")
    );
    assert!(sum(&run, "queues", "arrivals_packets") > 1000);
    assert!(run.recording.tables.iter().any(|t| t.name == "flow_series" && t.rows() >= 4 * 10));
    Ok(())
}

fn captured(ip: u32, offload: bool) -> Result<(), LiveError> {
    let head = format!("duration = \"2s\"\nlive = {{ ip = {ip}, offload = {offload} }}");
    let traffic = "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\ncount = 4\nrtt = \"40ms\"\ntcp = { profile = \"linux\", ecn = true }\n\
                   [[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"400kbit\"\nsize = \"500B\"\n";
    let mut plan = plan(&head, RED, traffic);
    plan.links[0].faults.drop = vec![50, 100, 150];
    let sink = Sink::default();
    let port = |link: &LinkPlan| CapturedPort { name: link.name.clone(), rate: link.rate };
    let ports: Vec<_> = plan.links.iter().map(port).collect();
    let file = Capture::on(Box::new(sink.clone()), Path::new("packets.pcapng"), &ports, 65_535).unwrap();
    let capture = PortCapture { links: vec![0, 1], file: Box::new(file) };
    let cancel = AtomicBool::new(false);
    let run = live_captured(&plan, 1, &Options::default(), capture, &mut |_| {}, &cancel)?;
    println!("  {}", run.faithfulness);
    let packets = read(&sink.0.lock().unwrap());
    let live = run.recording.manifest.live.as_ref().expect("a live run has a report");
    let counts = live.capture.clone().expect("its ports");
    let summary = run.recording.table("summary").expect("every recording has a summary");
    // Each queue has a row for all classes and one for each of the two classes. The drain after the end is
    // not counted.
    for (port, row) in [(0, 0), (1, 3)] {
        let book = |column: &str| total(summary, column, row);
        let here: Vec<_> = packets.iter().filter(|packet| packet.interface == port).collect();
        let count = counts[&ports[port as usize].name];
        assert_eq!((count.packets, count.missed), (here.len() as u64, 0));
        let measured = || here.iter().filter(|packet| packet.at_ns <= run.recording.manifest.t1.as_ns());
        let left = || measured().filter(|packet| packet.leaves());
        assert_eq!(left().count() as u128, book("sojourn_count"), "port {port}");
        assert_eq!(left().map(|packet| packet.waited_ns()).sum::<u128>(), book("sojourn_sum_ns"));
        for reason in Reason::ALL.map(Reason::name) {
            let words = format!("dropped {reason}");
            let dropped = measured().filter(|packet| packet.says(&words)).count() as u128;
            assert_eq!(dropped, book(&format!("dropped_{reason}_packets")), "port {port}: {reason}");
            let words = format!("marked {reason}");
            let marked = measured().filter(|packet| packet.says(&words)).count() as u128;
            let waiting = book("final_in_system_packets");
            assert!(
                (marked..=marked + waiting).contains(&book(&format!("marked_{reason}_packets"))),
                "{reason}"
            );
        }
    }
    assert_eq!(packets.iter().filter(|packet| packet.says("dropped injected")).count(), 3);
    assert!(packets.iter().any(|packet| packet.says("marked early")));
    packets.iter().for_each(|packet| is_right(&packet.head, ip));
    given_up(run, packets.len() as u64);
    Ok(())
}

/// Checks that, if the disk has too little space for both the tables and the captured packets, all
/// these packets count as missed, and the recording states why.
fn given_up(mut run: LiveRun, packets: u64) {
    let (operation, path, source) = ("write", "run.parquet".into(), io::ErrorKind::StorageFull.into());
    run.give_up_capture(&RecordingError::Io { operation, path, source });
    let live = run.recording.manifest.live.expect("a live run has a report");
    let ports = live.capture.expect("its ports");
    assert!(ports.values().all(|port| port.packets == 0), "{ports:?}");
    assert_eq!(ports.values().map(|port| port.missed).sum::<u64>(), packets);
    let stopped = live.capture_failure.expect("it gives the reason");
    assert_eq!(stopped.reason, "the disk is full, and the tables needed the space that the capture took");
    assert_eq!(stopped.at_ns, run.recording.manifest.t1.as_ns());
    assert_eq!(run.captured, None);
}

/// Checks that a packet from a kernel is complete and has correct checksums, even after it has been marked.
fn is_right(octets: &[u8], ip: u32) {
    let headers = PacketHeaders::from_ip_slice(octets).expect("an IP packet");
    let (net, transport) = (headers.net.expect("an IP header"), headers.transport.expect("TCP or UDP"));
    let payload = headers.payload.slice();
    let right = match (&net, &transport) {
        (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(tcp)) => tcp.calc_checksum_ipv4(ip, payload),
        (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(udp)) => udp.calc_checksum_ipv4(ip, payload),
        (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(tcp)) => tcp.calc_checksum_ipv6(ip, payload),
        (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(udp)) => udp.calc_checksum_ipv6(ip, payload),
        other => panic!("{other:?}"),
    };
    let found = match &transport {
        TransportHeader::Tcp(tcp) => tcp.checksum,
        TransportHeader::Udp(udp) => udp.checksum,
        other => panic!("{other:?}"),
    };
    assert_eq!(right.ok().map(plus_zero), Some(plus_zero(found)), "{net:?}");
    match (net, ip) {
        (NetHeaders::Ipv4(header, _), 4) => assert_eq!(header.header_checksum, header.calc_header_checksum()),
        (NetHeaders::Ipv6(..), 6) => {}
        (other, _) => panic!("{other:?}"),
    }
}

/// Returns a checksum with 0xffff replaced by zero. One's complement has two zeros, and a receiver (RFC 1071)
/// accepts either. A kernel that computes the checksum only when the packet leaves writes 0xffff instead of
/// zero for every protocol, although only UDP requires this (RFC 768); this affects one TCP segment in
/// 65,536.
fn plus_zero(checksum: u16) -> u16 {
    if checksum == 0xffff { 0 } else { checksum }
}

fn interrupted() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\ncount = 2\nrtt = \"20ms\"\n";
    let head = "duration = \"60s\"\nwarmup = \"200ms\"";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"50p\" }", traffic), |s| s > 0.8)?;
    assert_eq!(run.recording.manifest.stopped_by, StoppedBy::Interrupted);
    assert!(run.faithfulness.interrupted && run.faithfulness.to_string().ends_with("(interrupted)"));
    let end = run.recording.manifest.t1.as_secs_f64();
    assert!((0.8..20.0).contains(&end), "{end}");
    assert!(sum(&run, "flows", "delivered_bytes") > 100_000);
    Ok(())
}

fn completed() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"files\"\nkind = \"bulk\"\ncount = 40\nbytes = \"20kB\"\n\
                   start = { uniform = [\"0s\", \"3s\"] }\nrtt = \"20ms\"\n";
    let head = "duration = \"30s\"\n[stop]\ncompleted = { class = \"files\", count = 20 }";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"50p\" }", traffic), |_| false)?;
    assert_eq!(run.recording.manifest.stopped_by, StoppedBy::Completed);
    let flows = run.recording.tables.iter().find(|t| t.name == "flows").expect("there are flows");
    let Some(ColumnData::NullableU64(ends)) = flows.column("end_ns") else { panic!() };
    // The generator learns of the twentieth completion immediately, and opens no more flows.
    assert_eq!(ends.iter().flatten().count(), 20, "{ends:?}");
    Ok(())
}

fn requests() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"web\"\nkind = \"trace\"\nrtt = \"40ms\"\n\
                   file = \"../../tests/bad_scenarios/traces/one_request.csv\"\n";
    let mut plan = plan("duration = \"3s\"", "{ kind = \"droptail\", limit = \"50p\" }", traffic);
    plan.record.requests.each = true;
    let run = run(&plan, |_| false)?;
    let counts = ["completed", "failed", "censored"].map(|column| sum(&run, "request_summary", column));
    assert_eq!(counts, [1, 0, 0]);
    assert_eq!(sum(&run, "request_sample", "opens_connection"), 1);
    assert_eq!(sum(&run, "request_sample", "response_bytes"), 10_000);
    // A request takes one round trip for the set-up, one for the exchange, and the time to send
    // 10 kB at 10 Mbit/s; no machine is faster.
    let took = sum(&run, "request_sample", "response_time_ns");
    assert!((88_000_000..3_000_000_000).contains(&took), "{took}");
    assert_eq!(run.recording.streamed.iter().map(|table| table.rows).collect::<Vec<_>>(), [1]);
    Ok(())
}

fn populations() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"users\"\nkind = \"requests\"\nusers = 5\nthink = \"50ms\"\nrequest = \"400B\"\n\
                   response = \"5kB\"\nexchanges = 2\nrtt = { spread = [\"20ms\", \"40ms\"] }\n\
                   [[traffic]]\nname = \"others\"\nkind = \"requests\"\nrate = \"30/s\"\nrequest = \"400B\"\nresponse = \"5kB\"\n\
                   rtt = { uniform = [\"20ms\", \"40ms\"] }\n";
    let mut plan =
        plan("duration = \"5s\"\nwarmup = \"1s\"", "{ kind = \"droptail\", limit = \"200p\" }", traffic);
    plan.record.requests.each = true;
    let run = run(&plan, |_| false)?;
    let [completed, failed] = ["completed", "failed"].map(|column| sum(&run, "request_summary", column));
    // A user's cycle has two exchanges and takes less than 300 ms; even a very busy machine completes a third
    // of the exchanges that this allows.
    assert!((120 + 60..2000).contains(&completed) && failed == 0, "{completed} completed, {failed} failed");
    // Each user is a flow, and all arrivals together are one more.
    let flows = run.recording.table("flows").expect("there are flows");
    assert_eq!(flows.rows(), 5 + 1);
    // The applications receive no more than the router has delivered, and no less than the
    // completed responses.
    let [received, delivered] =
        ["received_bytes", "delivered_bytes"].map(|column| sum(&run, "flows", column));
    assert!(received >= delivered && delivered > 5_000 * completed, "{received} and {delivered} bytes");
    let live = run.recording.manifest.live.as_ref().expect("a live run has a report");
    let trouble: Vec<_> = live.generator.trouble.iter().filter(|(_, count)| **count > 0).collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    assert_eq!(live.frames.of_no_flow, 0, "every connection has been announced");
    assert_eq!(sum(&run, "flow_series", "flow"), 0, "connections of users have no samples");
    Ok(())
}

fn pages() -> Result<(), LiveError> {
    let of = |name: &str, connections: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"pages\"\nusers = 4\nthink = \"100ms\"\nweight = \"60kB\"\nobjects = 20\n\
             origins = 3\nserver_delay = \"5ms\"\nconnections = \"{connections}\"\nrtt = {{ spread = [\"20ms\", \"40ms\"] }}\n"
        )
    };
    let traffic = of("closed", "page") + &of("kept", "kept");
    let head = "duration = \"6s\"\nwarmup = \"1s\"";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"400p\" }", &traffic), |_| false)?;
    let [completed, failed] = ["completed", "failed"].map(|column| sum(&run, "page_summary", column));
    // A page of 60 kB takes 48 ms at 10 Mbit/s, so all users together fetch at most 20 pages per
    // second. Even a busy machine completes a few.
    assert!((20..130).contains(&completed) && failed == 0, "{completed} completed, {failed} failed");
    assert_eq!(sum(&run, "page_sample", "objects"), 20 * completed);
    assert_eq!(sum(&run, "page_sample", "page_bytes"), 60_000 * completed);
    let objects = sum(&run, "request_summary", "completed");
    // Each of 8 users may be in the middle of a page at the end of the warm-up, and at the end of the run.
    assert!(
        (20 * completed.saturating_sub(8)..20 * (completed + 8)).contains(&objects),
        "{objects} of {completed} pages"
    );
    // A page needs three waves, each of which takes one round trip and 5 ms; no machine is faster.
    let took = sum(&run, "page_sample", "page_time_ns");
    assert!(took > completed * 75_000_000, "{took}");
    assert_eq!(run.recording.table("flows").expect("there are flows").rows(), 8, "users are flows");
    let live = run.recording.manifest.live.as_ref().expect("a live run has a report");
    let trouble: Vec<_> = live.generator.trouble.iter().filter(|(_, count)| **count > 0).collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    assert_eq!(live.frames.of_no_flow, 0, "every connection has been announced");
    Ok(())
}

fn clouds() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"cloud\"\nkind = \"packmime\"\nrate = \"20/s\"\n\
                   [[traffic]]\nname = \"users\"\nkind = \"browsers\"\nusers = 10\nthink = \"300ms\"\nresponse = \"3kB\"\nrtt = \"20ms\"\n";
    let head = "duration = \"6s\"\nwarmup = \"1s\"";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"400p\" }", traffic), |_| false)?;
    let pages = sum(&run, "page_summary", "completed");
    let requests = sum(&run, "request_summary", "completed");
    // A page takes at least two round trips, and 300 ms to read, so 10 users fetch at most 150 pages in five
    // seconds.
    assert!((20..150).contains(&pages), "{pages} pages");
    // Each page has requests for its document and its objects; the cloud makes further requests.
    assert!(requests > pages + 50, "{requests} requests, {pages} pages");
    let live = run.recording.manifest.live.as_ref().expect("a live run has a report");
    let trouble: Vec<_> = live.generator.trouble.iter().filter(|(_, count)| **count > 0).collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    assert_eq!(live.frames.of_no_flow, 0, "every connection has been announced");
    Ok(())
}

fn interrupted_early() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\nrtt = \"20ms\"\n";
    let head = "duration = \"60s\"\nwarmup = \"30s\"";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"50p\" }", traffic), |s| s > 0.5)?;
    let manifest = &run.recording.manifest;
    assert_eq!((manifest.stopped_by, manifest.t0), (StoppedBy::Interrupted, manifest.t1));
    let reasons: Vec<_> = run.faithfulness.reasons().collect();
    assert!(reasons.contains(&"interrupted during the warm-up, so nothing was measured"), "{reasons:?}");
    Ok(())
}

fn condition() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"20Mbit\"\nsize = \"1000B\"\n";
    let head = "duration = \"30s\"\n[stop]\ncondition = { queue = \"bottleneck\", drops = 300 }";
    let run = run(&plan(head, "{ kind = \"droptail\", limit = \"20p\" }", traffic), |_| false)?;
    assert_eq!(run.recording.manifest.stopped_by, StoppedBy::Condition);
    assert_eq!(
        sum(&run, "summary", "dropped_overflow_packets"),
        2 * 300,
        "for all classes, and for the only one"
    );
    // The source sends at twice the rate of the link, so half of its packets are dropped once the queue is
    // full.
    let end = run.recording.manifest.t1.as_secs_f64();
    assert!((0.2..10.0).contains(&end), "{end}");
    // A count that the kernel does not report is zero for datagrams, not unknown.
    assert_eq!(sum(&run, "flows", "fast_retransmits"), 0);
    Ok(())
}

/// A source that sends at twice the highest rate keeps the link busy.
fn changing() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"20Mbit\"\nsize = \"1000B\"\n";
    let head = "duration = \"3s\"\nwarmup = \"500ms\"";
    let rate = "[[\"0s\", \"10Mbit\"], [\"1s\", \"0bit\"], [\"1.3s\", \"2Mbit\"]]";
    let run = run(&plan_at(rate, head, "{ kind = \"droptail\", limit = \"20p\" }", traffic), |_| false)?;
    // Half a second at 10 Mbit/s and 1.7 s at 2 Mbit/s.
    assert_eq!(sum(&run, "links", "capacity_bytes"), 625_000 + 425_000);
    assert_eq!((sum(&run, "links", "standstill_ns"), sum(&run, "links", "changes")), (300_000_000, 2));
    let used = sum(&run, "links", "used_bytes");
    // At most a packet is cut off at either end. On a busy machine, the source is silent now and then.
    assert!((500_000..=1_051_000).contains(&used), "{used} bytes");
    assert_eq!(sum(&run, "capacity", "capacity_bytes"), 1_250_000 + 425_000, "from the beginning on");
    assert_eq!(run.recording.manifest.links[0].rate_bps, 3_360_000);
    let check = run.faithfulness.checks.iter().find(|check| check.name == "lateness").expect("it is checked");
    assert_eq!((check.unit, check.limit), ("%", 1.0));
    Ok(())
}

fn adjusted() -> Result<(), LiveError> {
    let traffic = "[[traffic]]\nname = \"ping\"\nkind = \"cbr\"\nrate = \"40kbit\"\nsize = \"100B\"\nrtt = \"20ms\"\n\
                   [[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"6Mbit\"\nsize = \"1000B\"\nrtt = \"20ms\"\n";
    let queue = "{ kind = \"tbf\", rate = \"4Mbit\", burst = \"3kB\", limit = \"50p\" }\n\
                 autorate = { reflector = \"ping\", min = \"1Mbit\", max = \"6Mbit\" }";
    let run = run(&plan("duration = \"4s\"\nwarmup = \"1s\"", queue, traffic), |_| false)?;
    let table = run.recording.table("autorate").expect("there is a controller");
    // 50 packets a second, of which the shaper's full queue drops some. The queue is in the shaper itself, so delays stay long.
    assert!((10..=200).contains(&table.rows()), "{}", table.rows());
    let Some(ColumnData::U64(rates)) = table.column("shaper_bps") else { panic!("rates are numbers") };
    assert!(rates[0] >= 4_000_000 && rates.last() < Some(&3_000_000), "{rates:?}");
    Ok(())
}

fn refused() -> Result<(), LiveError> {
    let refusal = |head: &str, traffic: &str| {
        let plan = plan(head, "{ kind = \"droptail\", limit = \"20p\" }", traffic);
        live(&plan, 1, &Options::default(), &mut |_| (), &AtomicBool::new(false)).unwrap_err()
    };
    let head = "duration = \"1s\"";
    let tcp = "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\ntcp = { congestion = \"nonesuch\" }\n";
    let error = refusal(head, tcp);
    let text = error.to_string();
    if !text.contains("nonesuch") {
        // There are no namespaces on this machine, and the run is refused for that reason first.
        return Err(error);
    }
    assert!(text.contains("modprobe tcp_nonesuch") && text.contains("reno"), "{text}");
    assert_eq!(error.kind(), "machine");
    let flood =
        "[[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\ncount = 500\nrate = \"100Mbit\"\nsize = \"100B\"\n";
    let text = refusal(head, flood).to_string();
    assert!(text.contains("62500000 packets per second") && text.contains("--force"), "{text}");
    Ok(())
}
