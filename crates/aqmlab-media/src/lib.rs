//! Traffic that minds delay: media flows whose rate follows the network, games, and requests over datagrams.
//!
//! A [`Dialogue`] is both ends of a flow of datagrams as one state machine. It depends on neither sockets nor clocks: a
//! host asks it what to send, and tells it what arrived. The rate controllers ([`gcc`], [`scream`], [`tfrc`]) are
//! arithmetic on arguments, each after its own document.
#![no_std]
extern crate alloc;

mod control;
mod dialogue;
mod encoder;
mod feedback;
mod frames;
mod game;
pub mod gcc;
mod limits;
mod media;
mod ping;
pub mod scream;
mod talk;
pub mod tfrc;

pub use control::ControlPlan;
pub use dialogue::{Dialogue, Kind};
pub use encoder::FramePlan;
pub use feedback::{Acknowledged, Arrival, Arrivals, Feedback};
pub use game::{Game, GameDraws, GamePlan, Updates};
pub use limits::Limits;
pub use media::{MediaFlow, MediaPlan, MediaState};
pub use ping::{Ping, PingPlan};
pub use talk::{Datagram, Noticed, Unfinished};
