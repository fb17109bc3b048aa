//! IP packets as bytes: a total parser, the ECN field, and a pool of slots that are used again.

mod checksum;
mod live_frame;
mod parse;
mod pool;
mod traffic_class;

pub use checksum::{adjusted, internet_checksum};
pub use live_frame::LiveFrame;
pub use parse::{Headers, Malformed, TcpPayload, parse, tcp_payload};
pub use pool::{FramePool, Slot};
pub use traffic_class::{set_traffic_class, traffic_class};
