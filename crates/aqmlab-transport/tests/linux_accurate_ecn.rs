//! AccECN compared with Linux 7.3 in virtual time: `vectors/linux-accurate-ecn` records what arrives at the kernel's
//! receiver, with chosen marks, and what it sends. An endpoint to which the same segments arrive at the same times must
//! acknowledge at the same times, with the same ACE and the same counters in its options.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{
    AccEcnOption, EcnCounters, Endpoint, Extras, Flags, Options, Profile, Role, Segment, profile_settings,
};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Ecn, Instant, Span};
use support::vectors::{Row, number, table};

const FOLDER: &str = "linux-accurate-ecn";

/// The limit on the difference between two times: timers of the kernel fire at ticks of 1 ms, whose phase the vectors
/// do not contain.
const CLOCK: Span = Span::ms(1);

/// What a segment says: acknowledgment, flags, ACE, the code point of its packet, and the fields of its option.
type Said = (u32, Flags, u8, Ecn, [Option<u32>; 3]);

fn profile(case: &Row) -> Profile {
    let mut settings = profile_settings("linux").expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("ecn", Value::Flag(true));
    set("ecn_feedback", Value::Choice("accurate"));
    set("ecn_option", Value::Choice(if case["option"] == "0" { "none" } else { "full" }));
    set("ect_on_ack", Value::Flag(true));
    let timestamps = case["timestamps"] != "0";
    set("timestamps", Value::Flag(timestamps));
    if !timestamps {
        set("header", Value::Size(Size::Bytes(Bytes::new(40))));
        set("sack_blocks", Value::Integer(4));
    }
    set("ack_each_change", Value::Flag(true));
    // How long the receive window grows depends on the buffer and the length of segments (measured).
    let short = timestamps && case["option"] != "0";
    let growing = match number(&case["receive_buffer"]) {
        131_072 if short => 11,
        131_072 => 12,
        _ => 339,
    };
    set("quick_acks_growing", Value::Integer(growing));
    Profile::resolve(&mut settings).expect("consistent")
}

fn code_point(row: &Row) -> Ecn {
    match &*row["ecn"] {
        "not-ect" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        other => panic!("{other}"),
    }
}

fn flags(row: &Row) -> Flags {
    row["flags"].chars().fold(Flags::NONE.with_ace(number(&row["ace"]) as u8), |flags, letter| {
        flags
            | match letter {
                'S' => Flags::SYN,
                'A' => Flags::ACK,
                'F' => Flags::FIN,
                other => panic!("{other}"),
            }
    })
}

fn field(row: &Row, name: &str) -> Option<u32> {
    (!row[name].is_empty()).then(|| number(&row[name]) as u32)
}

fn option(row: &Row) -> AccEcnOption {
    let Some(ect0_bytes) = field(row, "ee0b") else { return AccEcnOption::NONE };
    let (ce_bytes, ect1_bytes) = (number(&row["eceb"]) as u32, number(&row["ee1b"]) as u32);
    AccEcnOption::new(&EcnCounters { ce_packets: 0, ce_bytes, ect0_bytes, ect1_bytes }, 1, 3)
}

fn segment(row: &Row) -> Segment {
    let syn = row["flags"].contains('S');
    Segment {
        seq: number(&row["sequence"]) as u32,
        ack: number(&row["ack"]) as u32,
        len: number(&row["length"]) as u32,
        flags: flags(row),
        window: 1 << 20,
        ecn: code_point(row),
        extras: Extras::NONE.with_if(Extras::SACK_PERMITTED, syn),
        sack_len: 0,
    }
}

fn at(row: &Row) -> Instant {
    Instant::ZERO + Span::ms(1) + Span::ns(number(&row["time_ns"]))
}

/// Returns what our endpoint sends, and when.
fn ours(rows: &[Row], profile: &Profile) -> Vec<(Instant, Said)> {
    let mut endpoint = Endpoint::new(Role::Passive, profile);
    let mut sent = Vec::new();
    let mut drain = |endpoint: &mut Endpoint, now| {
        while let Some(segment) = endpoint.poll_transmit(now, profile) {
            let option = endpoint.options(&segment, profile).accurate_ecn;
            let said = (segment.ack, segment.flags, segment.flags.ace(), segment.ecn, option.fields());
            sent.push((now, said));
        }
        while endpoint.poll_event().is_some() {}
    };
    for row in rows.iter().filter(|row| row["event"] == "arrived") {
        while let Some(due) = endpoint.deadline().filter(|due| *due < at(row)) {
            endpoint.on_timer(due, profile);
            drain(&mut endpoint, due);
        }
        let options = Options { accurate_ecn: option(row), ..Options::NONE };
        endpoint.on_segment_with_options(at(row), &segment(row), &options, profile);
        drain(&mut endpoint, at(row));
    }
    while let Some(due) = endpoint.deadline() {
        endpoint.on_timer(due, profile);
        drain(&mut endpoint, due);
    }
    sent
}

#[test]
fn the_receiver_reports_what_the_kernels_reports() {
    for case in table(FOLDER, "cases.csv") {
        let rows = table(FOLDER, &format!("{}.csv", case["case"]));
        let kernels: Vec<(Instant, Said)> = rows
            .iter()
            .filter(|row| row["event"] == "sent")
            .map(|row| {
                let fields = [field(row, "ee0b"), field(row, "eceb"), field(row, "ee1b")];
                (at(row), (number(&row["ack"]) as u32, flags(row), flags(row).ace(), code_point(row), fields))
            })
            .collect();
        let ours = ours(&rows, &profile(&case));
        assert!(kernels.len() >= 40, "{}", case["case"]);
        for (n, (kernels, ours)) in kernels.iter().zip(&ours).enumerate() {
            assert_eq!(ours.1, kernels.1, "{}: segment {n}", case["case"]);
            let apart = ours.0.saturating_since(kernels.0).max(kernels.0.saturating_since(ours.0));
            assert!(apart <= CLOCK, "{}: segment {n} is {apart} apart", case["case"]);
        }
        assert_eq!(ours.len(), kernels.len(), "{}", case["case"]);
    }
}
