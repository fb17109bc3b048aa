//! Traffic: the list of its kinds. Each kind has a file of its own, with all that depends on it.

mod browsers;
mod bulk;
mod cbr;
mod delays;
mod fields;
mod game;
mod kind;
mod media;
mod on_off;
mod on_off_tcp;
mod on_off_udp;
mod packets;
mod packmime;
mod pages;
mod ping;
mod poisson;
mod program;
mod reading;
mod requests;
mod schedule;
mod source;
mod trace;
mod users;

use std::ops::Deref;

use schemars::JsonSchema;
use serde::Serialize;

use crate::field::Variant;
use crate::pass::{Pass, Section};

pub use browsers::Browsers;
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use delays::{DelaysFrom, OwnDelays};
pub use game::Game;
pub use kind::{Carries, DatagramFlow, Draws, Opens, PageFetches, Part, Start, Tcp, TrafficKind};
pub use media::Media;
pub use on_off_tcp::{OnOffTcp, Sends};
pub use on_off_udp::OnOffUdp;
pub use packets::Packets;
pub use packmime::{CloudPlan, Packmime};
pub use pages::Pages;
pub use ping::Ping;
pub use poisson::Poisson;
pub use program::{Program, Ready};
pub(crate) use reading::Reading;
pub use requests::{Opened, Requests};
pub use schedule::ScheduledPackets;
pub use source::{DatagramSource, FlowSource};
pub use trace::TracedConnections;
pub use users::ListedPages;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $type:ident in $file:ident,)*) => {
        /// What the flows of a class carry, and when they begin.
        #[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[schemars(deny_unknown_fields)]
        pub enum Traffic {
            $($(#[$doc])* $name($type),)*
        }

        impl Deref for Traffic {
            type Target = dyn TrafficKind;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Traffic::$name(kind) => kind,)*
                }
            }
        }

        impl Traffic {
            /// Returns the parts with versions that the class uses, apart from TCP.
            pub(crate) fn parts(&self) -> &'static [Part] {
                match self {
                    $(Traffic::$name(kind) => TrafficKind::uses(kind, $file::PARTS),)*
                }
            }
        }

        /// The parts of each kind.
        pub(crate) const PARTS: &[&[Part]] = &[$($file::PARTS),*];

        /// The kinds of traffic.
        pub const TRAFFIC_KINDS: &[Variant] = &[$($file::KIND),*];

        /// Reads a class of this kind.
        pub(crate) fn read(kind: &str, pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Traffic>> {
            match kind {
                $(kind if kind == $file::KIND.kind => $file::read(pass, section).map(|reading| reading.map(Traffic::$name)),)*
                _ => None,
            }
        }
    };
}

kinds! {
    /// a TCP connection that sends this much and closes
    Bulk: Bulk in bulk,
    /// TCP connections that are greedy during on periods, or send one burst in each on period
    OnOffTcp: OnOffTcp in on_off_tcp,
    /// TCP connections that carry requests and responses, opened at a rate or by users; exactly one
    /// of `rate_per_s` and `think_ns` is present
    Requests: Requests in requests,
    /// TCP connections of web users, as in PackMime-HTTP
    Packmime: Packmime in packmime,
    /// TCP connections of users who fetch web pages
    Pages: Pages in pages,
    /// TCP connections of users with browsers: one page at a time, one request at a time on each
    /// connection
    Browsers: Browsers in browsers,
    /// TCP connections of users whose pages a file lists
    Users: ListedPages in users,
    /// a list of TCP connections
    Trace: TracedConnections in trace,
    /// UDP packets at a rate
    Cbr: Cbr in cbr,
    /// UDP packets with exponential gaps
    Poisson: Poisson in poisson,
    /// UDP packets of a fixed size, sent at a fixed rate during on periods
    OnOffUdp: OnOffUdp in on_off_udp,
    /// a list of UDP packets
    Schedule: ScheduledPackets in schedule,
    /// frames over UDP, at a rate that a controller adapts
    Media: Media in media,
    /// sparse UDP flows in both directions
    Game: Game in game,
    /// requests over UDP, each answered at once
    Ping: Ping in ping,
    /// programs in the hosts of a live run
    Program: Program in program,
}
