//! IP packets as bytes: a total parser, the ECN field, and a pool of slots that are used again.

mod live_frame;
mod parse;
mod pool;
mod traffic_class;

pub use live_frame::LiveFrame;
pub(crate) use live_frame::Owner;
pub use parse::{Headers, Malformed, TcpPayload, parse, tcp_payload};
pub use pool::{FramePool, Slot};
pub use traffic_class::{adjusted, internet_checksum, set_traffic_class, traffic_class};
