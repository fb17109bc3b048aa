//! Every registered discipline, every preset and every variant keeps the contract; and the kit catches a
//! discipline that does not, for each item of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_params::{Kind, Origin, Settings, Value};
use aqmlab_qdisc::contract::{self, Item, LINK, Subject, TestPacket, check_entry};
use aqmlab_qdisc::{Backlog, Cause, Ecn, LawSamples, Limit, Observer, Packet, Qdisc, Reason, Registry};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

/// Random scripts for each discipline and preset; the long lane runs more.
fn seeds() -> u64 {
    std::env::var("AQMLAB_CONTRACT_SEEDS")
        .map_or(200, |n| n.parse().expect("AQMLAB_CONTRACT_SEEDS is a number"))
}

fn set(settings: &mut Settings, name: &'static str, value: Value) {
    settings.set(name, value, Origin::Given);
}

#[test]
fn every_discipline_with_every_preset_keeps_the_contract() {
    for entry in Registry::builtin().iter() {
        let presets = entry.info.presets.iter().map(|p| Some(p.name));
        for preset in presets.chain(entry.info.presets.is_empty().then_some(None)) {
            for ecn in [false, true] {
                let mut given = Settings::default();
                set(&mut given, "limit", Value::Size(Size::Packets(Packets::new(70))));
                if let Some(preset) = preset {
                    set(&mut given, "preset", Value::Choice(preset));
                    set(&mut given, "ecn", Value::Flag(ecn));
                }
                for seed in 0..seeds() {
                    check_entry(entry, &given, &LINK, seed).unwrap_or_else(|e| panic!("{preset:?}: {e}"));
                }
            }
        }
    }
}

#[test]
fn every_word_of_every_choice_keeps_the_contract() {
    for entry in Registry::builtin().iter() {
        for param in entry.info.params {
            let Kind::Choice(words) = param.kind else { continue };
            for word in words {
                let mut given = Settings::default();
                set(&mut given, "limit", Value::Size(Size::Bytes(Bytes::new(90_000))));
                set(&mut given, param.name, Value::Choice(word));
                if matches!((param.name, *word), ("victim", "random") | ("preset", "altq")) {
                    // Only a limit in packets has random victims.
                    set(&mut given, "limit", Value::Size(Size::Packets(Packets::new(60))));
                }
                // Reacts within a script's few hundred packets.
                for (name, value) in [
                    ("ecn", Value::Flag(true)),
                    ("w_q", Value::Number(0.2)),
                    ("a", Value::Number(0.01)),
                    ("b", Value::Number(0.008)),
                    ("gamma", Value::Number(0.5)),
                    ("d1", Value::Number(0.3)),
                    ("d2", Value::Number(0.05)),
                    ("freeze_time", Value::Span(Span::us(500))),
                    ("start", Value::Span(Span::ms(1))),
                    ("hits", Value::Integer(1)),
                    ("min_interval", Value::Span(Span::ms(2))),
                    ("max_interval", Value::Span(Span::ms(20))),
                    ("min_change", Value::Span(Span::ZERO)),
                ] {
                    // Gains `auto` are derived instead.
                    let known = entry.info.params.iter().find(|p| p.name == name);
                    if *word != "auto" && known.is_some_and(|p| !matches!(p.kind, Kind::Choice(_))) {
                        set(&mut given, name, value);
                    }
                }
                for seed in 0..seeds() / 10 {
                    check_entry(entry, &given, &LINK, seed)
                        .unwrap_or_else(|e| panic!("{} {word}: {e}", param.name));
                }
            }
        }
    }
}

/// What a broken discipline does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    LosesSilently,
    ReportsTwice,
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
        let bytes = self.waiting.iter().map(|p| p.wire_len()).sum();
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
