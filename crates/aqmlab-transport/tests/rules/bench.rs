//! One endpoint; the test plays the other side and advances the time.

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{
    ENDLESS, Endpoint, Extras, Flags, Options, Profile, Recovery, Role, Sack, Segment, Stamps, StreamEvent,
    profile_settings,
};
use aqmlab_units::{Ecn, Instant, Span};

pub const MSS: u32 = 1460;

pub fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}

/// An endpoint with its profile, and the time.
pub struct Bench {
    pub endpoint: Endpoint,
    pub profile: Profile,
    pub now: Instant,
}

impl Bench {
    pub fn new(role: Role, given: &[(&'static str, Value)]) -> Bench {
        Bench::of("rfc", role, given)
    }

    pub fn of(profile: &str, role: Role, given: &[(&'static str, Value)]) -> Bench {
        let mut settings = profile_settings(profile).expect("built in");
        for (name, value) in given {
            settings.set(name, value.clone(), Origin::Given);
        }
        let profile = Profile::resolve(&mut settings).expect("consistent");
        Bench { endpoint: Endpoint::new(role, &profile), profile, now: Instant::ZERO }
    }

    /// Returns an active endpoint after a handshake that took 100 ms. It has an endless stream to
    /// send, and has sent its first flight.
    pub fn established(given: &[(&'static str, Value)]) -> Bench {
        let mut b = Bench::new(Role::Active, given);
        b.connect();
        b.endpoint.write(ENDLESS);
        b.now = ms(100);
        let ecn = Flags::NONE.with_if(Flags::ECE, b.profile.ecn);
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK | ecn, ..b.syn_ack() });
        assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Established));
        b
    }

    /// Returns a passive endpoint after a handshake that took 100 ms.
    pub fn accepted(given: &[(&'static str, Value)]) -> Bench {
        let mut b = Bench::new(Role::Passive, given);
        let ecn = Flags::NONE.with_if(Flags::ECE | Flags::CWR, b.profile.ecn);
        let extras = b.permits_sack();
        b.arrive(Segment { flags: Flags::SYN | ecn, extras, ..segment(0, 0, 0) });
        b.now = ms(100);
        b.arrive(segment(1, 1, 0));
        assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Established));
        b
    }

    /// Returns the other side's answer to the SYN; it permits SACK if this side does.
    pub fn syn_ack(&self) -> Segment {
        Segment { flags: Flags::SYN | Flags::ACK, extras: self.permits_sack(), ..segment(0, 1, 0) }
    }

    fn permits_sack(&self) -> Extras {
        Extras::NONE.with_if(Extras::SACK_PERMITTED, self.profile.recovery == Recovery::Sack)
    }

    /// Opens the connection; returns the SYN.
    pub fn connect(&mut self) -> Segment {
        self.endpoint.open(self.now, &self.profile);
        let sent = self.drain();
        assert_eq!(sent.len(), 1);
        sent[0]
    }

    pub fn arrive(&mut self, seg: Segment) -> Vec<Segment> {
        self.endpoint.on_segment(self.now, &seg, &self.profile);
        self.drain()
    }

    pub fn arrive_marked(&mut self, seg: Segment, ce: bool) -> Vec<Segment> {
        self.arrive(if ce { Segment { ecn: Ecn::Ce, ..seg } } else { seg })
    }

    /// Delivers a pure ACK of everything below segment `n`.
    pub fn ack(&mut self, n: u32) -> Vec<Segment> {
        self.arrive(ack_of(n))
    }

    /// Delivers a pure ACK of everything below segment `n`, with SACK blocks given as segments
    /// `[from, to)`.
    pub fn ack_with(&mut self, n: u32, blocks: &[(u32, u32)]) -> Vec<Segment> {
        self.arrive_with(ack_of(n), blocks)
    }

    /// Delivers any segment with SACK blocks given as segments `[from, to)`.
    pub fn arrive_with(&mut self, seg: Segment, blocks: &[(u32, u32)]) -> Vec<Segment> {
        let bytes: Vec<(u32, u32)> = blocks.iter().map(|(from, to)| (from * MSS, to * MSS)).collect();
        self.arrive_with_bytes(seg, &bytes)
    }

    /// Does the same as `arrive_with`, with blocks given as bytes, counted from 0.
    pub fn arrive_with_bytes(&mut self, seg: Segment, blocks: &[(u32, u32)]) -> Vec<Segment> {
        let options = Options { sack: option(blocks.iter().copied()), ..Options::NONE };
        self.arrive_with_options(seg, &options)
    }

    /// Delivers any segment with these options.
    pub fn arrive_with_options(&mut self, seg: Segment, options: &Options) -> Vec<Segment> {
        self.endpoint.on_segment_with_options(self.now, &seg, options, &self.profile);
        self.drain()
    }

    /// Delivers a pure ACK of everything below segment `n` that echoes the time stamp of a retransmission sent
    /// at `sent`.
    pub fn ack_of_copy(&mut self, n: u32, sent: Instant) -> Vec<Segment> {
        let options = Options { stamps: Stamps::echoing(sent), ..Options::NONE };
        self.arrive_with_options(Segment { extras: Extras::STAMPED, ..ack_of(n) }, &options)
    }

    /// Advances to the time at which the endpoint's timer is due, and lets it fire.
    pub fn fire(&mut self) -> Vec<Segment> {
        self.now = self.endpoint.deadline().expect("a timer is running");
        self.endpoint.on_timer(self.now, &self.profile);
        self.drain()
    }

    pub fn drain(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.endpoint.poll_transmit(self.now, &self.profile)).collect()
    }
}

pub fn segment(seq: u32, ack: u32, len: u32) -> Segment {
    let flags = Flags::ACK;
    Segment { seq, ack, len, flags, window: 1 << 30, ecn: Ecn::NotEct, extras: Extras::NONE, sack_len: 0 }
}

pub fn ack_of(n: u32) -> Segment {
    segment(1, 1 + n * MSS, 0)
}

/// Returns the numbers of the data segments, counted from 0.
pub fn numbers(sent: &[Segment]) -> Vec<u32> {
    sent.iter().filter(|s| s.len > 0).map(|s| (s.seq - 1) / MSS).collect()
}

/// Returns an option with SACK blocks of the bytes `[from, to)`, counted from 0.
fn option(blocks: impl Iterator<Item = (u32, u32)>) -> Sack {
    let mut sack = Sack::NONE;
    blocks.for_each(|(from, to)| sack.push(1 + from, 1 + to));
    sack
}

pub fn sack() -> (&'static str, Value) {
    ("recovery", Value::Choice("sack"))
}

/// Returns a sender that tracks each segment individually, with these switches turned on.
pub fn by_segments(window: u64, switches: &[&'static str]) -> Bench {
    by_segments_with(window, switches, &[])
}

/// Returns the same sender as `by_segments`, with these further values.
pub fn by_segments_with(window: u64, switches: &[&'static str], values: &[(&'static str, Value)]) -> Bench {
    let mut given = vec![sack(), iw(window), ("sack_pipe", Value::Choice("segments"))];
    given.extend(switches.iter().map(|name| (*name, Value::Flag(true))));
    given.extend_from_slice(values);
    Bench::established(&given)
}

pub fn iw(n: u64) -> (&'static str, Value) {
    ("initial_window", Value::Integer(n))
}

/// Returns settings with sixteen segments in the first flight, and with ECN.
pub fn ecn() -> [(&'static str, Value); 2] {
    [iw(16), ("ecn", Value::Flag(true))]
}

/// Returns a pure ACK of everything below segment `n`, with an ECN echo.
pub fn echo(n: u32) -> Segment {
    Segment { flags: Flags::ACK | Flags::ECE, ..ack_of(n) }
}
