//! Reads one value by its kind: from a node of the tree to a checked [`Value`].

use aqmlab_params::{Automatic, Kind, Reading, Value};
use aqmlab_qdisc::Dscp;
use aqmlab_units::text::{self, BYTES_FORM, ParseError, RATE_FORM, SIZE_FORM, SPAN_FORM, Size};
use aqmlab_units::{Bytes, Packets, Span};

use crate::suggest::{listed, nearest, no_such};
use crate::tree::{Node, Tree};

/// Returns the value at `node`, checked against `kind`; `quoted` is its text in the file.
///
/// # Errors
/// Returns a sentence that states the offending value and the accepted ones.
pub(crate) fn value(node: &Node, kind: &Kind, quoted: &str) -> Result<Value, String> {
    match kind {
        Kind::Flag => match node.value {
            Tree::Flag(b) => Ok(Value::Flag(b)),
            _ => Err(wrong(node, quoted, "true or false")),
        },
        Kind::Integer { min, max } => integer(node, *min, *max, quoted).map(Value::Integer),
        Kind::Port => integer(node, 0, 65_535, quoted).map(Value::Integer),
        Kind::Limit { min, max } => limit(node, *min, *max, quoted),
        Kind::Number { min, max } => {
            number(node, quoted, &format!("a number from {min} to {max}"), |x| x >= *min && x <= *max)
        }
        Kind::NumberAbove { above, max } => {
            let form = format!("a number above {above}, at most {max}");
            number(node, quoted, &form, |x| x > *above && x <= *max)
        }
        Kind::Span { min, max } => {
            let v = text::parse_span(quantity(node, quoted, SPAN_FORM)?).map_err(|e| remedied(&e, kind))?;
            within(v, *min, *max, quoted).map(Value::Span)
        }
        Kind::Rate { min, max } => {
            let v = text::parse_rate(quantity(node, quoted, RATE_FORM)?).map_err(|e| remedied(&e, kind))?;
            within(v, *min, *max, quoted).map(Value::Rate)
        }
        Kind::Bytes { min, max } => {
            let v = text::parse_bytes(quantity(node, quoted, BYTES_FORM)?).map_err(|e| remedied(&e, kind))?;
            within(v, Bytes::new(*min), Bytes::new(*max), quoted).map(|b| Value::Size(Size::Bytes(b)))
        }
        Kind::Size { min } => size(node, *min, quoted),
        Kind::Choice(words) => choice(node, words, quoted).map(Value::Choice),
        Kind::Open(words) => match &node.value {
            Tree::Text(s) => Ok(match words.iter().find(|word| *word == s) {
                Some(word) => Value::Choice(word),
                None => Value::Text(s.clone()),
            }),
            _ => Err(wrong(node, quoted, &form(kind))),
        },
        Kind::Dscp => match &node.value {
            Tree::Text(name) => match Dscp::named(name) {
                Some(dscp) => Ok(Value::Integer(u64::from(dscp.0))),
                None => Err(no_such("code point", name, Dscp::NAMES.iter().map(|(name, _)| *name))),
            },
            _ => whole(node, 0, u64::from(Dscp::MAX.0), quoted, &form(kind)).map(Value::Integer),
        },
        Kind::Text => match &node.value {
            Tree::Text(s) => Ok(Value::Text(s.clone())),
            _ => Err(wrong(node, quoted, "a string")),
        },
        _ => Err(format!("`{quoted}` is of a kind that scenarios cannot express yet")),
    }
}

