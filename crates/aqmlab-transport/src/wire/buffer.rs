//! The receive buffer and the window that it offers (RFC 9293, 3.8.6.2.2; RFC 7323, 2.4).

use super::segment::is_below;
use super::settings::{Accounting, WireSettings};

/// The largest window scale (RFC 7323, 2.3).
const MOST_SCALE: u8 = 14;
/// The largest value of the window field.
const MOST_FIELD: u32 = u16::MAX as u32;

/// The receive buffer of one connection.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Buffer {
    /// Size of the buffer, in the unit of its accounting.
    size: u32,
    /// What the bytes that have not been read occupy.
    used: u32,
    /// Bytes that are in order and have not been read.
    unread: u32,
    accounting: Accounting,
    /// The share of the buffer that can be offered, as payload per occupied byte, in 1/256.
    share: u32,
    /// The largest payload that has arrived.
    largest: u32,
    /// The right edge of the latest window that was offered, and the rightmost edge of all.
    edge: u32,
    rightmost: u32,
    /// The window of our SYN.
    first: u32,
    /// The latest segment found no room, so the next window is zero.
    exhausted: bool,
    /// Offered windows may lose bytes again (RFC 7323, 2.4 says that they should not).
    shrinks: bool,
    /// The shift of the window field, 0 while windows are not scaled.
    pub scale: u8,
}

impl Buffer {
    pub(super) fn new(settings: &WireSettings) -> Buffer {
        let share = match settings.accounting {
            Accounting::Payload => 256,
            Accounting::Pages => 128,
        };
        Buffer {
            size: settings.receive_buffer,
            used: 0,
            unread: 0,
            accounting: settings.accounting,
            share,
            largest: 0,
            edge: 0,
            rightmost: 0,
            first: 0,
            exhausted: false,
            shrinks: settings.shrinks,
            scale: 0,
        }
    }

    /// Changes the size of the buffer.
    pub(super) fn resize(&mut self, size: u32) {
        self.size = size;
    }

    /// Returns the largest payload that has arrived.
    pub(super) fn largest(&self) -> u32 {
        self.largest
    }

    /// Returns the bytes that are in order and have not been read.
    pub(super) fn unread(&self) -> u32 {
        self.unread
    }

    /// Returns the bytes of payload that the free part of the buffer is expected to hold.
    fn free(&self) -> u32 {
        (u64::from(self.size.saturating_sub(self.used)) * u64::from(self.share) / 256) as u32
    }

    /// Returns the window of the SYN; Linux offers whole segments of `mss` bytes, if more than one fits.
    pub(super) fn first_window(&mut self, mss: u32) -> u16 {
        let free = self.free();
        let whole = self.accounting == Accounting::Pages && free > mss;
        let window = if whole { free - free % mss } else { free }.min(MOST_FIELD);
        self.first = window;
        window as u16
    }

    /// Notes that the window of our SYN begins at `next`.
    pub(super) fn begin(&mut self, next: u32) {
        self.edge = next.wrapping_add(self.first);
        self.rightmost = self.edge;
    }

    /// Returns whether the buffer has no room for any segment; the next window is then zero, whatever was offered
    /// before.
    pub(super) fn is_exhausted(&mut self) -> bool {
        self.exhausted = self.used > self.size;
        self.exhausted
    }

    /// Notes that a segment with `len` bytes is being stored.
    pub(super) fn store(&mut self, len: u32) {
        let occupied = self.accounting.occupied(len);
        if len > self.largest {
            self.largest = len;
            if self.accounting == Accounting::Pages {
                self.share = ((u64::from(len) * 256 / u64::from(occupied)) as u32).clamp(1, 255);
            }
        }
        self.used = self.used.saturating_add(occupied);
    }

    /// Notes that `bytes` more can be read.
    pub(super) fn deliver(&mut self, bytes: u32) {
        self.unread += bytes;
    }

    /// Removes up to `most` bytes that the application reads; returns their number.
    pub(super) fn read(&mut self, most: u32) -> u32 {
        let read = most.min(self.unread);
        let share = u64::from(self.used) * u64::from(read) / u64::from(self.unread.max(1));
        self.used = if read == self.unread { 0 } else { self.used - share as u32 };
        self.unread -= read;
        read
    }

    /// Returns the window that can be offered when `next` is expected.
    fn available(&self, mss: u32, next: u32) -> u32 {
        if self.exhausted {
            return 0;
        }
        let (free, kept) = (self.free(), self.offered(next));
        let unit = 1 << self.scale;
        // A window that opens, opens by whole segments: RFC 9293, 3.8.6.2.2.
        let window = match self.scale {
            0 if free < mss => 0,
            0 => free - free % mss,
            _ => free - free % unit,
        };
        let limit = MOST_FIELD << self.scale;
        if self.shrinks { window.min(limit) } else { window.max(kept).min(limit) }
    }

    /// Returns what is left of the latest window that was offered.
    pub(super) fn offered(&self, next: u32) -> u32 {
        if is_below(self.edge, next) { 0 } else { self.edge.wrapping_sub(next) }
    }

    /// Returns how far data may reach: what is left of the rightmost window that was offered.
    pub(super) fn reach(&self, next: u32) -> u32 {
        if is_below(self.rightmost, next) { 0 } else { self.rightmost.wrapping_sub(next) }
    }

    /// Offers a window in a segment that acknowledges `next`; returns the field.
    pub(super) fn offer(&mut self, mss: u32, next: u32) -> u16 {
        let window = self.available(mss, next);
        self.exhausted = false;
        // A field that is rounded down would take bytes back.
        let field =
            if self.shrinks || window == 0 { window >> self.scale } else { window.div_ceil(1 << self.scale) };
        let field = field.min(MOST_FIELD);
        self.edge = next.wrapping_add(field << self.scale);
        if is_below(self.rightmost, self.edge) {
            self.rightmost = self.edge;
        }
        field as u16
    }

    /// Returns whether the application has read so much that the other side should hear of it: the window has at
    /// least doubled, and was at most half of what fits.
    pub(super) fn should_update(&self, mss: u32, next: u32) -> bool {
        let (was, is) = (self.offered(next), self.available(mss, next));
        is > 0 && is >= 2 * was && was <= self.free() / 2
    }
}

/// Returns the scale with which the window field can express `largest` bytes (RFC 7323, 2.2).
pub(super) fn scale_for(largest: u32) -> u8 {
    (0..MOST_SCALE).find(|scale| largest <= MOST_FIELD << scale).unwrap_or(MOST_SCALE)
}
