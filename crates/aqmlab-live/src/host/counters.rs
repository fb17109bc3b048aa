//! The kernel's counters for a namespace, which start at zero when the namespace is created.

use std::collections::BTreeMap;
use std::fs;

use crate::error::LiveError;

/// Counters by name: `"IpExt.InCEPkts"`, `"Ip6.InCEPkts"`, `"dev.tx_dropped"`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters(BTreeMap<String, u64>);

/// Names of the counters of packets that a host loses without any report.
const HIDDEN_DROPS: &[&str] = &[
    "dev.tx_dropped",
    "dev.rx_dropped",
    "dev.tx_errors",
    "dev.rx_errors",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip6.InDiscards",
    "Ip6.OutDiscards",
    "IpExt.InCsumErrors",
    "IpExt.InTruncatedPkts",
    "Tcp.InCsumErrors",
    "Udp.InCsumErrors",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp6.RcvbufErrors",
    "Udp6.SndbufErrors",
    "Udp6.InCsumErrors",
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    // `PruneCalled` is not listed, because a receiver that is short of memory first compacts its receive
    // queue and may lose nothing.
    "TcpExt.RcvPruned",
    "TcpExt.OfoPruned",
    "TcpExt.TCPMinTTLDrop",
];

impl Counters {
    /// Returns the counters of the calling thread's namespace, and of its interface `interface`.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn read(interface: &str) -> Result<Self, LiveError> {
        let text = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            fs::read_to_string(&path).map_err(LiveError::io("read", path))
        };
        let mut counters = Counters::default();
        counters.add_tables(&text("snmp")?);
        counters.add_tables(&text("netstat")?);
        // A kernel may have no IPv6 at all.
        counters.add_list(&text("snmp6").unwrap_or_default());
        counters.add_device(&text("dev")?, interface);
        Ok(counters)
    }

    /// Returns these counters.
    pub fn of(counts: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Counters(counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect())
    }

    /// Returns a counter; zero if this kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of CE-marked packets that arrived, over IPv4 and IPv6 together.
    pub fn marked_in(&self) -> u64 {
        self.get("IpExt.InCEPkts") + self.get("Ip6.InCEPkts")
    }

    /// Returns the numbers of packets lost without any report, by place.
    pub fn hidden_drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        HIDDEN_DROPS.iter().map(|&name| (name, self.get(name))).filter(|&(_, count)| count > 0)
    }

    /// Returns all counters that are above zero.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter(|&(_, &count)| count > 0).map(|(name, &count)| (name.as_str(), count))
    }

    /// Adds the counters from pairs of lines: the first line holds names, the second values, and both begin
    /// with the table's name.
    fn add_tables(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let Some((table, names)) = pair[0].split_once(':') else { continue };
            let Some((_, values)) = pair[1].split_once(':') else { continue };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                // A value that may be negative is not a count.
                if let Ok(value) = value.parse() {
                    self.0.insert(format!("{table}.{name}"), value);
                }
            }
        }
    }

    /// Adds the counters from lines that hold a name and a value; the name begins with that of the table, as
    /// in `Ip6InCEPkts`.
    fn add_list(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) else {
                continue;
            };
            let Some(end) = name.find('6') else { continue };
            let (table, name) = name.split_at(end + 1);
            self.0.insert(format!("{table}.{name}"), value);
        }
    }

    /// Adds the counters from the line of one interface.
    fn add_device(&mut self, text: &str, interface: &str) {
        const NAMES: [&str; 12] = [
            "rx_bytes",
            "rx_packets",
            "rx_errors",
            "rx_dropped",
            "rx_fifo",
            "rx_frame",
            "rx_compressed",
            "rx_multicast",
            "tx_bytes",
            "tx_packets",
            "tx_errors",
            "tx_dropped",
        ];
        let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
        for (name, value) in NAMES.iter().zip(line.unwrap_or_default().split_whitespace()) {
            if let Ok(value) = value.parse() {
                self.0.insert(format!("dev.{name}"), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let mut counters = Counters::default();
        counters
            .add_tables("Tcp: MaxConn InCsumErrors\nTcp: -1 3\nIpExt: InCEPkts InOctets\nIpExt: 17 4000\n");
        counters.add_list("Ip6InCEPkts                     \t5\nUdp6RcvbufErrors \t0\nIcmp6OutMsgs 2\n");
        counters.add_device(
            "Inter-| x\n    lo:  1 2 3 4 5 6 7 8 9 10 11 12 0 0 0 0\naqmlab0: 101 102 103 0 105 106 107 108 109 110 0 112 0 0\n",
            "aqmlab0",
        );
        assert_eq!(counters.marked_in(), 22);
        assert_eq!((counters.get("dev.rx_packets"), counters.get("dev.tx_dropped")), (102, 112));
        assert_eq!(counters.get("Tcp.MaxConn"), 0, "a negative number is not a count");
        let hidden: Vec<_> = counters.hidden_drops().collect();
        assert_eq!(hidden, [("dev.tx_dropped", 112), ("dev.rx_errors", 103), ("Tcp.InCsumErrors", 3)]);
    }
}
