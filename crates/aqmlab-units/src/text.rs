//! The text form of quantities, which is the same everywhere: `"10Mbit"`, `"40ms"`, `"36p"`, `"123kB"`,
//! `"1.5bdp"`.
//!
//! Parsing is exact: `"0.1ms"` is 100 000 ns, not the float nearest to it. A value that is finer
//! than the unit of its type (`"0.3ns"`, `"1.5p"`) is an error and is never rounded. Numbers may
//! have an exponent, as in the output of many programs (`"9.6e-05s"` is 96 us). Printed numbers
//! have no exponent, and printing round-trips: the printed form of a value parses to the same
//! value.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::{Bytes, Instant, Packets, Rate, Span};

/// A size as written for a buffer or a threshold: in packets, in bytes, relative to the
/// bandwidth-delay product of the path, or as the time that the link takes to send it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// `"36p"`
    Packets(Packets),
    /// `"123kB"`
    Bytes(Bytes),
    /// `"1.5bdp"`: a multiple of capacity times base round-trip time
    Bdp(f64),
    /// `"20ms"`: the amount that the link sends in that time
    Time(Span),
}

/// The reason why a string cannot be parsed as the requested quantity. It prints as a sentence
/// without a full stop.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParseError {
    /// The text does not begin with a decimal number.
    NotANumber {
        /// the text
        text: String,
        /// the accepted form
        expected: &'static str,
    },
    /// The number has no unit.
    MissingUnit {
        /// the text
        text: String,
        /// the accepted form
        expected: &'static str,
    },
    /// The unit belongs to another quantity or to none.
    WrongUnit {
        /// the text
        text: String,
        /// its unit
        unit: String,
        /// the accepted form
        expected: &'static str,
        /// what was probably meant, if the unit is a known one in another spelling: the whole
        /// quantity in quotation marks, or two of them if the unit is ambiguous
        meant: Option<String>,
    },
    /// The value is below zero.
    Negative {
        /// the text
        text: String,
    },
    /// The value is finer than the smallest unit.
    TooFine {
        /// the text
        text: String,
        /// the smallest unit
        smallest: &'static str,
    },
    /// The value is too large for the type.
    TooLarge {
        /// the text
        text: String,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NotANumber { text, expected } => {
                write!(f, "`{text}` is not a number with a unit; write {expected}")
            }
            ParseError::MissingUnit { text, expected } => write!(f, "`{text}` has no unit; write {expected}"),
            ParseError::WrongUnit { text, unit, meant: Some(meant), .. } => {
                write!(f, "`{text}` has the unknown unit `{unit}`; did you mean {meant}?")
            }
            ParseError::WrongUnit { text, unit, expected, meant: None } => {
                write!(f, "`{text}` has the unit `{unit}`, which does not fit here; write {expected}")
            }
            ParseError::Negative { text } => write!(f, "`{text}` is negative; it must be zero or more"),
            ParseError::TooFine { text, smallest } => write!(f, "`{text}` is finer than {smallest}"),
            ParseError::TooLarge { text } => write!(f, "`{text}` is too large"),
        }
    }
}

impl core::error::Error for ParseError {}

/// The form of a rate, for messages and help.
pub const RATE_FORM: &str = "a rate such as \"10Mbit\" (bit, kbit, Mbit, Gbit, Tbit)";
/// The form of a time, for messages and help.
pub const SPAN_FORM: &str = "a time such as \"40ms\" (ns, us, ms, s, min, h)";
/// The form of a number of bytes, for messages and help.
pub const BYTES_FORM: &str = "a size such as \"1500B\" (B, kB, MB, GB, KiB, MiB, GiB)";
/// The form of a number of packets, for messages and help.
pub const PACKETS_FORM: &str = "a number of packets such as \"36p\"";
/// The form of a buffer or threshold, for messages and help.
pub const SIZE_FORM: &str = "packets (\"36p\"), bytes (\"123kB\"), bandwidth-delay products (\"1bdp\") or a time at the link's rate (\"20ms\")";

