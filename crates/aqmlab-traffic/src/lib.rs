//! Workloads as state machines: what to send next, and when.
//!
//! A workload knows neither TCP nor sockets, so that a simulator and a live generator can drive the same code. Above
//! the byte streams of TCP there are two layers: a [`Population`] decides when the connections of a class open, and
//! learns how they went; a [`Session`] decides what the applications at both ends of one connection write, and when. A
//! [`PacketSource`] decides when its next packet leaves and how big it is. A [`Distribution`] spreads starts and
//! round-trip times over the flows of a class, and gives the lengths of periods ([`OnOff`]), times to think and sizes.
//! No clock, no thread, no global.
#![no_std]
extern crate alloc;

/// The version of distributions and of what populations and sessions share; each kind of them has its own. Rises by one
/// whenever that moves a result.
pub const VERSION: u32 = 1;

mod browsers;
mod distribution;
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
pub use mean_connection::MeanConnection;
pub use on_off::{Begin, OnOff};
pub use opening::{ConnectionEvent, Identity, Opening, Reaction, Wake, Woken};
pub use packets::{PacketSizes, PacketSource, Spacing};
pub use page_users::PageUsers;
pub use pages::{Device, Multiplexed, ObjectType, Page, PageEnded, PageObject, PagePlan};
pub use pareto::Pareto;
pub use population::{Arrivals, Cloud, Gaps, Population, Users};
pub use quantity::{Count, Probability, Quantity};
pub use requests::{ExchangePlan, Requests};
pub use session::{Bursty, ByteBursts, Greedy, Session, SingleExchange};
pub use starts::Starts;
pub use step::{Act, End, ExchangeDone, PlannedExchange, Step, StreamPosition};