/// Converts the value at `node`, written under another tool's name for a parameter, to the notation
/// that belongs to the parameter's own name. Returns `node` unchanged if it already has that form,
/// or if it is wrong.
pub(crate) fn as_ours(node: &Node, reading: Reading) -> Node {
    let on = match node.value {
        Tree::Flag(on) => Some(on),
        Tree::Integer(0) => Some(false),
        Tree::Integer(1) => Some(true),
        _ => None,
    };
    let value = match (reading, &node.value, on) {
        (Reading::Automatic { .. }, number, _) if is_automatic(number, reading).is_some() => {
            Tree::Text(Value::AUTO.into())
        }
        (Reading::In(unit) | Reading::Automatic { unit: Some(unit), .. }, Tree::Integer(n), _) => {
            Tree::Text(format!("{n}{unit}"))
        }
        (Reading::In(unit) | Reading::Automatic { unit: Some(unit), .. }, Tree::Float(x), _) => {
            Tree::Text(format!("{x}{unit}"))
        }
        (Reading::Switch, _, Some(on)) => Tree::Flag(on),
        (Reading::Words(yes, no), _, Some(on)) => Tree::Text(if on { yes } else { no }.into()),
        (Reading::ZeroIsUnlimited, Tree::Integer(0), _) => Tree::Text(Value::UNLIMITED.into()),
        (Reading::Inverse, Tree::Integer(n), _) if *n != 0 => Tree::Float(1.0 / *n as f64),
        (Reading::Inverse, Tree::Float(x), _) if *x != 0.0 => Tree::Float(1.0 / x),
        _ => return node.clone(),
    };
    Node { at: node.at.clone(), value }
}

/// Returns the request for an automatic value that a bare number is under another tool's name for a
/// parameter, if it is one.
pub(crate) fn is_automatic(value: &Tree, reading: Reading) -> Option<&'static Automatic> {
    match value {
        Tree::Integer(n) => reading.automatic(*n as f64),
        Tree::Float(x) => reading.automatic(*x),
        _ => None,
    }
}

/// Returns how values of a kind are written in a scenario, for messages and the reference.
pub(crate) fn form(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "true or false".to_string(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Limit { min, max } => {
            format!("a whole number from {min} to {max}, or \"{}\"", Value::UNLIMITED)
        }
        Kind::Number { min, max } => format!("a number from {min} to {max}"),
        Kind::NumberAbove { above, max } => format!("a number above {above}, at most {max}"),
        Kind::Span { min, max } => format!("a time from {min} to {max}"),
        Kind::Rate { min, max } => format!("a rate from {min} to {max}"),
        Kind::Bytes { min, max } => format!("a size from {} to {}", Bytes::new(*min), Bytes::new(*max)),
        Kind::Size { .. } => SIZE_FORM.to_string(),
        Kind::Choice(words) => format!("one of {}", listed(words.iter().copied())),
        Kind::Open(words) => format!("{}, or another name", listed(words.iter().copied())),
        Kind::Dscp => format!("a whole number from 0 to {}, or a name such as \"EF\"", Dscp::MAX.0),
        Kind::TrafficClass => "the name of a traffic class".to_string(),
        Kind::Port => form(&Kind::Integer { min: 0, max: 65_535 }),
        Kind::List(of) => format!("a list, each item {}", form(of)),
        Kind::Table(params) => {
            format!("a table with the keys {}", listed(params.iter().map(|p| p.name)))
        }
        Kind::Discipline => "a discipline's name, or `{ kind = .., .. }`".to_string(),
        _ => "a string".to_string(),
    }
}

/// Returns one of `words`.
fn choice(node: &Node, words: &[&'static str], quoted: &str) -> Result<&'static str, String> {
    let Tree::Text(given) = &node.value else {
        return Err(wrong(node, quoted, &format!("one of {}", listed(words.iter().copied()))));
    };
    words.iter().copied().find(|w| w == given).ok_or_else(|| match nearest(given, words.iter().copied()) {
        Some(near) => format!("unknown word {given:?}; did you mean \"{near}\"?"),
        None => format!("unknown word {given:?}; write one of {}", listed(words.iter().copied())),
    })
}

fn wrong(node: &Node, quoted: &str, expected: &str) -> String {
    format!("`{quoted}` is {}; write {expected}", node.value.what())
}

/// Returns what is wrong with a quantity, with the accepted form if the message of `error` does not state it.
fn remedied(error: &ParseError, kind: &Kind) -> String {
    match error {
        ParseError::TooFine { .. } | ParseError::TooLarge { .. } => format!("{error}; write {}", form(kind)),
        _ => error.to_string(),
    }
}

/// Returns the text of a quantity at `node`. The error for a bare number asks for a unit.
fn quantity<'n>(node: &'n Node, quoted: &str, expected: &str) -> Result<&'n str, String> {
    match &node.value {
        Tree::Text(s) => Ok(s),
        Tree::Integer(_) | Tree::Float(_) => Err(format!("`{quoted}` has no unit; write {expected}")),
        _ => Err(wrong(node, quoted, expected)),
    }
}

