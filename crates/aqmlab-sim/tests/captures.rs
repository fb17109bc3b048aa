//! Packets captured at ports, in a pcapng file: they agree with the books and with the packets
//! recorded one by one, and an independent program can read them.
mod support;

use std::collections::BTreeMap;

use aqmlab_qdisc::Reason;
use aqmlab_recording::{Recording, Table};
use aqmlab_scenario::Plan;
use aqmlab_sim::RunError;
use etherparse::{IpNumber, Ipv4HeaderSlice, TcpHeaderSlice, TcpOptionElement, UdpHeaderSlice};
use support::pcap::{Captured, capture, read};
use support::{integers, names, plan, record, summary};

const MUCH: usize = 1 << 30;

/// Connections of three classes and a packet source send through a short queue, with losses and
/// marks of all kinds. All of these flows end before the run does.
fn scenario(record: &str) -> String {
    format!(
        r#"
        duration = "40s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {{ kind = "red", limit = "20p", min_th = "3p", max_th = "9p", max_p = 0.1, w_q = 0.05, gentle = false, ecn = true }}
        reverse_rate = "100kbit"
        reverse_queue = {{ kind = "droptail", limit = "3p" }}
        faults = {{ drop = [20], mark = [30, 31, 40, 41, 42, 43, 44, 45] }}
        [[traffic]]
        name = "ecn"
        kind = "bulk"
        count = 4
        bytes = "1MiB"
        rtt = {{ uniform = ["40ms", "120ms"] }}
        tcp = {{ profile = "rfc", ecn = true }}
        [[traffic]]
        name = "sack"
        kind = "bulk"
        count = 4
        bytes = "1MiB"
        rtt = "60ms"
        tcp = {{ profile = "rfc", recovery = "sack" }}
        [[traffic]]
        name = "stamps"
        kind = "bulk"
        count = 2
        bytes = "500kB"
        rtt = "60ms"
        tcp = {{ profile = "freebsd4" }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "100kbit"
        stop = "20s"
        [record]
        {record}
        "#
    )
}

const PACKETS: &str = r#"packets = { links = ["bottleneck", "reverse"] }"#;

fn recorded(plan: &Plan, snap: u32) -> (Recording, Vec<Captured>) {
    let (recording, bytes) = capture(plan, 3, &[0, 1], snap, MUCH);
    let (interfaces, packets) = read(&bytes);
    assert_eq!(interfaces, ["bottleneck", "reverse"]);
    (recording.unwrap_or_else(|e| panic!("{e}")), packets)
}

fn table<'r>(recording: &'r Recording, name: &str) -> &'r Table {
    recording.table(name).unwrap_or_else(|| panic!("there is no table {name}"))
}

fn ip(packet: &Captured) -> Ipv4HeaderSlice<'_> {
    Ipv4HeaderSlice::from_slice(&packet.head).expect("an IPv4 header")
}

fn tcp(packet: &Captured) -> Option<TcpHeaderSlice<'_>> {
    let ip = ip(packet);
    let rest = &packet.head[ip.slice().len()..];
    (ip.protocol() == IpNumber::TCP).then(|| TcpHeaderSlice::from_slice(rest).expect("a TCP header"))
}

#[test]
fn nothing_else_changes_when_ports_are_captured() {
    let (with, _) = recorded(&plan(&scenario(PACKETS)), 128);
    let without = record(&scenario(PACKETS), 3);
    assert_eq!(with.tables.len(), without.tables.len());
    for table in &without.tables {
        let captured = with.table(table.name).expect("the same tables");
        assert_eq!(captured.digest(), table.digest(), "{}", table.name);
    }
}

#[test]
fn a_capture_is_a_function_of_plan_and_seed() {
    let plan = plan(&scenario(""));
    let [one, other] = [0, 1].map(|_| capture(&plan, 3, &[0, 1], 128, MUCH).1);
    assert!(one == other && one.len() > 1 << 20);
}

