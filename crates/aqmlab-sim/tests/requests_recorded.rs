//! Requests in the recording of a simulated run: response times as computed by hand, the requests
//! that count, and agreement among the tables.
mod support;

use aqmlab_recording::{ColumnData, Recording, Table};
use aqmlab_scenario::{Limits, parse_within};
use aqmlab_sim::{Control, run};
use aqmlab_storage::Folder;

use support::record;

/// A path of 8 Mbit/s in each direction, so that an octet takes a microsecond, with a round-trip
/// time of 40 ms.
fn scenario(stop: &str, traffic: &str, more: &str) -> String {
    format!(
        r#"
        duration = "{stop}"
        [topology]
        kind = "dumbbell"
        rate = "8Mbit"
        delay = "20ms"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "1000p" }}
        [[traffic]]
        name = "web"
        {traffic}
        tcp = {{ profile = "rfc", mss = "1000B" }}
        {more}
        "#
    )
}

fn table<'r>(recording: &'r Recording, name: &str) -> &'r Table {
    recording.table(name).unwrap_or_else(|| panic!("no table `{name}`"))
}

fn numbers(recording: &Recording, name: &str, column: &str) -> Vec<u64> {
    match table(recording, name).column(column) {
        Some(ColumnData::U64(values)) => values.clone(),
        other => panic!("`{column}` of `{name}` is {other:?}"),
    }
}

fn total(recording: &Recording, column: &str) -> u64 {
    numbers(recording, "request_summary", column).iter().sum()
}

#[test]
fn response_times_of_a_quiet_path_are_those_worked_out_by_hand() {
    let text = scenario(
        "10s",
        r#"kind = "requests"
        users = 1
        think = "3s"
        request = "100B"
        response = "1500B"
        exchanges = 2
        pause = "1s"
        server_delay = "7ms""#,
        "",
    );
    let recording = record(&text, 1);
    let opens = numbers(&recording, "request_sample", "opens_connection");
    let times = numbers(&recording, "request_sample", "response_time_ns");
    assert_eq!((opens.len(), &opens[..4]), (times.len(), &[1, 0, 1, 0][..]));
    // Headers have 40 octets. The packets are the SYN, the SYN-ACK, the ACK with the request
    // immediately behind it, and two segments of response.
    let set_up = 20_000 + 40 + 20_000 + 40;
    let request = 20_000 + 140;
    let response = 7_000 + 1040 + 540 + 20_000;
    for (opens, time) in opens.into_iter().zip(times) {
        let expected = if opens == 1 { set_up + 40 + request + response } else { request + response };
        assert_eq!(time, 1000 * expected, "opens {opens}");
    }
}

#[test]
fn what_is_under_way_at_the_end_is_censored_with_its_wait() {
    // 400 kB take at least 0.4 s. The fifth arrival, a second after the first, has waited for 100
    // ms when the run ends.
    let text = scenario("5s", "kind = \"trace\"\nfile = \"traces/five_requests.csv\"", "");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/requests.toml");
    let read = parse_within(&text, file, Limits::default(), &Folder::of(file));
    let plan = read.unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
    let recording = run(&plan, 1, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((total(&recording, "completed"), total(&recording, "failed")), (4, 0));
    assert_eq!(total(&recording, "censored"), 1);
    assert_eq!(total(&recording, "response_bytes"), 4 * 400_000);
    let histograms = table(&recording, "request_histograms");
    let Some(ColumnData::Str(kinds)) = histograms.column("kind") else { panic!("no kinds") };
    let waited = kinds.iter().position(|kind| kind == "waited_ns").expect("one waits");
    let (low, high) = (
        numbers(&recording, "request_histograms", "low")[waited],
        numbers(&recording, "request_histograms", "high")[waited],
    );
    assert!((low..=high).contains(&100_000_000), "{low}..={high}");
}

#[test]
fn a_request_whose_client_gives_up_has_failed() {
    // With this seed, the network loses the client's SYN and its one retransmission.
    let text = scenario(
        "9s",
        "kind = \"requests\"\nusers = 1\nthink = \"30s\"\nrequest = \"100B\"\nresponse = \"100B\"\nloss = 0.99",
        "",
    )
    .replace("access_rate = \"none\"", "access_rate = \"100Mbit\"")
    .replace("mss = \"1000B\"", "mss = \"1000B\", syn_retries = 1");
    let recording = record(&text, 1);
    assert_eq!(total(&recording, "failed"), 1, "{:?}", table(&recording, "request_summary"));
    assert_eq!((total(&recording, "completed"), total(&recording, "censored")), (0, 0));
}

#[test]
fn each_request_has_a_row_if_that_is_asked_for_and_every_row_is_in_the_sums() {
    let traffic = "kind = \"requests\"\nrate = \"60/s\"\nrequest = \"200B\"\nresponse = { pareto = \"6kB\", shape = 1.2 }\nexchanges = 3\npause = \"20ms\"";
    let asked = "[record]\nrequests = { each = true, sample = 100, bands = 3 }";
    let (plain, asked) =
        (record(&scenario("30s", traffic, ""), 1), record(&scenario("30s", traffic, asked), 1));
    assert!(plain.streamed.is_empty());
    let sums = ["completed", "failed", "censored"].map(|column| total(&asked, column));
    assert_eq!(asked.streamed[0].rows, sums.iter().sum::<u64>());
    assert!(sums[0] > 4000 && sums[2] > 0, "{sums:?}");
    assert_eq!(total(&plain, "completed"), sums[0], "recording rows changes nothing else");
    assert_eq!(table(&asked, "request_sample").rows(), 100);
    assert_eq!(table(&asked, "request_summary").rows(), 3);
    // All data of completed responses has been delivered, and the rest of the delivered data
    // belongs to responses in progress.
    let delivered: u64 = numbers(&asked, "flows", "delivered_bytes").iter().sum();
    let completed = total(&asked, "response_bytes") + total(&asked, "request_bytes");
    assert!(completed <= delivered && delivered - completed < delivered / 10, "{completed} of {delivered}");
}

#[test]
fn a_run_without_requests_has_none_of_their_tables() {
    let recording = record(&scenario("5s", "kind = \"bulk\"", ""), 1);
    assert!(recording.tables.iter().all(|table| !table.name.starts_with("request")));
    assert!(recording.streamed.is_empty());
}