const RATE_UNITS: &[(&str, u64)] =
    &[("Tbit", 1_000_000_000_000), ("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
const SPAN_UNITS: &[(&str, u64)] = &[
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
const BYTE_UNITS: &[(&str, u64)] = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const PACKET_UNITS: &[(&str, u64)] = &[("p", 1)];

/// Units as other programs and people spell them, in lower case unless the case matters, with the unit that
/// they stand for.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("M", "MB"),
    ("G", "GB"),
    ("bits", "bit"),
    ("kbits", "kbit"),
    ("mbits", "Mbit"),
    ("gbits", "Gbit"),
    ("tbits", "Tbit"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("usec", "us"),
    ("usecs", "us"),
    ("\u{b5}s", "us"),
    ("\u{3bc}s", "us"),
    ("nsec", "ns"),
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hour", "h"),
    ("hours", "h"),
    ("byte", "B"),
    ("bytes", "B"),
    ("kbyte", "kB"),
    ("mbyte", "MB"),
    ("k", "kB"),
    ("pkt", "p"),
    ("pkts", "p"),
    ("packet", "p"),
    ("packets", "p"),
    ("bdps", "bdp"),
];
/// Further spellings of rates, which in sizes are bytes.
const SHORT_RATES: &[(&str, &str)] = &[("k", "kbit"), ("m", "Mbit"), ("g", "Gbit"), ("t", "Tbit")];

/// Parses `"10Mbit"`; `"10Mbit/s"` and `"10Mbps"` mean the same. In tc, `Mbps` is megabytes per second.
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let plain = text.strip_suffix("/s").unwrap_or(text);
    let plain =
        plain.strip_suffix("bps").map(|head| format!("{head}bit")).unwrap_or_else(|| plain.to_string());
    let parsed = scaled(text, &plain, RATE_UNITS, RATE_FORM, "1 bit/s").map(Rate::bps);
    parsed.map_err(|error| match error {
        ParseError::WrongUnit { text, expected, .. } => {
            let (number, unit) = split(&text, expected).unwrap_or_default();
            let (unit, meant) = (unit.to_string(), meant_rate(number, unit));
            ParseError::WrongUnit { text, unit, expected, meant }
        }
        other => other,
    })
}

/// Returns the rate that was probably meant by a number with this unit, in quotation marks.
fn meant_rate(number: &str, unit: &str) -> Option<String> {
    let bare = unit.strip_suffix("/s").unwrap_or(unit);
    let in_bytes = |prefix: &str| {
        let unit = format!("{prefix}B");
        let (unit, _) = BYTE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&unit))?;
        let bytes = parse_bytes(&format!("{number}{unit}")).ok()?;
        Some(Rate::bps(bytes.get().checked_mul(8)?))
    };
    // A capital B is a byte; without `/s`, the quantity may also be a size.
    if let Some(prefix) = bare.strip_suffix('B') {
        let rate = in_bytes(prefix).filter(|_| bare != unit)?;
        return Some(format!("\"{rate}\", which is as many bits"));
    }
    let lower = bare.to_ascii_lowercase();
    if let Some(prefix) = lower.strip_suffix("bps") {
        let (unit, _) =
            RATE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&format!("{prefix}bit")))?;
        let bytes = in_bytes(prefix)?;
        return Some(format!("\"{number}{unit}\" or, with `{lower}` as in tc, \"{bytes}\""));
    }
    let stem = lower.strip_suffix('b').unwrap_or(&lower);
    let short = SHORT_RATES.iter().find(|(spelling, _)| *spelling == stem).map(|(_, unit)| *unit);
    let unit = short.or_else(|| other_spelling(bare, RATE_UNITS.iter().map(|(name, _)| *name)))?;
    Some(format!("\"{number}{unit}\""))
}

/// Returns the unit among `units` that `unit` spells in another case or form.
fn other_spelling<'u>(unit: &str, units: impl Iterator<Item = &'u str> + Clone) -> Option<&'u str> {
    let lower = unit.to_lowercase();
    let spelt = OTHER_SPELLINGS.iter().filter(|(spelling, _)| *spelling == unit || *spelling == lower);
    let mut meant = spelt.filter_map(|(_, unit)| units.clone().find(|name| name == unit));
    units.clone().find(|name| name.eq_ignore_ascii_case(unit)).or_else(|| meant.next())
}

