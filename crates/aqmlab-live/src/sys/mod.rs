//! System calls that have no safe wrapper elsewhere. The only place of this crate with `unsafe`; each block states its
//! proof.
#![allow(unsafe_code)]

mod namespace;
mod schedule;
mod sockopt;
mod tun;

pub use namespace::{unshare_net, unshare_user_and_net};
pub use schedule::set_fifo;
pub use sockopt::{
    TcpInfo, set_max_segment, set_notsent_low_water, set_window_clamp, stamp_acknowledgments, tcp_info,
    unacknowledged,
};
pub use tun::attach_tun;
