//! Arrivals, drops and marks by kind of packet. The known packets of one connection are checked one
//! by one; in random networks, sums are compared with the books by class and with individually
//! recorded packets.
mod support;

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_recording::{ColumnData, Recording, Table};
use proptest::prelude::*;
use support::{integers, names, record};

type Counts = BTreeMap<(String, String), u128>;

/// A column of the table `kinds` at one link, by class and kind.
fn by_kind(recording: &Recording, link: &str, column: &str) -> Counts {
    let kinds = recording.table("kinds").expect("every recording has it");
    let keys = names(kinds, "class").into_iter().zip(names(kinds, "kind"));
    let rows = names(kinds, "queue").into_iter().zip(keys.zip(integers(kinds, column)));
    rows.filter(|(queue, (_, count))| queue == link && *count > 0).map(|(_, row)| row).collect()
}

fn of_one(counts: &[(&str, u128)]) -> Counts {
    counts.iter().map(|(kind, count)| (("one".to_owned(), (*kind).to_owned()), *count)).collect()
}

/// Runs a client that sends 2920 bytes, which are two segments, and then closes the connection. The
/// packets with the given numbers are lost at the two links.
fn connection(lost: &[u64], lost_on_the_way_back: &[u64]) -> Recording {
    let faults = |key: &str, lost: &[u64]| match lost {
        [] => String::new(),
        _ => format!("{key} = {{ drop = {lost:?} }}"),
    };
    let (there, back) = (faults("faults", lost), faults("reverse_faults", lost_on_the_way_back));
    record(
        &format!(
            r#"
            duration = "60s"
            warmup = "0s"
            [topology]
            kind = "dumbbell"
            rate = "10Mbit"
            delay = "10ms"
            queue = {{ kind = "droptail", limit = "100p" }}
            {there}
            {back}
            [[traffic]]
            name = "one"
            kind = "bulk"
            count = 1
            bytes = "2920B"
            rtt = "100ms"
            tcp = {{ profile = "rfc", mss = "1460B", initial_window = 2 }}
            "#
        ),
        1,
    )
}

