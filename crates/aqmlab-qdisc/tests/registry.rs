//! The registry is open, and a name is taken once.

use std::collections::VecDeque;

use aqmlab_params::{Param, ParamError, Settings};
use aqmlab_qdisc::contract::{Item, LINK, TestPacket, check_entry};
use aqmlab_qdisc::registry::{self, Decides, DuplicateName, Maturity};
use aqmlab_qdisc::{
    Backlog, Cause, Discipline, Entry, Info, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason,
    Registry,
};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Packets, Rate};

/// A user's own discipline: a fair coin for every arrival that finds a packet waiting.
struct Coin {
    queue: VecDeque<TestPacket>,
    draws: Stream,
    /// A mistake that the kit must find in a registered discipline as well.
    forgets: bool,
}

impl Qdisc<TestPacket> for Coin {
    fn enqueue(&mut self, now: Instant, pkt: TestPacket, obs: &mut dyn Observer<TestPacket>) {
        let heads = self.draws.hit(0.5);
        if self.queue.is_empty() || heads {
            self.queue.push_back(pkt);
        } else if !self.forgets {
            obs.dropped(now, pkt, Cause::of(Reason::Early));
        }
    }
    fn dequeue(&mut self, _: Instant, _: &mut dyn Observer<TestPacket>) -> Option<TestPacket> {
        self.queue.pop_front()
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn rate_changed(&mut self, _: Instant, _: Rate) {}
    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(Packet::wire_len).sum();
        Backlog { packets: Packets::new(self.queue.len() as u64), bytes }
    }
    fn observe(&self, _: Instant, _: &mut LawSamples) {}
}

fn as_given(settings: &Settings, _: &LinkContext) -> Result<Settings, ParamError> {
    Ok(settings.clone())
}

fn coin(name: &'static str, forgets: bool) -> Entry<TestPacket> {
    static NO_PARAMS: &[Param] = &[];
    Entry {
        info: Info {
            name,
            title: "Coin",
            summary: "a coin for every arrival",
            version: 1,
            applies: &[],
            maturity: Maturity::Experimental,
            decides: Decides::Enqueue,
            params: NO_PARAMS,
            presets: &[],
            resolve: as_given,
            samples: || vec![("", Settings::default())],
        },
        build: Box::new(move |_, _, draws| {
            Ok(Discipline::Custom(Box::new(Coin { queue: VecDeque::new(), draws, forgets })))
        }),
    }
}

#[test]
fn a_discipline_of_a_users_own_is_built_and_checked_like_the_built_in_ones() {
    let mut registry = Registry::builtin();
    registry.register(coin("coin", false)).unwrap();
    let entry = registry.find("coin").unwrap();
    for seed in 0..50 {
        check_entry(entry, &Settings::default(), &LINK, seed).unwrap();
    }
    assert!(registry.build("coin", &Settings::default(), &LINK, Stream::new(1, "coin")).is_ok());
}

#[test]
fn the_kit_reports_a_registered_discipline_that_forgets_packets() {
    let failure = (0..50)
        .find_map(|seed| check_entry(&coin("forgets", true), &Settings::default(), &LINK, seed).err())
        .expect("the fault shows");
    assert_eq!(failure.violation.item, Item::Conservation);
    assert!(failure.script.len() <= 20, "{failure}");
    assert!(failure.to_string().contains(&format!("link, {})", failure.seed)), "{failure}");
}

#[test]
fn a_name_is_taken_once() {
    let mut registry = Registry::builtin();
    assert_eq!(registry.register(coin("red", false)), Err(DuplicateName("red")));
    let error = registry.build("rad", &Settings::default(), &LINK, Stream::new(1, "x")).err().unwrap();
    assert_eq!(error.message, "there is no discipline called `rad`");
}

#[test]
fn the_catalogue_and_the_registry_agree() {
    let names: Vec<_> = Registry::<TestPacket>::builtin().iter().map(|e| e.info.name).collect();
    assert_eq!(names, registry::catalogue().iter().map(|i| i.name).collect::<Vec<_>>());
    let known = [
        "droptail", "red", "ared", "scred", "pi", "rem", "blue", "fred", "redpd", "codel", "classes",
        "policer",
    ];
    assert_eq!(names, known);
}
