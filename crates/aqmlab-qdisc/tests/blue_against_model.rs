//! BLUE compared with a slow model written from the paper's text (`support/blue_model.rs`), given the same
//! arrivals at one slow link: every overflow, every idle event, and the probability after every event.

use aqmlab_params::Value;
use aqmlab_qdisc::{Cause, Ecn, LinkContext, Observer, Port, Reason};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

#[path = "support/blue_model.rs"]
mod model;
mod support;
use model::{Event, Idle, Loss, Rules, Told, What};
use support::{Pkt, SIZE, build, law_value, packets, settings};

const LINK: LinkContext =
    LinkContext { rate: Rate::mbit(1), delay: Span::ms(1), rtt: None, flows: None, mean_packet: SIZE };
/// 1000 B at 1 Mbit/s, in nanoseconds.
const SERVICE: u64 = 8_000_000;
const ARRIVALS: usize = 1200;

/// The fate of one arrival.
#[derive(Default)]
struct Fate {
    lost: Option<Reason>,
    marked: bool,
}

impl<P> Observer<P> for Fate {
    fn dropped(&mut self, _: Instant, _: P, at: Cause) {
        self.lost = Some(at.reason);
    }
    fn marked(&mut self, _: Instant, _: &P, _: Cause) {
        self.marked = true;
    }
}

/// The queue's behaviour: the fates and probabilities at arrivals, and when its link ran out of packets.
#[derive(Default)]
struct Seen {
    arrivals: Vec<(u64, Fate, f64)>,
    emptied: Vec<(u64, f64)>,
}

fn ns(at: Instant) -> u64 {
    at.saturating_since(Instant::ZERO).as_ns()
}

fn probability(port: &Port<Pkt>, now: Instant) -> f64 {
    law_value(port.discipline(), now, "p")
}

/// Completes the link's transmissions up to and including `until`, because departures come before arrivals at
/// the same instant.
fn drain(port: &mut Port<Pkt>, until: Instant, seen: &mut Seen) {
    while let Some(now) = port.next_event().filter(|at| *at <= until) {
        let mut fate = Fate::default();
        let departure = port.link_free(now, &mut fate);
        assert!(fate.lost.is_none() && !fate.marked, "BLUE decides at arrival");
        if departure.next_end.is_none() {
            seen.emptied.push((ns(now), probability(port, now)));
        }
    }
}

