//! A sender with AccECN compared with Linux 7.3 in virtual time: `vectors/linux-accurate-sender` records what arrives at
//! the kernel's sender, with chosen marks, losses and changes on the path, what it sends, and what it then knows. An
//! endpoint to which the same segments arrive at the same times must send the same segments at the same times, with the
//! same ACE, code points and options, and know of as many marks.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Endpoint, Profile, Role, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Ecn, Span};
use support::one_side::{at, compare, kernels, replay};
use support::vectors::{Row, number, table};

const FOLDER: &str = "linux-accurate-sender";

/// The limit on the difference between two times: timers of the kernel fire at ticks of 1 ms, whose phase the vectors
/// do not contain.
const CLOCK: Span = Span::ms(1);

fn profile(case: &Row) -> Profile {
    let mut settings = profile_settings("linux").expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    let controls = ["reno", "cubic", "dctcp"];
    let control = controls.into_iter().find(|name| *name == case["congestion"]);
    set("congestion", Value::Choice(control.expect("one of ours")));
    set("ecn", Value::Flag(true));
    set("ecn_feedback", Value::Choice("accurate"));
    set("ecn_option", Value::Choice(if case["option"] == "0" { "none" } else { "each" }));
    set("ecn_path_test", Value::Choice("off")); // Linux does not test the first counter
    set("ecn_option_if_heard", Value::Flag(true));
    set("ect_on_ack", Value::Flag(true));
    set("ect_on_retransmission", Value::Flag(true));
    set("ect_on_syn", Value::Flag(case["congestion"] == "dctcp")); // Linux's DCTCP sets ECT on each packet
    set("timestamps", Value::Flag(false));
    let has_option = case["option"] != "0" && case["bleached"] != "option";
    set("mss", Value::Size(Size::Bytes(Bytes::new(if has_option { 1448 } else { 1460 }))));
    set("header", Value::Size(Size::Bytes(Bytes::new(40))));
    set("sack_blocks", Value::Integer(4));
    Profile::resolve(&mut settings).expect("consistent")
}

#[test]
fn the_sender_hears_and_sends_what_the_kernels_does() {
    let mut differences = Vec::new();
    for case in table(FOLDER, "cases.csv") {
        let (name, profile) = (&case["case"], profile(&case));
        let rows = table(FOLDER, &format!("{name}.csv"));
        let (_, segments) = case["writes"].split_once(':').expect("time:segments");
        let first = rows.iter().find(|row| row["length"] != "0").expect("data");
        let write = (at(first), number(segments) * u64::from(profile.mss));
        let mut endpoint = Endpoint::new(Role::Active, &profile);
        endpoint.open(at(&rows[0]), &profile);
        let replay = replay(&mut endpoint, &rows, Some(write), &profile, |endpoint| {
            let marks = endpoint.ecn_counters().map_or(0, |(_, heard)| heard.ce_packets - 5);
            (endpoint.acked().get(), endpoint.cwnd() as u64, u64::from(marks))
        });
        let arrivals: Vec<&Row> = rows.iter().filter(|row| row["event"] == "arrived").collect();
        for (n, (row, (acked, cwnd, marks))) in arrivals.iter().zip(&replay.known).enumerate() {
            if (*cwnd, *marks) != (number(&row["cwnd"]), number(&row["delivered_ce"])) {
                let known = format!("{cwnd} {marks} at {acked} B");
                differences.push(format!("{name}: window and marks after arrival {n}: {known}, {row:?}"));
                break;
            }
        }
        let (mut kernels, mut ours) = (kernels(&rows), replay.sent);
        if case["bleached"] == "ace" {
            // Marked bytes without marked packets: RFC 9768, 3.2.3.2.5 then demands Not-ECT, but Linux sets ECT.
            assert_eq!(
                (kernels.pop().map(|s| s.1.ecn), ours.pop().map(|s| s.1.ecn)),
                (Some(Ecn::Ect0), Some(Ecn::NotEct))
            );
            for (_, said) in kernels.iter_mut().chain(&mut ours) {
                said.ecn = Ecn::NotEct;
            }
        }
        differences.extend(compare(&kernels, &ours, CLOCK).err().map(|text| format!("{name}: {text}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
