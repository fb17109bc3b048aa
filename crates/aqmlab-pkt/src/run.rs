//! Runs a script in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use aqmlab_transport::{Flags, Role, WireEndpoint, WireSegment};

use crate::assertion;
use crate::compare::{Stamped, agrees, described, injected};
use crate::connection::{Connection, instant};
use crate::descriptor::{Blocked, Socket};
use crate::parse::parse;
use crate::script::{Action, Bits, Event, Failure, Ns, Opt, Packet, When};
use crate::settings::HostSettings;

/// What a run that met all expectations did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Number of events.
    pub events: usize,
    /// Settings of the script that were not read, with their lines.
    pub unread: Vec<(usize, String)>,
}

/// Runs a script over endpoints with the profile `profile`. Files that its shell lines name are read from
/// `folder`.
///
/// # Errors
/// At the first line that is malformed, that needs something which endpoints do not have, or whose expectation is
/// not met.
pub fn run(text: &str, folder: Option<&Path>, profile: &str) -> Result<Report, Failure> {
    let script = parse(text)?;
    let mut host = HostSettings::new(profile).map_err(|text| Failure::syntax(1, text))?;
    for (line, name, value) in &script.options {
        host.read_option(*line, name, value)?;
    }
    let mut runner = Runner {
        host,
        folder,
        now: 0,
        base: 0,
        connection: None,
        sent: VecDeque::new(),
        stamped: Stamped::default(),
        sockets: BTreeMap::new(),
        listeners: 0,
        blocked: None,
    };
    for event in &script.events {
        runner.step(event)?;
    }
    if let Some(blocked) = &runner.blocked {
        let until = blocked.until.max(runner.now) + runner.host.tolerance;
        runner.advance(until)?;
    }
    if let Some(blocked) = runner.blocked {
        return Err(Failure::mismatch(blocked.line, "the call to return", "it still waits at the end"));
    }
    Ok(Report { events: script.events.len(), unread: runner.host.unread })
}

/// The state of a run.
pub(crate) struct Runner<'a> {
    pub host: HostSettings,
    folder: Option<&'a Path>,
    pub now: Ns,
    /// The time from which relative times count: that of the previous event.
    base: Ns,
    pub connection: Option<Connection>,
    /// Segments that have left and that no event has expected yet, with their times.
    sent: VecDeque<(Ns, WireSegment)>,
    stamped: Stamped,
    pub sockets: BTreeMap<i64, Socket>,
    /// Number of `listen` calls so far.
    pub listeners: usize,
    /// The call that has not returned yet.
    pub blocked: Option<Blocked>,
}

