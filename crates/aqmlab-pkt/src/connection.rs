//! A connection under test, and what its application waits for.

use aqmlab_transport::{Reaction, State, StreamEvent, WireEndpoint};
use aqmlab_units::{Instant, Span};

use crate::script::Ns;

/// A connection under test.
#[derive(Debug)]
pub(crate) struct Connection {
    pub wire: WireEndpoint,
    /// The `listen` call from which it comes; `None` if this side has opened it.
    pub listener: Option<usize>,
    pub established: bool,
    pub accepted: bool,
    /// The other side has finished.
    pub at_end: bool,
    /// How the connection has failed, as an error of the socket interface.
    pub error: Option<&'static str>,
    /// Bytes that the socket may hold before they are acknowledged.
    pub send_buffer: u64,
    pub corked: bool,
    /// Bytes that wait for more, since when.
    held: u64,
    held_since: Option<Ns>,
    written: u64,
    limits: Limits,
}

/// How long the connection has been busy, and what limited it (RFC 4898 has similar counters).
#[derive(Clone, Copy, Default, Debug)]
struct Limits {
    seen: Ns,
    busy: Ns,
    by_window: Ns,
    by_buffer: Ns,
}

impl Connection {
    pub fn new(wire: WireEndpoint, listener: Option<usize>, send_buffer: u64) -> Connection {
        Connection {
            wire,
            listener,
            established: false,
            accepted: false,
            at_end: false,
            error: None,
            send_buffer,
            corked: false,
            held: 0,
            held_since: None,
            written: 0,
            limits: Limits::default(),
        }
    }

    /// Processes the events of the endpoint.
    pub fn fetch_events(&mut self) {
        while let Some(event) = self.wire.poll_event() {
            match event {
                StreamEvent::Established => self.established = true,
                StreamEvent::PeerClosed => self.at_end = true,
                StreamEvent::Reset if self.established => self.error = Some("ECONNRESET"),
                StreamEvent::Reset => self.error = Some("ECONNREFUSED"),
                StreamEvent::Aborted => self.error = Some("ETIMEDOUT"),
                _ => {}
            }
        }
    }

    /// Returns when small writes that are held back must leave.
    pub fn deadline(&self) -> Option<Instant> {
        let held = self.held_until().map(instant);
        [held, self.wire.deadline()].into_iter().flatten().min()
    }

    pub fn on_timer(&mut self, now: Ns) {
        self.wire.on_timer(instant(now));
        if self.held_until().is_some_and(|until| until <= now) {
            self.push();
        }
    }

    /// Returns when bytes must leave that wait for more (`MSG_MORE`, `TCP_CORK`): after a retransmission timeout.
    fn held_until(&self) -> Option<Ns> {
        let rto = self.wire.endpoint().rto(self.wire.profile());
        self.held_since.map(|since| since + rto.as_ns() as Ns)
    }

    /// Writes bytes; with `more`, an incomplete segment waits.
    pub fn write(&mut self, now: Ns, bytes: u64, more: bool) {
        self.written += bytes;
        if !(more || self.corked) {
            self.push();
            self.wire.write(bytes);
            return;
        }
        self.held += bytes;
        let mss = u64::from(self.wire.profile().mss);
        let whole = self.held - self.held % mss;
        if whole > 0 {
            self.wire.write(whole);
            self.held -= whole;
        }
        self.held_since = (self.held > 0).then(|| self.held_since.unwrap_or(now));
    }

    /// Lets bytes leave that were held back.
    pub fn push(&mut self) {
        self.held_since = None;
        if self.held > 0 {
            self.wire.write(std::mem::take(&mut self.held));
        }
    }

    /// Called after an arrival: an acknowledgment of everything, or of all but less than a segment, lets what was
    /// held back leave.
    pub fn push_if_drained(&mut self, acked: bool) {
        if acked && self.held > 0 {
            self.push();
        }
    }

    /// Returns the bytes that wait for an acknowledgment.
    pub fn queued(&self) -> u64 {
        self.written - self.wire.endpoint().acked().get()
    }

    /// Returns how many of `bytes` fit into the send buffer. A write that waits goes on when a third is free.
    pub fn room(&self, waits: bool) -> u64 {
        let queued = self.queued();
        let least = if waits { self.send_buffer / 3 } else { 1 };
        let room = self.send_buffer.saturating_sub(queued);
        if room >= least { room } else { 0 }
    }

    /// Counts the time since the latest call; `buffer_full` is true if a write waits for room.
    pub fn count_time(&mut self, now: Ns, buffer_full: bool) {
        let passed = now - self.limits.seen;
        self.limits.seen = now;
        let endpoint = self.wire.endpoint();
        let outstanding = endpoint.info(self.wire.profile()).outstanding > 0;
        if self.established && (outstanding || endpoint.has_unsent()) {
            self.limits.busy += passed;
            if endpoint.has_unsent() && endpoint.waits_for_window(self.wire.profile()) {
                self.limits.by_window += passed;
            } else if buffer_full && !endpoint.has_unsent() {
                self.limits.by_buffer += passed;
            }
        }
    }

