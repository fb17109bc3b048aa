//! Whatever the network does to packets, the stream gets through: every byte is delivered once and
//! in order, and both sides end in CLOSED. A failure prints the seed; `AQMLAB_SEED=n cargo test -p
//! aqmlab-transport --test any_loss` replays it.

mod support;

use aqmlab_params::{Kind, Origin, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_transport::{Endpoint, Flags, Profile, State, StreamEvent, profile_settings, profiles};
use aqmlab_units::{Bytes, Instant, Rate, Span, text::Size};
use support::{A, B, Fate, Faults, Link, Pair, Path};

/// One connection drawn from a seed.
struct Life {
    net: Pair,
    /// Bytes that each side will write.
    bytes: [u64; 2],
    draw: Stream,
}

/// Returns a profile whose variants are drawn at random; endpoints with this profile never give up.
fn any_profile(draw: &mut Stream) -> Profile {
    let name = profiles()[draw.below(profiles().len() as u64) as usize].name;
    let mut settings = profile_settings(name).expect("listed");
    for param in Profile::TABLE {
        // The bounds on the timer are left as they are, so that virtual time also stays bounded.
        match param.kind {
            Kind::Choice(words) | Kind::Open(words) if draw.hit(0.3) => {
                let word = words[draw.below(words.len() as u64) as usize];
                settings.set(param.name, Value::Choice(word), Origin::Given);
            }
            Kind::Flag if draw.hit(0.3) => {
                settings.set(param.name, Value::Flag(draw.hit(0.5)), Origin::Given);
            }
            _ => {}
        }
    }
    let controls = |settings: &Settings, these: [&'static str; 2]| {
        these.iter().any(|name| settings.get("congestion") == Some(&Value::Choice(name)))
    };
    if controls(&settings, ["dctcp", "prague"]) {
        settings.set("ecn", Value::Flag(true), Origin::Given);
    }
    let accurate = settings.get("ecn_feedback") == Some(&Value::Choice("accurate"));
    let by_sack = settings.get("recovery") == Some(&Value::Choice("sack"));
    if accurate {
        settings.set("ecn", Value::Flag(true), Origin::Given);
    }
    if accurate && by_sack {
        settings.set("dsack", Value::Flag(true), Origin::Given);
    } else {
        settings.set("ect_on_ack", Value::Flag(false), Origin::Given);
    }
    if ["bbr", "bbr3", "prague"].iter().any(|name| controls(&settings, [name, name]))
        && ["tahoe", "reno"].iter().any(|name| settings.get("recovery") == Some(&Value::Choice(name)))
    {
        settings.set("recovery", Value::Choice("newreno"), Origin::Given);
    }
    if settings.get("answer_repeated_syn") == Some(&Value::Flag(false)) {
        settings.set("syn_ack_timer", Value::Flag(true), Origin::Given);
    }
    if settings.get("rtt_arithmetic") != Some(&Value::Choice("ns2")) {
        settings.set("tick_phases", Value::Choice("same"), Origin::Given);
    }
    let mut give = |name, value| Settings::set(&mut settings, name, value, Origin::Given);
    give("mss", Value::Size(Size::Bytes(Bytes::new(1 + draw.below(3000)))));
    give("receive_window", Value::Size(Size::Bytes(Bytes::new(3000 + draw.below(100_000)))));
    give("initial_sequence", Value::Integer(u64::from(u32::MAX) - draw.below(50_000)));
    give("initial_window", Value::Integer(1 + draw.below(10)));
    give("max_window", Value::Integer(1 + draw.below(100)));
    give("ack_every", Value::Integer(1 + draw.below(3)));
    give("dupthresh", Value::Integer(1 + draw.below(4)));
    let mut burst =
        |some| [Value::Integer(1), Value::Integer(some), Value::Unlimited][draw.below(3) as usize].clone();
    let bursts = [("recovery_burst", burst(2)), ("max_burst", burst(4))];
    bursts.into_iter().for_each(|(name, value)| give(name, value));
    give("syn_retries", Value::Unlimited);
    give("data_retries", Value::Unlimited);
    give("time_wait", Value::Span([Span::ZERO, Span::s(240)][draw.below(2) as usize]));
    Profile::resolve(&mut settings).expect("consistent")
}

/// Draws losses of up to 45 %, marks, and delays that reorder packets.
fn any_faults(seed: u64, path: &str, draw: &mut Stream) -> Faults {
    let most = |draw: &mut Stream, p: f64| if draw.hit(0.5) { 0.0 } else { p * draw.unit() };
    let (loss, mark, late) = (most(draw, 0.45), most(draw, 0.5), most(draw, 0.2));
    let mut own = Stream::new(seed, path);
    Box::new(move |_, _| {
        let (lost, marked, delayed) = (own.hit(loss), own.hit(mark), own.hit(late));
        let span = Span::us(own.below(300_000));
        match (lost, marked, delayed) {
            (true, _, _) => Fate::Drop,
            (_, true, _) => Fate::Mark,
            (_, _, true) => Fate::Late(span),
            _ => Fate::Pass,
        }
    })
}

/// Delivers only one packet in a hundred.
fn almost_all(seed: u64, path: &str, _: &mut Stream) -> Faults {
    let mut own = Stream::new(seed, path);
    Box::new(move |_, _| if own.hit(0.01) { Fate::Pass } else { Fate::Drop })
}

impl Life {
    /// Draws a connection with at most 300 segments per side, so that a thousand seeds take about a
    /// second.
    fn new(seed: u64) -> Life {
        Life::with(seed, 300, any_faults)
    }

    /// Draws a connection with at most `segments` segments per side.
    fn with(seed: u64, segments: u64, faults: fn(u64, &str, &mut Stream) -> Faults) -> Life {
        let mut draw = Stream::new(seed, "life");
        let profile = any_profile(&mut draw);
        let mut path = |name: &str| {
            let mut link = || {
                let rate = Rate::kbit(100 + draw.below(20_000));
                Link::new(rate, Span::us(draw.below(100_000)), 5 + draw.below(100) as usize)
            };
            let links = [link(), link()];
            Path::new(links, faults(seed, name, &mut draw))
        };
        let paths = [path("there"), path("back")];
        let most = u64::from(profile.mss) * segments;
        let bytes = [draw.below(most), if draw.hit(0.5) { 0 } else { draw.below(most) }];
        Life { net: Pair::new(profile, paths), bytes, draw }
    }

    /// Opens, writes and closes at random times, then runs the connection to its end.
    fn live(&mut self) {
        self.net.open(Instant::ZERO);
        let mut left = self.bytes;
        let mut open = [true; 2];
        while open[A] || open[B] {
            let then = self.net.now + Span::ms(self.draw.below(2_000));
            self.net.run_until(then);
            self.net.now = then;
            for side in [A, B] {
                if left[side] > 0 {
                    let n = 1 + self.draw.below(left[side]);
                    left[side] -= n;
                    self.net.with(side, |e, _, _| e.write(n));
                } else if open[side] && self.net.sides[side].endpoint.state().is_synchronised() {
                    open[side] = false;
                    self.net.with(side, |e, _, _| e.close());
                }
            }
        }
        self.net.run_until(Instant::ZERO + Span::s(1_000_000_000));
    }

    fn check(&self) {
        for (side, peer) in [(A, B), (B, A)] {
            let this = &self.net.sides[side];
            assert_eq!(this.endpoint.state(), State::Closed);
            assert_eq!(this.delivered(), self.bytes[peer], "bytes delivered to {side}");
            assert_eq!(this.acked(), self.bytes[side], "bytes acknowledged to {side}");
            assert_eq!(this.endpoint.delivered().get(), self.bytes[peer]);
            let ends = |e: &Endpoint| e.deadline().is_none() && e.flight().get() == 0;
            assert!(ends(&this.endpoint), "nothing is left to do");
            let seen: Vec<StreamEvent> = this.events.iter().map(|(_, e)| *e).collect();
            assert_eq!(seen.first(), Some(&StreamEvent::Established));
            assert_eq!(seen.last(), Some(&StreamEvent::Closed));
            assert_eq!(seen.iter().filter(|e| **e == StreamEvent::PeerClosed).count(), 1);
            self.check_windows(side);
            self.check_counters(side);
        }
    }

    /// Checks that the counters, some of which are derived from others, agree with the segments
    /// that have left.
    fn check_counters(&self, side: usize) {
        let this = &self.net.sides[side];
        let counters = this.endpoint.counters();
        assert_eq!(counters.segments_sent as usize, this.sent.len());
        assert_eq!(counters.data_segments_sent as usize, this.data_sent().len());
        assert_eq!(
            counters.bytes_sent,
            this.data_sent().iter().map(|(_, _, len)| u64::from(*len)).sum::<u64>()
        );
        // With PAWS, old segments are discarded, whatever they bring.
        if !self.net.profile.paws {
            assert_eq!(counters.duplicates_received, self.duplicates(side), "brought nothing new");
        }
    }

    /// Counts, byte by byte, the segments that arrived at an open connection and contained no new
    /// data.
    fn duplicates(&self, side: usize) -> u32 {
        let first = self.net.profile.initial_sequence;
        // The bytes of the stream, and its FIN, which also takes a sequence number.
        let mut held = vec![false; usize::try_from(self.bytes[1 - side]).expect("a small number") + 1];
        let mut duplicates = 0;
        for (state, seg) in &self.net.sides[side].received {
            if *state == State::Closed || seg.flags.has(Flags::SYN) || seg.sequence_len() == 0 {
                continue;
            }
            let from = seg.seq.wrapping_sub(first) as usize - 1;
            let these = &mut held[from..][..seg.sequence_len() as usize];
            duplicates += u32::from(these.iter().all(|held| *held));
            these.fill(true);
        }
        duplicates
    }

    /// Checks that no segment reaches beyond the other side's receive window or beyond `max_window`
    /// segments.
    fn check_windows(&self, side: usize) {
        let (this, profile) = (&self.net.sides[side], &self.net.profile);
        let first = profile.initial_sequence;
        for (_, seg) in this.sent.iter().filter(|(_, s)| s.len > 0) {
            assert!(seg.len <= profile.mss);
            let end = u64::from(seg.seq.wrapping_sub(first)) - 1 + u64::from(seg.len);
            assert!(end <= self.bytes[side], "only data that was written");
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("AQMLAB_SEED") {
        Ok(seed) => seed.parse().map(|n| n..n + 1).expect("a number"),
        Err(_) => 0..2000,
    }
}

#[test]
fn every_byte_arrives_once_in_order_and_both_sides_close() {
    for seed in seeds() {
        println!("replay with AQMLAB_SEED={seed}");
        let mut life = Life::new(seed);
        life.live();
        life.check();
    }
}

#[test]
fn one_packet_in_a_hundred_is_enough() {
    for seed in seeds().step_by(100) {
        println!("replay with AQMLAB_SEED={seed}");
        let mut life = Life::with(seed, 4, almost_all);
        life.live();
        life.check();
    }
}

#[test]
fn the_same_seed_gives_the_same_segments_at_the_same_times() {
    for seed in seeds().step_by(100) {
        let [one, two] = [0, 1].map(|_| {
            let mut life = Life::new(seed);
            life.live();
            life.net.sides.map(|s| s.sent)
        });
        assert!(one == two, "seed {seed}");
    }
}
