//! AccECN compared with Linux 7.3 in virtual time: `vectors/linux-accurate-ecn` records what arrives at the kernel's
//! receiver, with chosen marks, and what it sends. An endpoint to which the same segments arrive at the same times must
//! acknowledge at the same times, with the same ACE and the same counters in its options.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Endpoint, Profile, Role, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};
use support::one_side::{compare, kernels, replay};
use support::vectors::{Row, number, table};

const FOLDER: &str = "linux-accurate-ecn";

/// The limit on the difference between two times: timers of the kernel fire at ticks of 1 ms, whose phase the vectors
/// do not contain.
const CLOCK: Span = Span::ms(1);

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

#[test]
fn the_receiver_reports_what_the_kernels_reports() {
    for case in table(FOLDER, "cases.csv") {
        let rows = table(FOLDER, &format!("{}.csv", case["case"]));
        let (kernels, profile) = (kernels(&rows), profile(&case));
        let ours = replay(&mut Endpoint::new(Role::Passive, &profile), &rows, None, &profile, |_| ()).sent;
        assert!(kernels.len() >= 40, "{}", case["case"]);
        if let Err(difference) = compare(&kernels, &ours, CLOCK) {
            panic!("{}: {difference}", case["case"]);
        }
    }
}
