//! The network of a plan in virtual time: frames in, frames out, each at its ideal instant. It needs neither
//! sockets nor a clock.
//!
//! Frames enter at the host of their class's client or server ([`HostId`](crate::HostId)), and take
//! the same path as the simulator's packets: over their flow's own link, through its delay stages,
//! through the queues of the class's path, and out through the opposite host. Ports, pipes, draws
//! and books are the same as in the simulator. So is the order of simultaneous events: first
//! changes of rates, then departures, by the numbers of their links, then arrivals, by the numbers
//! of their pipes, and finally samples.
//!
//! DEVIATES from a router (RFC 1812, section 5.3.1): the time to live does not change. A plan's node is not a
//! hop but a place where links meet, so hosts see no hops between them.

mod announcements;
mod books;
mod core;
mod flow_table;
mod found;
mod frame_budget;
mod frame_store;
mod pace;
mod record;
mod routes;

pub use announcements::{Announcer, NoRoom};
pub use books::{FlowBooks, HostBooks, Refused};
pub use core::Router;
pub use found::{Ends, Found, TCP, UDP};
pub use frame_budget::{FrameBudget, client_ports, own_round_trip};
pub use frame_store::{FrameAtPort, FrameObserver, FrameSink, OutgoingFrame};
pub use pace::{DataPackets, lateness_limit};
pub use record::{FlowRecord, RouterRecord};
