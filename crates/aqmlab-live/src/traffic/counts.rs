//! Counts taken from sockets: the counts of a flow that its kernel reports in TCP_INFO, and the
//! counts of errors. The fields of TCP_INFO are read at the offsets that they have in
//! `struct tcp_info` (linux/tcp.h).

use aqmlab_network::FlowCounts;
use aqmlab_units::{Bytes, Span};

use crate::sys::TcpInfo;

/// Cumulative counts of a flow; a count that the kernel does not report is `None`.
pub type KernelCounts = FlowCounts<Option<u64>>;

/// Names of those counts of a connection that a kernel does not necessarily report.
pub const OPTIONAL: &[&str] = &[
    "timeouts",
    "timeouts_at_client",
    "syn_retransmissions",
    "syn_ack_retransmissions",
    "fast_retransmits",
    "ecn_reductions",
    "spurious_retransmissions",
    "multiple_loss_windows",
];

/// Errors on sockets, counted in flows or datagrams. No such error ends a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketErrors {
    /// Connections that did not open within the stack's limit on attempts.
    pub timed_out: u64,
    /// Connections that no server accepted.
    pub refused: u64,
    /// Connections that ended with a RST.
    pub reset: u64,
    /// Connections that ended with another error.
    pub failed: u64,
    /// Datagrams that the sending host refused.
    pub unsent: u64,
    /// Connections and datagrams that reached a server but belong to no flow.
    pub strays: u64,
    /// Connections that were not opened for lack of a client port or a descriptor.
    pub no_port: u64,
}

impl SocketErrors {
    /// Counts a connection that ended with this error from the operating system.
    pub fn count(&mut self, error: i32) {
        match error {
            libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => self.timed_out += 1,
            libc::ECONNREFUSED => self.refused += 1,
            libc::ECONNRESET | libc::EPIPE => self.reset += 1,
            _ => self.failed += 1,
        }
    }

    /// Returns the nonzero counts of errors that are not due to the network but to a host or a
    /// defect. (A connection that has timed out may have lost its packets to queues.)
    pub fn of_hosts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.iter().filter(|&(name, count)| name != "timed_out" && count > 0)
    }

    /// Returns all counts, each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("timed_out", self.timed_out),
            ("refused", self.refused),
            ("reset", self.reset),
            ("failed", self.failed),
            ("unsent", self.unsent),
            ("strays", self.strays),
            ("no_port", self.no_port),
        ]
        .into_iter()
    }
}

const OPTIONS: usize = 5;
const SND_MSS: usize = 16;
const UNACKED: usize = 24;
const RTT: usize = 68;
const SND_SSTHRESH: usize = 76;
const SND_CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const DATA_SEGS_OUT: usize = 156;
const BYTES_SENT: usize = 200;
const DSACK_DUPS: usize = 216;
const TOTAL_RTO: usize = 240;

/// Flag in `tcpi_options`: the other side may send SACK, and therefore DSACK.
const HAS_SACK: u8 = 2;
/// Value of a slow-start threshold that has not been set (net/tcp.h, TCP_INFINITE_SSTHRESH).
const INFINITE: u32 = 0x7fff_ffff;

/// The state of a connection's sending endpoint at an instant, as recorded in `flow_series`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Slow-start threshold, in segments; `None` while it is unlimited.
    pub ssthresh: Option<f64>,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Span>,
    /// Data sent but not acknowledged.
    pub flight: Bytes,
    /// Data acknowledged.
    pub acked: Bytes,
}

impl Sample {
    /// Returns the sample that `info` contains; `None` if the kernel is older than Linux 4.1.
    pub fn of(info: &TcpInfo) -> Option<Self> {
        let rtt = info.u32(RTT)?;
        let flight = u64::from(info.u32(UNACKED)?) * u64::from(info.u32(SND_MSS)?);
        Some(Sample {
            cwnd: f64::from(info.u32(SND_CWND)?),
            ssthresh: info.u32(SND_SSTHRESH).filter(|&segments| segments < INFINITE).map(f64::from),
            srtt: (rtt > 0).then(|| Span::us(rtt.into())),
            flight: Bytes::new(flight),
            // The SYN counts as one byte.
            acked: Bytes::new(info.u64(BYTES_ACKED)?.saturating_sub(1)),
        })
    }
}

