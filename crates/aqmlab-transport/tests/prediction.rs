//! Header prediction changes no result: in debug builds, as here, each segment that takes the fast path also
//! takes the full path on a copy of the endpoint, and an assertion checks that both end in the same state.
//! The test therefore needs segments of all kinds in all situations: it uses connections in the middle of a
//! transfer, whose segments are lost, delayed and forged.
//!
//! A failure prints the seed; `AQMLAB_SEED=n cargo test -p aqmlab-transport --test prediction` replays it.
#![cfg(debug_assertions)]

use std::collections::VecDeque;

use aqmlab_params::{Origin, Value};
use aqmlab_random::Stream;
use aqmlab_transport::{
    ENDLESS, Endpoint, Flags, Options, Profile, Recovery, Role, Segment, profile_settings, profiles,
};
use aqmlab_units::{Ecn, Instant, Span};

/// Two endpoints that have data for each other, and the segments in flight from each of them.
struct Talk {
    now: Instant,
    profile: Profile,
    endpoints: [Endpoint; 2],
    on_the_way: [VecDeque<(Segment, Options)>; 2],
    draw: Stream,
}

impl Talk {
    fn new(seed: u64) -> Talk {
        let mut draw = Stream::new(seed, "talk");
        let name = profiles()[draw.below(profiles().len() as u64) as usize].name;
        let mut settings = profile_settings(name).expect("listed");
        let mut give = |name, value| settings.set(name, value, Origin::Given);
        give("initial_sequence", Value::Integer(u64::from(u32::MAX) - draw.below(50_000)));
        give("max_window", Value::Integer(1 + draw.below(40)));
        give("ack_every", Value::Integer(1 + draw.below(3)));
        give("increase", Value::Choice(["per_ack", "byte_counting"][draw.below(2) as usize]));
        let prague = name == "prague"; // needs ECN, and lists its segments
        let recovery = Recovery::WORDS[draw.below(Recovery::WORDS.len() as u64) as usize];
        give("recovery", Value::Choice(if prague { "sack" } else { recovery }));
        give("ecn", Value::Flag(draw.hit(0.5) || prague));
        let profile = Profile::resolve(&mut settings).expect("consistent");
        let endpoints = [Role::Active, Role::Passive].map(|role| Endpoint::new(role, &profile));
        let on_the_way = [VecDeque::new(), VecDeque::new()];
        let mut talk = Talk { now: Instant::ZERO, profile, endpoints, on_the_way, draw };
        talk.with(0, |e, now, p| e.open(now, p));
        talk
    }

    /// Makes one call that changes an endpoint, then drains that endpoint.
    fn with(&mut self, side: usize, mutate: impl FnOnce(&mut Endpoint, Instant, &Profile)) {
        let endpoint = &mut self.endpoints[side];
        mutate(endpoint, self.now, &self.profile);
        while let Some(segment) = endpoint.poll_transmit(self.now, &self.profile) {
            let options = endpoint.options(&segment, &self.profile);
            self.on_the_way[side].push_back((segment, options));
        }
        while endpoint.poll_event().is_some() {}
    }

    /// Takes one random step: writes data; lets the network deliver (and possibly change), lose or
    /// delay a segment; or, if nothing is in flight, advances the time to that of a timer.
    fn step(&mut self) {
        self.now += Span::us(self.draw.below(3000));
        let side = self.draw.below(2) as usize;
        if self.draw.hit(0.1) {
            let bytes = if self.draw.hit(0.01) { ENDLESS } else { self.draw.below(20_000) };
            return self.with(side, |e, _, _| e.write(bytes));
        }
        let Some((mut segment, options)) = self.on_the_way[side].pop_front() else {
            if self.on_the_way[1 - side].is_empty()
                && let Some(at) = self.endpoints[side].deadline()
            {
                self.now = self.now.max(at);
                self.with(side, |e, now, p| e.on_timer(now, p));
            }
            return;
        };
        if self.draw.hit(0.01) {
            return; // lost
        }
        if self.draw.hit(0.01) {
            return self.on_the_way[side].push_back((segment, options)); // late
        }
        if self.draw.hit(0.03) {
            self.forge(&mut segment);
        }
        if segment.ecn.is_capable() && self.draw.hit(0.02) {
            segment.ecn = Ecn::Ce;
        }
        self.with(1 - side, |e, now, p| match segment.has_options() {
            false => e.on_segment(now, &segment, p),
            true => e.on_segment_with_options(now, &segment, &options, p),
        });
    }

    /// Changes one field to a value that it could have in another segment.
    fn forge(&mut self, segment: &mut Segment) {
        let some = self.draw.below(5000) as u32;
        match self.draw.below(8) {
            0 => segment.seq = segment.seq.wrapping_add(some),
            1 => segment.seq = segment.seq.wrapping_sub(some),
            2 => segment.ack = segment.ack.wrapping_add(1 + some % 3),
            3 => segment.ack = segment.ack.wrapping_sub(some),
            4 => segment.window = 10_000 + some,
            5 => segment.flags |= Flags::ECE,
            6 => segment.flags |= Flags::CWR,
            _ => segment.len = 0,
        }
    }
}

#[test]
fn the_short_way_and_the_full_one_agree_whatever_arrives() {
    let seeds = match std::env::var("AQMLAB_SEED") {
        Ok(seed) => seed.parse().map(|n| n..n + 1).expect("a number"),
        Err(_) => 0..300,
    };
    let mut moved = 0;
    for seed in seeds {
        println!("replay with AQMLAB_SEED={seed}");
        let mut talk = Talk::new(seed);
        (0..2000).for_each(|_| talk.step());
        moved += talk.endpoints.iter().map(|e| e.delivered().get()).sum::<u64>();
    }
    assert!(moved > 0, "the connections were in use");
}
