//! Texts parse exactly and survive a round trip, and errors name the accepted form.
use aqmlab_units::text::{ParseError, Size, parse_bytes, parse_packets, parse_rate, parse_size, parse_span};
use aqmlab_units::{Bytes, LinkClock, Packets, Rate, Span};
use proptest::prelude::*;

proptest! {
    #[test]
    fn printing_then_parsing_gives_the_same_value(n in any::<u64>()) {
        prop_assert_eq!(parse_rate(&Rate::bps(n).to_string()), Ok(Rate::bps(n)));
        prop_assert_eq!(parse_span(&Span::ns(n).to_string()), Ok(Span::ns(n)));
        prop_assert_eq!(parse_bytes(&Bytes::new(n).to_string()), Ok(Bytes::new(n)));
        prop_assert_eq!(parse_packets(&Packets::new(n).to_string()), Ok(Packets::new(n)));
    }

    #[test]
    fn any_text_is_parsed_or_refused_without_panic(s in "\\PC*") {
        let _ = (parse_rate(&s), parse_span(&s), parse_bytes(&s), parse_packets(&s), parse_size(&s));
    }

    #[test]
    fn serialisation_times_sum_to_the_exact_time(rate in 1u64..400_000_000_000, sizes in prop::collection::vec(1u64..70_000, 1..200)) {
        let mut clock = LinkClock::new(Rate::bps(rate));
        let total: u128 = sizes.iter().map(|&s| u128::from(clock.serialise(Bytes::new(s)).as_ns())).sum();
        let bits: u128 = sizes.iter().map(|&s| u128::from(s) * 8).sum();
        prop_assert_eq!(total, bits * 1_000_000_000 / u128::from(rate));
    }
}

#[test]
fn decimals_are_exact() {
    assert_eq!(parse_span("0.1ms"), Ok(Span::us(100)));
    assert_eq!(parse_span("1.5 s"), Ok(Span::ms(1500)));
    assert_eq!(parse_rate("1.544Mbit"), Ok(Rate::bps(1_544_000)));
    assert_eq!(parse_rate("10Mbit/s"), Ok(Rate::mbit(10)));
    assert_eq!(parse_rate("10Mbps"), Ok(Rate::mbit(10)));
    assert_eq!(parse_bytes("128KiB"), Ok(Bytes::new(131_072)));
    assert_eq!(parse_size("1.5bdp"), Ok(Size::Bdp(1.5)));
    assert_eq!(parse_size("36p"), Ok(Size::Packets(Packets::new(36))));
    assert_eq!(parse_size("123kB"), Ok(Size::Bytes(Bytes::new(123_000))));
}

#[test]
fn an_exponent_is_read_as_programs_print_it() {
    assert_eq!(parse_span("9.6e-05s"), Ok(Span::us(96)));
    assert_eq!(Span::us(96).to_string(), "96us");
    assert_eq!(parse_span("1E-3 s"), Ok(Span::ms(1)));
    assert_eq!(parse_span("0e-400s"), Ok(Span::ZERO));
    assert_eq!(parse_rate("1.544e+06bit"), Ok(Rate::bps(1_544_000)));
    assert_eq!(parse_rate("1e6bps"), Ok(Rate::mbit(1)));
    assert_eq!(parse_bytes("1.5e3B"), Ok(Bytes::new(1500)));
    assert_eq!(parse_size("3.6e1p"), Ok(Size::Packets(Packets::new(36))));
    assert_eq!(parse_size("5e-1bdp"), Ok(Size::Bdp(0.5)));
}

