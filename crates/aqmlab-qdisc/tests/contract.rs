//! Every registered discipline, with every preset and every variant, satisfies the contract, and for each
//! item the kit detects a discipline that violates it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::{self, Checks, Item, LINK, Subject, TestPacket, Variant, check_entry};
use aqmlab_qdisc::{
    Backlog, Cause, Dscp, Ecn, Entry, Info, LawSamples, Limit, Observer, Packet, Qdisc, Reason, Registry,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

/// Number of random scripts per discipline and preset; the long test lane runs more of them.
fn seeds() -> u64 {
    std::env::var("AQMLAB_CONTRACT_SEEDS")
        .map_or(200, |n| n.parse().expect("AQMLAB_CONTRACT_SEEDS is a number"))
}

/// Runs random scripts with each of `variants`; processors share the variants.
fn keep_the_contract(variants: fn(&Info) -> Vec<Variant>, seeds: u64) {
    let registry = Registry::<TestPacket>::builtin();
    let infos = registry.iter().map(|entry| entry.info);
    let all: Vec<_> =
        infos.flat_map(|info| variants(&info).into_iter().map(move |v| (info.name, v))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let registry = Registry::builtin();
                while let Some((name, variant)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let entry = registry.iter().find(|entry| entry.info.name == *name).expect("registered");
                    keeps_the_contract(entry, variant, seeds);
                }
            });
        }
    });
}

fn keeps_the_contract(entry: &Entry<TestPacket>, variant: &Variant, seeds: u64) {
    let mut checks = Checks::default();
    for seed in 0..seeds {
        let of_script = check_entry(entry, &variant.settings, &LINK, seed);
        checks = checks.plus(of_script.unwrap_or_else(|e| panic!("{}: {e}", variant.label)));
    }
    // All items are checked; only shapers have deadlines.
    let shaper = holds_back(entry, variant);
    let unchecked: Vec<_> = Item::ALL.into_iter().filter(|i| checks.of(*i) == 0).collect();
    let expected = if shaper { &[][..] } else { &[Item::Deadline] };
    assert_eq!(unchecked, expected, "{} {}", entry.info.name, variant.label);
    let idle = variant.idle(&entry.info, &checks);
    assert_eq!(idle, None, "{} {}: {checks:?}", entry.info.name, variant.label);
}

/// Returns whether this variant of a discipline is a shaper.
fn holds_back(entry: &Entry<TestPacket>, variant: &Variant) -> bool {
    let effective = entry.info.resolve(&variant.settings, &LINK).expect("a variant resolves");
    let queue = (entry.build)(&effective, Stream::new(1, "unused"), &Registry::builtin());
    queue.expect("a variant can be built").holds_back()
}

/// Calls `check` on each registered discipline in each of its variants.
fn each_subject(mut check: impl FnMut(&str, &Subject<'_>)) {
    for entry in Registry::<TestPacket>::builtin().iter() {
        for variant in contract::presets(&entry.info) {
            let effective = entry.info.resolve(&variant.settings, &LINK).unwrap();
            let make = |draws| -> Box<dyn Qdisc<TestPacket>> {
                Box::new((entry.build)(&effective, draws, &Registry::builtin()).unwrap())
            };
            let draws = Stream::new(1, "contract/draws");
            let shaper = holds_back(entry, &variant);
            let subject = Subject { make: &make, draws, limit: None, shaper, rate: LINK.rate };
            check(&format!("{} {}", entry.info.name, variant.label), &subject);
        }
    }
}

#[test]
fn each_decision_of_each_discipline_has_a_draw_of_its_own() {
    let mut pairs = 0;
    each_subject(|label, subject| {
        for seed in 0..2 {
            let looked_at = contract::check_draws(subject, &contract::script_for(subject, seed));
            pairs += looked_at.unwrap_or_else(|e| panic!("{label}: {e}"));
        }
    });
    assert!(pairs > 50, "{pairs} pairs of decisions were compared");
}

#[test]
fn no_discipline_catches_up_step_by_step() {
    each_subject(|label, subject| {
        for seed in 0..2 {
            let script = contract::script_for(subject, seed);
            contract::check_work(subject, &script, &clock()).unwrap_or_else(|e| panic!("{label}: {e}"));
        }
    });
}

/// Returns a clock that counts the nanoseconds since its creation.
fn clock() -> impl Fn() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "it measures this process, and no result depends on it")]
    let start = std::time::Instant::now();
    move || start.elapsed().as_nanos() as u64
}