/// Returns the counts of the data that an endpoint has sent, to the extent that `info` contains
/// them. A count is unknown if the kernel is too old to report it, or if it requires SACK and the
/// connection has none. The counts that no kernel reports, such as entries into fast recovery, are
/// unknown too.
pub fn sent_by(info: &TcpInfo) -> KernelCounts {
    let has_sack = info.u8(OPTIONS).is_some_and(|options| options & HAS_SACK != 0);
    KernelCounts {
        sent_segments: Some(info.u32(DATA_SEGS_OUT).map_or(0, u64::from)),
        sent_bytes: Some(info.u64(BYTES_SENT).unwrap_or(0)),
        // SYNs included.
        retransmitted_segments: Some(info.u32(TOTAL_RETRANS).map_or(0, u64::from)),
        // Since Linux 6.7.
        timeouts: info.u16(TOTAL_RTO).map(u64::from),
        // Segments that the other side reports as received twice (DSACK).
        spurious_retransmissions: info.u32(DSACK_DUPS).filter(|_| has_sack).map(u64::from),
        ..NOTHING_SENT
    }
}

/// The counts of an endpoint that has sent nothing.
pub const NOTHING_SENT: KernelCounts = KernelCounts {
    timeouts: None,
    timeouts_at_client: None,
    syn_retransmissions: None,
    syn_ack_retransmissions: None,
    fast_retransmits: None,
    ecn_reductions: None,
    spurious_retransmissions: None,
    multiple_loss_windows: None,
    ..KernelCounts::ZERO
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn errors_are_the_hosts_doing_unless_packets_were_lost() {
        let mut socket_errors = SocketErrors::default();
        for error in [libc::ETIMEDOUT, libc::ECONNREFUSED, libc::ECONNRESET, libc::EPIPE, libc::ENOBUFS] {
            socket_errors.count(error);
        }
        socket_errors.unsent = 3;
        socket_errors.no_port = 4;
        let of_hosts: Vec<_> = socket_errors.of_hosts().collect();
        assert_eq!(of_hosts, [("refused", 1), ("reset", 2), ("failed", 1), ("unsent", 3), ("no_port", 4)]);
        assert_eq!(socket_errors.timed_out, 1);
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn the_places_are_those_of_the_system_s_headers() {
        use libc::tcp_info;
        assert_eq!(OPTIONS, offset_of!(tcp_info, tcpi_options));
        assert_eq!(SND_MSS, offset_of!(tcp_info, tcpi_snd_mss));
        assert_eq!(UNACKED, offset_of!(tcp_info, tcpi_unacked));
        assert_eq!(RTT, offset_of!(tcp_info, tcpi_rtt));
        assert_eq!(SND_SSTHRESH, offset_of!(tcp_info, tcpi_snd_ssthresh));
        assert_eq!(SND_CWND, offset_of!(tcp_info, tcpi_snd_cwnd));
        assert_eq!(TOTAL_RETRANS, offset_of!(tcp_info, tcpi_total_retrans));
        assert_eq!(BYTES_ACKED, offset_of!(tcp_info, tcpi_bytes_acked));
        assert_eq!(DATA_SEGS_OUT, offset_of!(tcp_info, tcpi_data_segs_out));
        assert_eq!(BYTES_SENT, offset_of!(tcp_info, tcpi_bytes_sent));
        assert_eq!(DSACK_DUPS, offset_of!(tcp_info, tcpi_dsack_dups));
        assert_eq!(TOTAL_RTO, offset_of!(tcp_info, tcpi_total_rto));
    }

    /// Returns an answer of 256 bytes with these fields.
    fn answer(fields: &[(usize, u64, usize)]) -> [u8; 256] {
        let mut bytes = [0; 256];
        for &(at, value, length) in fields {
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn an_answer_is_read_as_far_as_it_goes() {
        let bytes = answer(&[
            (OPTIONS, 2, 1),
            (SND_MSS, 1448, 4),
            (UNACKED, 10, 4),
            (SND_SSTHRESH, 0x7fff_ffff, 4),
            (SND_CWND, 12, 4),
            (BYTES_ACKED, 14_481, 8),
            (TOTAL_RTO, 3, 2),
            (DSACK_DUPS, 4, 4),
        ]);
        let whole = TcpInfo::of_bytes(&bytes);
        let sample = Sample::of(&whole).unwrap();
        assert_eq!((sample.cwnd, sample.ssthresh, sample.srtt), (12.0, None, None));
        assert_eq!((sample.flight, sample.acked), (Bytes::new(14_480), Bytes::new(14_480)));
        let sent = sent_by(&whole);
        assert_eq!((sent.timeouts, sent.spurious_retransmissions), (Some(3), Some(4)));
        // The answer of a kernel from 2018 ends before `tcpi_total_rto`, and that of one from 2014 before
        // `tcpi_bytes_acked`.
        let older = sent_by(&TcpInfo::of_bytes(&bytes[..224]));
        assert_eq!((older.timeouts, older.spurious_retransmissions), (None, Some(4)));
        assert_eq!(Sample::of(&TcpInfo::of_bytes(&bytes[..104])), None);
    }
}
