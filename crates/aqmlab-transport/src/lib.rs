//! TCP endpoints as state machines.
//!
//! Each endpoint is one side of a full connection, from SYN to FIN, with data in both directions.
//! Loss recovery follows Reno, NewReno or SACK, optionally with RACK, tail loss probes, gradual
//! reductions and F-RTO. Congestion control follows RFC 5681, CUBIC, DCTCP or BBR, retransmission
//! timeouts follow RFC 6298, and ECN follows RFC 3168 or AccECN (RFC 9768). Acknowledgments may be delayed. There is no
//! clock, no socket and no payload: an [`Endpoint`] receives segments and the time as arguments,
//! and returns the segments to send and the time of the next call. Its caller, such as a simulator
//! or a test, takes the place of the network.
//!
//! # Driving an endpoint
//! After each call that changes the endpoint, drain it completely. That is, after each of
//! [`open`](Endpoint::open), [`write`](Endpoint::write), [`close`](Endpoint::close),
//! [`abort`](Endpoint::abort), [`on_segment`](Endpoint::on_segment) and
//! [`on_timer`](Endpoint::on_timer), call [`poll_transmit`](Endpoint::poll_transmit) until it
//! returns `None`, then [`poll_event`](Endpoint::poll_event) until it returns `None`, then read
//! [`deadline`](Endpoint::deadline), which is an absolute instant. Call `on_timer` at that instant
//! or as soon as possible afterwards; an early call does nothing.
//!
//! Most options are separate from their segment, because most segments have none. If a segment that
//! `poll_transmit` returned [has options](Segment::has_options), immediately fetch them with
//! [`options`](Endpoint::options), and deliver them together with the segment through
//! [`on_segment_with_options`](Endpoint::on_segment_with_options).
//!
//! # Parameters
//! A [`Profile`] holds all settings. The caller passes it to each call, and always passes the same
//! one for the same endpoint. [`Profile::TABLE`] explains each parameter and names its source;
//! [`profile_settings`] provides the bundles `rfc`, `ns2`, `ns2_fulltcp`, `freebsd4`, `linux` and
//! `modern`.
//!
//! # What is not here
//! This crate does not implement urgent data. Of the Timestamps option, segments carry what
//! distinguishes the copies of a segment, and the application of an [`Endpoint`] reads all data
//! immediately. A [`WireEndpoint`] wraps an endpoint for a host that meets other stacks: it has all
//! options, windows that close and their probes, PAWS, and the tests of RFC 5961. The host is
//! responsible for payload, checksums, ports and addresses.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

/// The version of everything except the congestion controls, which have [their own](Congestion::version),
/// and what [`SEGMENTS_VERSION`] covers. It is incremented whenever a change to anything else changes a
/// result.
pub const VERSION: u32 = 7;

/// The version of the sender that [tracks segments](Profile::lists_segments). It is incremented whenever a
/// change to what only this sender does changes a result.
pub const SEGMENTS_VERSION: u32 = 3;

mod bits;
mod congestion;
mod connection;
mod controller;
mod counters;
mod ecn;
mod endpoint;
mod event;
mod loss_window;
mod packets;
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
mod stamps;
mod ticks;
mod trouble;
mod unique;
mod wire;

pub use congestion::PathModel;
pub use connection::State;
pub use controller::{Controller, RoundTrips};
pub use counters::Counters;
pub use ecn::{AccEcnOption, EcnCounters};
pub use endpoint::{ENDLESS, Endpoint, Info, Reaction, Role};
pub use event::StreamEvent;
pub use profile::{
    AckCounting, Congestion, DelayedAckTimer, EcnAtOne, EcnFallback, EcnFeedback, EcnOption, EcnPathTest,
    FastRetransmitGuard, Fin, HandshakeAck, IdleRestart, Increase, InitialSsthresh, NagleRule, PartialAck,
    Profile, ProfileInfo, ProfileValue, PromptAck, Recovery, RecoveryExit, ReductionBase, RttArithmetic,
    SackPipe, TickPhases, TimeoutSsthresh, profile_settings, profiles,
};
pub use sack::{Options, Sack};
pub use segment::{Extras, Flags, Segment};
pub use stamps::Stamps;
pub use unique::UniqueBytes;
pub use wire::{Accounting, WireEndpoint, WireOptions, WireSegment, WireSettings};