#[test]
fn the_packets_of_a_port_are_its_books() {
    let (recording, packets) = recorded(&plan(&scenario("")), 128);
    for (interface, queue) in ["bottleneck", "reverse"].into_iter().enumerate() {
        let book = |column: &str| summary(&recording, queue, "*", column);
        assert_eq!(book("final_in_system_packets"), 0, "all is over");
        let here = || packets.iter().filter(|p| p.interface == interface as u32);
        let sent = || here().filter(|p| p.direction == 2);
        assert_eq!(sent().count() as u128, book("departures_packets"), "{queue}");
        assert_eq!(sent().map(|p| u128::from(p.len)).sum::<u128>(), book("departures_bytes"), "{queue}");
        let waited: u128 = sent().map(|p| u128::from(p.waited_ns())).sum();
        assert_eq!(waited, book("sojourn_sum_ns"), "{queue}");
        for reason in Reason::ALL.map(Reason::name) {
            for what in ["dropped", "marked"] {
                let told = here().filter(|p| p.says(&format!("{what} {reason}"))).count() as u128;
                assert_eq!(told, book(&format!("{what}_{reason}_packets")), "{queue} {what} {reason}");
            }
        }
        let dropped = here().filter(|p| p.direction == 1).count() as u128;
        assert_eq!(dropped, book("arrivals_packets") - book("departures_packets"), "{queue}");
    }
    let said = |what: &str| packets.iter().filter(|p| p.says(what)).count();
    for (what, least) in
        [("marked early", 20), ("dropped early", 20), ("dropped forced", 20), ("dropped overflow", 10)]
    {
        assert!(said(what) >= least, "{} {what}", said(what));
    }
    assert!(said("dropped injected") == 1 && said("marked injected") >= 1);
}

/// The rows that `[record]` writes for the packets agree with the packets' headers in the capture,
/// row by row.
#[test]
fn headers_tell_what_the_simulation_knows() {
    let (recording, packets) = recorded(&plan(&scenario(PACKETS)), 128);
    let rows = table(&recording, "packets");
    let (events, places, reasons) = (names(rows, "event"), names(rows, "place"), names(rows, "reason"));
    let [times, wire, payload, seq, ack, flow] =
        ["t_ns", "wire_bytes", "payload_bytes", "seq", "ack", "flow"].map(|column| integers(rows, column));
    let (ecn, flags) = (names(rows, "ecn"), names(rows, "flags"));
    let (toward, number) = (names(rows, "toward"), integers(rows, "number"));
    let leaving: Vec<_> =
        (0..rows.rows()).filter(|&i| events[i] == "dequeue" || events[i] == "drop").collect();
    assert_eq!(leaving.len(), packets.len());
    for (&row, packet) in leaving.iter().zip(&packets) {
        assert_eq!(["bottleneck", "reverse"][packet.interface as usize], places[row]);
        assert_eq!((u128::from(packet.at_ns), u128::from(packet.len)), (times[row], wire[row]), "row {row}");
        let to_sender = u128::from(toward[row] == "sender");
        assert_eq!(u128::from(packet.id), flow[row] << 32 | to_sender << 31 | number[row], "row {row}");
        assert_eq!(packet.says(&format!("dropped {}", reasons[row])), events[row] == "drop", "row {row}");
        let ip = ip(packet);
        assert_eq!(u128::from(ip.total_len()), wire[row]);
        assert_eq!(
            ["not-ECT", "ECT(1)", "ECT(0)", "CE"][usize::from(ip.ecn().value())],
            ecn[row],
            "row {row}"
        );
        assert!(ip.dont_fragment() && ip.ttl() == 64);
        // The classes have four, four, two and one flows; 198.18 is the network of the hosts that
        // open connections.
        let (class, index) = [(0, 0), (1, 4), (2, 8), (3, 10)]
            .into_iter()
            .rev()
            .find(|&(_, first)| flow[row] >= first)
            .map(|(class, first)| (class, (flow[row] - first) as u16))
            .expect("a flow of some class");
        let (client, server) = ([198, 18, class, 1], [198, 19, class, 1]);
        let forth = packet.interface == 0;
        let ends = if forth { (client, server) } else { (server, client) };
        assert_eq!((ip.source(), ip.destination()), ends);
        let ports = |from: u16, to: u16| if forth { (from, to) } else { (to, from) };
        if let Some(tcp) = tcp(packet) {
            assert_eq!(ports(tcp.source_port(), tcp.destination_port()), (1024 + index, 5001));
            let len = ip.payload_len().unwrap() as usize - tcp.slice().len();
            assert_eq!(len as u128, payload[row], "row {row}");
            assert_eq!(u128::from(tcp.sequence_number()), seq[row], "row {row}");
            if tcp.ack() {
                assert_eq!(u128::from(tcp.acknowledgment_number()), ack[row], "row {row}");
            }
            let letters = [
                (tcp.syn(), 'S'),
                (tcp.fin(), 'F'),
                (tcp.rst(), 'R'),
                (tcp.ack(), 'A'),
                (tcp.ece(), 'E'),
                (tcp.cwr(), 'W'),
            ];
            let letters: String =
                letters.into_iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
            assert_eq!(letters, flags[row], "row {row}");
        } else {
            let udp = UdpHeaderSlice::from_slice(&packet.head[20..]).expect("a UDP header");
            assert_eq!((udp.source_port(), udp.destination_port()), (1024 + index, 5001));
            assert_eq!(u128::from(udp.length()) + 20, wire[row]);
        }
    }
}

