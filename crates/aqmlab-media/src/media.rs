//! A media flow: an encoder and a sender at the client, a receiver at the server, and feedback.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_traffic::End;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::control::{Control, ControlPlan, Load};
use crate::encoder::{Encoder, FramePlan};
use crate::feedback::{Acknowledged, Arrival, Arrivals, Feedback};
use crate::frames::Frames;
use crate::limits::Limits;
use crate::scream::Progress;
use crate::talk::{Datagram, LIFETIME, Noticed, Unfinished, earlier};
use crate::tfrc;

/// The flows of a class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct MediaPlan {
    /// The frames; without them, the sender always has a full packet to send.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FramePlan>,
    /// The controller.
    pub control: ControlPlan,
    /// The first rate, headers included.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// The lowest rate.
    #[serde(rename = "min_rate_bps")]
    pub least: Rate,
    /// The highest rate.
    #[serde(rename = "max_rate_bps")]
    pub most: Rate,
    /// The largest packet, headers included.
    #[serde(rename = "packet_bytes")]
    pub packet: Bytes,
    /// Time from the capture of a frame to its complete arrival, beyond which it is late.
    #[serde(rename = "deadline_ns")]
    pub deadline: Span,
    /// How much longer than the mean a gap between frames must be to be a freeze.
    #[serde(rename = "freeze_after_ns")]
    pub freeze_after: Span,
    /// The sender discards frames that have waited for this long.
    #[serde(rename = "discard_after_ns")]
    pub discard_after: Span,
}

impl MediaPlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    fn limits(&self) -> Limits {
        let [start, least, most] = [self.rate, self.least, self.most].map(|rate| rate.as_bps() as f64);
        Limits { start, least, most }
    }
}

/// The state of a media flow at an instant, for plots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MediaState {
    /// The controller's target rate, in bit/s.
    pub target_bps: f64,
    /// Bytes that wait at the sender.
    pub queued: Bytes,
    /// The last round-trip time, if any was measured.
    pub rtt: Option<Span>,
}

/// A media flow. The state of both ends is in one place, so that the content of packets needs no room in the packets.
#[derive(Clone, Debug)]
pub struct Media {
    plan: Arc<MediaPlan>,
    encoder: Option<Encoder>,
    /// Number of frames so far.
    captured: u64,
    control: Control,
    /// Packets that wait to be sent.
    queue: VecDeque<Queued>,
    queued: Bytes,
    log: SentLog,
    rtt: Option<Span>,
    receiver: Receiver,
    /// Reports that may still arrive, with their numbers.
    reports: VecDeque<(u64, Instant, Feedback)>,
    reported: u64,
    stopped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    frame: u64,
    captured: Instant,
    len: Bytes,
}

/// What was sent, from the first packet that may still arrive.
#[derive(Clone, Debug, Default)]
struct SentLog {
    first: u64,
    sent: VecDeque<Sent>,
    /// Bytes sent so far, and up to the packet with the highest number reported.
    bytes: u64,
    acked_bytes: u64,
    highest: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    frame: u64,
    len: Bytes,
    /// Bytes sent up to and including this packet.
    until: u64,
    /// The round-trip time that the packet carries.
    rtt: Option<Span>,
    reported: bool,
}

/// The part of the receiver that makes reports.
#[derive(Clone, Debug)]
enum Receiver {
    Silent,
    Arrivals {
        interval: Span,
        due: Instant,
        last: Instant,
        new: Vec<Arrival>,
        /// What the last report contained.
        old: Vec<Arrival>,
    },
    Tfrc(tfrc::Receiver),
}

/// The media flow and its frames.
#[derive(Clone, Debug)]
pub struct MediaFlow {
    media: Media,
    frames: Frames,
}

impl MediaFlow {
    /// Creates a flow that begins at `start`. `draws` are for the sizes of frames.
    pub fn new(plan: Arc<MediaPlan>, start: Instant, draws: Stream) -> Self {
        let frames = Frames::new(End::Server, plan.deadline, plan.freeze_after);
        MediaFlow { media: Media::new(plan, start, draws), frames }
    }

    pub(crate) fn next_at(&self) -> Instant {
        self.media.next_at()
    }

    pub(crate) fn stop(&mut self) {
        self.media.stopped = true;
    }