#[test]
fn every_discipline_with_every_preset_keeps_the_contract() {
    keep_the_contract(contract::presets, seeds());
}

#[test]
fn every_word_of_every_choice_keeps_the_contract() {
    keep_the_contract(contract::words, seeds() / 10);
}

/// A low-pass filter whose time constant exceeds that of the average from which its input is computed.
#[test]
fn red_with_a_low_pass_filter_keeps_the_contract() {
    keep_the_contract(
        |info| {
            let filtered = |mut v: Variant| {
                v.settings.set("w_p", Value::Number(0.05), Origin::Given);
                v.settings.set("w_q", Value::Number(0.5), Origin::Given);
                v
            };
            if info.name == "red" {
                contract::presets(info).into_iter().map(filtered).collect()
            } else {
                Vec::new()
            }
        },
        seeds() / 10,
    );
}

#[test]
fn what_is_tested_covers_every_preset_with_and_without_ecn_and_every_word() {
    let registry = Registry::<TestPacket>::builtin();
    let labels = |name, variants: fn(&Info) -> Vec<Variant>| -> Vec<String> {
        variants(&registry.find(name).unwrap().info).into_iter().map(|v| v.label).collect()
    };
    assert_eq!(labels("droptail", contract::presets), ["preset linux", "preset ns2"]);
    assert_eq!(
        labels("red", contract::presets),
        [
            "preset paper",
            "preset paper, ecn",
            "preset ns2",
            "preset ns2, ecn",
            "preset linux",
            "preset linux, ecn"
        ]
    );
    assert_eq!(
        labels("droptail", contract::words),
        ["preset linux", "preset ns2", "limit_rule fits", "limit_rule reached", "limit_rule below"]
    );
    assert!(labels("blue", contract::words).contains(&"victim random".to_owned()));
}

/// The fault that a broken discipline has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    LosesSilently,
    ReportsTwice,
    MiscountsBytes,
    WrongInstant,
    NoDeadline,
    DeadlineIsASpan,
    DeadlineLeadsNowhere,
    TicksAtCalls,
    ScansTheQueue,
    RemembersOtherRuns,
    MarksNotEct,
    MarksInSilence,
    ExceedsItsLimit,
    HoldsBack,
    SettledYetLastInFirstOut,
    SettledYetDropsTheHead,
    SettledYetDropsWhatLeaves,
    SettledYetReMarks,
    PassesAtOnceYetWaits,
    PassesAtOnceYetDrops,
}

struct Broken {
    fault: Fault,
    waiting: VecDeque<TestPacket>,
    calls: u64,
    runs: Arc<AtomicU64>,
}

const LIMIT: u64 = 10;