#[test]
fn messages_say_what_would_be_right() {
    let say = |e: ParseError| e.to_string();
    assert_eq!(
        say(parse_rate("10MB").unwrap_err()),
        "`10MB` has the unit `MB`, which does not fit here; write a rate such as \"10Mbit\" (bit, kbit, Mbit, Gbit, Tbit)"
    );
    assert_eq!(
        say(parse_span("40").unwrap_err()),
        "`40` has no unit; write a time such as \"40ms\" (ns, us, ms, s, min, h)"
    );
    assert_eq!(say(parse_span("-4ms").unwrap_err()), "`-4ms` is negative; it must be zero or more");
    assert_eq!(say(parse_packets("1.5p").unwrap_err()), "`1.5p` is finer than 1 packet");
    assert_eq!(
        say(parse_span("1es").unwrap_err()),
        "`1es` has the unit `es`, which does not fit here; write a time such as \"40ms\" (ns, us, ms, s, min, h)"
    );
    assert_eq!(say(parse_span("9.6e-10s").unwrap_err()), "`9.6e-10s` is finer than 1 ns");
    assert_eq!(say(parse_span("1e-400s").unwrap_err()), "`1e-400s` is finer than 1 ns");
    assert_eq!(say(parse_span("1e99999999999s").unwrap_err()), "`1e99999999999s` is too large");
    assert_eq!(say(parse_span("-1e-3s").unwrap_err()), "`-1e-3s` is negative; it must be zero or more");
    assert_eq!(say(parse_span("99999999999999s").unwrap_err()), "`99999999999999s` is too large");
    assert_eq!(
        say(parse_rate("NaN").unwrap_err()),
        "`NaN` is not a number with a unit; write a rate such as \"10Mbit\" (bit, kbit, Mbit, Gbit, Tbit)"
    );
}

/// A known unit in another case or spelling is refused, and the message contains the right one.
#[test]
fn a_misspelt_unit_gets_the_right_one() {
    let meant = |e: Option<ParseError>| match e {
        Some(ParseError::WrongUnit { meant: Some(meant), .. }) => meant,
        other => panic!("{other:?}"),
    };
    for (text, right) in [
        ("10mbit", "\"10Mbit\""),
        ("10MBIT", "\"10Mbit\""),
        ("10 mbit/s", "\"10Mbit\""),
        ("2.5gbit", "\"2.5Gbit\""),
        ("10Mb", "\"10Mbit\""),
        ("10M", "\"10Mbit\""),
        ("64Kbits", "\"64kbit\""),
        ("1e3KBIT", "\"1e3kbit\""),
        ("10mbps", "\"10Mbit\" or, with `mbps` as in tc, \"80Mbit\""),
        ("1.5MB/s", "\"12Mbit\", which is as many bits"),
        ("100KiB/s", "\"819.2kbit\", which is as many bits"),
    ] {
        assert_eq!(meant(parse_rate(text).err()), right, "{text}");
    }
    for (text, right) in [
        ("40MS", "\"40ms\""),
        ("40msec", "\"40ms\""),
        ("40\u{b5}s", "\"40us\""),
        ("5S", "\"5s\""),
        ("5sec", "\"5s\""),
        ("2m", "\"2min\""),
        ("2 hours", "\"2h\""),
    ] {
        assert_eq!(meant(parse_span(text).err()), right, "{text}");
    }
    for (text, right) in [
        ("64KB", "\"64kB\" or \"64KiB\""),
        ("64kb", "\"64kB\" or \"64KiB\""),
        ("1mb", "\"1MB\" or \"1MiB\""),
        ("1500b", "\"1500B\""),
        ("64kib", "\"64KiB\""),
        ("64K", "\"64kB\" or \"64KiB\""),
    ] {
        assert_eq!(meant(parse_bytes(text).err()), right, "{text}");
        assert_eq!(meant(parse_size(text).err()), right, "{text}");
    }
    for (text, right) in [
        ("36P", "\"36p\""),
        ("36 packets", "\"36p\""),
        ("1BDP", "\"1bdp\""),
        ("20MS", "\"20ms\""),
        ("1M", "\"1MB\" or \"1MiB\""),
    ] {
        assert_eq!(meant(parse_size(text).err()), right, "{text}");
    }
    // These units belong to another quantity.
    for text in ["10MB", "10ms", "10p", "10KiB"] {
        assert!(matches!(parse_rate(text), Err(ParseError::WrongUnit { meant: None, .. })), "{text}");
    }
    assert_eq!(
        parse_rate("10mbit").unwrap_err().to_string(),
        "`10mbit` has the unknown unit `mbit`; did you mean \"10Mbit\"?"
    );
}
