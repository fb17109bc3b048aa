//! Workloads as state machines: what to send next, and when.
//!
//! A workload depends on neither TCP nor sockets, so a simulator and a live generator can drive the
//! same code. There are two layers above the byte streams of TCP. A [`Population`] decides when the
//! connections of a class open, and is notified of their outcome. A [`Session`] decides what the
//! applications at both ends of one connection write, and when. A [`PacketSource`] decides when its
//! next packet leaves and how large that packet is. A [`Distribution`] spreads starts and
//! round-trip times over the flows of a class, and provides the lengths of periods ([`OnOff`]),
//! thinking times and sizes. The crate uses no clock, no threads and no global state.
#![no_std]
extern crate alloc;

/// The version of the distributions and of the parts that populations and sessions share; each kind
/// of population and session has its own version. This version is incremented whenever a change to
/// these distributions and parts changes a result.
pub const VERSION: u32 = 1;

mod browsers;
mod distribution;
mod listed;
mod listed_users;
mod mean_connection;
mod on_off;
mod opening;
mod packets;
pub mod packmime;
mod page_users;
mod pages;
mod pareto;
mod population;
mod quantity;
mod requests;
mod session;
mod starts;
mod step;

pub use browsers::{BrowserPlan, Browsers};
pub use distribution::Distribution;
pub use listed::ListedExchanges;
pub use listed_users::{ListedUsers, PageList};
pub use mean_connection::MeanConnection;
pub use on_off::{Begin, OnOff};
pub use opening::{ConnectionEvent, Content, Identity, Opening, Reaction, Wake, Woken};
pub use packets::{
    LARGEST_DATAGRAM, PacketSizes, PacketSource, SMALLEST_DATAGRAM, Spacing, exponential_scale,
};
pub use page_users::PageUsers;
pub use pages::{Device, Multiplexed, ObjectType, Page, PageEnded, PageObject, PagePlan};
pub use pareto::Pareto;
pub use population::{Arrivals, Cloud, Gaps, Population, Users};
pub use quantity::{Count, Probability, Quantity};
pub use requests::{ExchangePlan, Requests};
pub use session::{Bursty, ByteBursts, Greedy, Session, SingleExchange};
pub use starts::Starts;
pub use step::{Act, End, ExchangeDone, PlannedExchange, Step, StreamPosition};
