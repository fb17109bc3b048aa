//! What is counted of a flow at its sockets.

use super::info::Sent;

/// Cumulative counts of a flow. `None` is what the kernel does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// What the ends that send have sent.
    pub sent: Sent,
    /// Bytes that receiving applications have got (datagrams: network-layer bytes).
    pub delivered_bytes: u64,
}

/// What went wrong at sockets, in numbers of flows or datagrams. None of it ends a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketErrors {
    /// Connections that could not be opened in as many tries as the stack makes.
    pub timed_out: u64,
    /// Connections that nobody accepted.
    pub refused: u64,
    /// Connections that ended with a RST.
    pub reset: u64,
    /// Connections that ended with another error.
    pub failed: u64,
    /// Datagrams that their host did not take.
    pub unsent: u64,
    /// Connections and datagrams that reached a server and belong to no flow.
    pub strays: u64,
}

impl SocketErrors {
    /// A connection ended with this error of the system.
    pub fn count(&mut self, error: i32) {
        match error {
            libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => self.timed_out += 1,
            libc::ECONNREFUSED => self.refused += 1,
            libc::ECONNRESET | libc::EPIPE => self.reset += 1,
            _ => self.failed += 1,
        }
    }

    /// What no network does to a flow, but a host or a defect; what there is of it. (A connection that has timed out may have
    /// lost its packets to queues.)
    pub fn of_hosts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.iter().filter(|&(name, count)| name != "timed_out" && count > 0)
    }

    /// Each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("timed_out", self.timed_out),
            ("refused", self.refused),
            ("reset", self.reset),
            ("failed", self.failed),
            ("unsent", self.unsent),
            ("strays", self.strays),
        ]
        .into_iter()
    }
}

impl FlowCounts {
    /// What has been counted since `before`.
    pub fn since(&self, before: &FlowCounts) -> FlowCounts {
        let optional = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
        FlowCounts {
            sent: Sent {
                segments: self.sent.segments - before.sent.segments,
                bytes: self.sent.bytes - before.sent.bytes,
                retransmitted: self.sent.retransmitted - before.sent.retransmitted,
                timeouts: optional(self.sent.timeouts, before.sent.timeouts),
                duplicates: optional(self.sent.duplicates, before.sent.duplicates),
            },
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
        }
    }

    /// Both together; unknown where one of them is.
    pub fn plus(&self, other: &FlowCounts) -> FlowCounts {
        let optional = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        FlowCounts {
            sent: Sent {
                segments: self.sent.segments + other.sent.segments,
                bytes: self.sent.bytes + other.sent.bytes,
                retransmitted: self.sent.retransmitted + other.sent.retransmitted,
                timeouts: optional(self.sent.timeouts, other.sent.timeouts),
                duplicates: optional(self.sent.duplicates, other.sent.duplicates),
            },
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_hosts_doing_unless_packets_were_lost() {
        let mut socket_errors = SocketErrors::default();
        for error in [libc::ETIMEDOUT, libc::ECONNREFUSED, libc::ECONNRESET, libc::EPIPE, libc::ENOBUFS] {
            socket_errors.count(error);
        }
        socket_errors.unsent = 3;
        let of_hosts: Vec<_> = socket_errors.of_hosts().collect();
        assert_eq!(of_hosts, [("refused", 1), ("reset", 2), ("failed", 1), ("unsent", 3)]);
        assert_eq!(socket_errors.timed_out, 1);
    }
}
