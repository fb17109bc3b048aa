//! One side of a connection as it appears on the wire: an [`Endpoint`] with the options and the checks of a host.
//!
//! An endpoint exchanges segments with another one of ours, so it needs no option that both can infer, and its
//! application reads at once. A [`WireEndpoint`] adds what a host must do when it meets any other stack:
//! negotiated segment sizes, window scaling, timestamps and PAWS (RFC 7323), a receive buffer, probes of a window
//! of zero (RFC 9293, 3.8.6.1), and tests of what arrives (RFC 9293, 3.10.7; RFC 5961). [`arrival`] has the tests,
//! [`departure`] the options, [`buffer`] the window and [`persist`] the probes.

mod arrival;
mod buffer;
mod departure;
mod persist;
mod segment;
mod settings;

use alloc::collections::VecDeque;

use aqmlab_units::{Instant, Span};

use crate::connection::State;
use crate::endpoint::{Endpoint, Role};
use crate::event::StreamEvent;
use crate::profile::Profile;
use crate::segment::Segment;
use buffer::Buffer;
use persist::Persist;

pub use segment::{WireOptions, WireSegment};
pub use settings::{Accounting, WireSettings};

/// Bytes of a segment that a side accepts that has not announced a size (RFC 9293, 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Bytes of an AccECN option with three counters, padded (RFC 9768, 3.2.3).
const ACC_ECN_BYTES: u32 = 12;
/// Bytes of the headers of IPv4 and TCP without options.
const PLAIN_HEADER: u32 = 40;
/// Bytes of the Timestamps option, padded (RFC 7323, appendix A).
const STAMPS_BYTES: u32 = 12;

/// What both sides have agreed on.
#[derive(Clone, PartialEq, Default, Debug)]
struct Agreed {
    /// The largest segment that the other side accepts.
    mss: Option<u16>,
    /// The shift of the other side's window field; `None` if windows are not scaled.
    peer_scale: Option<u8>,
    /// Each segment carries time stamps.
    stamps: bool,
}

/// One side of a connection as it appears on the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct WireEndpoint {
    endpoint: Endpoint,
    /// The profile as it was negotiated.
    profile: Profile,
    settings: WireSettings,
    role: Role,
    agreed: Agreed,
    buffer: Buffer,
    persist: Persist,
    /// TS.Recent and Last.ACK.sent (RFC 7323, 4.3).
    recent: u32,
    last_ack: u32,
    /// The segment that is being processed has a newer time stamp than TS.Recent.
    newer_stamp: bool,
    /// The time stamp of the first retransmission that may be echoed.
    first_again: Option<u32>,
    /// The largest window that the other side has offered: MAX.SND.WND (RFC 5961, 5.2).
    largest_peer_window: u32,
    /// The application accepts no more data.
    deaf: bool,
    /// Since when data has waited for an acknowledgment or for the window, and SND.UNA at that time.
    stalled_since: Option<Instant>,
    progress: u32,
    /// Bytes of payload and options that reach the other side.
    path_mss: u16,
    /// When the latest period began in which answers to forged segments are counted, and their number.
    challenges: (Instant, u32),
    /// A segment that answers one which the endpoint does not know of.
    answer: Option<WireSegment>,
    /// Bytes of the records that wait for the end of an earlier one.
    records: VecDeque<u64>,
    /// The latest record has ended.
    record_ended: bool,
    /// When data last arrived.
    latest_data: Instant,
    events: [Option<StreamEvent>; 3],
}

impl WireEndpoint {
    /// Creates an endpoint that has not opened a connection yet.
    ///
    /// # Panics
    /// If the profile names a congestion control that only kernels have.
    pub fn new(role: Role, profile: &Profile, settings: &WireSettings) -> WireEndpoint {
        let mut profile = profile.clone();
        profile.mss = settings.mss.into();
        WireEndpoint {
            endpoint: Endpoint::new(role, &profile),
            profile,
            settings: *settings,
            role,
            agreed: Agreed::default(),
            buffer: Buffer::new(settings),
            persist: Persist::new(),
            recent: 0,
            last_ack: 0,
            newer_stamp: false,
            first_again: None,
            largest_peer_window: 0,
            deaf: false,
            stalled_since: None,
            progress: 0,
            path_mss: settings.mss,
            challenges: (Instant::ZERO, 0),
            answer: None,
            records: VecDeque::new(),
            record_ended: false,
            latest_data: Instant::ZERO,
            events: [None; 3],
        }
    }

    /// Returns the endpoint below.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the parameters of TCP as they were negotiated.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Changes parameters of TCP, as an application does with an option of its socket.
    pub fn change_profile(&mut self, change: impl FnOnce(&mut Profile)) {
        change(&mut self.profile);
        if self.endpoint.state().is_synchronised() {
            self.limit_segments();
        }
        self.endpoint.write(0); // a new burst: what was held back may leave
    }

    /// Changes the size of the receive buffer.
    pub fn set_receive_buffer(&mut self, bytes: u32) {
        self.buffer.resize(bytes);
        self.settings.receive_buffer = bytes;
    }

    /// Sets the user timeout (RFC 5482); 0 means none.
    pub fn set_user_timeout(&mut self, timeout: Span) {
        self.settings.user_timeout = timeout;
    }

    /// Notes that packets with more than `bytes` bytes of payload and options do not reach the other side (RFC 1191,
    /// section 3).
    pub fn set_path_mss(&mut self, bytes: u16) {
        if bytes < self.path_mss {
            self.path_mss = bytes;
            self.limit_segments();
            self.endpoint.repeat_larger_segments(&self.profile);
        }
    }

