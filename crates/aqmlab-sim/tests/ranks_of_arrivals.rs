//! Packets that arrive over links at the same instant: their order does not depend on the order in
//! which the events were scheduled.
mod support;

use support::graph::graph;
use support::{record, summary};

/// The link b-c is always busy, and one packet waits. Packets of 0.8 ms arrive every 0.8 ms over
/// a-b, each in the same nanosecond in which b-c becomes free. There is room for one packet, so all
/// packets get through only if the departure comes first.
#[test]
fn a_departure_makes_room_for_the_arrival_of_its_instant() {
    let links = [("a", "b", "20Mbit", "1ms", None), ("b", "c", "10Mbit", "1ms", Some(1))];
    let streams = [("steady", "a", "c", "10Mbit", "0s"), ("one-more", "b", "c", "8kbit", "100.1ms")];
    let r = record(&graph("1s", &links, &streams), 1);
    assert_eq!(summary(&r, "b-c", "one-more", "arrivals_packets"), 1);
    assert_eq!(summary(&r, "b-c", "*", "dropped_overflow_packets"), 0);
    // From the arrival of the extra packet at 100.1 ms to the end of the run at 1 s, one packet
    // always waits.
    let waited = summary(&r, "b-c", "*", "backlog_packets_integral_ns");
    assert!((899_000_000..=900_000_000).contains(&waited), "{waited}");
}

/// `early` is scheduled 3 ms before it arrives, `late` 1 ms before. Both packets reach m in the
/// same nanosecond, and only one fits: the packet from the link that is first in the plan.
#[test]
fn simultaneous_arrivals_go_by_the_plan_not_by_who_was_scheduled_first() {
    let early = ("x", "m", "4Mbit", "3ms", None);
    let late = ("y", "m", "2Mbit", "1ms", None);
    let last = ("m", "z", "1Mbit", "1ms", Some(1));
    for (links, winner, loser) in
        [([early, late, last], "early", "late"), ([late, early, last], "late", "early")]
    {
        let streams = [("early", "x", "z", "1Mbit", "0s"), ("late", "y", "z", "1Mbit", "0s")];
        let r = record(&graph("4s", &links, &streams), 1);
        let dropped = |class| summary(&r, "m-z", class, "dropped_overflow_packets");
        assert_eq!(dropped(winner), 0, "{winner} first");
        assert!(dropped(loser) > 100, "{winner} first");
    }
}
