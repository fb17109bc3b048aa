//! Reads what Linux did with the packets of several flows (`vectors/linux-flow-decisions`, `vectors/linux-gred`).

use std::path::PathBuf;

use aqmlab_units::Instant;

/// An event at the kernel's queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A packet arrives, and these packets are lost.
    Arrival(Arrival),
    /// The packet with this number leaves, marked or not.
    Departure { number: u64, marked: bool },
    /// Figures that the kernel's discipline reports about its own state.
    State(Vec<i64>),
}

/// An arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub number: u64,
    pub flow: u64,
    pub size: u64,
    pub capable: bool,
    /// The packets that are lost at this instant, in order of their numbers.
    pub lost: Vec<u64>,
}

/// Returns the events of a case of `vectors/linux-flow-decisions`.
pub fn events(case: &str) -> Vec<(Instant, Event)> {
    events_in("linux-flow-decisions", case)
}

/// Returns the events of a case of another folder of the same form.
pub fn events_in(folder: &str, case: &str) -> Vec<(Instant, Event)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder);
    let path = folder.join(format!("{case}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found: Vec<(Instant, Event)> = Vec::new();
    for line in text.lines().skip(1) {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<i64> = values.split(' ').map(|value| value.parse().expect(line)).collect();
        let value = |i: usize| values[i].unsigned_abs();
        let number = value(0);
        let event = match event {
            "arrived" => Event::Arrival(Arrival {
                number,
                flow: value(1),
                size: value(2),
                capable: values[3] == 1,
                lost: Vec::new(),
            }),
            "dropped" => {
                let Some((_, Event::Arrival(arrival))) = found.last_mut() else { panic!("{case}: {line}") };
                arrival.lost.push(number);
                arrival.lost.sort_unstable();
                continue;
            }
            "sent" | "marked" => Event::Departure { number, marked: event == "marked" },
            "state" => Event::State(values),
            _ => panic!("{case}: {line}"),
        };
        found.push((Instant::from_ns(at.parse().expect(line)), event));
    }
    found
}