impl Qdisc<TestPacket> for Broken {
    fn enqueue(&mut self, now: Instant, mut pkt: TestPacket, obs: &mut dyn Observer<TestPacket>) {
        self.calls += 1;
        let chance = self.calls.is_multiple_of(5);
        let overflow = Cause::of(Reason::Overflow);
        let early = Cause::of(Reason::Early);
        match self.fault {
            Fault::LosesSilently if chance => return,
            Fault::ReportsTwice if chance => obs.dropped(now, pkt.clone(), early),
            Fault::PassesAtOnceYetDrops if pkt.ecn() == Ecn::NotEct => return obs.dropped(now, pkt, early),
            Fault::WrongInstant if chance => return obs.dropped(now + Span::ns(1), pkt, early),
            Fault::ScansTheQueue => drop(self.waiting.iter().map(Packet::wire_len).sum::<Bytes>()),
            Fault::RemembersOtherRuns if self.runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(7) => {
                return obs.dropped(now, pkt, early);
            }
            Fault::MarksNotEct if pkt.ecn() == Ecn::NotEct => {
                pkt.mark_ce();
                obs.marked(now, &pkt, early);
            }
            Fault::MarksInSilence if pkt.ecn().is_capable() => pkt.mark_ce(),
            _ => {}
        }
        let limit = match self.fault {
            Fault::ExceedsItsLimit => LIMIT + 1,
            Fault::ScansTheQueue => 1000,
            _ => LIMIT,
        };
        if self.waiting.len() as u64 >= limit {
            if self.fault == Fault::SettledYetDropsTheHead {
                self.waiting.push_back(pkt);
                pkt = self.waiting.pop_front().expect("the queue is full");
            }
            obs.dropped(now, pkt, overflow);
        } else {
            self.waiting.push_back(pkt);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<TestPacket>) -> Option<TestPacket> {
        self.calls += 1;
        let holds = matches!(
            self.fault,
            Fault::NoDeadline | Fault::DeadlineIsASpan | Fault::DeadlineLeadsNowhere | Fault::HoldsBack
        );
        if holds && self.waiting.len() > 3 {
            None
        } else if self.fault == Fault::SettledYetLastInFirstOut {
            self.waiting.pop_back()
        } else if self.fault == Fault::SettledYetDropsWhatLeaves && self.calls.is_multiple_of(5) {
            // The decision on a departing packet depends on the calls so far.
            self.waiting
                .pop_front()
                .into_iter()
                .for_each(|pkt| obs.dropped(now, pkt, Cause::of(Reason::Early)));
            self.waiting.pop_front()
        } else {
            let mut pkt = self.waiting.pop_front();
            if self.fault == Fault::SettledYetReMarks {
                pkt.iter_mut().for_each(|pkt| pkt.set_dscp(Dscp(1)));
            }
            pkt
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.fault {
            Fault::DeadlineIsASpan => Some(Instant::from_ns(0)),
            Fault::DeadlineLeadsNowhere => Some(Instant::FAR_FUTURE),
            _ => None,
        }
    }

    fn rate_changed(&mut self, _: Instant, _: Rate) {
        self.calls += 1;
    }

    fn settles_at_enqueue(&self) -> bool {
        matches!(
            self.fault,
            Fault::None
                | Fault::SettledYetLastInFirstOut
                | Fault::SettledYetDropsTheHead
                | Fault::SettledYetDropsWhatLeaves
                | Fault::SettledYetReMarks
        )
    }

    fn passes_at_once(&self, _: Bytes) -> bool {
        match self.fault {
            Fault::PassesAtOnceYetWaits => true,
            Fault::PassesAtOnceYetDrops => self.waiting.is_empty(),
            _ => false,
        }
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|p| p.wire_len()).sum::<Bytes>();
        let bytes = if self.fault == Fault::MiscountsBytes { bytes + Bytes::new(1) } else { bytes };
        Backlog { packets: Packets::new(self.waiting.len() as u64), bytes }
    }

    fn observe(&self, _: Instant, out: &mut LawSamples) {
        if self.fault == Fault::TicksAtCalls {
            out.push(("ticks", self.calls as f64));
        }
    }
}

/// Returns the items of the contract that the kit finds violated, over many seeds.
fn caught(fault: Fault, shaper: bool) -> Vec<Item> {
    let runs = Arc::new(AtomicU64::new(0));
    let make = |_| -> Box<dyn Qdisc<TestPacket>> {
        Box::new(Broken { fault, waiting: VecDeque::new(), calls: 0, runs: Arc::clone(&runs) })
    };
    let packets = if fault == Fault::ScansTheQueue { 1000 } else { LIMIT };
    let limit = Some(Limit::Packets(Packets::new(packets)));
    let draws = Stream::new(1, "unused");
    let subject = Subject { make: &make, draws, limit, shaper, rate: LINK.rate };
    (0..20)
        .filter_map(|seed| contract::check(&subject, &contract::script(seed)).err())
        .map(|v| v.item)
        .collect()
}

#[test]
fn the_kit_catches_a_fault_in_each_item_and_names_it() {
    for (fault, shaper, item) in [
        (Fault::LosesSilently, false, Item::Conservation),
        (Fault::ReportsTwice, false, Item::Conservation),
        (Fault::MiscountsBytes, false, Item::Conservation),
        (Fault::WrongInstant, false, Item::Time),
        (Fault::NoDeadline, true, Item::Liveness),
        (Fault::DeadlineIsASpan, true, Item::Deadline),
        (Fault::DeadlineLeadsNowhere, true, Item::Deadline),
        (Fault::TicksAtCalls, false, Item::CatchingUp),
        (Fault::ScansTheQueue, false, Item::Bounded),
        (Fault::RemembersOtherRuns, false, Item::Replay),
        (Fault::MarksNotEct, false, Item::Replay),
        (Fault::MarksInSilence, false, Item::Replay),
        (Fault::ExceedsItsLimit, false, Item::Replay),
        (Fault::HoldsBack, false, Item::Replay),
        (Fault::SettledYetLastInFirstOut, false, Item::Replay),
        (Fault::SettledYetDropsTheHead, false, Item::Replay),
        (Fault::SettledYetDropsWhatLeaves, false, Item::Replay),
        (Fault::SettledYetReMarks, false, Item::Replay),
        (Fault::PassesAtOnceYetWaits, false, Item::Replay),
        (Fault::PassesAtOnceYetDrops, false, Item::Replay),
    ] {
        let items = caught(fault, shaper);
        assert!(!items.is_empty(), "{fault:?} was not caught");
        assert!(items.iter().all(|i| *i == item), "{fault:?} was taken for {items:?}");
    }
    assert_eq!(caught(Fault::None, false), [], "a discipline that keeps the contract passes");
}

#[test]
fn a_failing_script_is_shortened_to_what_shows_the_fault() {
    let make = |_| -> Box<dyn Qdisc<TestPacket>> {
        let (waiting, runs) = (VecDeque::new(), Arc::new(AtomicU64::new(0)));
        Box::new(Broken { fault: Fault::LosesSilently, waiting, calls: 0, runs })
    };
    let draws = Stream::new(1, "unused");
    let subject = Subject { make: &make, draws, limit: None, shaper: false, rate: LINK.rate };
    let fails = |s: &[contract::Operation]| contract::check(&subject, s).is_err();
    let seed = (0..).find(|&seed| fails(&contract::script(seed))).unwrap();
    let short = contract::shrink(&contract::script(seed), fails);
    // The fault shows when the fifth call is an arrival; calls made during a pause may take the
    // place of operations.
    assert!(short.len() <= 5, "{short:?}");
    assert!(matches!(short.last(), Some(contract::Operation::Arrive { .. })), "{short:?}");
}

/// A fault of a law that samples its queue, sees departures and draws at arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slip {
    None,
    /// The draw of an arrival has the number of the next departure.
    DrawsByDepartures,
    /// At the instant of an update, a packet is processed before the update is made.
    UpdatesAfterThePacket,
    /// Each missed update is made separately.
    UpdatesOneByOne,
}