    pub(crate) fn poll(&mut self, now: Instant, noticed: &mut Vec<Noticed>) -> Option<(End, Datagram)> {
        let MediaFlow { media, frames } = self;
        if media.control.timer() <= now {
            media.control.on_timer(now);
        }
        media.capture(now, frames, noticed);
        media.discard(now, frames, noticed);
        if let Some(datagram) = media.send(now, frames, noticed) {
            return Some((End::Client, datagram));
        }
        let feedback = media.receiver.report(now)?;
        let number = media.reported;
        media.reported += 1;
        let wire_len = feedback.wire_len();
        media.reports.push_back((number, now, feedback));
        while media.reports.front().is_some_and(|(_, at, _)| now.saturating_since(*at) > LIFETIME) {
            media.reports.pop_front();
        }
        Some((End::Server, Datagram { number, wire_len, is_data: false }))
    }

    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        end: End,
        (number, marked): (u64, bool),
        noticed: &mut Vec<Noticed>,
    ) {
        let MediaFlow { media, frames } = self;
        if end == End::Client {
            let place = media.reports.iter().position(|(made, ..)| *made == number);
            if let Some((_, _, feedback)) = place.and_then(|place| media.reports.remove(place)) {
                media.on_feedback(now, &feedback);
            }
            return;
        }
        let Some(&sent) = media.log.get(number) else { return };
        frames.arrived(now, sent.frame, noticed);
        media.receiver.arrived(now, number, &sent, marked);
    }

    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.frames.unfinished()
    }

    pub(crate) fn state(&self) -> MediaState {
        MediaState { target_bps: self.media.control.target(), queued: self.media.queued, rtt: self.media.rtt }
    }
}

impl Media {
    fn new(plan: Arc<MediaPlan>, start: Instant, draws: Stream) -> Self {
        let control = Control::new(&plan.control, plan.limits(), plan.packet);
        let encoder = plan.frames.map(|frames| Encoder::new(frames, control.target(), start, draws));
        Media {
            encoder,
            captured: 0,
            control,
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            log: SentLog::default(),
            rtt: None,
            receiver: Receiver::new(&plan.control),
            reports: VecDeque::new(),
            reported: 0,
            stopped: false,
            plan,
        }
    }

    fn next_at(&self) -> Instant {
        let encoder = self.encoder.as_ref().filter(|_| !self.stopped);
        let frame = encoder.map_or(Instant::FAR_FUTURE, Encoder::next_at);
        let sender = match self.waiting() {
            Some(len) => self.control.send_at(len.as_f64(), self.load()),
            None => Instant::FAR_FUTURE,
        };
        let discard = match self.queue.front() {
            Some(front) if self.encoder.is_some() => front.captured + self.plan.discard_after,
            _ => Instant::FAR_FUTURE,
        };
        let timer =
            if self.stopped && self.queue.is_empty() { Instant::FAR_FUTURE } else { self.control.timer() };
        [frame, sender, discard, timer].into_iter().fold(self.receiver.due(), earlier)
    }

    /// Returns the length of the next packet, if there is one.
    fn waiting(&self) -> Option<Bytes> {
        let endless = self.encoder.is_none() && !self.stopped;
        self.queue.front().map(|front| front.len).or(endless.then_some(self.plan.packet))
    }

    fn load(&self) -> Load {
        let endless = if self.encoder.is_none() && !self.stopped { self.plan.packet.as_f64() } else { 0.0 };
        Load { in_flight: self.log.in_flight(), queued: self.queued.as_f64() + endless }
    }

    /// Captures the frames that are due.
    fn capture(&mut self, now: Instant, frames: &mut Frames, noticed: &mut Vec<Noticed>) {
        let Some(encoder) = self.encoder.as_mut().filter(|_| !self.stopped) else { return };
        while encoder.next_at() <= now {
            encoder.aim(now, self.control.target());
            let (number, size) = encoder.frame(now);
            self.captured = number + 1;
            self.control.encoded(size.as_f64());
            let packets = size.get().div_ceil(self.plan.packet.get()).max(1);
            frames.captured(now, packets as u32, noticed);
            noticed.push(Noticed::Captured { to: End::Server, at: now, bytes: size });
            // Packets of a frame have sizes that differ by a byte at most.
            for n in 0..packets {
                let len = Bytes::new((size.get() / packets + u64::from(n < size.get() % packets)).max(LEAST));
                self.queue.push_back(Queued { frame: number, captured: now, len });
                self.queued += len;
            }
        }
    }

    /// Discards the frames that have waited for too long.
    fn discard(&mut self, now: Instant, frames: &mut Frames, noticed: &mut Vec<Noticed>) {
        while let Some(&Queued { frame, captured, .. }) = self.queue.front()
            && captured + self.plan.discard_after <= now
        {
            while let Some(packet) = self.queue.pop_front_of(frame) {
                self.queued -= packet.len;
            }
            frames.discard(frame, noticed);
        }
    }

    /// Sends the next packet, if it may be sent now.
    fn send(&mut self, now: Instant, frames: &mut Frames, noticed: &mut Vec<Noticed>) -> Option<Datagram> {
        let len = self.waiting()?;
        if self.control.send_at(len.as_f64(), self.load()) > now {
            return None;
        }
        let packet = match self.queue.pop_front() {
            Some(packet) => {
                self.queued -= packet.len;
                packet
            }
            None => {
                let frame = self.captured;
                self.captured += 1;
                frames.captured(now, 1, noticed);
                noticed.push(Noticed::Captured { to: End::Server, at: now, bytes: len });
                Queued { frame, captured: now, len }
            }
        };
        let number = self.log.push(now, packet.frame, len, self.control.rtt());
        let load = self.load();
        self.control.sent(now, len.as_f64(), load);
        Some(Datagram { number, wire_len: len, is_data: true })
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        match feedback {
            Feedback::Tfrc(report) => {
                self.control.on_tfrc(now, report);
                self.rtt = self.control.rtt();
            }
            Feedback::Arrivals(report) => {
                let (acked, passed, newly_acked) = self.log.acknowledge(report);
                let Some(newest) = acked.iter().max_by_key(|packet| packet.number) else { return };
                let held = report.made.saturating_since(newest.arrived);
                let rtt = now.saturating_since(newest.sent).saturating_sub(held);
                self.rtt = Some(rtt);
                let progress = Progress { newly_acked, in_flight: self.log.in_flight(), rtt };
                self.control.on_arrivals(now, report, &acked, (passed, progress), self.queued.as_f64());
            }
        }
        let target = self.control.target();
        if let Some(encoder) = &mut self.encoder {
            encoder.aim(now, target);
        }
    }
}

