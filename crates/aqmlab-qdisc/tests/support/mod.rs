//! A numbered packet of a thousand bytes, and an observer that counts what it loses.

use aqmlab_qdisc::{Arrived, Cause, Classed, Dscp, Ecn, Observer, Packet, Side};
use aqmlab_units::{Bytes, Instant};

/// All packets have this size.
pub const SIZE: Bytes = Bytes::new(1000);

/// A packet with a number, not ECN-capable, of the one class and flow that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain(pub u64);

impl Packet for Plain {
    fn wire_len(&self) -> Bytes {
        SIZE
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        salt
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {
        panic!("a packet that is not ECN-capable is marked");
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

impl Arrived for Plain {
    fn arrived(&self) -> Instant {
        unreachable!("the laws that it meets decide at arrival")
    }
}

impl Classed for Plain {}

/// How many packets were lost.
#[derive(Default)]
pub struct Lost(pub u64);

impl<P> Observer<P> for Lost {
    fn dropped(&mut self, _: Instant, _: P, _: Cause) {
        self.0 += 1;
    }
    fn marked(&mut self, _: Instant, _: &P, _: Cause) {
        panic!("a packet that is not ECN-capable is marked");
    }
}
