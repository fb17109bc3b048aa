//! How the live router runs a plan.

use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::is_default;

/// How the live router runs a scenario. The simulator ignores this.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LivePlan {
    /// Version of the Internet Protocol.
    pub ip: IpVersion,
    /// How long packets in flight are still forwarded after the end of the run, before the books
    /// are closed.
    #[serde(rename = "drain_ns")]
    pub drain: Span,
    /// How the router waits for the next departure.
    pub wait: Wait,
    /// How long before a departure a `hybrid` router stops sleeping.
    #[serde(rename = "spin_ns")]
    pub spin: Span,
    /// Whether hosts and router pass several segments of a connection to each other in one piece; absent if not.
    #[serde(skip_serializing_if = "is_default")]
    pub offload: bool,
}

impl Default for LivePlan {
    fn default() -> Self {
        LivePlan {
            ip: IpVersion::V4,
            drain: Span::s(1),
            wait: Wait::Hybrid,
            spin: Span::us(30),
            offload: false,
        }
    }
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "u64")]
#[schemars(with = "u64", inline)]
pub enum IpVersion {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

impl IpVersion {
    /// Returns 4 or 6.
    pub const fn number(self) -> u64 {
        match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

impl From<IpVersion> for u64 {
    fn from(version: IpVersion) -> u64 {
        version.number()
    }
}

/// How a thread waits for an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// It sleeps until shortly before the instant, then spins.
    Hybrid,
    /// It only sleeps, so it is late if the kernel wakes it late.
    Epoll,
}

impl Wait {
    /// Returns the word that scenarios use for this way of waiting.
    pub const fn name(self) -> &'static str {
        match self {
            Wait::Hybrid => "hybrid",
            Wait::Epoll => "epoll",
        }
    }
}