/// The smallest packet: headers of IPv4, UDP and RTP, and a byte of data.
const LEAST: u64 = 41;

/// Removes the first packet if it belongs to a frame.
trait PopFrontOf {
    fn pop_front_of(&mut self, frame: u64) -> Option<Queued>;
}

impl PopFrontOf for VecDeque<Queued> {
    fn pop_front_of(&mut self, frame: u64) -> Option<Queued> {
        if self.front()?.frame == frame { self.pop_front() } else { None }
    }
}

impl SentLog {
    fn push(&mut self, now: Instant, frame: u64, len: Bytes, rtt: Option<Span>) -> u64 {
        while self.sent.front().is_some_and(|sent| now.saturating_since(sent.at) > LIFETIME) {
            self.sent.pop_front();
            self.first += 1;
        }
        self.bytes += len.get();
        self.sent.push_back(Sent { at: now, frame, len, until: self.bytes, rtt, reported: false });
        self.first + self.sent.len() as u64 - 1
    }

    fn get(&self, number: u64) -> Option<&Sent> {
        self.sent.get(number.checked_sub(self.first)? as usize)
    }

    fn in_flight(&self) -> f64 {
        (self.bytes - self.acked_bytes) as f64
    }

    /// Takes in a report. Returns what it is the first to report, in the order of arrival, and by how many packets and
    /// bytes the highest number reported grew.
    fn acknowledge(&mut self, report: &Arrivals) -> (Vec<Acknowledged>, u64, f64) {
        let (mut acked, highest, bytes) = (Vec::new(), self.highest, self.acked_bytes);
        for &Arrival { number, at, marked } in &report.arrivals {
            let place = number.checked_sub(self.first).map(|place| place as usize);
            let Some(sent) = place.and_then(|place| self.sent.get_mut(place)) else { continue };
            if core::mem::replace(&mut sent.reported, true) {
                continue;
            }
            acked.push(Acknowledged { number, len: sent.len.as_f64(), sent: sent.at, arrived: at, marked });
            if self.highest.is_none_or(|highest| number > highest) {
                self.highest = Some(number);
                self.acked_bytes = sent.until;
            }
        }
        let passed = self.highest.map_or(0, |new| highest.map_or(new + 1, |old| new - old));
        (acked, passed, (self.acked_bytes - bytes) as f64)
    }
}

impl Receiver {
    fn new(control: &ControlPlan) -> Self {
        match *control {
            ControlPlan::Constant => Receiver::Silent,
            ControlPlan::Gcc { feedback, .. } | ControlPlan::Scream { feedback, .. } => Receiver::Arrivals {
                interval: feedback,
                due: Instant::FAR_FUTURE,
                last: Instant::ZERO,
                new: Vec::new(),
                old: Vec::new(),
            },
            ControlPlan::Tfrc { .. } => Receiver::Tfrc(tfrc::Receiver::default()),
        }
    }

    fn due(&self) -> Instant {
        match self {
            Receiver::Silent => Instant::FAR_FUTURE,
            Receiver::Arrivals { due, .. } => *due,
            Receiver::Tfrc(receiver) => receiver.due(),
        }
    }

    fn arrived(&mut self, now: Instant, number: u64, sent: &Sent, marked: bool) {
        match self {
            Receiver::Silent => {}
            Receiver::Arrivals { interval, due, last, new, .. } => {
                new.push(Arrival { number, at: now, marked });
                if *due == Instant::FAR_FUTURE {
                    *due = (*last + *interval).max(now);
                }
            }
            Receiver::Tfrc(receiver) => {
                receiver.arrived(now, (number, sent.len.as_f64()), sent.at, sent.rtt, marked);
            }
        }
    }

    /// Makes the report that is due, if one is.
    fn report(&mut self, now: Instant) -> Option<Feedback> {
        if self.due() > now {
            return None;
        }
        match self {
            Receiver::Silent => None,
            Receiver::Arrivals { due, last, new, old, .. } => {
                (*due, *last) = (Instant::FAR_FUTURE, now);
                let mut arrivals = core::mem::replace(old, core::mem::take(new));
                arrivals.extend_from_slice(old);
                Some(Feedback::Arrivals(Arrivals { made: now, arrivals }))
            }
            Receiver::Tfrc(receiver) => receiver.report(now).map(Feedback::Tfrc),
        }
    }
}