#[test]
fn checksums_and_lengths_are_right() {
    let (_, packets) = recorded(&plan(&scenario("")), 65_535);
    let mut kinds = BTreeMap::<_, usize>::new();
    for packet in &packets {
        assert_eq!(packet.head.len(), packet.len as usize, "payload complete");
        let ip = ip(packet).to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let rest = &packet.head[ip.header_len()..];
        match tcp(packet) {
            Some(tcp) => {
                let payload = &rest[tcp.slice().len()..];
                let checksum =
                    tcp.calc_checksum_ipv4(&Ipv4HeaderSlice::from_slice(&packet.head).unwrap(), payload);
                assert_eq!(Ok(tcp.checksum()), checksum);
                *kinds.entry(tcp.slice().len()).or_default() += 1;
            }
            None => {
                let udp = UdpHeaderSlice::from_slice(rest).expect("a UDP header");
                let checksum = udp.to_header().calc_checksum_ipv4(&ip, &rest[8..]);
                assert_eq!(Ok(udp.checksum()), checksum);
                *kinds.entry(8).or_default() += 1;
            }
        }
    }
    // All kinds of packets occur: UDP, and TCP without options, with room for timestamps, and
    // with one to three SACK blocks.
    assert!([8, 20, 32, 40, 48].iter().all(|len| kinds.contains_key(len)), "{kinds:?}");
    let (_, short) = recorded(&plan(&scenario("")), 40);
    for (short, whole) in short.iter().zip(&packets) {
        assert_eq!(short.head, whole.head[..whole.head.len().min(40)]);
        assert_eq!((short.len, &short.comment), (whole.len, &whole.comment));
    }
}

/// The SACK blocks in ACKs cover only data beyond the first hole, and only data that has been sent.
#[test]
fn sack_blocks_are_those_of_the_receiver() {
    let (_, packets) = recorded(&plan(&scenario("")), 128);
    // The highest byte that each flow has sent, by the client's port.
    let mut sent = BTreeMap::<_, u32>::new();
    let mut blocks_seen = [0; 5];
    for packet in &packets {
        let (ip, Some(tcp)) = (ip(packet), tcp(packet)) else { continue };
        if packet.interface == 0 {
            let len = (ip.payload_len().unwrap() as usize - tcp.slice().len()) as u32;
            let to = tcp.sequence_number() + len + u32::from(tcp.fin());
            let far = sent.entry((ip.source(), tcp.source_port())).or_default();
            *far = to.max(*far);
            continue;
        }
        let mut blocks = Vec::new();
        for option in tcp.options_iterator() {
            match option.expect("options are well formed") {
                TcpOptionElement::Noop => {}
                TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                    blocks.push(first);
                    blocks.extend(others.into_iter().flatten());
                }
                other => panic!("{other:?}"),
            }
        }
        blocks_seen[blocks.len()] += 1;
        assert!(blocks.is_empty() || ip.source()[2] == 1, "only one class uses SACK");
        assert!(packet.len == 40 || packet.len == 52 || !blocks.is_empty());
        for (left, right) in blocks {
            let far = sent[&(ip.destination(), tcp.destination_port())];
            assert!(
                tcp.acknowledgment_number() < left && left < right && right <= far,
                "{left} {right} {far}"
            );
        }
    }
    assert!(blocks_seen[1] > 50 && blocks_seen[2] > 10 && blocks_seen[3] > 0, "{blocks_seen:?}");
}

