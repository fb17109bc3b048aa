//! Every registered discipline, every preset and every variant keeps the contract; and the kit catches a
//! discipline that does not, for each item of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::{self, Checks, Item, LINK, Subject, TestPacket, Variant, check_entry};
use aqmlab_qdisc::{Backlog, Cause, Ecn, Info, LawSamples, Limit, Observer, Packet, Qdisc, Reason, Registry};
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

/// Random scripts for each discipline and preset; the long lane runs more.
fn seeds() -> u64 {
    std::env::var("AQMLAB_CONTRACT_SEEDS")
        .map_or(200, |n| n.parse().expect("AQMLAB_CONTRACT_SEEDS is a number"))
}

/// Random scripts with each of `variants`.
fn keep_the_contract(variants: fn(&Info) -> Vec<Variant>, seeds: u64) {
    for entry in Registry::builtin().iter() {
        for variant in variants(&entry.info) {
            let mut checks = Checks::default();
            for seed in 0..seeds {
                let of_script = check_entry(entry, &variant.settings, &LINK, seed);
                checks = checks.plus(of_script.unwrap_or_else(|e| panic!("{}: {e}", variant.label)));
            }
            // All but the deadlines of shapers, of which there is none among these.
            let unchecked: Vec<_> = Item::ALL.into_iter().filter(|i| checks.of(*i) == 0).collect();
            assert_eq!(unchecked, [Item::Deadline], "{}", variant.label);
        }
    }
}

#[test]
fn every_discipline_with_every_preset_keeps_the_contract() {
    keep_the_contract(contract::presets, seeds());
}

#[test]
fn every_word_of_every_choice_keeps_the_contract() {
    keep_the_contract(contract::words, seeds() / 10);
}

/// A filter so slow that what it holds outlives the average that it was fed with.
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
    assert_eq!(labels("droptail", contract::presets), ["defaults"]);
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
        ["limit_rule fits", "limit_rule reached", "limit_rule below"]
    );
    assert!(labels("blue", contract::words).contains(&"victim random".to_owned()));
}

/// What a broken discipline does wrong.
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

    fn dequeue(&mut self, _: Instant, _: &mut dyn Observer<TestPacket>) -> Option<TestPacket> {
        self.calls += 1;
        let holds = matches!(
            self.fault,
            Fault::NoDeadline | Fault::DeadlineIsASpan | Fault::DeadlineLeadsNowhere | Fault::HoldsBack
        );
        if holds && self.waiting.len() > 3 {
            None
        } else if self.fault == Fault::SettledYetLastInFirstOut {
            self.waiting.pop_back()
        } else {
            self.waiting.pop_front()
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
        matches!(self.fault, Fault::None | Fault::SettledYetLastInFirstOut | Fault::SettledYetDropsTheHead)
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

/// The items that the kit names over many seeds.
fn caught(fault: Fault, shaper: bool) -> Vec<Item> {
    let runs = Arc::new(AtomicU64::new(0));
    let make = || -> Box<dyn Qdisc<TestPacket>> {
        Box::new(Broken { fault, waiting: VecDeque::new(), calls: 0, runs: Arc::clone(&runs) })
    };
    let packets = if fault == Fault::ScansTheQueue { 1000 } else { LIMIT };
    let limit = Some(Limit::Packets(Packets::new(packets)));
    let subject = Subject { make: &make, limit, shaper, rate: LINK.rate };
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
    ] {
        let items = caught(fault, shaper);
        assert!(!items.is_empty(), "{fault:?} was not caught");
        assert!(items.iter().all(|i| *i == item), "{fault:?} was taken for {items:?}");
    }
    assert_eq!(caught(Fault::None, false), [], "what keeps the contract passes");
}

#[test]
fn a_failing_script_is_shortened_to_what_shows_the_fault() {
    let make = || -> Box<dyn Qdisc<TestPacket>> {
        let (waiting, runs) = (VecDeque::new(), Arc::new(AtomicU64::new(0)));
        Box::new(Broken { fault: Fault::LosesSilently, waiting, calls: 0, runs })
    };
    let subject = Subject { make: &make, limit: None, shaper: false, rate: LINK.rate };
    let fails = |s: &[contract::Operation]| contract::check(&subject, s).is_err();
    let seed = (0..).find(|&seed| fails(&contract::script(seed))).unwrap();
    let short = contract::shrink(&contract::script(seed), fails);
    // The fifth call must be an arrival: five operations, each of them a call.
    assert_eq!(short.len(), 5, "{short:?}");
}
