//! Ports of traffic classes in a port with classes. A class has one port for all of its flows, so that to go by port is to go
//! by traffic class: hosts need not know the port of each packet.

use aqmlab_params::{Settings, Value};

/// The traffic classes that a class of a port with classes names, by themselves or by their ports. `ports` has those of all
/// traffic classes.
pub(crate) fn taken_by(table: &Settings, ports: &[u16]) -> Vec<usize> {
    let mut taken = Vec::new();
    for value in
        table.list("traffic").unwrap_or_default().iter().chain(table.list("port").unwrap_or_default())
    {
        match value {
            Value::TrafficClass { number, .. } => taken.push(*number),
            Value::Integer(port) => {
                taken.extend((0..ports.len()).filter(|class| u64::from(ports[*class]) == *port));
            }
            _ => {}
        }
    }
    taken
}

/// `settings` of a queue, with the traffic classes in place of the ports of each class of a port with classes, in queues
/// inside of others as well.
pub(crate) fn by_traffic_class(settings: &Settings, ports: &[u16]) -> Settings {
    let mut by_class = Settings::default();
    for s in settings.iter() {
        by_class.set(s.name, within(&s.value, ports), s.origin.clone());
    }
    if let Some(Value::List(_)) = settings.get("port") {
        let one = |number: usize| Value::TrafficClass { name: number.to_string(), number };
        let taken = taken_by(settings, ports).into_iter().map(one).collect();
        for (name, value) in [("port", Value::Nothing), ("traffic", Value::List(taken))] {
            let origin = settings.iter().find(|s| s.name == "port").map(|s| s.origin.clone());
            by_class.set(name, value, origin.expect("it is there"));
        }
    }
    by_class
}

fn within(value: &Value, ports: &[u16]) -> Value {
    match value {
        Value::Table(settings) => Value::Table(by_traffic_class(settings, ports)),
        Value::List(items) => Value::List(items.iter().map(|item| within(item, ports)).collect()),
        Value::Discipline { kind, settings } => {
            Value::Discipline { kind, settings: by_traffic_class(settings, ports) }
        }
        other => other.clone(),
    }
}
