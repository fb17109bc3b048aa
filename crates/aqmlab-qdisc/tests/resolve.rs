//! Effective parameters of RED and Adaptive RED: known answers, presets, checks and their messages.

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::{Effective, LinkContext, registry};
use aqmlab_units::text::{Size, parse_size};
use aqmlab_units::{Bytes, Packets, Rate, Span};

/// The known-answer link: C = 2032.52 packets of 615 B per second.
const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(10),
    delay: Span::ms(1),
    rtt: Some(Span::ms(80)),
    flows: Some(20),
    mean_packet: Bytes::new(615),
};

fn given(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        settings.set(name, value.clone(), Origin::Given);
    }
    settings
}

fn size(text: &str) -> Value {
    Value::Size(parse_size(text).unwrap())
}

fn resolve(name: &str, settings: &Settings) -> Result<Effective, String> {
    registry::info(name).unwrap().resolve(settings, &LINK).map_err(|e| e.message)
}

fn effective(name: &str, values: &[(&'static str, Value)]) -> Effective {
    resolve(name, &given(values)).unwrap()
}

fn error(name: &str, values: &[(&'static str, Value)]) -> String {
    resolve(name, &given(values)).unwrap_err()
}

/// Returns a threshold in packets of 615 B.
fn packets(settings: &Settings, name: &'static str) -> f64 {
    match settings.size(name).unwrap() {
        Size::Packets(n) => n.as_f64(),
        Size::Bytes(n) => n.as_f64() / 615.0,
        Size::Bdp(_) | Size::Time(_) => panic!("not resolved"),
    }
}

#[test]
fn known_answers_of_the_automatic_parameters() {
    let target = [("target", Value::Span(Span::ms(10)))];
    let ared = effective("ared", &target);
    assert!((packets(&ared, "min_th") - 10.163).abs() < 1e-3);
    assert!((packets(&ared, "max_th") - 30.488).abs() < 1e-3);
    assert!((ared.number("w_q").unwrap() - 4.9188e-4).abs() < 5e-9);
    assert_eq!(ared.number("max_p"), Ok(0.1));
    // The ns-2 rule agrees with the paper's when R is at its minimum, 100 ms.
    let ns2 = effective("ared", &[target[0].clone(), ("w_rule", Value::Choice("ns2"))]);
    assert!((ns2.number("w_q").unwrap() - 4.9188e-4).abs() < 5e-9);
    let fast = effective("ared", &[("w_rule", Value::Choice("ns2_fast"))]);
    assert!((fast.number("w_q").unwrap() - 4.907_916_6e-3).abs() < 1e-9);
}

#[test]
fn the_plain_default_is_the_paper_with_five_and_fifteen() {
    let red = effective("red", &[]);
    assert_eq!(red.size("min_th"), Ok(Size::Packets(Packets::new(5))));
    assert_eq!(red.size("max_th"), Ok(Size::Packets(Packets::new(15))));
    assert_eq!(red.number("w_q"), Ok(0.002));
    assert_eq!(red.flag("gentle"), Ok(false));
    assert_eq!(red.flag("ecn"), Ok(false));
    assert_eq!(red.choice("ecn_region"), Ok("rfc3168"));
    // 10 Mbit/s * 80 ms = 100 000 B = 162.6 packets of 615 B.
    assert_eq!(red.size("limit"), Ok(Size::Packets(Packets::new(163))));
}

#[test]
fn nothing_automatic_is_left_and_a_second_resolution_changes_nothing() {
    for info in registry::catalogue() {
        for preset in info.presets.iter().map(|p| p.name) {
            // Shapers and GRED have required parameters, and their limit is that of a queue or class inside.
            let shaper = ["tbf", "htb", "gred"].contains(&info.name);
            let once = if shaper {
                let mut sample = (info.samples)().remove(0).1;
                sample.set("preset", Value::Choice(preset), Origin::Given);
                resolve(info.name, &sample).unwrap()
            } else {
                effective(info.name, &[("preset", Value::Choice(preset))])
            };
            for s in once.iter() {
                assert_ne!(s.value, Value::Auto, "{} {preset} {}", info.name, s.name);
            }
            assert_eq!(once.iter().count(), info.params.len());
            assert_eq!(resolve(info.name, &once), Ok(once), "{} {preset}", info.name);
            if shaper || info.params.iter().all(|param| param.name != "limit") {
                continue;
            }
            // A preset does not replace a limit that is given relative to the link.
            let given = effective(info.name, &[("preset", Value::Choice(preset)), ("limit", size("2bdp"))]);
            let mean = match given.size("mean_packet") {
                Ok(Size::Bytes(mean)) => mean,
                _ => LINK.mean_packet, // CoDel has no `mean_packet`
            };
            let limit = match given.size("limit").unwrap() {
                Size::Packets(n) => n.as_f64() * mean.as_f64(),
                Size::Bytes(n) => n.as_f64(),
                Size::Bdp(_) | Size::Time(_) => panic!("not resolved"),
            };
            assert!((limit - 200_000.0).abs() <= mean.as_f64() / 2.0, "{} {preset}: {limit}", info.name);
            assert_eq!(resolve(info.name, &given), Ok(given), "{} {preset}", info.name);
        }
    }
}

#[test]
fn presets_yield_to_what_is_given_and_leave_their_name() {
    let red = effective("red", &[("preset", Value::Choice("ns2")), ("max_p", Value::Number(0.3))]);
    assert_eq!(red.number("max_p"), Ok(0.3));
    assert_eq!(red.choice("uniformisation"), Ok("ns2_wait"));
    let origin = red.iter().find(|s| s.name == "uniformisation").map(|s| s.origin.clone());
    assert_eq!(origin, Some(Origin::Profile("ns2".into())));
}

#[test]
fn the_linux_preset_derives_like_tc() {
    // tc: max = limit / 4, min = max / 3, burst = (2 min + max) / (3 avpkt), w = 2^-Wlog.
    let red = effective("red", &[("preset", Value::Choice("linux")), ("limit", size("120kB"))]);
    assert_eq!(red.size("max_th"), Ok(Size::Bytes(Bytes::new(30_000))));
    assert_eq!(red.size("min_th"), Ok(Size::Bytes(Bytes::new(10_000))));
    assert_eq!(red.integer("burst"), Ok(50_000 / (3 * 615)));
    let w = red.number("w_q").unwrap();
    assert_eq!(w.log2().fract(), 0.0, "{w} is a power of two");
    assert_eq!(red.number("max_p"), Ok(0.02));
}

#[test]
fn the_ns2_bottom_depends_on_the_rate() {
    let ns2 = effective("ared", &[("preset", Value::Choice("ns2"))]);
    assert_eq!(ns2.number("bottom"), Ok(0.008));
    assert_eq!(effective("ared", &[]).number("bottom"), Ok(0.01));
}

#[test]
fn a_bdp_becomes_the_unit_that_the_queue_is_measured_in() {
    let bytes = [("measure", Value::Choice("bytes")), ("limit", size("2bdp"))];
    assert_eq!(effective("red", &bytes).size("limit"), Ok(Size::Bytes(Bytes::new(200_000))));
    assert_eq!(effective("red", &bytes[1..]).size("limit"), Ok(Size::Packets(Packets::new(325))));
}

#[test]
fn what_does_not_fit_is_refused_with_both_values() {
    let refused = |values: &[(&'static str, Value)]| error("red", values);
    assert_eq!(
        refused(&[("min_th", size("30p")), ("max_th", size("10p"))]),
        "min_th `30p` exceeds max_th `10p`"
    );
    assert_eq!(
        refused(&[("max_th", size("30p")), ("limit", size("20p"))]),
        "max_th `30p` exceeds limit `20p`"
    );
    assert_eq!(
        refused(&[("min_th", size("7kB")), ("max_th", size("10p"))]),
        "min_th `7kB` exceeds max_th `10p`"
    );
    assert_eq!(refused(&[("limit", size("600B"))]), "limit `600B` is smaller than one packet of `615B`");
    assert_eq!(
        refused(&[("w_rule", Value::Choice("linux")), ("burst", Value::Integer(2))]),
        "burst `2` is too small for min_th; it must be at least 5"
    );
    let linux = |burst, min_th| {
        let burst = ("burst", Value::Integer(burst));
        refused(&[("w_rule", Value::Choice("linux")), burst, ("min_th", size(min_th))])
    };
    assert_eq!(
        linux(10, "600B"),
        "min_th must be at least one packet of mean size: tc finds no weight below that"
    );
    assert_eq!(
        linux(1_000_000, "5p"),
        "burst `1000000` is too large: tc finds no weight of at least 2^-31 for it"
    );
    let ends = [("bottom", Value::Number(0.6)), ("top", Value::Number(0.5))];
    assert_eq!(error("ared", &ends), "bottom `0.6` exceeds top `0.5`");
}

/// tc gives `min 1200` the `max` 3600 at any limit, and Linux accepts it.
#[test]
fn only_linux_allows_a_max_th_above_the_limit() {
    let linux = ("preset", Value::Choice("linux"));
    let given = [linux, ("limit", size("3kB")), ("min_th", size("1200B")), ("burst", Value::Integer(2))];
    let red = effective("red", &given);
    assert_eq!(red.size("max_th"), Ok(Size::Bytes(Bytes::new(3600))));
    assert_eq!(error("red", &given[1..3]), "max_th `3.6kB` exceeds limit `3kB`");
}

#[test]
fn pi_is_the_paper_unless_said_otherwise() {
    let pi = effective("pi", &[]);
    let numbers = ["a", "b", "w"].map(|name| pi.number(name).unwrap());
    assert_eq!(numbers, [1.822e-5, 1.816e-5, 160.0]);
    assert_eq!(pi.size("q_ref"), Ok(Size::Packets(Packets::new(200))));
    // The paper's buffer is 800 packets, more than the bandwidth-delay product of 162.6 packets.
    assert_eq!(pi.size("limit"), Ok(Size::Packets(Packets::new(800))));
    assert_eq!(effective("pi", &[("limit", size("90p"))]).size("q_ref"), Ok(Size::Packets(Packets::new(45))));

    let ns2 = effective("pi", &[("preset", Value::Choice("ns2"))]);
    assert_eq!((ns2.number("w"), ns2.size("q_ref")), (Ok(170.0), Ok(Size::Packets(Packets::new(50)))));
}

/// The coefficient table of ns-2.35 (tcl/ex/pi), obtained from the parameters of a scenario.
#[test]
fn the_design_rule_gives_the_coefficients_of_ns2() {
    let link = LinkContext { rate: Rate::mbit(1), mean_packet: Bytes::new(100), flows: Some(10), ..LINK };
    let values = [
        ("gains", Value::Choice("auto")),
        ("rtt", Value::Span(Span::ms(100))),
        ("w_g", Value::Number(1.6)),
        ("w", Value::Number(160.0)),
    ];
    let pi = registry::info("pi").unwrap().resolve(&given(&values), &link).unwrap();
    assert!((pi.number("a").unwrap() - 2.084_418_985e-4).abs() < 1e-13);
    assert!((pi.number("b").unwrap() - 2.063_678_498e-4).abs() < 1e-13);
    assert_eq!(pi.integer("flows"), Ok(10));
    let origin = pi.iter().find(|s| s.name == "a").map(|s| s.origin.clone());
    let Some(Origin::Derived(rule)) = origin else { panic!("{origin:?}") };
    // 90 - atan(0.16) - 0.16 rad - 1.6 / 320 rad: 71.5 degrees.
    assert!(rule.ends_with("phase margin 71.5 degrees"), "{rule}");
}

#[test]
fn the_design_rule_takes_flows_and_round_trip_time_of_the_link() {
    let pi = effective("pi", &[("gains", Value::Choice("auto")), ("q_ref", size("20p"))]);
    // R = 80 ms + 20 / 2032.52 s; the pole 2 * 20 / (R^2 C) = 2.44 rad/s is less than 0.4 / R.
    let rtt = 0.08 + 20.0 / 2_032.520_325;
    assert!((pi.span("rtt").unwrap().as_secs_f64() - rtt).abs() < 1e-9);
    let pole = 40.0 / (rtt * rtt * 2_032.520_325);
    assert!((pi.number("w_g").unwrap() / pole - 1.0).abs() < 1e-6);
    assert!((pi.number("w").unwrap() - 100.0 * pole).abs() < 6e-4);
    let written_out: Vec<_> = pi.iter().map(|s| (s.name, s.value.clone())).collect();
    assert_eq!(effective("pi", &written_out).number("a"), pi.number("a"), "the full text is the same");
    let few = effective("pi", &[("gains", Value::Choice("auto")), ("flows", Value::Integer(1))]);
    assert_eq!(few.number("w"), Ok(160.0), "a slow loop is sampled no more slowly than the paper's");
    let many = effective("pi", &[("gains", Value::Choice("auto")), ("flows", Value::Integer(1000))]);
    let (w_g, rtt) = (many.number("w_g").unwrap(), many.span("rtt").unwrap().as_secs_f64());
    assert!((w_g * rtt - 0.4).abs() < 1e-9, "{w_g} at {rtt} s");
}

/// The published gains on the link for which they were designed, on a slower one, and on one that they cannot
/// stabilise.
#[test]
fn the_phase_margin_of_given_gains() {
    let margin = |values: &[(&'static str, Value)], link: &LinkContext| {
        let settings = registry::info("pi").unwrap().resolve(&given(values), link).unwrap();
        aqmlab_qdisc::disc::pi_phase_margin(&settings).unwrap().map(|(_, margin)| margin)
    };
    let paper = LinkContext { rate: Rate::mbit(15), mean_packet: Bytes::new(500), flows: Some(60), ..LINK };
    let at = |ms| [("rtt", Value::Span(Span::ms(ms)))];
    let own = margin(&at(246), &paper).unwrap();
    assert!((74.0..76.0).contains(&own), "{own}");
    assert!(margin(&at(2000), &paper).unwrap() < 0.0);
    assert_eq!(margin(&[], &LinkContext { flows: None, ..paper }), None);
}

#[test]
fn controllers_refuse_what_cannot_work() {
    let tall = [("q_ref", size("30p")), ("limit", size("20p"))];
    let told = "q_ref `30p` exceeds limit `20p`, so no queue can reach it; write at most the limit";
    assert_eq!((error("pi", &tall), error("rem", &tall)), (told.into(), told.into()));
    assert_eq!(
        error("pi", &[("a", Value::Number(1e-5))]),
        "b `0.00001816` is not less than a `0.00001`, so nothing drives the queue to q_ref; write a smaller b"
    );
    let twice = [("gains", Value::Choice("auto")), ("b", Value::Number(1e-5))];
    let told = error("pi", &twice);
    assert!(
        told.starts_with("gains `auto` derives b `")
            && told.ends_with("but `0.00001` is given; leave one of them out"),
        "{told}"
    );
    let nobody = LinkContext { flows: None, ..LINK };
    let auto = given(&[("gains", Value::Choice("auto"))]);
    assert_eq!(
        registry::info("pi").unwrap().resolve(&auto, &nobody).unwrap_err().message,
        "gains `auto` needs the number of TCP flows of this link, which is not known; write flows"
    );
    let one = [("preset", Value::Choice("ns2")), ("limit", size("1p"))];
    assert_eq!(
        error("rem", &one),
        "limit `1p` with limit_rule `below` admits no packet; write a larger limit"
    );
}

#[test]
fn rem_decides_where_ns2_does_only_in_its_preset() {
    let decide = |preset, ecn| {
        let rem = effective("rem", &[("preset", Value::Choice(preset)), ("ecn", Value::Flag(ecn))]);
        rem.choice("decide").unwrap()
    };
    assert_eq!(
        [("paper", true), ("ns2", false), ("ns2", true)].map(|(p, e)| decide(p, e)),
        ["enqueue", "enqueue", "dequeue"]
    );
}

#[test]
fn a_size_may_be_the_time_that_it_takes_to_leave() {
    // At 12 Mbit/s, 30 000 bytes leave in 20 ms: 20 packets of 1500 bytes or 40 of 750.
    let link = LinkContext {
        rate: Rate::mbit(12),
        delay: Span::ms(10),
        rtt: None,
        flows: Some(10),
        mean_packet: Bytes::new(1500),
    };
    let q_ref = |name: &str, more: &[(&'static str, Value)]| {
        let mut given = Settings::default();
        given.set("q_ref", Value::Size(Size::Time(Span::ms(20))), Origin::Given);
        given.set("limit", Value::Size(Size::Time(Span::ms(100))), Origin::Given);
        more.iter().for_each(|(key, value)| given.set(key, value.clone(), Origin::Given));
        let resolved = registry::info(name).unwrap().resolve(&given, &link).unwrap();
        let origin = resolved.iter().find(|s| s.name == "q_ref").unwrap().origin.clone();
        let rule = matches!(&origin, Origin::Derived(rule) if rule.contains("20ms at 12Mbit"));
        assert!(rule, "{origin:?}");
        (resolved.size("q_ref").unwrap(), resolved.size("limit").unwrap())
    };
    let packets = |n| Size::Packets(Packets::new(n));
    let bytes = |n| Size::Bytes(Bytes::new(n));
    for name in ["pi", "rem"] {
        assert_eq!(q_ref(name, &[]), (packets(20), packets(100)));
        assert_eq!(q_ref(name, &[("mean_packet", Value::Size(bytes(750)))]), (packets(40), packets(200)));
        assert_eq!(q_ref(name, &[("measure", Value::Choice("bytes"))]), (bytes(30_000), bytes(150_000)));
    }
}