fn judged(values: &[(&'static str, Value)], ecn: Ecn, arrivals: &[u64], seed: u64) -> Seen {
    let queue = build("blue", &settings(values), &LINK, Stream::new(seed, "blue"));
    let mut port = Port::new(queue, LINK.rate, Bytes::ZERO, 1);
    let mut seen = Seen::default();
    for at in arrivals {
        let now = Instant::from_ns(*at);
        drain(&mut port, now, &mut seen);
        let mut fate = Fate::default();
        port.arrive(now, Pkt { ecn, ..Pkt::new(0) }, &mut fate);
        seen.arrivals.push((*at, fate, probability(&port, now)));
    }
    drain(&mut port, Instant::FAR_FUTURE, &mut seen);
    seen
}

/// The kinds of arrivals. Arrivals that are synchronous with the link make events coincide.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    Poisson,
    Bursts,
    Overload,
    Pauses,
    InStep,
}

fn arrivals(traffic: Traffic, draws: &mut Stream) -> Vec<u64> {
    let load = 0.6 + 0.8 * draws.unit();
    let mut at = 0;
    let next = |n| {
        let poisson = draws.exponential() / load;
        let services = match traffic {
            Traffic::Poisson => poisson,
            Traffic::Bursts if n % 40 == 0 => 40.0 * poisson,
            Traffic::Bursts => 0.3 * poisson,
            Traffic::Overload => 0.7 * poisson,
            Traffic::Pauses if n % 100 == 99 => 500.0 * poisson,
            Traffic::Pauses => 0.8 * poisson,
            Traffic::InStep => [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 4.0][draws.below(7) as usize],
        };
        at += (services * SERVICE as f64) as u64;
        at
    };
    (0..ARRIVALS).map(next).collect()
}

/// A queue with random parameters, described for both the model and the registry.
struct Case {
    rules: Rules,
    values: Vec<(&'static str, Value)>,
    ecn: Ecn,
}

fn case(draws: &mut Stream, traffic: Traffic) -> Case {
    // Multiples of a negative power of two are exact in binary; those of a negative power of ten, as in the
    // paper, are not.
    let one = [1 << 12, 1_000_000][draws.below(2) as usize];
    let d1 = 1 + draws.below(one / 8);
    let d2 = 1 + draws.below(d1);
    let limit = 1 + draws.below(40);
    let threshold = Some(1 + draws.below(limit)).filter(|l| *l < limit && draws.below(3) == 0);
    let freeze_time = match traffic {
        Traffic::InStep => draws.below(5) * SERVICE,
        _ => [0, 1_000_000, 10_000_000, 100_000_000, draws.below(500_000_000)][draws.below(5) as usize],
    };
    let loss = [Loss::Overflow, Loss::OwnDropsToo][usize::from(draws.below(4) == 0)];
    let share = |parts: u64| Value::Number(parts as f64 / one as f64);
    let marks = draws.below(2) == 0;
    let mut values = vec![
        ("limit", packets(limit)),
        ("d1", share(d1)),
        ("d2", share(d2)),
        ("freeze_time", Value::Span(Span::ns(freeze_time))),
        ("ecn", Value::Flag(marks)),
        ("loss", Value::Choice(if loss == Loss::Overflow { "overflow" } else { "any_drop" })),
    ];
    values.extend(threshold.map(|l| ("threshold", packets(l))));
    let (limit, threshold) = (limit as usize, threshold.map(|l| l as usize));
    let rules = Rules {
        limit,
        threshold,
        service: SERVICE,
        freeze_time,
        d1,
        d2,
        one,
        loss,
        // If packets are marked, the law drops none, and the two readings of a link idle event are the same.
        idle: if marks { Idle::RunsOut } else { Idle::RunsOutOrStaysSo },
    };
    Case { rules, values, ecn: if marks { Ecn::Ect0 } else { Ecn::NotEct } }
}

/// Number of comparisons for each kind of event.
#[derive(Default, Debug)]
struct Counts {
    overflows: usize,
    above: usize,
    own_drops: usize,
    idle: usize,
    still_idle: usize,
    counted: usize,
    at_one: usize,
}

impl Counts {
    fn add(&mut self, events: &[Event], one: u64) {
        let count = |f: &dyn Fn(&Event) -> bool| events.iter().filter(|event| f(event)).count();
        self.overflows += count(&|event| event.what == What::Overflow);
        self.above += count(&|event| event.what == What::AboveThreshold);
        self.own_drops += count(&|event| event.what == What::OwnDrop);
        self.idle += count(&|event| event.what == What::Idle);
        self.still_idle += count(&|event| event.what == What::StillIdle);
        self.counted += count(&|event| event.counted);
        self.at_one += count(&|event| event.p == one);
    }
}

/// Compares the queue with the model; `name` identifies the run.
fn compare(name: &str, rules: &Rules, events: &[Event], seen: &Seen) {
    let overflows: Vec<usize> =
        events.iter().filter(|event| event.what == What::Overflow).map(|event| event.arrival).collect();
    let lost = |(number, (_, fate, _)): (usize, &(u64, Fate, f64))| {
        (fate.lost == Some(Reason::Overflow)).then_some(number)
    };
    let theirs: Vec<usize> = seen.arrivals.iter().enumerate().filter_map(lost).collect();
    assert_eq!(overflows, theirs, "{name}: overflows");
    // Sums of multiples of a negative power of two are exact; other sums are rounded at each event,
    // of which there are at most a few thousand.
    let tolerance = if rules.one.is_power_of_two() { 0.0 } else { 1e-12 };
    let agree = |p: u64, found: f64| (p as f64 / rules.one as f64 - found).abs() <= tolerance;
    let idle: Vec<&Event> = events.iter().filter(|event| event.what == What::Idle).collect();
    assert_eq!(idle.len(), seen.emptied.len(), "{name}: idle events");
    for (event, (at, p)) in idle.iter().zip(&seen.emptied) {
        assert_eq!(event.at, *at, "{name}: idle event");
        assert!(agree(event.p, *p), "{name}: {event:?}, found p {p}");
    }
    let (mut past, mut p) = (events.iter().peekable(), 0);
    for (number, (at, _, found)) in seen.arrivals.iter().enumerate() {
        while let Some(event) = past.next_if(|event| event.at < *at || event.arrival <= number) {
            p = event.p;
        }
        assert!(agree(p, *found), "{name}: arrival {number} at {at}: {p} of {}, found {found}", rules.one);
    }
}

#[test]
fn every_loss_every_idle_event_and_every_probability_is_the_models() {
    let kinds = [Traffic::Poisson, Traffic::Bursts, Traffic::Overload, Traffic::Pauses, Traffic::InStep];
    let mut counts = Counts::default();
    for seed in 0..500 {
        let traffic = kinds[seed as usize % kinds.len()];
        let mut draws = Stream::new(seed, "case");
        let case = case(&mut draws, traffic);
        let times = arrivals(traffic, &mut draws);
        let seen = judged(&case.values, case.ecn, &times, seed);
        let told = |(at, fate, _): &(u64, Fate, f64)| match fate.lost {
            Some(Reason::Early) => (*at, Told::Dropped),
            _ => (*at, Told::Goes),
        };
        let arrivals: Vec<(u64, Told)> = seen.arrivals.iter().map(told).collect();
        let events = model::history(&case.rules, &arrivals);
        compare(&format!("seed {seed}, {traffic:?}, {:?}", case.rules), &case.rules, &events, &seen);
        counts.add(&events, case.rules.one);
    }
    println!("{counts:?} agree");
    let Counts { overflows, above, own_drops, idle, still_idle, counted, at_one } = counts;
    assert!(
        [overflows, above, own_drops, idle, still_idle, counted, at_one].iter().all(|n| *n > 1000),
        "every kind of event occurs often"
    );
}
