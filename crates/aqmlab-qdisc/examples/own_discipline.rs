//! A discipline of your own: registered, resolved, built and tested against the contract, without forking
//! this crate.
//!
//!     cargo run -p aqmlab-qdisc --example own_discipline

use std::collections::VecDeque;

use aqmlab_params::{Param, ParamError, Settings};
use aqmlab_qdisc::contract::{LINK, TestPacket, check_entry};
use aqmlab_qdisc::registry::{Decides, Derive, Info, Maturity};
use aqmlab_qdisc::{
    Backlog, Cause, Discipline, Entry, LawSamples, LinkContext, Observer, Packet, Qdisc, Reason, Registry,
};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Packets, Rate};

/// Drops an arrival with a probability of one percent per waiting packet.
struct Slope<P> {
    queue: VecDeque<P>,
    draws: Stream,
}

impl<P: Packet> Qdisc<P> for Slope<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.draws.hit(0.01 * self.queue.len() as f64) {
            obs.dropped(now, pkt, Cause::of(Reason::Early)); // every packet has one fate
        } else {
            self.queue.push_back(pkt);
        }
    }
    fn dequeue(&mut self, _: Instant, _: &mut dyn Observer<P>) -> Option<P> {
        self.queue.pop_front()
    }
    fn deadline(&self) -> Option<Instant> {
        None // only shapers hold packets back
    }
    fn rate_changed(&mut self, _: Instant, _: Rate) {}
    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(Packet::wire_len).sum();
        Backlog { packets: Packets::new(self.queue.len() as u64), bytes }
    }
    fn observe(&self, _: Instant, out: &mut LawSamples) {
        out.push(("p", 0.01 * self.queue.len() as f64)); // a column of the recording
    }
}

fn no_rules(_: &mut Settings, _: &LinkContext) -> Result<(), ParamError> {
    Ok(())
}

/// Returns the entry for a registry of any host's packets: a description, and a function that builds the queue.
pub fn slope<P: Packet + Send + 'static>() -> Entry<P> {
    static NO_PARAMS: &[Param] = &[];
    Entry {
        info: Info {
            name: "slope",
            title: "Slope",
            summary: "drops an arrival with a probability of one percent per waiting packet",
            version: 1,
            applies: &[],
            maturity: Maturity::Experimental,
            decides: Decides::Enqueue,
            params: NO_PARAMS,
            presets: &[],
            derive: Derive::Alone(no_rules),
            samples: || vec![("", Settings::default())],
        },
        build: Box::new(|_, draws, _| {
            Ok(Discipline::Custom(Box::new(Slope::<P> { queue: VecDeque::new(), draws })))
        }),
    }
}

fn main() {
    let mut registry = Registry::<TestPacket>::builtin();
    registry.register(slope()).expect("the name is free");
    let entry = registry.find("slope").expect("it was just registered");
    for seed in 0..100 {
        if let Err(failure) = check_entry(entry, &Settings::default(), &LINK, seed) {
            panic!("{failure}");
        }
    }
    println!("slope satisfies the contract in 100 random scripts");
}