/// What a test expects at a link: the packets that arrive, by kind, and those that are lost.
type Expected<'a> = (&'a [(&'a str, u128)], &'a [(&'a str, u128)]);

fn assert_link(recording: &Recording, link: &str, (arrive, lost): Expected<'_>) {
    let found = by_kind(recording, link, "arrivals_packets");
    assert_eq!(found, of_one(arrive), "{link}: arrivals");
    assert_eq!(by_kind(recording, link, "dropped_injected_packets"), of_one(lost), "{link}: drops");
    for (column, expected) in [("arrivals_bytes", arrive), ("dropped_injected_bytes", lost)] {
        // Headers have 40 bytes, and each payload has 1460 bytes (RFC 9293, section 3.1; no
        // options).
        let bytes = expected.iter().map(|(kind, n)| (*kind, n * if *kind == "data" { 1500 } else { 40 }));
        assert_eq!(by_kind(recording, link, column), of_one(&bytes.collect::<Vec<_>>()), "{link}: {column}");
    }
    assert!(by_kind(recording, link, "marked_injected_packets").is_empty());
}

/// According to RFC 9293, the packets of the connection are: SYN, SYN-ACK and ACK; two segments,
/// the second with FIN; one ACK for both (RFC 5681, section 4.2), the server's FIN, and its ACK.
#[test]
fn a_short_connection_has_so_many_packets_of_each_kind() {
    let r = connection(&[], &[]);
    assert_link(&r, "bottleneck", (&[("syn", 1), ("ack", 2), ("data", 2)], &[]));
    assert_link(&r, "reverse", (&[("syn", 1), ("ack", 1), ("fin", 1)], &[]));
}

#[test]
fn a_lost_packet_is_a_drop_of_its_kind() {
    // The SYN is sent again, and the window is then one segment (RFC 5681, section 3.1), so each
    // segment has its own ACK.
    let r = connection(&[1], &[]);
    assert_link(&r, "bottleneck", (&[("syn", 2), ("ack", 2), ("data", 2)], &[("syn", 1)]));
    assert_link(&r, "reverse", (&[("syn", 1), ("ack", 2), ("fin", 1)], &[]));
    // The SYN-ACK is a SYN too. The client cannot know that the SYN-ACK was lost, so it sends its SYN again.
    let r = connection(&[], &[1]);
    assert_link(&r, "bottleneck", (&[("syn", 2), ("ack", 2), ("data", 2)], &[]));
    assert_link(&r, "reverse", (&[("syn", 2), ("ack", 2), ("fin", 1)], &[("syn", 1)]));
    // The loss of the handshake's ACK has no effect, because data carries the same acknowledgment.
    let r = connection(&[2], &[]);
    assert_link(&r, "bottleneck", (&[("syn", 1), ("ack", 2), ("data", 2)], &[("ack", 1)]));
    assert_link(&r, "reverse", (&[("syn", 1), ("ack", 1), ("fin", 1)], &[]));
    // A segment with payload is data, with or without FIN.
    let r = connection(&[4], &[]);
    assert_link(&r, "bottleneck", (&[("syn", 1), ("ack", 2), ("data", 3)], &[("data", 1)]));
    // The server's FIN is lost and sent again.
    let r = connection(&[], &[3]);
    assert_link(&r, "reverse", (&[("syn", 1), ("ack", 1), ("fin", 2)], &[("fin", 1)]));
}

/// Returns the kind of a recorded packet. RST, SYN, payload and FIN are examined in this order; the
/// first one that is present determines the kind.
fn kind_of(flags: &str, payload: Option<u64>) -> &'static str {
    let has = |letter| flags.contains(letter);
    match payload {
        None => "other",
        Some(_) if has('R') => "other",
        Some(_) if has('S') => "syn",
        Some(1..) => "data",
        Some(0) if has('F') => "fin",
        Some(0) => "ack",
    }
}

const REASONS: [&str; 4] = ["early", "forced", "overflow", "injected"];

/// Numbers of packets and bytes, by queue, class, kind and column of `kinds`.
type Books = BTreeMap<[String; 4], (u64, u64)>;

/// The table `kinds` as it should be according to the packets recorded one by one.
fn from_packets(recording: &Recording) -> Books {
    let packets = recording.table("packets").expect("they are recorded");
    let flows = recording.table("flows").expect("every recording has flows");
    let classes: BTreeMap<u128, String> =
        integers(flows, "flow").into_iter().zip(names(flows, "class")).collect();
    let [events, places, reasons, flags, ecn] =
        ["event", "place", "reason", "flags", "ecn"].map(|column| names(packets, column));
    let [times, bytes, owners] = ["t_ns", "wire_bytes", "flow"].map(|column| integers(packets, column));
    let ColumnData::NullableU64(payloads) = packets.column("payload_bytes").expect("a column") else {
        panic!("payloads may be null")
    };
    let t0 = u128::from(recording.manifest.t0.as_ns());
    let mut books = Books::new();
    for i in (0..packets.rows()).filter(|&i| times[i] > t0) {
        let columns: Vec<String> = match events[i].as_str() {
            "enqueue" if ecn[i] != "not-ECT" => vec!["arrivals".into(), "ect_arrivals".into()],
            "enqueue" => vec!["arrivals".into()],
            "drop" => vec![format!("dropped_{}", reasons[i])],
            "mark" => vec![format!("marked_{}", reasons[i])],
            _ => vec![],
        };
        let kind = kind_of(&flags[i], payloads[i]).to_owned();
        for column in columns {
            // The connections of users are numbered after all flows.
            let class = classes.get(&owners[i]).map_or("web", String::as_str).to_owned();
            let (packets, octets) =
                books.entry([places[i].clone(), class, kind.clone(), column]).or_default();
            (*packets, *octets) = (*packets + 1, *octets + bytes[i] as u64);
        }
    }
    books
}

/// The counts in a table by queue, class and kind, where the kind is empty for a table without kinds.
fn from_table(table: &Table) -> Books {
    let fates = ["dropped", "marked"].map(|fate| REASONS.map(|reason| format!("{fate}_{reason}")));
    let columns =
        ["arrivals".to_owned(), "ect_arrivals".to_owned()].into_iter().chain(fates.into_iter().flatten());
    let (queues, classes) = (names(table, "queue"), names(table, "class"));
    let kinds =
        table.column("kind").map_or_else(|| vec![String::new(); table.rows()], |_| names(table, "kind"));
    let mut books = Books::new();
    for column in columns {
        let [packets, bytes] = ["packets", "bytes"].map(|unit| integers(table, &format!("{column}_{unit}")));
        for i in (0..table.rows()).filter(|&i| packets[i] > 0) {
            let key = [queues[i].clone(), classes[i].clone(), kinds[i].clone(), column.clone()];
            assert!(books.insert(key, (packets[i] as u64, bytes[i] as u64)).is_none(), "a row each");
        }
    }
    books
}

/// Without the kinds.
fn summed(books: &Books) -> Books {
    let mut sums = Books::new();
    for ([queue, class, _, column], (packets, bytes)) in books {
        let sum = sums.entry([queue.clone(), class.clone(), String::new(), column.clone()]).or_default();
        *sum = (sum.0 + packets, sum.1 + bytes);
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For connections that close, users with requests, and datagrams, all of which pass queues
    /// that drop and mark, the rows equal those computed packet by packet, and their sums equal the
    /// rows of the classes.
    #[test]
    fn rows_are_the_packets_and_sums_the_classes(
        queue in prop::sample::select(vec![
            r#"{ kind = "droptail", limit = "8p" }"#,
            r#"{ kind = "red", limit = "20p", min_th = "2p", max_th = "6p", max_p = 0.2, ecn = true }"#,
            r#"{ kind = "codel", limit = "20p", ecn = true }"#,
            r#"{ kind = "fred", limit = "20p", ecn = true }"#,
        ]),
        ecn: bool,
        warmup in prop::sample::select(vec![0u32, 700]),
        kbit in 300u32..3000,
        bytes in 1u32..30_000,
        seed in 0u64..1000,
    ) {
        let r = record(
            &format!(
                r#"
                duration = "4s"
                warmup = "{warmup}ms"
                [topology]
                kind = "dumbbell"
                rate = "{kbit}kbit"
                delay = "5ms"
                queue = {queue}
                reverse_queue = {{ kind = "droptail", limit = "5p" }}
                faults = {{ drop = [1, 9, 40], mark = [2, 30] }}
                [[traffic]]
                name = "short"
                kind = "bulk"
                count = 8
                bytes = "{bytes}B"
                rtt = "60ms"
                start = {{ uniform = ["0s", "2s"] }}
                tcp = {{ ecn = {ecn} }}
                [[traffic]]
                name = "web"
                kind = "requests"
                users = 4
                think = "200ms"
                request = "300B"
                response = {{ exponential = "8kB" }}
                rtt = "30ms"
                [[traffic]]
                name = "udp"
                kind = "poisson"
                rate = "60kbit"
                size = "400B"
                [record]
                packets = {{ links = ["bottleneck", "reverse"] }}
                "#
            ),
            seed,
        );
        let kinds = from_table(r.table("kinds").expect("every recording has it"));
        let mut summary = from_table(r.table("summary").expect("every recording has it"));
        summary.retain(|[_, class, _, _], _| class != "*");
        prop_assert_eq!(&summed(&kinds), &summary);
        prop_assert_eq!(&kinds, &from_packets(&r));
        let found: BTreeSet<&str> = kinds.keys().map(|[_, _, kind, _]| kind.as_str()).collect();
        prop_assert_eq!(found, BTreeSet::from(["ack", "data", "fin", "other", "syn"]));
    }
}
