//! A flow's own links between its hosts and the network, and its packets on them that are not foreseen.

use aqmlab_qdisc::Line;
use aqmlab_units::{Bytes, Instant, Span, Tempo};

use crate::hazards::{AccessLink, Hazards};

/// How fast the access links of a class are, in the order of [`AccessLink`]. All have one rate; each sees packets of
/// few sizes, so each has a tempo to itself.
pub type Tempi = [Tempo; 4];

/// A flow's own links: it feeds each alone, and none of them drops for want of room. All have one delay, and the rate of
/// the flow's class. Packets get lost on them only where the scenario says so: see [`Hazards`], which also knows which
/// links are not there.
pub struct AccessLinks {
    delay: Span,
    /// In the order of [`AccessLink`].
    lines: [Line; 4],
    /// How many packets before the last one came out of each at the same instant.
    turns: [u32; 4],
    hazards: Option<Box<Hazards>>,
}

impl AccessLinks {
    /// Idle links.
    pub fn new(delay: Span, hazards: Option<Hazards>) -> Self {
        AccessLinks { delay, lines: [Line::default(); 4], turns: [0; 4], hazards: hazards.map(Box::new) }
    }

    /// Where nothing is lost, a packet's arrival can be foreseen: no packet is pending yet. Elsewhere too many always
    /// are.
    pub fn pending(&self) -> Pending {
        if self.hazards.is_some() { Pending(Pending::TOO_MANY) } else { Pending::default() }
    }

    /// Packets lost on them.
    pub fn lost_packets(&self) -> u64 {
        self.hazards.as_ref().map_or(0, |hazards| hazards.lost_packets)
    }

    /// A packet of `size` enters one of them at `now`: when it comes out, and in which turn of that instant. `None`
    /// if it is lost.
    #[inline(always)]
    pub fn pass(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        if self.hazards.is_some() {
            return self.pass_hazards(tempi, which, now, size);
        }
        Some(self.pass_line(tempi, which, now, size))
    }

    /// The link itself.
    #[inline(always)]
    fn pass_line(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> (Instant, u64) {
        let line = &mut self.lines[which as usize];
        let before = line.free_at();
        let sent = line.pass(now, &mut tempi[which as usize], size);
        // The delay is constant: what is sent at one instant comes out at one instant.
        let turn = &mut self.turns[which as usize];
        *turn = if sent == before { *turn + 1 } else { 0 };
        (sent + self.delay, u64::from(*turn))
    }

    /// The link with what lies in front of it, where the packet comes from the network, or behind it.
    #[inline(never)]
    fn pass_hazards(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        let hazards = self.hazards.as_mut()?;
        if !hazards.is_linked(which) {
            return hazards.stage_alone(which, now, size);
        }
        let enters_at = hazards.before(which, now, size)?;
        let (out, turn) = self.pass_line(tempi, which, enters_at, size);
        self.hazards.as_mut()?.behind(which, out, turn, size)
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
