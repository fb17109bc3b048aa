//! The parameter table and the profiles agree.

use aqmlab_params::{Kind, Origin, Param, Value};
use aqmlab_transport::{Profile, profile_settings, profiles};
use aqmlab_units::{Span, text::Size};

fn fits(param: &Param, value: &Value) -> bool {
    match (param.kind, value) {
        (_, Value::Auto) | (Kind::Flag, Value::Flag(_)) => true,
        (Kind::Integer { min, max } | Kind::Limit { min, max }, Value::Integer(n)) => (min..=max).contains(n),
        (Kind::Limit { .. }, Value::Unlimited) => true,
        (Kind::Span { min, max }, Value::Span(s)) => (min..=max).contains(s),
        (Kind::Bytes { min, max }, Value::Size(Size::Bytes(b))) => (min..=max).contains(&b.get()),
        (Kind::Number { min, max }, Value::Number(x)) => (min..=max).contains(x),
        (Kind::NumberAbove { above, max }, Value::Number(x)) => *x > above && *x <= max,
        (Kind::Choice(words) | Kind::Open(words), Value::Choice(word)) => words.contains(word),
        _ => false,
    }
}

#[test]
fn names_are_unique_and_explained() {
    let mut names: Vec<&str> =
        Profile::TABLE.iter().flat_map(|p| p.aliases.iter().map(|a| a.name).chain([p.name])).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a name or alias denotes one parameter");
    assert!(Profile::TABLE.iter().all(|p| !p.help.is_empty() && !p.source.is_empty()));
}

#[test]
fn each_profile_sets_known_parameters_within_their_range() {
    for info in profiles() {
        let settings = profile_settings(info.name).expect("listed");
        assert_eq!(settings.iter().count(), Profile::TABLE.len(), "{}", info.name);
        for setting in settings.iter() {
            let param = Profile::TABLE.iter().find(|p| p.name == setting.name).expect("in the table");
            assert!(fits(param, &setting.value), "{}: {} = {}", info.name, setting.name, setting.value);
        }
        assert!(Profile::named(info.name).is_some());
        assert!(!info.summary.is_empty());
    }
    assert!(profile_settings("freebsd").is_none());
}

#[test]
fn each_value_of_a_profile_has_a_source_and_stands_once() {
    for info in profiles() {
        let mut names: Vec<&str> = info.values.iter().map(|v| v.pair.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), info.values.len(), "{}", info.name);
        for bundled in info.values {
            assert!(!bundled.source.is_empty() && bundled.pair.1 != Value::Auto, "{}", bundled.pair.0);
        }
    }
}

