//! TCP endpoints as state machines.
//!
//! A full connection, from SYN to FIN, with data in both directions: loss recovery by Reno, NewReno or SACK,
//! congestion control by RFC 5681 or CUBIC, RACK, tail loss probes, gradual reductions and F-RTO as options;
//! retransmission timeouts by RFC 6298, ECN by RFC 3168, delayed acknowledgments. No clock, no socket, no
//! bytes: an [`Endpoint`] receives segments and the time as arguments, and returns the segments to send and
//! the time of the next call. Its caller, a simulator or a test, is the network.
//!
//! # Driving an endpoint
//! First a mutation, then a complete drain: after each of [`open`](Endpoint::open),
//! [`write`](Endpoint::write), [`close`](Endpoint::close), [`abort`](Endpoint::abort),
//! [`on_segment`](Endpoint::on_segment) and [`on_timer`](Endpoint::on_timer), call
//! [`poll_transmit`](Endpoint::poll_transmit) until it returns `None`, then
//! [`poll_event`](Endpoint::poll_event) until it returns `None`, then read [`deadline`](Endpoint::deadline),
//! an absolute instant: call `on_timer` then, or as soon as possible afterwards. Calling it early does
//! nothing.
//!
//! The blocks of a SACK option are separate from their segment, because most segments have none. If a segment
//! that `poll_transmit` returned has a [`sack_len`](Segment::sack_len), fetch them with
//! [`sack`](Endpoint::sack) at once, and pass them on with
//! [`on_segment_with_sack`](Endpoint::on_segment_with_sack).
//!
//! # Parameters
//! A [`Profile`] holds all settings. It is passed to each call, always the same one for the same endpoint.
//! [`PARAMS`] explains each parameter with its source; [`profile_settings`] has the bundles `rfc`, `ns2`,
//! `ns2_fulltcp`, `freebsd4` and `linux`.
//!
//! # What is not here
//! The time stamp option (its effect on round trips and on spurious retransmissions is here); path MTU discovery; urgent
//! data; a zero window and its probes (the application reads at once); payload, checksums, ports and addresses, which
//! belong to the host.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

/// The version of everything except the congestion controls, which have [their own](Congestion::version).
/// Incremented whenever a change here changes a result.
pub const VERSION: u32 = 6;

mod bits;
mod congestion;
mod connection;
mod counters;
mod ecn;
mod endpoint;
mod event;
mod loss_window;
mod profile;
mod quick;
mod ranges;
mod reassembly;
mod receiver;
mod recovery;
mod rto;
mod sack;
mod segment;
mod sequence;
mod ticks;
mod trouble;
mod unique;

pub use connection::State;
pub use counters::Counters;
pub use endpoint::{ENDLESS, Endpoint, Role};
pub use event::StreamEvent;
pub use profile::{
    AckCounting, Congestion, DelayedAckTimer, EcnAtOne, EcnFallback, FastRetransmitGuard, Fin, HandshakeAck,
    IdleRestart, Increase, InitialSsthresh, NagleRule, PARAMS, PartialAck, Profile, ProfileInfo,
    ProfileValue, PromptAck, Recovery, RecoveryExit, ReductionBase, RttArithmetic, SackPipe, TimeoutSsthresh,
    profile_settings, profiles,
};
pub use sack::Sack;
pub use segment::{Flags, Segment};
pub use unique::UniqueBytes;