#[test]
fn a_full_disk_ends_the_run() {
    let (recording, bytes) = capture(&plan(&scenario("")), 3, &[0], 128, 1 << 19);
    let error = recording.expect_err("no room");
    assert!(matches!(&error, RunError::File(error) if error.is_host_limit()));
    assert_eq!(error.to_string(), "cannot write `packets.pcapng`: the disk is full");
    assert!(bytes.len() <= 1 << 19);
}

/// Whatever header length a profile sets, the capture contains valid packets. If real headers
/// cannot have that length, the packet's comment states the length that the profile gives the
/// packet.
#[test]
fn headers_of_any_length_give_packets() {
    for (header, expected) in
        [(0, 40), (39, 40), (40, 40), (41, 40), (52, 52), (80, 80), (101, 100), (120, 120), (500, 120)]
    {
        let text = format!(
            r#"
            duration = "2s"
            warmup = "0s"
            [topology]
            kind = "dumbbell"
            rate = "4Mbit"
            delay = "10ms"
            queue = {{ kind = "droptail", limit = "20p" }}
            [[traffic]]
            name = "x"
            kind = "bulk"
            rtt = "40ms"
            tcp = {{ profile = "rfc", mss = "1000B", header = "{header}B" }}
            "#
        );
        let (_, bytes) = capture(&plan(&text), 1, &[0], 65_535, MUCH);
        let (_, packets) = read(&bytes);
        let full = packets.iter().filter(|packet| packet.len == 1000 + expected).count();
        assert!(full > 100, "header {header}: {full} of {}", packets.len());
        for packet in &packets {
            let (ip, tcp) = (ip(packet), tcp(packet).expect("a segment"));
            assert_eq!(u32::from(ip.total_len()), packet.len);
            assert_eq!(ip.slice().len() + tcp.slice().len(), expected as usize, "header {header}");
            let payload = &packet.head[expected as usize..];
            assert_eq!(Ok(tcp.checksum()), tcp.calc_checksum_ipv4(&ip, payload));
            assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
            let told = packet.says(&format!("{} bytes at the network layer", payload.len() + header));
            assert_eq!(told, header != expected as usize, "header {header}: {}", packet.comment);
        }
    }
}

/// Addresses and ports distinguish all flows, even if there are more flows than a client has ports,
/// and more classes than an octet can count.
#[test]
fn every_flow_has_addresses_and_ports_of_its_own() {
    let traffic = |name: &str, count: u32| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"cbr\"\ncount = {count}\nrate = \"8kbit\"\nsize = \"100B\"\n\
             start = {{ uniform = [\"0s\", \"900ms\"] }}\naccess_rate = \"none\"\n"
        )
    };
    let small: String = (0..299).map(|n| traffic(&format!("c{n}"), 1)).collect();
    let text = format!(
        "duration = \"1s\"\nwarmup = \"0s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Gbit\"\ndelay = \"1ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"100000p\" }}\n{small}{}",
        traffic("many", 66_000)
    );
    let (_, bytes) = capture(&plan(&text), 1, &[0], 28, MUCH);
    let (_, packets) = read(&bytes);
    let mut seen = BTreeMap::<_, usize>::new();
    for packet in &packets {
        let (ip, udp) = (ip(packet), UdpHeaderSlice::from_slice(&packet.head[20..]).expect("a UDP header"));
        let (client, server) = (ip.source(), ip.destination());
        assert_eq!((client[..2].to_vec(), server[..2].to_vec()), (vec![198, 18], vec![198, 19]));
        assert_eq!(client[2..], server[2..]);
        *seen.entry((client, udp.source_port(), udp.destination_port())).or_default() += 1;
    }
    assert_eq!(seen.len(), 299 + 66_000);
    assert!(seen.contains_key(&([198, 18, 42, 2], 1024, 5001)), "class 298 = 256 + 42");
    assert!(seen.contains_key(&([198, 18, 43, 2], 1024 + 1487, 5002)), "flow 65,999 of class 299");
}
