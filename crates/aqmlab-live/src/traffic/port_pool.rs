//! The pool of free client ports for a class whose connections open and close during a run. The
//! ports are in the order in which they became free.

use std::collections::VecDeque;
use std::ops::Range;

use aqmlab_units::{Instant, Span};

/// Minimum time for which a port stays unused after its connection has ended. Linux opens a
/// connection from a port in TIME-WAIT no sooner than a second after the last segment
/// (`tcp_tw_reuse`); until then, packets of the earlier connection may still be in flight.
pub const REST: Span = Span::s(2);

/// See the module. Ports that have never been used come first.
#[derive(Clone, Debug)]
pub struct PortPool {
    fresh: Range<u32>,
    freed: VecDeque<(Instant, u32)>,
}

impl PortPool {
    /// Returns a pool of `ports` ports, all free.
    pub fn new(ports: u32) -> Self {
        PortPool { fresh: 0..ports, freed: VecDeque::new() }
    }

    /// Returns a port that has never been used, or that has been free for at least [`REST`] at `now`; `None`
    /// if there is no such port.
    pub fn take(&mut self, now: Instant) -> Option<u32> {
        if let Some(fresh) = self.fresh.next() {
            return Some(fresh);
        }
        let &(freed, port) = self.freed.front()?;
        if freed + REST > now {
            return None;
        }
        self.freed.pop_front();
        Some(port)
    }

    /// Records that a port is free again.
    pub fn give_back(&mut self, port: u32, now: Instant) {
        self.freed.push_back((now, port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn fresh_ports_come_first_and_then_those_freed_longest_ago() {
        let mut pool = PortPool::new(3);
        assert_eq!((pool.take(at(0)), pool.take(at(0))), (Some(0), Some(1)));
        pool.give_back(1, at(10));
        pool.give_back(0, at(20));
        assert_eq!(pool.take(at(30)), Some(2), "port 1 is free, but has been used");
        assert_eq!(pool.take(at(2009)), None, "port 1 rests");
        assert_eq!((pool.take(at(2010)), pool.take(at(2010))), (Some(1), None));
        assert_eq!(pool.take(at(2020)), Some(0));
        assert_eq!(pool.take(at(900_000)), None, "all of them are in use");
        pool.give_back(2, at(900_000));
        assert_eq!(pool.take(at(902_000)), Some(2));
    }
}
