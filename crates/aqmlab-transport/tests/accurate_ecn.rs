//! AccECN (RFC 9768) between two endpoints: what one side hears of marks is what the other side has received, whatever
//! is marked, as long as acknowledgments arrive.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_random::Stream;
use aqmlab_transport::{Profile, profile_settings};
use aqmlab_units::{Bytes, Instant, Span, text::Size};
use support::{A, B, Fate, Faults, Pair, Path};

fn profile(name: &str, option: &'static str, more: &[(&'static str, &'static str)]) -> Profile {
    let mut settings = profile_settings(name).expect("built in");
    for flag in ["ecn", "dsack"] {
        settings.set(flag, Value::Flag(true), Origin::Given);
    }
    settings.set("ecn_feedback", Value::Choice("accurate"), Origin::Given);
    settings.set("ecn_option", Value::Choice(option), Origin::Given);
    settings.set("mss", Value::Size(Size::Bytes(Bytes::new(1000))), Origin::Given);
    for (name, word) in more {
        settings.set(name, Value::Choice(word), Origin::Given);
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// Marks and loses data with these chances.
fn faults(seed: u64, mark: f64, loss: f64) -> Faults {
    let mut draw = Stream::new(seed, "marks");
    Box::new(move |_, segment| match (draw.hit(loss), draw.hit(mark)) {
        (true, _) if segment.len > 0 => Fate::Drop,
        (_, true) if segment.len > 0 && segment.ecn.is_capable() => Fate::Mark,
        _ => Fate::Pass,
    })
}

/// The counters of both sides agree in the end: packets, and bytes where there are options.
#[test]
fn what_one_side_hears_is_what_the_other_has_received() {
    for name in ["rfc", "linux", "modern"] {
        for (control, recovery) in [("reno", "newreno"), ("cubic", "sack"), ("dctcp", "sack")] {
            for (option, seed) in [("none", 1), ("simple", 2), ("full", 3)] {
                for (mark, loss) in [(0.1, 0.0), (0.9, 0.0), (0.3, 0.02)] {
                    let profile = profile(name, option, &[("congestion", control), ("recovery", recovery)]);
                    let there = Path::plain(Span::ms(10), faults(seed, mark, loss));
                    let back = Path::plain(Span::ms(10), support::faultless());
                    let mut net = Pair::new(profile, [there, back]);
                    net.open(Instant::ZERO);
                    net.with(A, |e, _, _| {
                        e.write(300_000);
                        e.close();
                    });
                    net.run_until(Instant::ZERO + Span::s(3600));
                    let case = format!("{name} {control} {recovery} {option} {mark} {loss}");
                    assert_eq!(net.sides[B].delivered(), 300_000, "{case}");
                    let counters = |side: usize| net.sides[side].endpoint.ecn_counters().expect("AccECN");
                    let (received, heard) = (counters(B).0, counters(A).1);
                    // A sender that tracks segments with SACK knows how many each acknowledgment reports. Otherwise, duplicate
                    // acknowledgments show no progress, so that what they say is not heard.
                    let exact = option != "none" && name != "rfc" && recovery == "sack" || loss == 0.0;
                    if !exact {
                        // Where ACE may have wrapped, the larger number is the safer one.
                        assert!(heard.ce_packets >= received.ce_packets, "{case}");
                    } else {
                        assert_eq!(heard.ce_packets, received.ce_packets, "{case}");
                    }
                    assert!(received.ce_packets > 5 + 10, "{case}: {received:?}");
                    if option != "none" {
                        assert_eq!(
                            (heard.ce_bytes, heard.ect0_bytes),
                            (received.ce_bytes, received.ect0_bytes),
                            "{case}"
                        );
                    }
                    if loss == 0.0 {
                        assert_eq!(received.ce_bytes + received.ect0_bytes - 1, 300_000, "{case}");
                    }
                    assert!(net.sides[A].endpoint.counters().ecn_reductions > 0, "{case}");
                }
            }
        }
    }
}