/// A simplified PIE: the probability changes with the waiting time of the last packet that left.
struct Sampled {
    slip: Slip,
    waiting: VecDeque<TestPacket>,
    draws: Stream,
    arrivals: u64,
    departures: u64,
    updates: u64,
    p: f64,
    waited_s: f64,
}

impl Sampled {
    const PERIOD: Span = Span::ms(10);

    fn catch_up(&mut self, now: Instant) {
        let due = now.as_ns() / Self::PERIOD.as_ns() - self.updates;
        self.updates += due;
        let (steps, of) = if self.slip == Slip::UpdatesOneByOne { (due, 1) } else { (1, due) };
        for _ in 0..steps {
            let step = of as f64 * 0.125 * (self.waited_s - 0.015 + 1e-3 * self.waiting.len() as f64);
            self.p = std::hint::black_box(self.p + step).clamp(0.0, 0.5);
        }
    }
}

impl Qdisc<TestPacket> for Sampled {
    fn enqueue(&mut self, now: Instant, mut pkt: TestPacket, obs: &mut dyn Observer<TestPacket>) {
        if self.slip != Slip::UpdatesAfterThePacket {
            self.catch_up(now);
        }
        let by_departures = self.slip == Slip::DrawsByDepartures;
        let number = if by_departures { self.departures } else { self.arrivals };
        self.arrivals += 1;
        let early = Cause::of(Reason::Early);
        let chosen = aqmlab_random::unit_from_bits(self.draws.at(number)) < self.p;
        if chosen && !pkt.ecn().is_capable() {
            obs.dropped(now, pkt, early);
        } else {
            if chosen && pkt.ecn() != Ecn::Ce {
                pkt.mark_ce();
                obs.marked(now, &pkt, early);
            }
            self.waiting.push_back(pkt);
        }
        self.catch_up(now);
    }
    fn dequeue(&mut self, now: Instant, _: &mut dyn Observer<TestPacket>) -> Option<TestPacket> {
        self.catch_up(now);
        let pkt = self.waiting.pop_front()?;
        self.departures += 1;
        self.waited_s = now.saturating_since(aqmlab_qdisc::Arrived::arrived(&pkt)).as_secs_f64();
        Some(pkt)
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn rate_changed(&mut self, now: Instant, _: Rate) {
        self.catch_up(now);
    }
    fn settles_at_enqueue(&self) -> bool {
        true
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|p| p.wire_len()).sum::<Bytes>();
        Backlog { packets: Packets::new(self.waiting.len() as u64), bytes }
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let mut law = Sampled { waiting: self.waiting.clone(), ..*self };
        law.catch_up(now);
        out.push(("p", law.p));
    }
}

