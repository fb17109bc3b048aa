//! IP packets as bytes: a total parser, the ECN field, and a pool of reusable slots.

mod headers;
mod live_frame;
pub mod offload;

pub use headers::{
    Headers, Malformed, TcpPayload, adjusted, internet_checksum, parse, set_traffic_class, tcp_payload,
    tcp_segment, traffic_class,
};
pub(crate) use live_frame::Owner;
pub use live_frame::{FramePool, LinkHeader, LiveFrame, Slot};
