//! A slow model of BLUE, written from the paper's text (Feng, Kandlur, Saha, Shin: "The BLUE active queue
//! management algorithms", 2002, section III). The author of the model had not read the law under test, and
//! the model shares no code with it.
//!
//! > Upon packet loss (or `Q_len` > L) event: if ((now - `last_update`) > `freeze_time`) then
//! > `p_m` = `p_m` + d1; `last_update` = now.
//! > Upon link idle event: if ((now - `last_update`) > `freeze_time`) then
//! > `p_m` = `p_m` - d2; `last_update` = now.
//!
//! The model keeps no state that could become wrong. First it computes the whole history of the
//! link from the list of arrivals, by the definition of a first-in first-out link. Then it reads
//! the paper's events off that history and computes `p_m` from them, in integers. Which packets
//! BLUE chooses at random is an input, because the text does not specify the draws.

/// The outcome of the random decision that the queue under test made for an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The packet is not chosen, or is marked, and goes on to the buffer.
    Goes,
    /// The packet is chosen and dropped.
    Dropped,
}

/// The events that count as a packet loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The paper: a packet that finds the buffer full.
    Overflow,
    /// ns-3: in addition, BLUE's own random drops.
    OwnDropsToo,
}

/// The events that count as a link idle event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// The link runs out of packets.
    RunsOut,
    /// The same, and also each arrival that BLUE drops at an idle link, which then remains idle.
    RunsOutOrStaysSo,
}

/// One queue. Times are in nanoseconds. Probabilities are integers, and `one` stands for probability 1.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// largest number of waiting packets, excluding the one in transmission
    pub limit: usize,
    /// L, in waiting packets
    pub threshold: Option<usize>,
    /// transmission time of a packet
    pub service: u64,
    pub freeze_time: u64,
    pub d1: u64,
    pub d2: u64,
    /// `p_m` = 1
    pub one: u64,
    pub loss: Loss,
    pub idle: Idle,
}

/// An event that the paper or a variant of it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Overflow,
    AboveThreshold,
    OwnDrop,
    /// the link runs out of packets
    Idle,
    /// the link stays idle after a drop by BLUE itself
    StillIdle,
}

/// An event: its time, the arrival that caused it (for `What::Idle`: the next arrival), and `p_m`
/// after it.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub at: u64,
    pub arrival: usize,
    pub what: What,
    /// whether the event moved `last_update`; otherwise it fell within the freeze time
    pub counted: bool,
    pub p: u64,
}

/// Returns all events that the arrivals cause, up to the end of the last transmission. The arrivals (time,
/// outcome of the draw) are in chronological order.
pub fn history(rules: &Rules, arrivals: &[(u64, Told)]) -> Vec<Event> {
    sum(rules, events(rules, arrivals))
}

/// A packet that was admitted.
struct Carried {
    arrival: usize,
    starts: u64,
    ends: u64,
}

/// Returns the paper's events in chronological order. A departure comes before an arrival at the same
/// instant, and an arrival's events follow the order of the text.
fn events(rules: &Rules, arrivals: &[(u64, Told)]) -> Vec<(u64, usize, What)> {
    let mut carried: Vec<Carried> = Vec::new();
    let mut found = Vec::new();
    for (number, (at, told)) in arrivals.iter().enumerate() {
        let waiting = carried.iter().rev().take_while(|pkt| pkt.starts > *at).count();
        if rules.threshold.is_some_and(|l| waiting > l) {
            found.push((*at, number, What::AboveThreshold));
        }
        if *told == Told::Dropped {
            found.push((*at, number, What::OwnDrop));
            if rules.idle == Idle::RunsOutOrStaysSo && carried.last().is_none_or(|last| last.ends <= *at) {
                found.push((*at, number, What::StillIdle));
            }
        } else if waiting >= rules.limit {
            found.push((*at, number, What::Overflow));
        } else {
            let starts = carried.last().map_or(*at, |last| last.ends.max(*at));
            carried.push(Carried { arrival: number, starts, ends: starts + rules.service });
        }
    }
    for (number, pkt) in carried.iter().enumerate() {
        let next = carried.get(number + 1).map(|next| arrivals[next.arrival].0);
        if next.is_none_or(|next| next >= pkt.ends) {
            // The event precedes the first arrival whose time is at or after the end of transmission.
            let before = (pkt.arrival..arrivals.len()).find(|n| arrivals[*n].0 >= pkt.ends);
            found.push((pkt.ends, before.unwrap_or(arrivals.len()), What::Idle));
        }
    }
    found.sort_by_key(|(at, number, what)| (*at, *number, *what != What::Idle));
    found
}

/// Computes `p_m` after each of the events.
fn sum(rules: &Rules, events: Vec<(u64, usize, What)>) -> Vec<Event> {
    let (mut p, mut last_update) = (0_u64, None);
    let judge = |(at, arrival, what)| {
        let frozen = last_update.is_some_and(|last| at - last <= rules.freeze_time);
        let next = match what {
            _ if frozen => None,
            What::Overflow | What::AboveThreshold => Some((p + rules.d1).min(rules.one)),
            What::OwnDrop => (rules.loss == Loss::OwnDropsToo).then(|| (p + rules.d1).min(rules.one)),
            What::Idle | What::StillIdle => Some(p.saturating_sub(rules.d2)),
        };
        if let Some(next) = next {
            (p, last_update) = (next, Some(at));
        }
        Event { at, arrival, what, counted: next.is_some(), p }
    };
    events.into_iter().map(judge).collect()
}

/// Applies the paper's law to the events of the known answer: losses at 0, 50, 110, 150 and 300 ms, and an
/// idle link at 350 and 450 ms. With steps of 0.0025 and 0.00025 and a freeze time of 100 ms, the probability
/// is 0.0075 and then 0.00725.
#[test]
fn the_model_knows_the_known_answer() {
    let rules = Rules {
        limit: 1,
        threshold: None,
        service: 1,
        freeze_time: 100_000_000,
        d1: 250,
        d2: 25,
        one: 100_000,
        loss: Loss::Overflow,
        idle: Idle::RunsOut,
    };
    let losses = [0, 50, 110, 150, 300].map(|ms| (ms * 1_000_000, 0, What::Overflow));
    let idle = [350, 450].map(|ms| (ms * 1_000_000, 0, What::Idle));
    let p: Vec<u64> = sum(&rules, [&losses[..], &idle].concat()).iter().map(|event| event.p).collect();
    assert_eq!(p, [250, 250, 500, 500, 750, 750, 725]);
}