/// Returns the quantity that was probably meant by a number with this unit, in quotation marks. The
/// factor of `KB` is 1000 or 1024, depending on whom one asks.
fn meant<'u>(number: &str, unit: &str, units: impl Iterator<Item = &'u str> + Clone) -> Option<String> {
    let unit = other_spelling(unit, units.clone())?;
    let binary = match unit {
        "kB" => "KiB",
        "MB" => "MiB",
        "GB" => "GiB",
        _ => return Some(format!("\"{number}{unit}\"")),
    };
    Some(format!("\"{number}{unit}\" or \"{number}{binary}\""))
}

/// Parses `"40ms"`.
pub fn parse_span(text: &str) -> Result<Span, ParseError> {
    scaled(text, text, SPAN_UNITS, SPAN_FORM, "1 ns").map(Span::ns)
}

/// Parses `"1500B"`.
pub fn parse_bytes(text: &str) -> Result<Bytes, ParseError> {
    scaled(text, text, BYTE_UNITS, BYTES_FORM, "1 B").map(Bytes::new)
}

/// Parses `"36p"`.
pub fn parse_packets(text: &str) -> Result<Packets, ParseError> {
    scaled(text, text, PACKET_UNITS, PACKETS_FORM, "1 packet").map(Packets::new)
}

/// Parses packets, bytes, bandwidth-delay products or a time.
pub fn parse_size(text: &str) -> Result<Size, ParseError> {
    let (number, unit) = split(text, SIZE_FORM)?;
    match unit {
        "p" => {
            scaled(text, text, PACKET_UNITS, SIZE_FORM, "1 packet").map(|n| Size::Packets(Packets::new(n)))
        }
        "bdp" => {
            let value: f64 = number
                .parse()
                .map_err(|_| ParseError::NotANumber { text: text.to_string(), expected: SIZE_FORM })?;
            if value < 0.0 {
                return Err(ParseError::Negative { text: text.to_string() });
            }
            if value.is_finite() {
                Ok(Size::Bdp(value))
            } else {
                Err(ParseError::TooLarge { text: text.to_string() })
            }
        }
        _ if SPAN_UNITS.iter().any(|(name, _)| *name == unit) => parse_span(text).map(Size::Time),
        _ if BYTE_UNITS.iter().any(|(name, _)| *name == unit) => parse_bytes(text).map(Size::Bytes),
        _ => {
            let tables = [BYTE_UNITS, PACKET_UNITS, &[("bdp", 1)], SPAN_UNITS];
            let units = tables.into_iter().flatten().map(|(name, _)| *name);
            let (text, meant) = (text.to_string(), meant(number, unit, units));
            Err(ParseError::WrongUnit { text, unit: unit.to_string(), expected: SIZE_FORM, meant })
        }
    }
}

/// Splits `"12.5ms"` into `("12.5", "ms")`; blanks between them are allowed.
fn split<'a>(text: &'a str, expected: &'static str) -> Result<(&'a str, &'a str), ParseError> {
    let trimmed = text.trim();
    let end = trimmed
        .char_indices()
        .find(|&(i, c)| !(c.is_ascii_digit() || c == '.' || (i == 0 && (c == '-' || c == '+'))))
        .map_or(trimmed.len(), |(i, _)| i);
    let digits = trimmed[..end].trim_start_matches(['-', '+']);
    let end = end + exponent_len(&trimmed[end..]);
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
    let well_formed =
        digits.bytes().any(|b| b.is_ascii_digit()) && digits.bytes().filter(|&b| b == b'.').count() <= 1;
    if !well_formed {
        return Err(ParseError::NotANumber { text: text.to_string(), expected });
    }
    if unit.is_empty() {
        return Err(ParseError::MissingUnit { text: text.to_string(), expected });
    }
    Ok((number, unit))
}

/// Returns the length of the exponent with which `rest` begins, such as `e-05`.
fn exponent_len(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
    let signed = after.strip_prefix(['-', '+']).unwrap_or(after);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { 0 } else { rest.len() - signed.len() + digits }
}

