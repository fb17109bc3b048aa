//! The network of a plan in virtual time: frames in, frames out, each at its ideal instant. No socket, no clock.
//!
//! Frames come in by an [`Entry`](crate::Entry), the door of their class's client or server, and take the way of the simulator's packets:
//! over their flow's own link, through its delay stages, through the queues of the class's path, and out by the opposite
//! door. Ports, pipes, draws and books are the simulator's, and so is the order of what happens at one instant: departures
//! before arrivals, each by the numbers of their links and flows, samplers last.
//!
//! DEVIATES from a router (RFC 1812, section 5.3.1): the time to live is left alone. What a plan calls a node is no hop of
//! its own but a place where links meet, and hosts see the path that they would see without the laboratory.

mod books;
mod conditions;
mod core;
mod course;
mod lanes;
mod record;
mod room;
mod routes;
mod tap;
mod yard;

pub use books::{DoorBooks, FlowBooks, Refused};
pub use core::Router;
pub use lanes::{FIRST_CLIENT_PORT, SERVER_PORT};
pub use record::{FlowRecord, RouterRecord};
pub use room::Room;
pub use tap::{Happening, Tap, What};
pub use yard::{Exit, Leaving};