impl Runner<'_> {
    fn step(&mut self, event: &Event) -> Result<(), Failure> {
        let (from, to) = match event.when {
            When::At(at) => (at, at),
            When::After(after) => (self.base + after, self.base + after),
            When::Within { from, to, relative: false } => (from, to),
            When::Within { from, to, relative: true } => (self.base + from, self.base + to),
            When::Any => (self.now, Ns::MAX / 2),
        };
        if let Action::Expect(packet) = &event.action {
            // The tool, too, continues from when it has seen the segment.
            self.base = self.expect(event.line, packet, from, to)?.max(self.base);
            return Ok(());
        }
        let relative = !matches!(event.when, When::At(_));
        let until = event.until.map(|until| if relative { self.base + until } else { until });
        self.advance(from)?;
        self.base = from;
        match &event.action {
            Action::Inject(packet) => self.inject(event.line, packet),
            Action::PathMtu(bytes) => self.lower_path_mtu(*bytes),
            Action::Call(call) => self.call(event.line, call, until),
            Action::Command(text) => {
                self.host.read_commands(event.line, text, self.folder)?;
                self.apply_settings(event.line)
            }
            Action::Assert(text) => self.assert(event.line, text),
            Action::Expect(_) => Ok(()),
        }
    }

    /// Lets the time pass, and carries out what is due until then.
    fn advance(&mut self, to: Ns) -> Result<(), Failure> {
        while let Some(due) = self.due().filter(|due| *due <= to) {
            self.pass_to(due)?;
        }
        self.now = self.now.max(to);
        self.count_time();
        Ok(())
    }

    /// Returns when something is due next.
    fn due(&self) -> Option<Ns> {
        let deadline = self.connection.as_ref()?.deadline()?;
        Some((deadline.as_ns() as Ns).max(self.now))
    }

    fn pass_to(&mut self, due: Ns) -> Result<(), Failure> {
        self.now = self.now.max(due);
        self.count_time();
        let now = self.now;
        if let Some(connection) = &mut self.connection {
            connection.on_timer(now);
        }
        self.settle()
    }

    fn count_time(&mut self) {
        let (now, waits) = (self.now, self.blocked.as_ref().is_some_and(Blocked::is_write));
        if let Some(connection) = &mut self.connection {
            connection.count_time(now, waits);
        }
    }

    /// Collects what the endpoint sends, and lets a waiting call go on.
    pub fn settle(&mut self) -> Result<(), Failure> {
        self.collect();
        self.retry_blocked()?;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(segment) = connection.wire.poll_transmit(instant(self.now)) {
            self.sent.push_back((self.now, segment));
        }
        connection.fetch_events();
    }

    /// Starts a connection; what an earlier one still sends is no longer of interest.
    pub fn begin(
        &mut self,
        line: usize,
        role: Role,
        listener: Option<usize>,
        socket: &Socket,
    ) -> Result<(), Failure> {
        let mut profile = self
            .host
            .profile(role == Role::Active, socket.congestion)
            .map_err(|text| Failure::syntax(line, text))?;
        socket.change_profile(&mut profile);
        let mut wire = self.host.wire;
        if let Some(bytes) = socket.receive_buffer {
            (wire.receive_buffer, wire.largest_window) = (bytes, bytes / 2);
        }
        let mut endpoint = WireEndpoint::new(role, &profile, &wire);
        if let Some(mss) = self.host.path_mss {
            endpoint.set_path_mss(mss);
        }
        self.connection = Some(Connection::new(endpoint, listener, self.host.send_buffer));
        self.sent.clear();
        self.stamped = Stamped::default();
        Ok(())
    }

    /// Applies settings to a connection that exists already: of those that are known, hosts read only this one each
    /// time that a segment leaves.
    fn apply_settings(&mut self, line: usize) -> Result<(), Failure> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let profile = self.host.profile(false, None).map_err(|text| Failure::syntax(line, text))?;
        connection.wire.change_profile(|current| current.ecn_option = profile.ecn_option);
        self.settle()
    }

    fn lower_path_mtu(&mut self, bytes: u32) -> Result<(), Failure> {
        let mss = u16::try_from(bytes.saturating_sub(self.host.headers)).unwrap_or(u16::MAX);
        self.host.path_mss = Some(mss);
        if let Some(connection) = &mut self.connection {
            connection.wire.set_path_mss(mss);
        }
        self.settle()
    }

    fn inject(&mut self, line: usize, packet: &Packet) -> Result<(), Failure> {
        if packet.options.iter().flatten().any(|option| *option == Opt::Signature) {
            return self.settle(); // RFC 2385, 2: without a key, no signature is valid
        }
        let syn = packet.bits.has(Bits::SYN) && !packet.bits.has(Bits::ACK);
        if syn && packet.len > 0 {
            return Err(Failure::unsupported(line, "fast open"));
        }
        let listening = self.sockets.values().find_map(|socket| Some((socket.listener?, socket.clone())));
        if let Some((listener, socket)) = listening.filter(|_| syn) {
            let known = self.connection.as_ref().is_some_and(|connection| {
                connection.listener == Some(listener)
                    && connection.wire.endpoint().state() != aqmlab_transport::State::Closed
            });
            if !known {
                self.begin(line, Role::Passive, Some(listener), &socket)?;
            }
        }
        let mut segment = injected(packet, &self.stamped);
        if let Some(sizes) = self.host.cookie_sizes().filter(|_| syn) {
            let mss = segment.options.mss.unwrap_or(0);
            segment.options.mss = sizes.iter().copied().filter(|size| *size <= mss).max().or(Some(sizes[0]));
        }
        match &mut self.connection {
            Some(connection) => {
                let before = connection.wire.endpoint().acked();
                connection.wire.on_segment(instant(self.now), &segment);
                let after = connection.wire.endpoint().acked();
                connection.push_if_drained(after > before);
            }
            None => self.sent.extend(segment.refusal().map(|refusal| (self.now, refusal))),
        }
        self.settle()
    }

    /// Waits for the segment that the script expects between `from` and `to`; returns when it left. The endpoint
    /// sends what one segment of the script contains as several that fit into a packet.
    fn expect(&mut self, line: usize, expected: &Packet, from: Ns, to: Ns) -> Result<Ns, Failure> {
        let tolerance = self.host.tolerance;
        let (mut part, mut first) = (expected.clone(), None);
        loop {
            let Some((at, segment)) = self.next_sent(to.saturating_add(tolerance))? else {
                let text = if first.is_some() { "only its beginning" } else { "no segment" };
                return Err(Failure::mismatch(line, format!("`{expected}` {}", span(from, to)), text));
            };
            let got = described(&segment, &self.stamped);
            if at < from - tolerance || at > to.saturating_add(tolerance) {
                let expected = format!("`{expected}` {}", span(from, to));
                return Err(Failure::mismatch(line, expected, format!("`{got}` at {}", seconds(at))));
            }
            let got = self.note_stamps(&part, &segment).unwrap_or(got);
            let mismatch = || Failure::mismatch(line, format!("`{expected}`"), format!("`{got}`"));
            let ticks = self.host.stamp_tick.map(|tick| (tolerance / tick.max(1)) as u32);
            if !agrees(&part, &got, ticks) || segment.len > part.len || (segment.len == 0 && part.len > 0) {
                return Err(mismatch());
            }
            first.get_or_insert(at);
            part.len -= segment.len;
            part.seq = part.seq.wrapping_add(segment.len);
            if part.len == 0 {
                if segment.flags.has(Flags::FIN) != expected.bits.has(Bits::FIN) {
                    return Err(mismatch());
                }
                return Ok(at);
            }
        }
    }

    /// Learns what the script calls the time stamp of a segment; returns the segment with that name.
    fn note_stamps(&mut self, expected: &Packet, segment: &WireSegment) -> Option<Packet> {
        let (ours, _) = segment.options.stamps?;
        let theirs = expected.options.iter().flatten().find_map(|option| match option {
            Opt::Stamps(value, _) => Some(*value),
            _ => None,
        })?;
        self.stamped.note(theirs, ours);
        Some(described(segment, &self.stamped))
    }

    /// Returns the next segment that has left or leaves until `latest`.
    fn next_sent(&mut self, latest: Ns) -> Result<Option<(Ns, WireSegment)>, Failure> {
        while self.sent.is_empty() {
            match self.due().filter(|due| *due <= latest) {
                Some(due) => self.pass_to(due)?,
                None => return Ok(None),
            }
        }
        Ok(self.sent.pop_front())
    }

    fn assert(&mut self, line: usize, text: &str) -> Result<(), Failure> {
        let now = self.now;
        let (connection, mss) = (self.connection.as_ref(), self.host.injected_mss);
        assertion::check(text, line, &mut |name| {
            let connection = connection?;
            match name {
                "tcpi_rcv_mss" => Some(connection.wire.largest_received().min(mss).into()),
                _ => connection.number(name, now),
            }
        })
    }
}

fn seconds(at: Ns) -> String {
    format!("{:.6} s", at as f64 / 1e9)
}

fn span(from: Ns, to: Ns) -> String {
    match to {
        _ if from == to => format!("at {}", seconds(from)),
        _ if to > Ns::MAX / 4 => format!("after {}", seconds(from)),
        _ => format!("between {} and {}", seconds(from), seconds(to)),
    }
}
