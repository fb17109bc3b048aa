//! How packets find their class: the parameters, and the classifier that results from them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_params::{Kind, ParamError, Row, Settings, Value, params};

use super::inner::RFC2475;
use super::{Classifier, MOST_CLASSES};

/// The parameter that lists the classes.
const CLASS: &str = "class";

params! {
    /// The parameters that name a class and select its packets.
    pub(super) struct Selector {
        /// name of the class; in recordings, its queue is called `link/name`
        name: String = Row::of(Kind::Text).source(RFC2475),
        /// traffic classes whose packets belong to this class
        traffic: Option<Vec<Value>> = selected(&Kind::TrafficClass),
        /// code points whose packets belong to this class
        dscp: Option<Vec<Value>> = selected(&Kind::Dscp),
        /// destination ports whose packets belong to this class; a packet whose destination port belongs to no
        /// class is matched by its source port
        port: Option<Vec<Value>> = selected(&Kind::Port),
    }
}

/// Returns a parameter that selects the packets of a class by a field of this kind.
const fn selected(kind: &'static Kind) -> Row<Option<Vec<Value>>> {
    Row::of(Kind::List(kind))
        .optional("another key selects the packets, or the class takes all that no other class takes")
        .source(RFC2475)
}

/// Returns the classes' names, which must differ.
pub(super) fn names(classes: &[Settings]) -> Result<Vec<String>, ParamError> {
    if !(1..=MOST_CLASSES).contains(&classes.len()) {
        let message = format!("there are {} classes; write 1 to {MOST_CLASSES}", classes.len());
        return Err(ParamError::new(CLASS, message));
    }
    let mut names: Vec<String> = Vec::new();
    for (i, class) in classes.iter().enumerate() {
        let wrong = |message: String| Err(wrong_class(i, Selector::name().name(), message));
        let Ok(name) = Selector::name().read(class) else {
            return wrong("`name` is missing; write a string".into());
        };
        if name.is_empty() || name.contains(['/', '*']) {
            return wrong(format!("`{name}` is not a name for a class; write a string without `/` or `*`"));
        }
        if names.contains(&name) {
            return wrong(format!("two classes are called `{name}`"));
        }
        names.push(name);
    }
    Ok(names)
}

/// Returns an error about the parameter `name` of class number `i`.
pub(super) fn wrong_class(i: usize, name: &'static str, message: String) -> ParamError {
    ParamError::new(name, message).under(CLASS, Some(i))
}

/// The parameters that select the packets of a class.
const MATCHES: [Row<Option<Vec<Value>>>; 3] = [Selector::traffic(), Selector::dscp(), Selector::port()];

/// Checks that each packet has one class: all classes use the same field, no value occurs twice,
/// and at most one class takes the rest.
pub(super) fn matches(
    classes: &mut dyn Iterator<Item = (usize, &Settings)>,
    names: &[String],
) -> Result<(), ParamError> {
    let mut by: Option<(&'static str, usize)> = None;
    let mut rest: Option<usize> = None;
    let mut seen: Vec<(Value, usize)> = Vec::new();
    for (i, class) in classes {
        let wrong = |name, message: String| Err(wrong_class(i, name, message));
        let mut written = Vec::new();
        for row in MATCHES {
            written.extend(row.read(class)?.map(|values| (row.name(), values)));
        }
        match (&written[..], by) {
            ([], _) => {
                if let Some(other) = rest.replace(i) {
                    let message = format!(
                        "classes `{}` and `{}` both take what no other class takes; write `traffic`, `dscp` or `port` for one of them",
                        names[other], names[i]
                    );
                    return wrong(Selector::name().name(), message);
                }
            }
            ([(name, _)], None) => by = Some((name, i)),
            ([(name, _)], Some((other, first))) if *name != other => {
                let message = format!(
                    "class `{}` matches by {name} and class `{}` by {other}: two classifiers for one packet; write only one of them",
                    names[i], names[first]
                );
                return wrong(name, message);
            }
            ([_], Some(_)) => {}
            ([(one, _), (other, _), ..], _) => {
                let message = format!(
                    "class `{}` matches by {one} and by {other}: two classifiers for one packet; write only one of them",
                    names[i]
                );
                return wrong(other, message);
            }
        }
        for (name, values) in written {
            for value in values {
                if let Some((_, other)) = seen.iter().find(|(of, _)| *of == value) {
                    let message = format!(
                        "{name} `{value}` already belongs to class `{}`; a packet has one class",
                        names[*other]
                    );
                    return wrong(name, message);
                }
                seen.push((value, i));
            }
        }
    }
    match (by, rest) {
        (Some((by, first)), None) if by != Selector::traffic().name() => {
            let message = format!(
                "no class takes packets with any other {by}; add a class without `{by}` for the rest"
            );
            Err(wrong_class(first, by, message))
        }
        _ => Ok(()),
    }
}

/// Returns the classifier, and the class of the packets that match none of its values: the class
/// that names no value or, if every class names one, the last.
pub(super) fn classifier(classes: &[Selector]) -> (Classifier, u16) {
    let (dscp, port) = (classes.iter().any(|c| c.dscp.is_some()), classes.iter().any(|c| c.port.is_some()));
    let values = |class: &Selector| match (dscp, port) {
        (true, _) => class.dscp.clone(),
        (false, true) => class.port.clone(),
        (false, false) => class.traffic.clone(),
    };
    let values: Vec<_> = classes.iter().map(values).collect();
    let last = classes.len() - 1;
    let names_none = values.iter().position(Option::is_none);
    let rest = if values.iter().all(Option::is_none) { last } else { names_none.unwrap_or(last) } as u16;
    let mut pairs: Vec<(usize, u16)> = Vec::new();
    for (i, value) in values.iter().enumerate().flat_map(|(i, v)| v.iter().flatten().map(move |v| (i, v))) {
        match value {
            Value::Integer(number) => pairs.push((*number as usize, i as u16)),
            named => pairs.extend(named.traffic_classes().iter().map(|number| (*number, i as u16))),
        }
    }
    let direct = |pairs: &[(usize, u16)]| {
        let mut classes = alloc::vec![rest; pairs.iter().map(|(key, _)| key + 1).max().unwrap_or(0)];
        pairs.iter().for_each(|(key, class)| classes[*key] = *class);
        classes
    };
    // In a scenario, each traffic class uses one port, so classes that name ports are matched
    // by traffic class.
    let of_scenario = || values.iter().flatten().any(|v| matches!(v[..], [Value::Port { .. }, ..]));
    let classifier = if dscp {
        Classifier::Dscp(direct(&pairs))
    } else if port && !of_scenario() {
        pairs.sort_unstable();
        Classifier::Port(pairs.into_iter().map(|(port, class)| (port as u16, class)).collect())
    } else {
        Classifier::TrafficClass(direct(&pairs))
    };
    (classifier, rest)
}