/// Returns the exact value of `plain` in the smallest unit. Error messages quote `text`.
fn scaled(
    text: &str,
    plain: &str,
    units: &[(&str, u64)],
    expected: &'static str,
    smallest: &'static str,
) -> Result<u64, ParseError> {
    let (number, unit) = split(plain, expected).map_err(|e| requote(e, text))?;
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let (text, meant) = (text.to_string(), meant(number, unit, units.iter().map(|(name, _)| *name)));
        return Err(ParseError::WrongUnit { text, unit: unit.to_string(), expected, meant });
    };
    let too_large = || ParseError::TooLarge { text: text.to_string() };
    let negative = number.starts_with('-');
    let number = number.trim_start_matches(['-', '+']);
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |s: &str| if s.is_empty() { Ok(0u128) } else { s.parse::<u128>().map_err(|_| too_large()) };
    let denominator = 10u128.checked_pow(fraction.len() as u32).ok_or_else(too_large)?;
    let mantissa = digits(whole)?
        .checked_mul(denominator)
        .and_then(|n| n.checked_add(digits(fraction).ok()?))
        .ok_or_else(too_large)?;
    // An exponent that does not fit its type is replaced by the type's smallest or largest value; zero stays
    // zero with any exponent.
    let exponent =
        exponent.parse::<i32>().unwrap_or(if exponent.starts_with('-') { i32::MIN } else { i32::MAX });
    let power = 10u128.checked_pow(if mantissa == 0 { 0 } else { exponent.unsigned_abs() });
    let too_fine = || ParseError::TooFine { text: text.to_string(), smallest };
    let (raised, denominator) = if exponent < 0 {
        (Some(mantissa), power.and_then(|power| denominator.checked_mul(power)).ok_or_else(too_fine)?)
    } else {
        (power.and_then(|power| mantissa.checked_mul(power)), denominator)
    };
    let numerator = raised.and_then(|n| n.checked_mul(u128::from(factor))).ok_or_else(too_large)?;
    if negative && numerator > 0 {
        return Err(ParseError::Negative { text: text.to_string() });
    }
    if !numerator.is_multiple_of(denominator) {
        return Err(too_fine());
    }
    u64::try_from(numerator / denominator).map_err(|_| too_large())
}

/// Returns the same error, but quoting the user's text instead of its normalised form.
fn requote(error: ParseError, original: &str) -> ParseError {
    let text = original.to_string();
    match error {
        ParseError::NotANumber { expected, .. } => ParseError::NotANumber { text, expected },
        ParseError::MissingUnit { expected, .. } => ParseError::MissingUnit { text, expected },
        other => other,
    }
}

/// Prints `value` in the largest unit that needs at most three decimals, or else in the smallest.
fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let smallest = units.iter().find(|(_, factor)| *factor == 1).expect("each table has the unit 1");
    for &(name, factor) in units.iter().filter(|(_, factor)| value >= *factor) {
        let thousandths = u128::from(value) * 1000;
        if thousandths.is_multiple_of(u128::from(factor)) {
            let thousandths = thousandths / u128::from(factor);
            let (whole, fraction) = (thousandths / 1000, thousandths % 1000);
            if fraction == 0 {
                return write!(f, "{whole}{name}");
            }
            let fraction = format!("{fraction:03}");
            return write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'));
        }
    }
    write!(f, "{value}{}", smallest.0)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.as_bps(), RATE_UNITS)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Minutes and hours are accepted but not printed: "90s" reads better than "1.5min".
        print(f, self.as_ns(), &SPAN_UNITS[2..])
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Span::ns(self.as_ns()))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = [BYTE_UNITS[0], BYTE_UNITS[1], BYTE_UNITS[2], BYTE_UNITS[6]];
        print(f, self.get(), &decimal)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.get(), PACKET_UNITS)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Packets(n) => n.fmt(f),
            Size::Bytes(n) => n.fmt(f),
            Size::Bdp(x) => write!(f, "{x}bdp"),
            Size::Time(t) => t.fmt(f),
        }
    }
}
