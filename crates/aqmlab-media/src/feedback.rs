//! What receivers report, and what senders learn from it.

use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant};

use crate::tfrc;

/// The content of a feedback packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Feedback {
    /// Arrivals, as in RFC 8888, in the order of arrival.
    Arrivals(Arrivals),
    /// What TFRC reports.
    Tfrc(tfrc::Report),
}

/// Arrivals of packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// When the report was made.
    pub made: Instant,
    /// What arrived since the report before the last one: a report that is lost costs no information.
    pub arrivals: Vec<Arrival>,
}

/// The arrival of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its number among the packets of its sender.
    pub number: u64,
    /// When it arrived.
    pub at: Instant,
    /// Whether it carried a congestion mark.
    pub marked: bool,
}

/// Headers of IPv4 and UDP.
const IP_AND_UDP: u64 = 28;

impl Feedback {
    /// Returns the length of the packet at the network layer.
    pub fn wire_len(&self) -> Bytes {
        match self {
            // RFC 8888, section 3.1: a header of 8 B, 8 B for the stream, 2 B per packet in words of 4 B, a time stamp of 4 B.
            Feedback::Arrivals(report) => {
                let range = report.arrivals.iter().map(|arrival| arrival.number);
                let span = range.clone().max().zip(range.min()).map_or(0, |(most, least)| most - least + 1);
                Bytes::new(IP_AND_UDP + 20 + 4 * span.div_ceil(2))
            }
            // RFC 5348, section 3.2.2: four fields; RFC 4342 gives them 32 bits each after a header of 12 B.
            Feedback::Tfrc(_) => Bytes::new(IP_AND_UDP + 28),
        }
    }
}

/// A packet that was reported to have arrived, for the first time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acknowledged {
    /// Its number.
    pub number: u64,
    /// Its length at the network layer, in bytes.
    pub len: f64,
    /// When it was sent and when it arrived.
    pub sent: Instant,
    /// When it arrived.
    pub arrived: Instant,
    /// Whether it arrived with a congestion mark.
    pub marked: bool,
}
