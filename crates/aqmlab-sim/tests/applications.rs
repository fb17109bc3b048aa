//! Applications that pause, respond and follow a list: the data on their connections, and the times
//! at which it is sent.
mod support;

use aqmlab_recording::Recording;
use aqmlab_scenario::{Experiment, Files, Limits, Traffic, parse_within};
use aqmlab_sim::{Control, run};
use aqmlab_units::{Instant, Span};
use support::{flows, integers, record, summary};

/// A path of 100 Mbit/s with a delay of 20 ms in each direction, so that a round trip without
/// queueing takes 40 ms.
const PATH: &str = r#"
    duration = "20s"
    [topology]
    kind = "dumbbell"
    rate = "100Mbit"
    delay = "20ms"
    access_rate = "1Gbit"
"#;

struct OneFile(&'static str);

impl Files for OneFile {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

fn experiment(traffic: &str, trace: &'static str) -> Experiment {
    let text = format!("{PATH}\n[[traffic]]\nname = \"x\"\n{traffic}");
    parse_within(&text, "test.toml", Limits::default(), &OneFile(trace)).unwrap_or_else(|e| panic!("{e}"))
}

fn traced(more: &str, trace: &'static str) -> Recording {
    let plan = experiment(&format!("kind = \"trace\"\nfile = \"x.csv\"\n{more}"), trace).arms.remove(0);
    run(&plan, 1, &Control::default()).unwrap_or_else(|e| panic!("{e}"))
}

const MS: u128 = 1_000_000;

#[test]
fn a_traced_connection_carries_its_bytes_both_ways_and_ends() {
    let r = traced(
        "",
        "class,start_s,response_bytes,request_bytes\nb,1.5,20000,300\na,0.25,0,40000\na,3,900,0\nb,9,2000000,700000\n",
    );
    assert_eq!(flows(&r, "x", "start_ns"), [1500 * MS, 250 * MS, 3000 * MS, 9000 * MS]);
    assert_eq!(flows(&r, "x", "delivered_bytes"), [20_300, 40_000, 900, 2_700_000]);
    assert_eq!(flows(&r, "x", "sent_bytes"), [20_300, 40_000, 900, 2_700_000]);
    assert!(flows(&r, "x", "end_ns").iter().all(|end| *end > 0), "all have ended");
    let run = r.table("run").expect("every recording has a run");
    assert_eq!(integers(run, "in_flight_packets"), [0], "nothing is left");
}

#[test]
fn an_answer_takes_two_round_trips_and_a_push_half_a_one_more_than_the_handshake() {
    let r = traced("", "start_s,request_bytes,response_bytes\n1,100,1000\n2,1000,0\n3,0,1000\n");
    let took: Vec<u128> =
        flows(&r, "x", "end_ns").iter().zip([1u128, 2, 3]).map(|(e, s)| e - 1000 * MS * s).collect();
    // SYN, SYN-ACK, request, response; SYN, SYN-ACK, data. A passive end that sends first waits for
    // the handshake's last ACK. All transmissions together take less than a millisecond.
    for (took, expected) in took.iter().zip([80 * MS, 60 * MS, 80 * MS]) {
        assert!((expected..expected + MS).contains(took), "{took} ns, not {expected}");
    }
}

/// Returns, for each connection of a trace, the places and the times in milliseconds of the first FIN, of the
/// second one and of the last packet; `closes` is the class's key.
fn closing(closes: &str, trace: &'static str) -> Vec<[(String, u128); 3]> {
    let more = format!("{closes}\n[record]\npackets = {{ flows = [\"x\"], events = [\"send\"] }}");
    let r = traced(&more, trace);
    let packets = r.table("packets").expect("they are recorded");
    let (places, flags) = (support::names(packets, "place"), support::names(packets, "flags"));
    let [flow, at] = ["flow", "t_ns"].map(|name| integers(packets, name));
    (0..flows(&r, "x", "start_ns").len() as u128)
        .map(|number| {
            let of_flow: Vec<usize> = (0..packets.rows()).filter(|&i| flow[i] == number).collect();
            let fins: Vec<usize> = of_flow.iter().copied().filter(|&i| flags[i].contains('F')).collect();
            assert_eq!(fins.len(), 2, "each end sends one FIN");
            let last = *of_flow.last().expect("there are packets");
            [fins[0], fins[1], last].map(|i| (places[i].clone(), at[i] / MS))
        })
        .collect()
}

/// The end that closes first sends the first FIN and, from TIME-WAIT, the last acknowledgment (RFC 9293, figure
/// 12). The end that sends the last data does so with that data, the other end one way later.
#[test]
fn either_end_of_a_traced_connection_may_close_first() {
    const TRACE: &str = "start_s,request_bytes,response_bytes\n0,100,1000\n1,1000,0\n2,0,1000\n";
    let (client, server) = ("sender".to_string(), "receiver".to_string());
    let by = |first: &String, second: &String, at: u128| {
        [(first.clone(), at), (second.clone(), at + 20), (first.clone(), at + 40)]
    };
    // The handshake takes 40 ms, and one way takes 20 ms. A server that sends first waits for the last
    // ACK of the handshake.
    let expected = |[answer, push, own]: [(bool, u128); 3]| {
        [answer, push, own].map(|(by_client, at)| match by_client {
            true => by(&client, &server, at),
            false => by(&server, &client, at),
        })
    };
    let last_sender = expected([(false, 60), (true, 1040), (false, 2060)]);
    assert_eq!(closing("", TRACE), last_sender);
    assert_eq!(closing("closes = \"last_sender\"", TRACE), last_sender);
    let by_client = expected([(true, 80), (true, 1040), (true, 2080)]);
    assert_eq!(closing("closes = \"client\"", TRACE), by_client);
    let by_server = expected([(false, 60), (false, 1060), (false, 2060)]);
    assert_eq!(closing("closes = \"server\"", TRACE), by_server);
    let ends = ["", "closes = \"client\"", "closes = \"server\""]
        .map(|closes| flows(&traced(closes, TRACE), "x", "end_ns"));
    assert!(ends.iter().all(|of| *of == ends[0]), "the data arrives at the same times: {ends:?}");
}

/// The same for other kinds, with a handshake of 40 ms and 20 ms one way: the links at which the two FINs arrive, and when.
/// A client that closes behind its data does so after the handshake; a server that closes first does so when the data has
/// arrived. A server that answers closes with the answer, at 60 ms, and a client that closes first does so when it has
/// arrived, at 80 ms.
#[test]
fn either_end_of_other_connections_may_close_first() {
    const ONCE: &str = "users = 1\nthink = \"1000s\"\nrequest = \"100B\"\nresponse = \"1kB\"";
    let bulk = "kind = \"bulk\"\nbytes = \"1kB\"".to_string();
    let requests = format!("kind = \"requests\"\n{ONCE}");
    let browsers = format!(
        "kind = \"browsers\"\n{ONCE}\nembedded = 0\nservers = 1\nparallel = 1\npersistent = 0\nper_persistent = 1"
    );
    for (kind, closes, first, at) in [
        (&bulk, "", "bottleneck", 40),
        (&bulk, "closes = \"client\"", "bottleneck", 40),
        (&bulk, "closes = \"server\"", "reverse", 60),
        (&requests, "", "reverse", 60),
        (&requests, "closes = \"server\"", "reverse", 60),
        (&requests, "closes = \"client\"", "bottleneck", 80),
        (&browsers, "", "reverse", 60),
        (&browsers, "closes = \"client\"", "bottleneck", 80),
    ] {
        let record_links =
            "[record]\npackets = { links = [\"bottleneck\", \"reverse\"], events = [\"enqueue\"] }";
        let text = format!("{PATH}\n[[traffic]]\nname = \"x\"\n{kind}\n{closes}\n{record_links}\n");
        let r = record(&text, 1);
        let packets = r.table("packets").expect("they are recorded");
        let (places, flags) = (support::names(packets, "place"), support::names(packets, "flags"));
        let at_ms = integers(packets, "t_ns").into_iter().map(|ns| ns / MS);
        let fins: Vec<(String, u128)> = places
            .into_iter()
            .zip(at_ms)
            .zip(flags)
            .filter(|(_, flags)| flags.contains('F'))
            .map(|(fin, _)| fin)
            .collect();
        let second = if first == "reverse" { "bottleneck" } else { "reverse" };
        assert_eq!(fins, [(first.to_string(), at), (second.to_string(), at + 20)], "{kind} {closes}");
    }
}

/// In Tmix's files, the first line with 0 bytes names the end that closes first.
#[test]
fn a_file_for_tmix_says_which_end_closes() {
    const TMIX: &str = "S 0 1 1 1\nI 0 0 100\nA 0 1 1000\nI 1 0 0\nA 0 1 0\n\
                        S 1000000 1 2 2\nI 0 0 100\nA 0 1 1000\nA 1 0 0\nI 0 1 0\n\
                        S 2000000 1 3 3\nI 0 0 100\nA 0 1 1000\n";
    let first = |closes| closing(closes, TMIX).into_iter().map(|[(first, _), ..]| first).collect::<Vec<_>>();
    assert_eq!(first("closes = \"file\""), ["sender", "receiver", "receiver"]);
    assert_eq!(first(""), ["receiver"; 3]);
    assert_eq!(first("closes = \"client\""), ["sender"; 3]);
}

#[test]
fn a_class_takes_its_rows_of_a_trace() {
    const TRACE: &str =
        "class,start_s,request_bytes,response_bytes\nb,1.5,300,7\na,0.25,40000,0\na,3,900,0\n";
    let r = traced("class = \"a\"", TRACE);
    assert_eq!(flows(&r, "x", "delivered_bytes"), [40_000, 900]);
}

#[test]
fn another_content_of_a_trace_is_another_plan() {
    let kind = "kind = \"trace\"\nfile = \"x.csv\"\n";
    let digest = |trace| experiment(kind, trace).arms[0].digest();
    let one = digest("start_s,request_bytes,response_bytes\n1,100,1000\n");
    assert_eq!(one, digest("start_s,request_bytes,response_bytes\n1,100,1000\n"));
    assert_ne!(one, digest("start_s,request_bytes,response_bytes\n1,100,1001\n"));
    let plan = experiment(kind, "start_s,request_bytes,response_bytes\n1,100,1000\n").arms.remove(0);
    let Traffic::Trace(connections) = &plan.classes[0].traffic else { panic!("it is a trace") };
    assert_eq!(connections.trace.digest.len(), 64);
}

#[test]
fn a_trace_of_parquet_says_the_same_as_one_of_csv() {
    struct InFolder;
    impl Files for InFolder {
        fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
            std::fs::read(format!("{}/tests/traces/{path}", env!("CARGO_MANIFEST_DIR")))
        }
    }
    let connections = |file: &str| {
        let text = format!("{PATH}\n[[traffic]]\nname = \"x\"\nkind = \"trace\"\nfile = \"{file}\"\n");
        let experiment =
            parse_within(&text, "t", Limits::default(), &InFolder).unwrap_or_else(|e| panic!("{e}"));
        experiment.arms[0].classes[0]
            .vectors(1, Instant::ZERO + Span::s(1000))
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let csv = connections("three.csv");
    assert_eq!(csv.len(), 3);
    assert_eq!(csv, connections("three.parquet"));
}

#[test]
fn bursts_follow_each_other_on_one_connection() {
    let text = format!(
        r#"{PATH}
        [[traffic]]
        name = "x"
        kind = "on_off_tcp"
        burst = {{ list = ["2920B", "5840B"] }}
        off = "100ms"
        tcp = {{ profile = "rfc", mss = "1460B" }}
        "#
    );
    let r = record(&text, 1);
    let run = r.table("run").expect("every recording has a run");
    // The handshake takes 40 ms. Each burst is acknowledged 40 ms after it begins, and the next one
    // begins 100 ms later, so the last burst within the 20 s, the 143rd, begins at 19.92 s. A whole
    // burst fits into the initial window (of 4 segments) with which an idle connection restarts.
    // Each burst consists of whole segments: 2 and 4.
    assert_eq!(flows(&r, "x", "sent_bytes"), [71 * (2920 + 5840) + 2920]);
    assert_eq!(flows(&r, "x", "delivered_bytes"), [71 * (2920 + 5840) + 2920]);
    assert_eq!(flows(&r, "x", "sent_segments"), [71 * 6 + 2]);
    // The packets are a SYN and its answer, data and ACKs. There is no FIN: the connection remains
    // open.
    let acks = integers(run, "sent_packets")[0] - (71 * 6 + 2) - 3;
    assert!(acks <= 71 * 6 + 2, "{acks}");
    assert_eq!(flows(&r, "x", "end_ns"), [0]);
}

#[test]
fn a_greedy_sender_is_silent_while_it_is_off() {
    let text = format!(
        r#"{PATH}
        [record]
        queues = "100ms"
        [[traffic]]
        name = "x"
        kind = "on_off_tcp"
        on = "1s"
        off = "2s"
        tcp = {{ profile = "rfc", receive_window = "300kB" }}
        "#
    );
    let r = record(&text, 1);
    let queues = r.table("queues").expect("every recording has samples");
    let at = support::names(queues, "queue");
    let (times, counts) = (integers(queues, "t_ns"), integers(queues, "arrivals_packets"));
    for i in (0..queues.rows()).filter(|&i| at[i] == "bottleneck") {
        let ms = times[i] / MS;
        // The sample counts events in (ms - 100, ms]. When an off period begins, a flight of
        // segments may still be on the flow's own link.
        let within = (ms - 100) % 3000;
        if within < 1000 {
            assert!(counts[i] > 0, "on at {ms} ms");
        } else {
            assert!(counts[i] <= u128::from(within == 1000) * 250, "off at {ms} ms: {}", counts[i]);
        }
    }
    assert_eq!(summary(&r, "bottleneck", "*", "dropped_overflow_packets"), 0);
    assert_eq!(flows(&r, "x", "retransmitted_segments"), [0], "withdrawn data was never sent");
}

#[test]
fn a_stopped_session_ends_its_connection() {
    for what in ["on = \"300ms\"", "burst = \"30kB\""] {
        let text = format!(
            "{PATH}\n[[traffic]]\nname = \"x\"\nkind = \"on_off_tcp\"\n{what}\noff = \"200ms\"\nstop = \"5s\"\n\
             tcp = {{ profile = \"rfc\", receive_window = \"60kB\", time_wait = \"1s\" }}\n"
        );
        let r = record(&text, 1);
        let ends = flows(&r, "x", "end_ns");
        assert!((5000 * MS..5500 * MS).contains(&ends[0]), "{what}: {ends:?}");
        assert_eq!(integers(r.table("run").expect("a run"), "in_flight_packets"), [0]);
    }
}

/// A lost answer leaves a hole at the client, whose next requests then carry SACK blocks. The kernel acknowledges each
/// request before the application answers it (`prompt_ack`).
#[test]
fn an_acknowledgment_leaves_before_the_answer_to_a_request_with_sack_blocks() {
    let text = format!(
        r#"{PATH}
        [record]
        packets = {{ links = ["bottleneck", "reverse"], events = ["enqueue"] }}
        [[traffic]]
        name = "x"
        kind = "pages"
        users = 1
        think = "100s"
        origins = 1
        waves = 1
        objects = 60
        weight = "12kB"
        request = "4344B"
        tcp = {{ profile = "linux", nagle = false, ack_every = 1 }}
        [[delay]]
        direction = "to_sender"
        at = "exit"
        loss = 0.1
        "#
    );
    let r = record(&text, 10);
    let packets = r.table("packets").expect("they are recorded");
    let [bytes, payload, seq, ack] =
        ["wire_bytes", "payload_bytes", "seq", "ack"].map(|name| integers(packets, name));
    let links = support::names(packets, "place");
    // The loop keeps the sequence numbers that follow the segments with options, the latest acknowledgment
    // without data, the sequence number that follows the answers so far, and how many requests they answer.
    // Answers that waited for the window leave with the next arrival and carry its acknowledgment.
    const REQUEST: u128 = 4344;
    let (mut with_options, mut acknowledged, mut next, mut answered, mut answers) = (Vec::new(), 0, 0, 0, 0);
    for i in 0..packets.rows() {
        if links[i] == "bottleneck" {
            if payload[i] > 0 && bytes[i] > payload[i] + 52 {
                with_options.push(seq[i] + payload[i]);
            }
        } else if payload[i] == 0 {
            acknowledged = ack[i];
        } else if seq[i] >= next {
            if with_options.contains(&ack[i]) && ack[i] - 1 == (answered + 1) * REQUEST {
                assert_eq!(
                    acknowledged, ack[i],
                    "no acknowledgment of its own precedes the answer at {}",
                    seq[i]
                );
                answers += 1;
            }
            next = seq[i] + payload[i];
            answered = (ack[i] - 1) / REQUEST;
        }
    }
    assert_eq!(answers, 5);
}
