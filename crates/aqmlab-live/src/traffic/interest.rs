//! What the kernel is asked to tell of sockets, and whose an event is.

use std::os::fd::OwnedFd;

use aqmlab_network::End;
use rustix::event::epoll::{self, EventData};

use super::stream::Stream;

/// Whose event it is, in the two lowest bits of what the kernel hands back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    End(u32, End),
    Server(u32),
}

impl Whose {
    pub(super) fn data(self) -> EventData {
        EventData::new_u64(match self {
            Whose::End(flow, end) => u64::from(flow) << 2 | end as u64,
            Whose::Server(class) => u64::from(class) << 2 | 2,
        })
    }

    pub(super) fn of(data: EventData) -> Self {
        let number = (data.u64() >> 2) as u32;
        match data.u64() & 3 {
            0 => Whose::End(number, End::Client),
            1 => Whose::End(number, End::Server),
            _ => Whose::Server(number),
        }
    }
}

/// Tells the kernel what a socket waits for, if that has changed. A socket that waits for nothing would go on to tell of its
/// end, so it is not watched.
pub(super) fn watch(epoll: &OwnedFd, whose: Whose, stream: &mut Stream) {
    let was_watched = stream.is_watched();
    let Some(interest) = stream.new_interest() else { return };
    // The descriptor is open and belongs to us: none of these can fail but for want of memory, and then the flow stands still.
    let _ = match (was_watched, interest.is_empty()) {
        (true, true) => epoll::delete(epoll, stream.fd()),
        (true, false) => epoll::modify(epoll, stream.fd(), whose.data(), interest),
        (false, _) => epoll::add(epoll, stream.fd(), whose.data(), interest),
    };
}