/// Returns the first violation found with 40 scripts; the first ten are also used to compare draws and to
/// time calls after long pauses.
fn breach(slip: Slip) -> Option<(Item, String)> {
    let make = |draws| -> Box<dyn Qdisc<TestPacket>> {
        let (arrivals, departures, updates) = (0, 0, 0);
        let waiting = VecDeque::new();
        Box::new(Sampled { slip, waiting, draws, arrivals, departures, updates, p: 0.0, waited_s: 0.0 })
    };
    let draws = Stream::new(1, "contract/draws");
    let subject = Subject { make: &make, draws, limit: None, shaper: false, rate: LINK.rate };
    (0..40).find_map(|seed| {
        let script = contract::script_for(&subject, seed);
        let checked = contract::check(&subject, &script).map(drop);
        let drawn = || contract::check_draws(&subject, &script).map(drop);
        let worked = || contract::check_work(&subject, &script, &clock());
        let found = checked.and_then(|()| if seed < 10 { drawn().and_then(|()| worked()) } else { Ok(()) });
        found.err().map(|v| (v.item, v.what))
    })
}

#[test]
fn the_kit_catches_repeated_draws_late_updates_and_updates_one_by_one() {
    for (slip, item, words) in [
        (Slip::DrawsByDepartures, Item::Replay, "one draw decides both"),
        (Slip::UpdatesAfterThePacket, Item::CatchingUp, "more calls during a pause"),
        (Slip::UpdatesOneByOne, Item::Bounded, "one step per update"),
    ] {
        let (found, what) = breach(slip).unwrap_or_else(|| panic!("{slip:?} was not caught"));
        assert_eq!(found, item, "{slip:?}: {what}");
        assert!(what.contains(words), "{slip:?}: {what}");
    }
    assert_eq!(breach(Slip::None), None, "the law without a slip passes");
}

/// The kit reports that the scripts do not exercise the discipline enough.
#[test]
fn a_variant_that_never_marks_or_whose_law_never_drops_is_idle() {
    let registry = Registry::<TestPacket>::builtin();
    let entry: &Entry<TestPacket> = registry.find("red").unwrap();
    let variant =
        contract::presets(&entry.info).into_iter().find(|v| v.label == "preset paper, ecn").unwrap();
    let mut checks = Checks::default();
    (checks.marks, checks.law_drops) = (1, 1);
    assert_eq!(variant.idle(&entry.info, &checks), None);
    checks.law_drops = 0;
    assert_eq!(variant.idle(&entry.info, &checks), Some("the law has dropped nothing"));
    checks.marks = 0;
    assert_eq!(variant.idle(&entry.info, &checks), Some("ECN is on, and nothing was marked"));
    // A threshold that no script reaches.
    let mut settings = variant.settings;
    settings.set("min_th", Value::Size(Size::Packets(Packets::new(69))), Origin::Given);
    settings.set("max_th", Value::Size(Size::Packets(Packets::new(70))), Origin::Given);
    settings.set("w_q", Value::Number(1e-6), Origin::Given);
    let out_of_reach = Variant { label: "out of reach".into(), settings };
    let checks = (0..20).fold(Checks::default(), |sum, seed| {
        sum.plus(check_entry(entry, &out_of_reach.settings, &LINK, seed).unwrap())
    });
    assert_eq!(out_of_reach.idle(&entry.info, &checks), Some("ECN is on, and nothing was marked"));
}