fn integer(node: &Node, min: u64, max: u64, quoted: &str) -> Result<u64, String> {
    whole(node, min, max, quoted, &form(&Kind::Integer { min, max }))
}

/// Returns a whole number, or the value that stands for "no limit".
fn limit(node: &Node, min: u64, max: u64, quoted: &str) -> Result<Value, String> {
    let expected = form(&Kind::Limit { min, max });
    match &node.value {
        Tree::Text(word) if word == Value::UNLIMITED => Ok(Value::Unlimited),
        Tree::Text(word) => Err(format!("unknown word {word:?}; write {expected}")),
        _ => whole(node, min, max, quoted, &expected).map(Value::Integer),
    }
}

fn whole(node: &Node, min: u64, max: u64, quoted: &str, expected: &str) -> Result<u64, String> {
    let Tree::Integer(n) = node.value else { return Err(wrong(node, quoted, expected)) };
    match u64::try_from(n) {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(format!("`{quoted}` is out of range; write {expected}")),
    }
}

fn number(node: &Node, quoted: &str, expected: &str, fits: impl Fn(f64) -> bool) -> Result<Value, String> {
    let x = match node.value {
        Tree::Integer(n) => n as f64,
        Tree::Float(x) => x,
        _ => return Err(wrong(node, quoted, expected)),
    };
    // NaN fits no range: every comparison with it is false.
    if fits(x) { Ok(Value::Number(x)) } else { Err(format!("`{quoted}` is out of range; write {expected}")) }
}

fn within<T: PartialOrd + std::fmt::Display>(v: T, min: T, max: T, quoted: &str) -> Result<T, String> {
    let quoted = quoted.trim_matches(['"', '\'']);
    if v < min {
        Err(format!("`{quoted}` is too small; it must be at least {min}"))
    } else if v > max {
        Err(format!("`{quoted}` is too large; it must be at most {max}"))
    } else {
        Ok(v)
    }
}

fn size(node: &Node, min: Packets, quoted: &str) -> Result<Value, String> {
    let size = text::parse_size(quantity(node, quoted, SIZE_FORM)?)
        .map_err(|e| remedied(&e, &Kind::Size { min }))?;
    let (count, unit) = match size {
        Size::Packets(n) => (n.get(), "p"),
        Size::Bytes(n) => (n.get(), "B"),
        Size::Bdp(x) if min.get() > 0 && x == 0.0 => {
            return Err(format!("`{size}` is too small; it must be above zero"));
        }
        // The limit exceeds any real buffer. It exists because the product of this number and a
        // bandwidth-delay product must remain a sensible size.
        Size::Bdp(x) if x > 1e6 => {
            return Err(format!("`{size}` is too large; it must be at most 1000000bdp"));
        }
        Size::Time(t) if min.get() > 0 && t.is_zero() => {
            return Err(format!("`{size}` is too small; it must be above zero"));
        }
        Size::Time(t) if t > Span::s(3600) => {
            return Err(format!("`{size}` is too large; it must be at most {}", Span::s(3600)));
        }
        Size::Bdp(_) | Size::Time(_) => return Ok(Value::Size(size)),
    };
    if count < min.get() {
        return Err(format!("`{size}` is too small; it must be at least {}{unit}", min.get()));
    }
    Ok(Value::Size(size))
}
