//! A flow's own links between its hosts and the network, and its packets on them that are not foreseen.

use aqmlab_qdisc::Line;
use aqmlab_units::{Bytes, Instant, Serialiser, Span};

use crate::impairments::{AccessLink, Impairments};

/// How fast the access links of a class are, in the order of [`AccessLink`]. All have one rate; each sees packets of
/// few sizes, so each has a serialiser to itself.
pub type Serialisers = [Serialiser; 4];

/// A flow's own links: it feeds each alone, and none of them drops for want of room. All have one delay, and the rate of
/// the flow's class. Packets get lost on them only where the scenario says so: see [`Impairments`], which also knows which
/// links are not there.
pub struct AccessLinks {
    delay: Span,
    /// In the order of [`AccessLink`].
    lines: [Line; 4],
    /// How many packets before the last one came out of each at the same instant.
    turns: [u32; 4],
    impairments: Option<Box<Impairments>>,
}

impl AccessLinks {
    /// Idle links.
    pub fn new(delay: Span, impairments: Option<Impairments>) -> Self {
        AccessLinks {
            delay,
            lines: [Line::default(); 4],
            turns: [0; 4],
            impairments: impairments.map(Box::new),
        }
    }

    /// Where nothing is lost, a packet's arrival can be foreseen: no packet is pending yet. Elsewhere too many always
    /// are.
    pub fn pending(&self) -> Pending {
        if self.impairments.is_some() { Pending(Pending::TOO_MANY) } else { Pending::default() }
    }

    /// Packets lost on them.
    pub fn lost_packets(&self) -> u64 {
        self.impairments.as_ref().map_or(0, |impairments| impairments.lost_packets)
    }

    /// A packet of `size` enters one of them at `now`: when it comes out, and in which turn of that instant. `None`
    /// if it is lost.
    #[inline(always)]
    pub fn pass(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        if self.impairments.is_some() {
            return self.pass_impaired(serialisers, which, now, size);
        }
        Some(self.pass_line(serialisers, which, now, size))
    }

    /// The link itself.
    #[inline(always)]
    fn pass_line(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> (Instant, u64) {
        let line = &mut self.lines[which as usize];
        let before = line.free_at();
        let sent = line.pass(now, &mut serialisers[which as usize], size);
        // The delay is constant: what is sent at one instant comes out at one instant.
        let turn = &mut self.turns[which as usize];
        *turn = if sent == before { *turn + 1 } else { 0 };
        (sent + self.delay, u64::from(*turn))
    }

    /// The link with what lies in front of it, where the packet comes from the network, or behind it.
    #[inline(never)]
    fn pass_impaired(
        &mut self,
        serialisers: &mut Serialisers,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        let impairments = self.impairments.as_mut()?;
        if !impairments.is_linked(which) {
            return impairments.stage_alone(which, now, size);
        }
        let enters_at = impairments.before(which, now, size)?;
        let (out, turn) = self.pass_line(serialisers, which, enters_at, size);
        self.impairments.as_mut()?.behind(which, out, turn, size)
    }
}

/// A count of packets in two bytes: a flow has never more than a few on their way to a host by events of their own.
/// If it has too many to count they are too many for ever.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pending(u16);

impl Pending {
    const TOO_MANY: u16 = u16::MAX;

    /// One more.
    #[inline]
    pub fn one_more(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// One has arrived, which may be one of those that are not counted.
    #[inline]
    pub fn one_less(&mut self) {
        if self.0 != Self::TOO_MANY {
            self.0 = self.0.saturating_sub(1);
        }
    }

    /// Is there none?
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}
