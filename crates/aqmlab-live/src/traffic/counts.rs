//! What is counted at sockets: of a flow, and of what went wrong.

use aqmlab_network::FlowCounts;

/// Cumulative counts of a flow, as far as kernels tell.
pub type KernelCounts = FlowCounts<Option<u64>>;

/// The counts that a kernel may not tell of a connection.
pub const OPTIONAL: &[&str] =
    &["timeouts", "fast_retransmits", "ecn_reductions", "spurious_retransmissions", "multiple_loss_windows"];

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
    /// Connections that were not opened for want of a client port or a descriptor.
    pub no_port: u64,
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
            ("no_port", self.no_port),
        ]
        .into_iter()
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
        socket_errors.no_port = 4;
        let of_hosts: Vec<_> = socket_errors.of_hosts().collect();
        assert_eq!(of_hosts, [("refused", 1), ("reset", 2), ("failed", 1), ("unsent", 3), ("no_port", 4)]);
        assert_eq!(socket_errors.timed_out, 1);
    }
}