#[test]
fn what_is_automatic_is_resolved_in_the_settings_by_the_rule_of_the_table() {
    for (mss, recovery, window, guard) in
        [(1095, "reno", 4, "rfc5681"), (1096, "newreno", 3, "rfc6582"), (2191, "sack", 2, "rfc6582")]
    {
        let mut settings = profile_settings("rfc").expect("built in");
        settings.set("mss", Value::Size(Size::Bytes(aqmlab_units::Bytes::new(mss))), Origin::Given);
        settings.set("recovery", Value::Choice(recovery), Origin::Given);
        let profile = Profile::resolve(&mut settings).expect("consistent");
        assert_eq!(settings.get("initial_window"), Some(&Value::Integer(window)));
        assert_eq!(settings.get("fast_retransmit_guard"), Some(&Value::Choice(guard)));
        assert_eq!((profile.initial_window, profile.fast_retransmit_guard.word()), (window as f64, guard));
        assert!(settings.iter().all(|setting| setting.value != Value::Auto));
        let derived = settings.iter().filter(|setting| matches!(setting.origin, Origin::Derived(_)));
        assert_eq!(derived.count(), 15);
    }
    for (profile, congestion, recovery, exit) in [
        ("rfc", "cubic", "sack", "none"),
        ("linux", "reno", "sack", "none"),
        ("linux", "cubic", "sack", "hystart"),
        ("linux", "cubic", "newreno", "hystart"),
        ("linux", "cubic", "reno", "none"),
        ("modern", "cubic", "newreno", "hystart++"),
    ] {
        let mut settings = profile_settings(profile).expect("built in");
        settings.set("congestion", Value::Choice(congestion), Origin::Given);
        settings.set("recovery", Value::Choice(recovery), Origin::Given);
        Profile::resolve(&mut settings).expect("consistent");
        assert_eq!(settings.get("slow_start_exit"), Some(&Value::Choice(exit)), "{profile} {congestion}");
    }
    // Each rule of Linux follows the base of reductions, unless it is given.
    for (base, as_linux) in [("flight", false), ("window", false), ("congestion_window", true)] {
        let mut settings = profile_settings("rfc").expect("built in");
        settings.set("reduction_base", Value::Choice(base), Origin::Given);
        settings.set("echo_opens", Value::Flag(!as_linux), Origin::Given);
        let profile = Profile::resolve(&mut settings).expect("consistent");
        let flags = [
            profile.count_segments,
            profile.dctcp_segments,
            profile.whole_segments,
            profile.recovery_ends_with_mark,
            profile.undo_to_reduction,
            !profile.probe_counts,
        ];
        assert_eq!((flags, profile.echo_opens), ([as_linux; 6], !as_linux), "{base}");
        assert_eq!(profile.prr_base.word(), if as_linux { base } else { "flight" });
    }
    let mut settings = profile_settings("rfc").expect("built in");
    settings.set("initial_window", Value::Integer(9), Origin::Given);
    assert_eq!(Profile::resolve(&mut settings).expect("consistent").initial_window, 9.0);
    assert!(settings.is_given("initial_window"));
}

#[test]
fn ns2_has_the_defaults_of_ns2() {
    let p = Profile::named("ns2").expect("built in");
    assert_eq!((p.mss, p.header, p.max_window, p.initial_window), (1000, 40, 20, 2.0));
    assert_eq!((p.granularity, p.min_rto), (Span::ms(10), Span::ms(200)));
    assert_eq!((p.initial_rto, p.max_rto, p.delayed_ack), (Span::s(3), Span::s(60), Span::ms(100)));
}

#[test]
fn contradictions_are_refused_with_the_parameter_that_is_wrong() {
    for (name, value) in [
        ("min_rto", Value::Span(Span::s(61))),
        ("initial_rto", Value::Span(Span::s(61))),
        ("syn_fallback_rto", Value::Span(Span::s(61))),
        ("receive_window", Value::Size(Size::Bytes(aqmlab_units::Bytes::new(1000)))),
        ("mss", Value::Integer(5)),
        ("mss", Value::Size(Size::Bytes(aqmlab_units::Bytes::new(65_496)))),
    ] {
        let mut settings = profile_settings("rfc").expect("built in");
        settings.set(name, value, Origin::Given);
        assert_eq!(Profile::resolve(&mut settings).expect_err(name).name, name);
    }
}

#[test]
fn a_control_that_tracks_segments_refuses_what_does_not() {
    for (name, value, wrong) in [
        ("recovery", Value::Choice("reno"), "recovery"),
        ("send_jitter", Value::Span(Span::ms(1)), "send_jitter"),
    ] {
        for control in ["bbr", "bbr3", "prague"] {
            let mut settings = profile_settings("rfc").expect("built in");
            settings.set("congestion", Value::Choice(control), Origin::Given);
            settings.set("ecn", Value::Flag(true), Origin::Given);
            assert!(Profile::resolve(&mut settings.clone()).expect("consistent").lists_segments());
            settings.set(name, value.clone(), Origin::Given);
            assert_eq!(Profile::resolve(&mut settings).expect_err(name).name, wrong);
        }
    }
}

#[test]
fn what_is_unlimited_is_more_than_any_number() {
    let profile = Profile::named("ns2").expect("built in");
    assert_eq!(
        (profile.syn_retries, profile.data_retries, profile.max_burst),
        (u32::MAX, u32::MAX, u32::MAX)
    );
    for param in Profile::TABLE {
        if let Kind::Limit { max, .. } = param.kind {
            assert!(max < u64::from(u32::MAX), "{}", param.name);
        }
    }
}
