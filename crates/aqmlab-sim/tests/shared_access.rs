//! Clouds and flows behind shared access links, where hosts are nodes of a graph, and delay stages
//! are in routers.
mod support;

use aqmlab_qdisc::Registry;
use aqmlab_recording::{Recording, StoppedBy};
use aqmlab_sim::{Control, run, run_plain};
use support::{flows, integers, plan, record, summary};

const US: u128 = 1_000;

/// Two hosts at each end of three routers. Links to hosts have a rate of 4 Mbit/s, links between
/// routers have a rate of 10 Mbit/s, and each link has a delay of 1 ms.
fn lot(times: &str, traffic: &str) -> String {
    let nodes = ["R0", "R1", "R2", "a", "b", "x", "y"].map(|name| format!("[[node]]\nname = \"{name}\"\n"));
    let link = |from: &str, to: &str, rate: &str| {
        let queue = "{ kind = \"droptail\", limit = \"100p\" }";
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"1ms\"\nqueue = {queue}\nreverse_queue = {queue}\n"
        )
    };
    let links = [
        link("R0", "R1", "10Mbit"),
        link("R1", "R2", "10Mbit"),
        link("a", "R0", "4Mbit"),
        link("b", "R0", "4Mbit"),
        link("R2", "x", "4Mbit"),
        link("R2", "y", "4Mbit"),
    ];
    format!(
        "{times}\n[topology]\nkind = \"graph\"\naccess_rate = \"none\"\n{}{}{traffic}",
        nodes.concat(),
        links.concat()
    )
}

/// The time that a packet of this length takes over two links of 4 Mbit/s and two of 10 Mbit/s.
fn crossing(bytes: u128) -> u128 {
    4_000 * US + 2 * bytes * 2 * US + 2 * bytes * 800
}

#[test]
fn an_exchange_over_idle_links_takes_what_arithmetic_says() {
    let traffic = "[[traffic]]\nname = \"web\"\nkind = \"requests\"\nfrom = \"a\"\nto = \"x\"\nusers = 1\nthink = \"100s\"\n\
                   request = \"360B\"\nresponse = \"960B\"\nserver_delay = \"5ms\"\ntcp = { recovery = \"newreno\" }\n\
                   [[delay]]\nat = \"R0\"\ndelay = \"7ms\"\n[[delay]]\nat = \"R2\"\ndelay = \"11ms\"\n";
    let r = record(&lot("duration = \"5s\"", traffic), 1);
    assert_eq!(flows(&r, "web", "base_rtt_ns"), [(8 + 2 * 18) * 1000 * US]);
    let sample = r.table("request_sample").expect("there are requests");
    // The packets are SYN, SYN-ACK, request and response. Each has 40 bytes of headers, and each
    // passes through both delay stages. The client's first ACK leaves before its request, and takes
    // 80 us at 4 Mbit/s.
    let expected = 2 * crossing(40) + 80 * US + crossing(400) + crossing(1000) + (5 + 4 * 18) * 1000 * US;
    assert_eq!(integers(sample, "response_time_ns"), [expected]);
}

#[test]
fn flows_of_one_host_share_its_link_in_their_order() {
    let ends = |access: &str| {
        let traffic = format!(
            "[[traffic]]\nname = \"file\"\nkind = \"bulk\"\ncount = 3\nbytes = \"960B\"\nfrom = \"a\"\nto = \"x\"\n{access}\n\
             tcp = {{ recovery = \"newreno\" }}\n"
        );
        flows(&record(&lot("duration = \"5s\"", &traffic), 1), "file", "end_ns")
    };
    let shared = ends("");
    // The first flow waits only for its own ACK.
    assert_eq!(shared[0], 2 * crossing(40) + 80 * US + crossing(1000));
    // The SYNs of the other flows leave 80 us apart, and later segments wait: an ACK and data take
    // 2.08 ms at 4 Mbit/s.
    assert_eq!([shared[1] - shared[0], shared[2] - shared[1]], [2_080 * US; 2]);
}

