//! What a host decides about segments on the wire, apart from the parameters of TCP.

use aqmlab_units::Span;

/// What a received segment occupies in the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accounting {
    /// Its payload.
    Payload,
    /// A power of two for payload and headers, or whole pages of 4 KiB, and a descriptor, as Linux 7.3 counts them
    /// (inferred from the windows in the kernel's scripts). The window is the share of the free buffer that payload would occupy, half of it
    /// until a segment has arrived.
    Pages,
}

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Bytes in the first page that hold headers and its own description.
const HEADERS: u32 = 424;
/// Bytes of the descriptor of a segment.
const DESCRIPTOR: u32 = 256;
/// Bytes of the description of further pages.
const FURTHER: u32 = 256;

impl Accounting {
    /// Returns the bytes that a segment with `len` bytes of payload occupies.
    pub(super) fn occupied(self, len: u32) -> u32 {
        match self {
            Accounting::Payload => len,
            Accounting::Pages if len + HEADERS <= PAGE => (len + HEADERS).next_power_of_two() + DESCRIPTOR,
            Accounting::Pages => (len + HEADERS).div_ceil(PAGE) * PAGE + DESCRIPTOR + FURTHER,
        }
    }
}

/// What a host decides about segments on the wire, apart from the parameters of TCP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WireSettings {
    /// Largest segment that its interface carries, without options: the MSS option that it sends.
    pub mss: u16,
    /// Offers the Timestamps option (RFC 7323, 3.2).
    pub timestamps: bool,
    /// Offers the Window Scale option (RFC 7323, 2.2).
    pub scaling: bool,
    /// Bytes of the receive buffer, in the unit of `accounting`.
    pub receive_buffer: u32,
    /// Bytes of the largest window that the window scale must express.
    pub largest_window: u32,
    /// What a received segment occupies.
    pub accounting: Accounting,
    /// A window may be reduced after it was offered (RFC 7323, 2.4: should not).
    pub shrinks: bool,
    /// A segment that begins in the window and ends beyond it is accepted whole if all earlier data has been
    /// read, and not at all otherwise. RFC 9293, 3.10.7.4 keeps what fits.
    pub refuses_excess: bool,
    /// The connection ends when nothing was acknowledged for this time although data waits (RFC 5482); none if 0.
    pub user_timeout: Span,
}

impl WireSettings {
    /// The RFCs: timestamps, window scaling and a buffer of 64 KiB.
    pub const RFC: WireSettings = WireSettings {
        mss: 1460,
        timestamps: true,
        scaling: true,
        receive_buffer: 65_535,
        largest_window: 65_535,
        accounting: Accounting::Payload,
        shrinks: false,
        refuses_excess: false,
        user_timeout: Span::ZERO,
    };
}
