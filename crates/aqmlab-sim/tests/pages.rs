//! Users who fetch web pages over a fast path without other traffic: page times follow from round
//! trips alone.
mod support;

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_recording::Recording;

use support::{integers, record};

const RTT_MS: u128 = 40;
/// Tolerance that covers the total transmission time of a page at 100 Gbit/s, over all its waves.
const TOLERANCE_NS: u128 = 40_000;

fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "60s"
        [topology]
        kind = "dumbbell"
        rate = "100Gbit"
        delay = "20ms"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "100000p" }}
        [[traffic]]
        name = "web"
        kind = "pages"
        {traffic}
        [record]
        requests = {{ sample = 100000 }}
        "#
    )
}

/// A page has at most three objects, so small that each wave fits into one window.
const SMALL: &str = r#"
    users = 3
    think = "1s"
    weight = "12kB"
    objects = { uniform = [1, 3] }
    origins = 1
    scripts = 0.5
    images = 0.5
    styles = 0
    fonts = 0
    tcp = { initial_window = 10 }
"#;

fn column(recording: &Recording, table: &str, column: &str) -> Vec<u128> {
    integers(recording.table(table).unwrap_or_else(|| panic!("there is {table}")), column)
}

fn total(recording: &Recording, table: &str, name: &str) -> u128 {
    column(recording, table, name).iter().sum()
}

/// A page as it is recorded.
struct Fetched {
    time: u128,
    objects: usize,
    /// Number of distinct instants at which objects were requested, and at which connections were
    /// opened.
    waves: u128,
    openings: u128,
}

/// The pages in the order in which they began.
fn pages(recording: &Recording) -> Vec<Fetched> {
    let [user, start, time] =
        ["user", "start_ns", "page_time_ns"].map(|name| column(recording, "page_sample", name));
    let [of, asked, opens] =
        ["user", "start_ns", "opens_connection"].map(|name| column(recording, "request_sample", name));
    let distinct = |of: &mut dyn Iterator<Item = u128>| of.collect::<BTreeSet<_>>().len() as u128;
    let of_page = |page: usize| {
        let (from, until) = (start[page], start[page] + time[page]);
        let mine: Vec<usize> =
            (0..of.len()).filter(|&i| of[i] == user[page] && (from..until).contains(&asked[i])).collect();
        Fetched {
            time: time[page],
            objects: mine.len(),
            waves: distinct(&mut mine.iter().map(|&i| asked[i])),
            openings: distinct(&mut mine.iter().filter(|&&i| opens[i] == 1).map(|&i| asked[i])),
        }
    };
    (0..time.len()).map(of_page).collect()
}

fn close_to(found: u128, expected_ms: u128) -> bool {
    found.abs_diff(expected_ms * 1_000_000) < TOLERANCE_NS
}

#[test]
fn a_page_takes_a_round_trip_to_open_and_one_for_each_wave_with_its_delays() {
    for (delays, of_wave, between) in
        [("", 0, 0), ("server_delay = \"7ms\"\nparse = \"13ms\"", 7, 13), ("parse = \"100ms\"", 0, 100)]
    {
        let recording = record(&scenario(&format!("{SMALL}{delays}")), 5);
        let pages = pages(&recording);
        assert!(pages.len() > 60, "{} pages", pages.len());
        let mut depths = BTreeMap::new();
        for Fetched { time, waves, .. } in pages {
            *depths.entry(waves).or_insert(0) += 1;
            let expected = RTT_MS + waves * (RTT_MS + of_wave) + (waves - 1) * between;
            assert!(close_to(time, expected), "{waves} waves, {delays}: {time} ns, not {expected} ms");
        }
        assert!([1, 2, 3].iter().all(|waves| depths[waves] > 5), "{depths:?}");
    }
}

#[test]
fn waves_and_connections_are_settings() {
    let at_once = record(&scenario(&format!("{SMALL}waves = 1")), 5);
    assert!(pages(&at_once).iter().all(|page| close_to(page.time, 2 * RTT_MS)));
    let kept = record(&scenario(&format!("{SMALL}waves = 1\nconnections = \"kept\"")), 5);
    let opens = column(&kept, "page_sample", "opens_connection");
    for (Fetched { time, openings, .. }, opens) in pages(&kept).iter().zip(&opens) {
        assert!(openings == opens && close_to(*time, (1 + opens) * RTT_MS), "{time} ns, {opens}");
    }
    assert_eq!(opens.iter().sum::<u128>(), 3, "a connection for each user");
}