    /// Starts to connect.
    pub fn open(&mut self, now: Instant) {
        self.endpoint.open(now, &self.profile);
    }

    /// Accepts `bytes` more from the application.
    pub fn write(&mut self, bytes: u64) {
        if core::mem::take(&mut self.record_ended) {
            self.records.push_back(bytes);
        } else {
            match self.records.back_mut() {
                Some(record) => *record += bytes,
                None => self.endpoint.write(bytes),
            }
        }
    }

    /// Ends a record: no segment contains bytes from before and after it. A stream of bytes has no records, but
    /// some hosts let their application choose where segments end.
    pub fn end_record(&mut self) {
        self.record_ended = true;
    }

    /// Returns the first segment of the next record, once all before it has been sent.
    fn next_record(&mut self, now: Instant) -> Option<Segment> {
        while !self.records.is_empty() && !self.endpoint.has_unsent() {
            self.endpoint.write(self.records.pop_front()?);
            // Only the last record may grow, so Nagle's rule (RFC 9293, 3.7.4) applies to no other.
            let nagle = self.profile.nagle;
            self.profile.nagle &= self.records.is_empty();
            let segment = self.endpoint.poll_transmit(now, &self.profile);
            self.profile.nagle = nagle;
            if segment.is_some() {
                return segment;
            }
        }
        None
    }

    /// Takes up to `most` bytes for the application; returns their number.
    pub fn read(&mut self, most: u32) -> u32 {
        let read = self.buffer.read(most);
        if read > 0 && self.endpoint.state().is_synchronised() && self.opens_window() {
            self.endpoint.acknowledge();
        }
        read
    }

    fn opens_window(&self) -> bool {
        self.buffer.should_update(self.profile.mss, self.endpoint.expected())
    }

    /// Ends the application's stream in the sending direction.
    pub fn shutdown(&mut self) {
        self.endpoint.close();
    }

    /// Ends the application's stream in both directions: unread data, and data that arrives later, is answered
    /// with a RST (RFC 9293, 3.10.4; RFC 2525, 2.17; RFC 1122, 4.2.2.13).
    pub fn close(&mut self) {
        self.deaf = true;
        let opening = matches!(self.endpoint.state(), State::SynSent | State::Listen);
        if opening || self.buffer.unread() > 0 {
            self.endpoint.abort();
        } else {
            self.endpoint.close();
        }
    }

    /// Returns the bytes that the application can read.
    pub fn readable(&self) -> u32 {
        self.buffer.unread()
    }

    /// Returns the largest payload that has arrived.
    pub fn largest_received(&self) -> u32 {
        self.buffer.largest()
    }

    /// Returns when data last arrived, or when the connection was established.
    pub fn latest_data(&self) -> Instant {
        self.latest_data
    }

    /// Returns whether each segment carries time stamps.
    pub fn uses_stamps(&self) -> bool {
        self.agreed.stamps
    }

    /// Returns the shift of the other side's windows, if windows are scaled.
    pub fn peer_scale(&self) -> Option<u8> {
        self.agreed.peer_scale
    }

    /// Returns how often a window of zero has been probed since it last changed.
    pub fn window_probes(&self) -> u32 {
        self.persist.probes()
    }

    /// Returns the next event for the application that is not an amount.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.iter_mut().find_map(Option::take)
    }

    /// Fetches the endpoint's events; keeps those that are not amounts.
    fn fetch_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                StreamEvent::Delivered(bytes) => {
                    self.buffer.deliver(bytes as u32);
                    self.latest_data = now;
                }
                StreamEvent::Acked(_) => {}
                StreamEvent::Established => {
                    self.latest_data = now;
                    self.note_event(event);
                }
                other => self.note_event(other),
            }
        }
    }

    fn note_event(&mut self, event: StreamEvent) {
        if let Some(place) = self.events.iter_mut().find(|place| place.is_none()) {
            *place = Some(event);
        }
    }

    /// Returns when the host must call [`WireEndpoint::on_timer`].
    pub fn deadline(&self) -> Option<Instant> {
        let stalled = self.stalled_since.filter(|_| !self.settings.user_timeout.is_zero());
        let gives_up = stalled.map(|since| since.saturating_add(self.settings.user_timeout));
        [self.endpoint.deadline(), self.persist.deadline(), gives_up].into_iter().flatten().min()
    }

    /// Carries out the actions due at `now`.
    pub fn on_timer(&mut self, now: Instant) {
        let limit = self.settings.user_timeout;
        if !limit.is_zero() && self.stalled_since.is_some_and(|since| since.saturating_add(limit) <= now) {
            self.stalled_since = None;
            self.endpoint.abort();
        }
        self.endpoint.on_timer(now, &self.profile);
        if self.persist.fires(now) {
            self.answer = Some(self.window_probe(now));
        }
        self.fetch_events(now);
        self.watch_window(now);
    }

    /// Starts or ends the probes of a window that holds data back, and notes whether anything is acknowledged.
    fn watch_window(&mut self, now: Instant) {
        let waits = self.endpoint.waits_for_window(&self.profile);
        let oldest = self.endpoint.oldest(&self.profile);
        let outstanding = oldest != self.endpoint.newest(&self.profile);
        if !(outstanding || waits) || self.progress != oldest {
            self.stalled_since = None;
        }
        self.progress = oldest;
        if outstanding || waits {
            self.stalled_since.get_or_insert(now);
        }
        self.persist.watch(waits, now, self.endpoint.rto(&self.profile), self.profile.max_rto);
    }
}
