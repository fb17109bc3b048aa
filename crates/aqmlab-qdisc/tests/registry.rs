//! The registry accepts user-defined disciplines, and no name exists twice.

use std::collections::VecDeque;

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Settings, Value};
use aqmlab_qdisc::contract::{Item, LINK, TestPacket, check_entry};
use aqmlab_qdisc::registry::{self, Decides, Derive, DuplicateName, Maturity};
use aqmlab_qdisc::{
    Backlog, Cause, Discipline, Entry, Info, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason,
    Registry,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Instant, Packets, Rate};

/// A user-defined discipline that tosses a fair coin for every arrival that finds a packet waiting.
struct Coin {
    queue: VecDeque<TestPacket>,
    draws: Stream,
    /// Whether dropped packets go unreported, a fault that the kit must find in a registered
    /// discipline too.
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

fn nothing(_: &mut Settings, _: &LinkContext) -> Result<(), ParamError> {
    Ok(())
}

fn coin(name: &'static str, forgets: bool) -> Entry<TestPacket> {
    static NO_PARAMS: &[Param] = &[];
    Entry {
        info: Info {
            name,
            title: "Coin",
            summary: "a draw for every arrival",
            version: 1,
            applies: &[],
            maturity: Maturity::Experimental,
            decides: Decides::Enqueue,
            params: NO_PARAMS,
            presets: &[],
            derive: Derive::Alone(nothing),
            samples: || vec![("", Settings::default())],
        },
        build: Box::new(move |_, draws, _| {
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
    let coin = registry.find("coin").unwrap().info.resolve(&Settings::default(), &LINK).unwrap();
    assert!(registry.build(&coin, Stream::new(1, "coin")).is_ok());
}

#[test]
fn a_discipline_of_a_users_own_can_be_inside_another_one() {
    let mut registry = Registry::builtin();
    registry.register(coin("coin", false)).unwrap();
    let mut class = Settings::default();
    class.set("name", Value::Text("all".into()), Origin::Given);
    let queue = Value::Discipline { kind: "coin", settings: Settings::default() };
    class.set("queue", queue, Origin::Given);
    let mut given = Settings::default();
    given.set("class", Value::List(vec![Value::Table(class)]), Origin::Given);
    let catalogue = registry.catalogue();
    let classes = catalogue.find("classes").unwrap();
    assert_eq!(classes.resolve(&given, &LINK).unwrap_err().message, "there is no discipline called `coin`");
    let resolved = classes.resolve_in(&catalogue, &given, &LINK).unwrap();
    assert!(registry.build(&resolved, Stream::new(1, "coin")).is_ok());
    assert!(Registry::<TestPacket>::builtin().build(&resolved, Stream::new(1, "coin")).is_err());
}

#[test]
fn the_kit_reports_a_registered_discipline_that_forgets_packets() {
    let failure = (0..50)
        .find_map(|seed| check_entry(&coin("forgets", true), &Settings::default(), &LINK, seed).err())
        .expect("the kit finds the fault");
    assert_eq!(failure.violation.item, Item::Conservation);
    assert!(failure.script.len() <= 20, "{failure}");
    assert!(failure.to_string().contains(&format!("link, {})", failure.seed)), "{failure}");
}

#[test]
fn what_a_discipline_leaves_automatic_or_relative_is_an_error() {
    static PARAMS: &[Param] = &[Param {
        name: "room",
        default: Default::Auto("never computed"),
        source: "none",
        help: "none",
        ..Param::of(Kind::Size { min: Packets::new(1) })
    }];
    let info = Info { params: PARAMS, ..coin("coin", false).info };
    let resolved = |size| {
        let mut given = Settings::default();
        given.set("room", Value::Size(size), Origin::Given);
        info.resolve(&given, &LINK).map_err(|e| e.message)
    };
    let automatic = info.resolve(&Settings::default(), &LINK).unwrap_err();
    assert_eq!(automatic.message, "room `auto` has not been resolved");
    assert_eq!(resolved(Size::Bdp(2.0)).unwrap_err(), "room `2bdp` has not been resolved");
    assert!(resolved(Size::Packets(Packets::new(2))).is_ok());
}

#[test]
fn a_name_is_taken_once() {
    let mut registry = Registry::builtin();
    assert_eq!(registry.register(coin("red", false)), Err(DuplicateName("red")));
    let rad = coin("rad", false).info.resolve(&Settings::default(), &LINK).unwrap();
    let error = registry.build(&rad, Stream::new(1, "x")).err().unwrap();
    assert_eq!(error.message, "there is no discipline called `rad`");
}

#[test]
fn the_catalogue_and_the_registry_agree() {
    let names: Vec<_> = Registry::<TestPacket>::builtin().iter().map(|e| e.info.name).collect();
    assert_eq!(names, registry::catalogue().iter().map(|i| i.name).collect::<Vec<_>>());
    let known = [
        "droptail", "red", "ared", "scred", "pi", "pie", "rem", "blue", "avq", "fred", "gred", "choke",
        "sfb", "redpd", "sfq", "fq", "codel", "fq_codel", "fq_pie", "cobalt", "cake", "pi2", "dualpi2",
        "classes", "policer", "spare", "tbf", "htb",
    ];
    assert_eq!(names, known);
}
