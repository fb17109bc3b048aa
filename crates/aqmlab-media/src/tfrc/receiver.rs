//! The receiver of RFC 5348, section 6.

use aqmlab_units::{Instant, Span};

use super::equation::loss_event_rate;
use super::intervals::LossHistory;

/// What a receiver reports to the sender (RFC 5348, section 3.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Report {
    /// When the last packet that arrived had been sent (`t_recvdata`).
    pub sent_at: Instant,
    /// The time between the arrival of that packet and this report (`t_delay`).
    pub delay: Span,
    /// Bytes per second that arrived since the last report, or in the last round-trip time (`X_recv`).
    pub received_per_s: f64,
    /// The loss event rate (`p`).
    pub loss_event_rate: f64,
}

/// A TFRC receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    history: LossHistory,
    last: Option<Last>,
    /// Bytes since the last report, and when that report was made.
    bytes: u64,
    since: Instant,
    /// The highest rate reported so far.
    fastest: f64,
    /// When the next report is due; the far future if nothing has arrived since the last one.
    due: Instant,
    reported: f64,
    started: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    sent_at: Instant,
    at: Instant,
    rtt: Option<Span>,
    len: f64,
}

impl Default for Receiver {
    fn default() -> Self {
        Receiver {
            history: LossHistory::default(),
            last: None,
            bytes: 0,
            since: Instant::ZERO,
            fastest: 0.0,
            due: Instant::FAR_FUTURE,
            reported: 0.0,
            started: false,
        }
    }
}

impl Receiver {
    /// Notes the arrival of a packet of `len` bytes that was sent at `sent_at` and carries the sender's estimate of the
    /// round-trip time, if it has one.
    pub fn arrived(
        &mut self,
        now: Instant,
        (number, len): (u64, f64),
        sent_at: Instant,
        rtt: Option<Span>,
        marked: bool,
    ) {
        if !self.started {
            // Section 6.3: the first packet is reported at once.
            self.started = true;
            self.since = now;
            self.due = now;
        }
        let rate_so_far = self.rate_until(now).max(self.fastest);
        let spacing = rtt.unwrap_or(Span::ZERO);
        let first_interval = || match rtt {
            Some(rtt) if rate_so_far > 0.0 => 1.0 / loss_event_rate(len, rtt.as_secs_f64(), rate_so_far),
            // Nothing has been received whose rate could be known (section 6.3.1).
            _ => 1.0,
        };
        let began = self.history.arrived(now, number, marked, spacing, first_interval);
        self.bytes += len as u64;
        if self.last.is_none_or(|last| number >= last.number) {
            self.last = Some(Last { number, sent_at, at: now, rtt, len });
        }
        // Section 6.1: a rise of the loss event rate is reported at once.
        if began && self.history.loss_event_rate() > self.reported {
            self.due = now;
        } else if self.due == Instant::FAR_FUTURE {
            self.due = (self.since + spacing).max(now);
        }
    }

    /// Returns when the next report is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Makes the report that is due, and starts the time to the next one: a round-trip time.
    pub fn report(&mut self, now: Instant) -> Option<Report> {
        let last = self.last?;
        let received_per_s = self.rate_until(now);
        self.fastest = self.fastest.max(received_per_s);
        self.reported = self.history.loss_event_rate();
        (self.bytes, self.since, self.due) = (0, now, Instant::FAR_FUTURE);
        Some(Report {
            sent_at: last.sent_at,
            delay: now.saturating_since(last.at),
            received_per_s,
            loss_event_rate: self.reported,
        })
    }

    /// Returns the rate at which bytes arrived since the last report. If that was less than a round-trip time ago, the
    /// rate is that of a round-trip time (section 6.2).
    fn rate_until(&self, now: Instant) -> f64 {
        let Some(Last { rtt: Some(rtt), .. }) = self.last else { return 0.0 };
        let over = now.saturating_since(self.since).max(rtt).as_secs_f64();
        if over > 0.0 { self.bytes as f64 / over } else { 0.0 }
    }

    /// Returns the size of the last packet, in bytes.
    pub fn packet_bytes(&self) -> f64 {
        self.last.map_or(0.0, |last| last.len)
    }
}
