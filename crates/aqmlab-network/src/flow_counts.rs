//! The counts of a flow.

/// A cumulative count: `u64` if the host knows all counts, `Option<u64>` if a kernel might not
/// report some of them.
pub trait Count: Copy {
    /// A count of zero.
    const ZERO: Self;

    /// Returns the sum, which is unknown if either count is unknown.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// Returns the increase since `before`, or the whole count if `before` is unknown.
    #[must_use]
    fn since(self, before: Self) -> Self;

    /// Returns the number, if known.
    fn known(self) -> Option<u64>;
}

impl Count for u64 {
    const ZERO: Self = 0;

    #[inline]
    fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline]
    fn since(self, before: Self) -> Self {
        self - before
    }

    fn known(self) -> Option<u64> {
        Some(self)
    }
}

impl Count for Option<u64> {
    const ZERO: Self = Some(0);

    fn plus(self, other: Self) -> Self {
        Some(self? + other?)
    }

    fn since(self, before: Self) -> Self {
        Some(self?.saturating_sub(before.unwrap_or(0)))
    }

    fn known(self) -> Option<u64> {
        self
    }
}

/// Defines, from one list of counts, their struct, its arithmetic, and access by column name.
macro_rules! flow_counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Cumulative counts of a flow, each under the name of its column in the table `flows`. A column
        /// whose name begins with `measured_` contains the same count since the end of the warm-up.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct FlowCounts<T = u64> {
            $($(#[doc = $doc])+ pub $name: T,)+
        }

        impl<T: Count> FlowCounts<T> {
            /// The names of all counts.
            pub const NAMES: &[&str] = &[$(stringify!($name),)+];

            /// Counts of zero, all of them known.
            pub const ZERO: Self = FlowCounts { $($name: T::ZERO,)+ };

            /// Returns the sum of these counts and `other`.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                FlowCounts { $($name: self.$name.plus(other.$name),)+ }
            }

            /// Returns the counts since `before`.
            #[must_use]
            pub fn since(self, before: Self) -> Self {
                FlowCounts { $($name: self.$name.since(before.$name),)+ }
            }

            /// Returns all counts, in the order of their names.
            pub fn values(&self) -> impl AsRef<[T]> + use<T> {
                [$(self.$name,)+]
            }
        }
    };
}

flow_counts! {
    /// Segments with payload, or datagrams, sent by the sender.
    sent_segments,
    /// Payload bytes sent, retransmissions included (datagrams: network-layer bytes).
    sent_bytes,
    /// Bytes that reached the receiver for the first time, in order or not (datagrams:
    /// network-layer bytes).
    received_bytes,
    /// The part of the received bytes that reached the client; zero if only the client sends.
    received_by_client_bytes,
    /// Bytes delivered to the receiving application, in order, for the first time.
    delivered_bytes,
    /// Retransmitted segments with payload or FIN.
    retransmitted_segments,
    /// Retransmission timeouts for data or FIN.
    timeouts,
    /// The part of the timeouts that occurred at the client; zero if only the server sends.
    timeouts_at_client,
    /// Retransmitted SYNs: timeouts of the client while it opens the connection.
    syn_retransmissions,
    /// Retransmitted SYN-ACKs: timeouts of the server while the connection opens, and answers to
    /// further SYNs.
    syn_ack_retransmissions,
    /// Entries into fast recovery.
    fast_retransmits,
    /// Window reductions in response to ECN-Echo.
    ecn_reductions,
    /// CE-marked packets that reached the receiver.
    ce_received,
    /// Segments with payload or FIN that reached the receiver but carried no new data.
    spurious_retransmissions,
    /// Windows of data in which two or more segments were retransmitted.
    multiple_loss_windows,
    /// Packets lost outside the queues: on access links and in delay stages.
    lost_outside_queues_packets,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_stays_unknown_and_what_was_unknown_before_counts_in_full() {
        let counts = |timeouts| FlowCounts::<Option<u64>> { timeouts, ..FlowCounts::ZERO };
        assert_eq!(counts(Some(3)).plus(counts(None)).timeouts, None);
        assert_eq!(counts(Some(3)).plus(counts(Some(4))).timeouts, Some(7));
        assert_eq!(counts(None).since(counts(Some(4))).timeouts, None);
        assert_eq!(counts(Some(3)).since(counts(None)).timeouts, Some(3));
        assert_eq!(counts(Some(7)).since(counts(Some(4))).timeouts, Some(3));
    }
}
