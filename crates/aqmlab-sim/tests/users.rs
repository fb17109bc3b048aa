//! Users whose pages a file lists, over a fast path without other traffic: all times follow from round trips and from
//! the file.
mod support;

use aqmlab_recording::Recording;
use aqmlab_scenario::{Files, Limits, parse_within};
use aqmlab_sim::{Control, run};

use support::integers;

const MS: u128 = 1_000_000;
/// Tolerance that covers the transmission times of a page at 100 Gbit/s.
const TOLERANCE_NS: u128 = 20_000;

/// A page of a document and four objects, the second of which takes 100 ms at the server, and then a page with one
/// object. The second user begins later.
const FILE: &str = "user,page,think_s,request_bytes,response_bytes,server_delay_s
0,0,1,400,5000,
0,0,,400,2000,
0,0,,400,2000,0.1
0,0,,400,2000,
0,0,,400,2000,
0,1,0.5,400,5000,
1,0,3,400,1000,0.05
";

struct Only(&'static str);

impl Files for Only {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

fn scenario(keys: &str) -> String {
    format!(
        r#"
        duration = "10s"
        [topology]
        kind = "dumbbell"
        rate = "100Gbit"
        delay = "20ms"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "100000p" }}
        [[traffic]]
        name = "web"
        kind = "users"
        file = "users.csv"
        tcp = {{ initial_window = 10 }}
        {keys}
        [record]
        requests = {{ sample = 100000 }}
        "#
    )
}

fn recorded(keys: &str) -> Recording {
    let experiment =
        parse_within(&scenario(keys), "t", Limits::default(), &Only(FILE)).unwrap_or_else(|e| panic!("{e}"));
    run(&experiment.arms[0], 1, &Control::default()).expect("it runs")
}

fn column(recording: &Recording, table: &str, column: &str) -> Vec<u128> {
    integers(recording.table(table).unwrap_or_else(|| panic!("there is {table}")), column)
}

/// The pages: their users, starts and durations in ms.
fn pages(recording: &Recording) -> Vec<(u128, u128, u128)> {
    let [user, start, time] =
        ["user", "start_ns", "page_time_ns"].map(|name| column(recording, "page_sample", name));
    let in_ms = |ns: u128| {
        let ms = (ns + TOLERANCE_NS) / MS;
        assert!(ns.abs_diff(ms * MS) <= TOLERANCE_NS * 20, "{ns} is {ms} ms, but for transmission times");
        ms
    };
    user.into_iter()
        .zip(start.into_iter().map(in_ms))
        .zip(time.into_iter().map(in_ms))
        .map(|((a, b), c)| (a, b, c))
        .collect()
}

/// With two connections, the document is there 80 ms after the page began: a round trip of 40 ms for the connection, and
/// one for the exchange. The first object follows on the same connection (120 ms). The second opens another one, and
/// is there after 80 + 40 + 40 + 100 = 260 ms. Meanwhile, the third and the fourth use the first connection, which is
/// free at 120 and 160 ms, and are there at 160 and 200 ms. With one connection, the same takes 80 + 40 + 140 + 40 + 40 ms; with
/// four, three more connections open at 80 ms.
#[test]
fn objects_take_whichever_connection_is_free() {
    for (parallel, time, opened) in [(2, 260, 2), (1, 340, 1), (4, 260, 4)] {
        let r = recorded(&format!("parallel = {parallel}"));
        let next = 1000 + time + 500;
        assert_eq!(pages(&r), [(0, 1000, time), (0, next, 80), (1, 3000, 130)], "{parallel}");
        let opens = column(&r, "request_sample", "opens_connection");
        assert_eq!((opens.len(), opens.iter().sum()), (7, opened + 2), "{parallel}");
    }
}

/// Connections that are kept save the second page a round trip.
#[test]
fn connections_may_be_kept_for_the_next_page() {
    let r = recorded("parallel = 2\nconnections = \"kept\"");
    assert_eq!(pages(&r), [(0, 1000, 260), (0, 1760, 40), (1, 3000, 130)]);
}

/// All objects of the file are requested, and a page weighs as much as its objects.
#[test]
fn each_object_of_the_file_arrives_once() {
    let r = recorded("");
    let mut sizes = column(&r, "request_sample", "response_bytes");
    sizes.sort_unstable();
    assert_eq!(sizes, [1000, 2000, 2000, 2000, 2000, 5000, 5000]);
    let mut weights = column(&r, "page_sample", "page_bytes");
    weights.sort_unstable();
    assert_eq!(weights, [1000, 5000, 13_000]);
}

/// Messages name the file, the line and what would be right.
#[test]
fn mistakes_in_the_file_are_reported_with_their_line() {
    let head = "user,page,think_s,request_bytes,response_bytes\n";
    for (rows, message) in [
        ("1,0,0,1,1", "line 2: `user` is 1 where 0 comes first; number users from 0 upwards"),
        ("0,0,0,1,1\n2,0,0,1,1", "line 3: `user` is 2 where 0 goes on or 1 comes next"),
        ("0,1,0,1,1", "line 2: `page` is 1 where 0 comes first"),
        ("0,0,0,1,1\n0,2,0,1,1", "line 3: `page` is 2 where 0 goes on or 1 comes next"),
        ("0,0,0,1,1\n0,0,1,1,1", "line 3: a user thinks before a page, not within it; leave `think_s` empty"),
        ("0,0,0,0,1", "line 2"),
        ("", "has no rows; write at least one object"),
    ] {
        let text: &'static str = format!("{head}{rows}\n").leak();
        let error = parse_within(&scenario(""), "t", Limits::default(), &Only(text)).expect_err("a mistake");
        assert!(error.to_string().contains(message), "{error}");
    }
    let error = parse_within(
        &scenario(""),
        "t",
        Limits::default(),
        &Only("user,side,request_bytes,response_bytes\n"),
    );
    assert!(error.expect_err("a mistake").to_string().contains("unknown column \"side\""));
}
