//! DCTCP's receiver (RFC 8257, section 3.2) compared with Linux 6.1 in virtual time: `vectors/linux-dctcp-receiver`
//! records what arrives at the kernel's receiver, with drawn marks, and what it sends. An endpoint to which the same
//! segments arrive at the same times must acknowledge the same at the same times, with the same echo.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Endpoint, Flags, Profile, Role, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Ecn, Instant, Span};
use support::one_side::{Said, compare, kernels, replay};
use support::vectors::{Row, number, table};

const FOLDER: &str = "linux-dctcp-receiver";

/// The limit on the difference between two times: timers of the kernel fire at ticks of 1 ms, whose phase the vectors
/// do not contain.
const CLOCK: Span = Span::ms(1);

fn profile(case: &Row) -> Profile {
    let mut settings = profile_settings("linux").expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("congestion", Value::Choice("dctcp"));
    set("ecn", Value::Flag(true));
    let timestamps = case["timestamps"] != "0";
    set("timestamps", Value::Flag(timestamps));
    if !timestamps {
        set("header", Value::Size(Size::Bytes(Bytes::new(40))));
        set("sack_blocks", Value::Integer(4));
    }
    // How long the receive window grows: as in the vectors of single flows.
    set("quick_acks_growing", Value::Integer(22 + u64::from(timestamps)));
    Profile::resolve(&mut settings).expect("consistent")
}

/// Linux's DCTCP sets ECT on each packet, even on a SYN; endpoints with an echo do not.
fn without_code_points(sent: Vec<(Instant, Said)>) -> Vec<(Instant, Said)> {
    sent.into_iter().map(|(at, said)| (at, Said { ecn: Ecn::NotEct, ..said })).collect()
}

/// Returns the same rows at a later time.
fn later(rows: &[Row], phase: Span) -> Vec<Row> {
    let shift = |row: &Row| {
        let mut row = row.clone();
        row.insert("time_ns".into(), (number(&row["time_ns"]) + phase.as_ns()).to_string());
        row
    };
    rows.iter().map(shift).collect()
}

#[test]
fn the_receiver_echoes_what_the_kernels_echoes() {
    let mut differences = Vec::new();
    for case in table(FOLDER, "cases.csv") {
        let (name, profile) = (&case["case"], profile(&case));
        let rows = table(FOLDER, &format!("{name}.csv"));
        let sent = kernels(&rows);
        let echoes = sent.iter().filter(|(_, said)| said.flags.has(Flags::ECE)).count();
        assert!(sent.len() >= 80 && echoes >= 4, "{name}: {} {echoes}", sent.len());
        // Gaps between segments are measured in ticks, whose phase is not known.
        let found: Vec<Result<(), String>> = (0..10)
            .map(|tenth| {
                let rows = later(&rows, Span::us(100 * tenth));
                let mut endpoint = Endpoint::new(Role::Passive, &profile);
                let ours = replay(&mut endpoint, &rows, None, &profile, |_| ()).sent;
                compare(&without_code_points(kernels(&rows)), &without_code_points(ours), CLOCK)
            })
            .collect();
        if found.iter().all(Result::is_err) {
            differences
                .extend(found.into_iter().filter_map(Result::err).map(|text| format!("{name}: {text}")));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
