//! What a host adds to the segments of its endpoint.

use aqmlab_units::{Ecn, Instant};

use super::{ACC_ECN_BYTES, DEFAULT_MSS, PLAIN_HEADER, STAMPS_BYTES, WireEndpoint, WireOptions, WireSegment};
use crate::connection::State;
use crate::endpoint::Role;
use crate::sack::Options;
use crate::segment::{Extras, Flags, Segment};
use crate::stamps::stamp;

impl WireEndpoint {
    /// Returns the next segment to send, or `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<WireSegment> {
        if let Some(answer) = self.answer.take() {
            return Some(answer);
        }
        let segment = self.endpoint.poll_transmit(now, &self.profile).or_else(|| self.next_record(now));
        self.watch_window(now);
        let segment = segment?;
        let Options { sack, accurate_ecn, .. } = self.endpoint.options(&segment, &self.profile);
        let options = WireOptions { sack, accurate_ecn, ..WireOptions::default() };
        Some(if segment.flags.has(Flags::SYN) {
            self.syn(now, &segment, options)
        } else {
            if segment.extras.has(Extras::STAMPED) && (segment.len > 0 || segment.flags.has(Flags::FIN)) {
                self.first_again.get_or_insert(stamp(now));
            }
            let acknowledges = segment.flags.has(Flags::ACK);
            let window = if acknowledges { self.buffer.offer(self.profile.mss, segment.ack) } else { 0 };
            self.dressed(now, &segment, window, options)
        })
    }

    /// Returns the SYN or SYN-ACK with what this side offers or agrees to.
    fn syn(&mut self, now: Instant, segment: &Segment, mut options: WireOptions) -> WireSegment {
        let answers = segment.flags.has(Flags::ACK);
        options.mss = Some(self.settings.mss);
        options.sack_permitted = segment.extras.has(Extras::SACK_PERMITTED);
        let scales = if answers { self.agreed.peer_scale.is_some() } else { self.settings.scaling };
        options.scale = scales.then(|| super::buffer::scale_for(self.settings.largest_window));
        if !answers {
            self.agreed.stamps = self.settings.timestamps;
        }
        let window = self.buffer.first_window(self.settings.mss.into());
        if answers {
            self.buffer.begin(segment.ack);
        }
        self.dressed(now, segment, window, options)
    }

    fn dressed(&mut self, now: Instant, segment: &Segment, window: u16, options: WireOptions) -> WireSegment {
        let acknowledges = segment.flags.has(Flags::ACK);
        let echo = if acknowledges { self.recent } else { 0 };
        if acknowledges {
            self.last_ack = segment.ack;
        }
        WireSegment {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window,
            len: segment.len,
            ecn: segment.ecn,
            options: WireOptions { stamps: self.agreed.stamps.then(|| (stamp(now), echo)), ..options },
        }
    }

    /// Returns an empty segment below SND.UNA, which the other side must acknowledge with its window.
    /// DEVIATES from RFC 9293, 3.8.6.1, as Linux does: the probe has no octet of new data.
    pub(super) fn window_probe(&mut self, now: Instant) -> WireSegment {
        let (seq, ack) = (self.endpoint.oldest(&self.profile).wrapping_sub(1), self.endpoint.expected());
        let segment = Segment {
            seq,
            ack,
            len: 0,
            flags: Flags::ACK,
            window: 0,
            ecn: Ecn::NotEct,
            extras: Extras::NONE,
            sack_len: 0,
        };
        let window = self.buffer.offer(self.profile.mss, ack);
        self.dressed(now, &segment, window, WireOptions::default())
    }

    /// Applies what the other side's SYN has agreed to.
    pub(super) fn agree(&mut self, syn: &WireSegment) {
        self.agreed.mss = syn.options.mss;
        self.agreed.stamps = self.settings.timestamps && syn.options.stamps.is_some();
        self.agreed.peer_scale = syn.options.scale.filter(|_| self.settings.scaling);
        if self.role == Role::Passive || self.agreed.peer_scale.is_none() {
            self.buffer.scale = 0;
        }
        if self.agreed.peer_scale.is_some() {
            self.buffer.scale = super::buffer::scale_for(self.settings.largest_window);
        }
        self.limit_segments();
        self.profile.header = PLAIN_HEADER + if self.agreed.stamps { STAMPS_BYTES } else { 0 };
        if !self.agreed.stamps {
            (self.profile.timestamps, self.profile.eifel, self.profile.sack_blocks) = (false, false, 4);
        }
        if let Some((value, _)) = syn.options.stamps.filter(|_| self.agreed.stamps) {
            self.recent = value;
        }
        self.last_ack = syn.end();
        self.buffer.begin(syn.end());
    }

    /// Sets the payload of a full segment: what both sides and the path permit, less options (RFC 6691).
    pub(super) fn limit_segments(&mut self) {
        let mss = self.agreed.mss.unwrap_or(DEFAULT_MSS).min(self.path_mss);
        let stamps = if self.agreed.stamps { STAMPS_BYTES } else { 0 };
        let reports = self.endpoint.sends_accurate_options(&self.profile);
        let options = stamps + if reports { ACC_ECN_BYTES } else { 0 };
        self.profile.mss = u32::from(mss).saturating_sub(options).max(1);
    }

    /// Returns whether the connection is over, or has not begun.
    pub(super) fn is_closed(&self) -> bool {
        self.endpoint.state() == State::Closed
    }
}
