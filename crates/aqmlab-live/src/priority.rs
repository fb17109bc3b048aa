//! Order of priority on a processor: the router, then the traffic, then ordinary threads.

use std::time::Duration;

use crate::machine;
use crate::sys;

/// The router's priority: above all ordinary threads, and in the middle of the real-time ones.
const ROUTER: i32 = 50;
/// The traffic's priority.
const TRAFFIC: i32 = 10;
/// The shortest time slice that Linux accepts; the usual slice is 3 ms with two or more processors.
const SHORTEST_SLICE: Duration = Duration::from_micros(100);

/// Gives the calling thread, which runs the router, real-time scheduling with the highest permitted priority,
/// up to 50. Returns that priority, or `None` if none is permitted.
pub fn favour_router() -> Option<i32> {
    for_router(machine::real_time_priority_limit()).find(|&priority| sys::set_fifo(priority).is_ok())
}

/// Lets the calling thread, which has no real-time scheduling, run as soon as possible after it
/// wakes. For this purpose, its time slice becomes as short as possible. Such a slice is long
/// enough, because a packet takes only a few microseconds.
pub fn favour_ordinary() {
    // If the request fails, the thread continues unchanged; its lateness is recorded.
    let _ = sys::set_slice(SHORTEST_SLICE);
}

/// Gives the calling thread, which generates the traffic, a real-time priority below that of the router, if
/// possible.
pub fn favour_traffic(router: i32) {
    if let Some(priority) = below(router) {
        // A thread without the permission continues unchanged; the sources' lateness is recorded.
        let _ = sys::set_fifo(priority);
    }
}

/// Returns the priorities to try, in order. Root and processes with `CAP_SYS_NICE` may use any priority,
/// regardless of the limit for others.
fn for_router(limit: Option<u64>) -> impl Iterator<Item = i32> {
    let permitted = limit.map_or(ROUTER, |limit| limit.min(ROUTER as u64) as i32);
    [ROUTER, permitted].into_iter().filter(|&priority| priority > 0)
}

/// Returns the traffic's priority; `None` if the router's is 1, because only ordinary scheduling is below
/// that.
fn below(router: i32) -> Option<i32> {
    Some(TRAFFIC.min(router - 1)).filter(|&priority| priority > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_takes_what_it_may_and_traffic_stays_below_it() {
        let tried = |limit| for_router(limit).collect::<Vec<_>>();
        assert_eq!(tried(Some(0)), [50], "an ordinary user is refused, root is not");
        assert_eq!(tried(Some(20)), [50, 20]);
        assert_eq!((tried(Some(99)), tried(None)), (vec![50, 50], vec![50, 50]));
        assert_eq!([50, 11, 10, 2].map(below), [Some(10), Some(10), Some(9), Some(1)]);
        assert_eq!([1, 0].map(below), [None, None]);
    }
}