    /// Returns a number of the socket by its name in Linux's `tcp_info`, or a constant of that interface.
    pub fn number(&self, name: &str, now: Ns) -> Option<i64> {
        let (endpoint, profile) = (self.wire.endpoint(), self.wire.profile());
        let info = endpoint.info(profile);
        let micros = |ns: Ns| ns / 1000;
        Some(match name {
            "tcpi_state" => state_number(endpoint.state()),
            "tcpi_ca_state" => reaction_number(info.reaction),
            "tcpi_snd_cwnd" => endpoint.cwnd() as i64,
            "tcpi_snd_ssthresh" => endpoint.ssthresh().min(f64::from(i32::MAX)) as i64,
            "tcpi_unacked" => info.outstanding.into(),
            "tcpi_sacked" => info.sacked.into(),
            "tcpi_lost" => info.lost.into(),
            "tcpi_retrans" => info.copies.into(),
            "tcpi_reordering" => info.reordering.into(),
            "tcpi_total_retrans" => endpoint.counters().retransmitted.into(),
            "tcpi_snd_mss" => profile.mss.into(),
            "tcpi_probes" => self.wire.window_probes().into(),
            "tcpi_backoff" => 0,
            "tcpi_rtt" => micros(endpoint.srtt().unwrap_or(Span::ZERO).as_ns() as Ns),
            "tcpi_rto" => micros(endpoint.rto(profile).as_ns() as Ns),
            "tcpi_snd_wscale" => self.wire.peer_scale().unwrap_or(0).into(),
            "tcpi_bytes_received" => endpoint.delivered().get() as i64,
            "tcpi_bytes_acked" => endpoint.acked().get() as i64,
            "tcpi_last_data_recv" => (now - self.wire.latest_data().as_ns() as Ns) / 1_000_000,
            "tcpi_busy_time" => micros(self.limits.busy),
            "tcpi_rwnd_limited" => micros(self.limits.by_window),
            "tcpi_sndbuf_limited" => micros(self.limits.by_buffer),
            "tcpi_delivered_ce" => {
                endpoint.ecn_counters().map_or(0, |(_, heard)| heard.ce_packets.wrapping_sub(5)).into()
            }
            "tcpi_delivered_ce_bytes" => {
                endpoint.ecn_counters().map_or(0, |(_, heard)| heard.ce_bytes).into()
            }
            "tcpi_delivered_e0_bytes" => {
                endpoint.ecn_counters().map_or(0, |(_, heard)| heard.ect0_bytes - 1).into()
            }
            "tcpi_delivered_e1_bytes" => {
                endpoint.ecn_counters().map_or(0, |(_, heard)| heard.ect1_bytes - 1).into()
            }
            "tcpi_options" => {
                i64::from(self.wire.uses_stamps())
                    | i64::from(endpoint.uses_sack()) << 1
                    | i64::from(self.wire.peer_scale().is_some()) << 2
                    | i64::from(endpoint.uses_ecn()) << 3
            }
            "TCPI_OPT_TIMESTAMPS" => 1,
            "TCPI_OPT_SACK" => 2,
            "TCPI_OPT_WSCALE" => 4,
            "TCPI_OPT_ECN" => 8,
            "TCPI_OPT_SYN_DATA" => 32,
            "TCP_CA_Open" => 0,
            "TCP_CA_Disorder" => 1,
            "TCP_CA_CWR" => 2,
            "TCP_CA_Recovery" => 3,
            "TCP_CA_Loss" => 4,
            "TCP_ESTABLISHED" => 1,
            "TCP_SYN_SENT" => 2,
            "TCP_SYN_RECV" => 3,
            "TCP_FIN_WAIT1" => 4,
            "TCP_FIN_WAIT2" => 5,
            "TCP_TIME_WAIT" => 6,
            "TCP_CLOSE" => 7,
            "TCP_CLOSE_WAIT" => 8,
            "TCP_LAST_ACK" => 9,
            "TCP_LISTEN" => 10,
            "TCP_CLOSING" => 11,
            _ => return None,
        })
    }
}

/// Returns the time of a script as an instant.
pub(crate) fn instant(now: Ns) -> Instant {
    Instant::from_ns(now.max(0).unsigned_abs())
}

fn reaction_number(reaction: Reaction) -> i64 {
    match reaction {
        Reaction::Open => 0,
        Reaction::Disorder => 1,
        Reaction::Reduction => 2,
        Reaction::Recovery => 3,
        Reaction::Loss => 4,
    }
}

fn state_number(state: State) -> i64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}