/// Web users in both directions, and long flows, all of which cross the three routers. The delays
/// of the PackMime model are at delay stages in the routers.
fn web(requests: u32) -> String {
    let class = |name: &str, from: &str, to: &str, kind: &str| {
        format!("[[traffic]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{kind}\n")
    };
    let cloud = "kind = \"packmime\"\nrate = \"20/s\"\ntcp = { ecn = true }";
    let long = "kind = \"bulk\"\ncount = 3\nstart = { uniform = [\"0s\", \"2s\"] }";
    let rule = |class: &str, at: &str, delay: &str| {
        format!("[[delay]]\nclass = \"{class}\"\nat = \"{at}\"\ndelay = {delay}\n")
    };
    let text = [
        class("web", "x", "a", cloud),
        class("web2", "y", "a", cloud),
        class("back", "b", "y", cloud),
        class("long", "a", "x", long),
        rule("web", "R2", "\"client\""),
        rule("web", "R0", "\"server\""),
        rule("web2", "R2", "\"client\""),
        rule("web2", "R0", "\"server\""),
        rule("back", "R0", "\"client\""),
        rule("back", "R2", "\"server\""),
        rule("long", "R0", "{ packmime = \"client\" }"),
        rule("long", "R2", "{ packmime = \"server\" }"),
    ];
    let stop = format!("[stop]\ncompleted = {{ class = [\"web\", \"web2\"], requests = {requests} }}\n");
    lot("duration = \"40s\"\nwarmup = \"4s\"", &format!("{}{stop}", text.concat()))
}

fn completed(r: &Recording, class: &str) -> u128 {
    let table = r.table("request_summary").expect("there are requests");
    let classes = table.column("class").expect("of classes");
    let aqmlab_recording::ColumnData::Str(classes) = classes else { panic!("names") };
    let counts = integers(table, "completed");
    classes.iter().zip(counts).filter(|(name, _)| *name == class).map(|(_, count)| count).sum()
}

#[test]
fn a_run_ends_with_the_response_that_completes_the_count() {
    let r = record(&web(500), 3);
    assert_eq!(r.manifest.stopped_by, StoppedBy::Completed);
    assert_eq!(completed(&r, "web") + completed(&r, "web2"), 500);
    assert!(completed(&r, "web") > 100 && completed(&r, "web2") > 100 && completed(&r, "back") > 100);
    // The event that ends the run is the last response, so no later response is in the sample.
    let sample = r.table("request_sample").expect("there are requests");
    let ends = integers(sample, "start_ns").into_iter().zip(integers(sample, "response_time_ns"));
    let last = ends.map(|(start, took)| start + took).max();
    assert_eq!(last, Some(u128::from(r.manifest.t1.as_ns())));
}

#[test]
fn shared_links_carry_what_crosses_them_and_both_engines_agree() {
    let text = web(100_000);
    let plan = plan(&text);
    let fast = run(&plan, 5, &Control::default()).unwrap();
    let plain = run_plain(&plan, 5, &Control::default(), &Registry::builtin()).unwrap();
    for (a, b) in fast.tables.iter().zip(&plain.tables) {
        assert_eq!(a.digest(), b.digest(), "{}", a.name);
    }
    assert_eq!(fast.manifest.stopped_by, StoppedBy::Time);
    assert!(
        summary(&fast, "a-R0", "web", "arrivals_packets") > 5_000,
        "responses enter at the servers' host"
    );
    assert_eq!(
        summary(&fast, "a-R0", "*", "arrivals_packets"),
        ["web", "web2", "long"].map(|class| summary(&fast, "a-R0", class, "arrivals_packets")).iter().sum()
    );
    assert_eq!(summary(&fast, "b-R0", "web", "arrivals_packets"), 0);
    // Each long flow draws its own two delays, which are the same in both directions: its RTT is
    // 8 ms for the links plus twice these delays.
    let rtts = flows(&fast, "long", "base_rtt_ns");
    assert!(rtts.iter().all(|rtt| *rtt > 8_000 * US) && rtts[0] != rtts[1] && rtts[1] != rtts[2], "{rtts:?}");
    let even = |rtt: &u128| (rtt - 8_000 * US).is_multiple_of(2);
    assert!(rtts.iter().all(even), "each delay counts twice: {rtts:?}");
}