#[test]
fn a_page_of_several_windows_takes_the_rounds_of_slow_start() {
    // Windows have 10, 20 and 40 segments of 1460 bytes, so 60 kB need three rounds, and 40 kB two.
    for (weight, rounds) in [("14kB", 1), ("40kB", 2), ("60kB", 3)] {
        let traffic = format!(
            "users = 2\nthink = \"1s\"\nweight = \"{weight}\"\nobjects = 1\norigins = 1\n\
             tcp = {{ initial_window = 10, ack_every = 1, mss = \"1460B\", receive_window = \"1MB\" }}"
        );
        let recording = record(&scenario(&traffic), 2);
        let pages = pages(&recording);
        assert!(pages.len() > 60);
        for Fetched { time, .. } in pages {
            assert!(close_to(time, RTT_MS * (1 + rounds)), "{weight}: {time} ns");
        }
    }
}

#[test]
fn other_origins_open_connections_when_they_are_needed() {
    let text = scenario(
        r#"
        users = 4
        think = "1s"
        weight = "12kB"
        objects = 60
        origins = 6
        tcp = { initial_window = 10 }
        "#,
    );
    let recording = record(&text, 3);
    let mut openings = BTreeSet::new();
    for page in pages(&recording) {
        assert_eq!((page.objects, page.waves), (60, 3));
        // The second wave opens at most five connections, and the third wave opens those that are left.
        assert!(close_to(page.time, (3 + page.openings) * RTT_MS), "{} ns", page.time);
        openings.insert(page.openings);
    }
    assert_eq!(openings, [2, 3].into());
    let (pages, opened) = (
        total(&recording, "page_summary", "completed"),
        column(&recording, "request_sample", "opens_connection").iter().sum::<u128>(),
    );
    assert!((pages * 6..=(pages + 4) * 6).contains(&opened), "{opened} connections for {pages} pages");
    let of: Vec<_> =
        ["user", "serial", "exchange"].map(|name| column(&recording, "request_sample", name)).into();
    let distinct: BTreeSet<_> =
        (0..of[0].len()).map(|i| of.iter().map(|c| c[i]).collect::<Vec<_>>()).collect();
    assert_eq!(distinct.len(), of[0].len(), "no two exchanges have the same name");
}

#[test]
fn pages_of_the_tables_add_up_with_their_requests() {
    let text = scenario("users = 40\nthink = \"2s\"\nparse = \"20ms\"")
        .replace("100Gbit\"\n        delay", "50Mbit\"\n        delay");
    let recording = record(&text, 1);
    let [pages, objects] =
        ["page_sample", "request_sample"].map(|table| recording.table(table).expect("recorded").rows());
    assert!(pages > 20, "{pages} pages");
    let completed = total(&recording, "page_summary", "completed");
    assert_eq!(completed, pages as u128);
    let weighed = total(&recording, "page_summary", "page_bytes");
    let answered = total(&recording, "request_summary", "response_bytes");
    // Some objects of pages that are in progress at the end have arrived as well.
    assert!(answered >= weighed, "{answered} {weighed}");
    assert!(column(&recording, "page_sample", "objects").iter().sum::<u128>() <= objects as u128);
    let under_way = total(&recording, "page_summary", "censored");
    assert!((1..=40).contains(&under_way), "{under_way} pages at the end");
    let waited = integers(recording.table("page_histograms").expect("recorded"), "weight");
    assert_eq!(waited.iter().sum::<u128>(), completed + under_way);
}

#[test]
fn a_class_that_stops_cuts_its_pages_off_once() {
    let text =
        scenario("users = 5\nthink = \"1s\"\nweight = \"1MB\"\nstop = \"20010ms\"\nserver_delay = \"30s\"");
    let recording = record(&text, 1);
    let ended = ["completed", "failed", "censored"].map(|how| total(&recording, "page_summary", how));
    assert_eq!(ended, [0, 0, 5]);
    assert_eq!(total(&recording, "request_summary", "censored"), 5);
}

#[test]
fn a_page_fails_with_its_connection() {
    let text = scenario(&format!(
        "{}\n",
        SMALL.replace("initial_window = 10", "initial_rto = \"100ms\", min_rto = \"100ms\", syn_retries = 1")
    ));
    let text = format!("{text}\n[[delay]]\nfrom = \"left\"\nloss = 1.0\nat = \"exit\"\n");
    let recording = record(&text, 1);
    let [completed, failed] = ["completed", "failed"].map(|how| total(&recording, "page_summary", how));
    // The client sends a SYN, and another one 100 ms later; the user gives up after a further
    // 200 ms and thinks for a second.
    assert_eq!(completed, 0);
    assert!((130..=140).contains(&failed), "{failed} pages of three users");
}
