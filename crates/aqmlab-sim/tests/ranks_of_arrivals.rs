//! Packets that come over links: what they meet at one instant, whichever event was scheduled first.
mod support;

use support::{record, summary};

/// The link b-c is always busy and one packet waits: packets of 0.8 ms arrive every 0.8 ms over a-b, each in
/// the nanosecond in which b-c becomes free. There is room for one, so none is lost only if the departure
/// goes first.
#[test]
fn a_departure_makes_room_for_the_arrival_of_its_instant() {
    let r = record(
        r#"
        duration = "1s"
        [topology]
        kind = "graph"
        access_rate = "none"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[node]]
        name = "c"
        [[link]]
        from = "a"
        to = "b"
        rate = "20Mbit"
        delay = "1ms"
        [[link]]
        from = "b"
        to = "c"
        rate = "10Mbit"
        delay = "1ms"
        queue = { kind = "droptail", limit = "1p" }
        [[traffic]]
        name = "steady"
        kind = "cbr"
        from = "a"
        to = "c"
        rate = "10Mbit"
        size = "1000B"
        [[traffic]]
        name = "one-more"
        kind = "cbr"
        from = "b"
        to = "c"
        rate = "8kbit"
        size = "1000B"
        start = "100.1ms"
        "#,
        1,
    );
    assert_eq!(summary(&r, "b-c", "one-more", "arrivals_packets"), 1);
    assert_eq!(summary(&r, "b-c", "*", "dropped_overflow_packets"), 0);
    // From then on one waits: 0.9 s less what the packets before it took on their way.
    let waited = summary(&r, "b-c", "*", "backlog_packets_integral_ns");
    assert!((899_000_000..=900_000_000).contains(&waited), "{waited}");
}

/// `early` is scheduled 3 ms before it arrives, `late` 1 ms before. Both reach m in one nanosecond, where one
/// finds room: that of the link which stands first in the plan.
#[test]
fn simultaneous_arrivals_go_by_the_plan_not_by_who_was_scheduled_first() {
    let early = "[[link]]\nfrom = \"x\"\nto = \"m\"\nrate = \"4Mbit\"\ndelay = \"3ms\"\n";
    let late = "[[link]]\nfrom = \"y\"\nto = \"m\"\nrate = \"2Mbit\"\ndelay = \"1ms\"\n";
    for (links, winner, loser) in
        [(format!("{early}{late}"), "early", "late"), (format!("{late}{early}"), "late", "early")]
    {
        let r = record(
            &format!(
                r#"
                duration = "4s"
                [topology]
                kind = "graph"
                access_rate = "none"
                [[node]]
                name = "x"
                [[node]]
                name = "y"
                [[node]]
                name = "m"
                [[node]]
                name = "z"
                {links}
                [[link]]
                from = "m"
                to = "z"
                rate = "1Mbit"
                delay = "1ms"
                queue = {{ kind = "droptail", limit = "1p" }}
                [[traffic]]
                name = "early"
                kind = "cbr"
                from = "x"
                to = "z"
                rate = "1Mbit"
                size = "1000B"
                [[traffic]]
                name = "late"
                kind = "cbr"
                from = "y"
                to = "z"
                rate = "1Mbit"
                size = "1000B"
                "#
            ),
            1,
        );
        let dropped = |class| summary(&r, "m-z", class, "dropped_overflow_packets");
        assert_eq!(dropped(winner), 0, "{winner} first");
        assert!(dropped(loser) > 100, "{winner} first");
    }
}
