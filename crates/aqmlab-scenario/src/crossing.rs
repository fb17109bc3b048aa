//! The classes whose packets cross a link. The automatic parameters of the link's queue are
//! computed from these classes.

use std::collections::BTreeMap;

use aqmlab_units::{Bytes, Span};

use crate::delay;
use crate::plan::{ClassPlan, DelayPlan};
use crate::topology::Network;

/// The classes that cross a link: those whose data crosses it; if there are none, those whose
/// acknowledgments cross it; if there are none of these either, all classes.
pub(crate) struct Crossing<'c> {
    classes: Vec<&'c ClassPlan>,
    crosses: Crosses,
    /// The numbers of all classes whose data or acknowledgments cross the link.
    pub(crate) all: Vec<usize>,
}

/// Which packets of the classes cross the link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crosses {
    Data,
    Acks,
    Nothing,
}

impl<'c> Crossing<'c> {
    pub(crate) fn of(link: usize, classes: &'c [ClassPlan]) -> Self {
        let data = |c: &ClassPlan| c.ways_of_data().any(|way| way.contains(&link));
        let acks = |c: &ClassPlan| {
            c.traffic.tcp().is_some() && (c.path.contains(&link) || c.return_path.contains(&link))
        };
        let all = classes.iter().enumerate().filter(|(_, c)| data(c) || acks(c)).map(|(i, _)| i).collect();
        for (crosses, has) in [(Crosses::Data, &data as &dyn Fn(&ClassPlan) -> bool), (Crosses::Acks, &acks)]
        {
            let classes: Vec<_> = classes.iter().filter(|c| has(c)).collect();
            if !classes.is_empty() {
                return Crossing { classes, crosses, all };
            }
        }
        Crossing { classes: classes.iter().collect(), crosses: Crosses::Nothing, all }
    }

    /// Returns the mean base round-trip time of the flows that react to the queue (of all flows if
    /// none reacts), or `None` if it is zero.
    pub(crate) fn rtt(&self, rtts: &BTreeMap<&str, Span>) -> Option<Span> {
        let responsive: Vec<_> = self.classes.iter().copied().filter(|c| c.traffic.tcp().is_some()).collect();
        let classes = if responsive.is_empty() { &self.classes } else { &responsive };
        let mean = mean(classes, |c| rtts[c.name.as_str()].as_ns());
        (mean > 0).then_some(Span::ns(mean))
    }

    /// Returns the number of TCP flows whose data crosses the link, or `None` if there are none.
    pub(crate) fn flows(&self) -> Option<u64> {
        if self.crosses != Crosses::Data {
            return None;
        }
        let responsive = self.classes.iter().filter(|c| c.traffic.tcp().is_some());
        let flows = responsive.fold(0u64, |sum, c| sum.saturating_add(c.expected_flows()));
        (flows > 0).then_some(flows)
    }

    pub(crate) fn mean_packet(&self) -> Bytes {
        Bytes::new(mean(&self.classes, |c| self.packet(c).get()).max(1))
    }

    /// Returns the size of the largest packet; for a class whose packets vary in size, their mean
    /// size is used.
    pub(crate) fn largest_packet(&self) -> Bytes {
        self.classes.iter().map(|c| self.packet(c)).max().unwrap_or(Bytes::ZERO)
    }

    fn packet(&self, class: &ClassPlan) -> Bytes {
        match class.traffic.tcp() {
            Some(tcp) if self.crosses == Crosses::Acks => Bytes::new(u64::from(tcp.header.max(1))),
            _ => class.traffic.data_packet(),
        }
    }
}

/// Returns the size of the largest data packet that crosses a link, or `None` if no data crosses it; for a class
/// whose packets vary in size, their mean size is used.
pub(crate) fn largest_data_packet(link: usize, classes: &[ClassPlan]) -> Option<Bytes> {
    let crossing = Crossing::of(link, classes);
    (crossing.crosses == Crosses::Data).then(|| crossing.largest_packet())
}

/// Returns the mean base round-trip time of a class: its `rtt` (or, if it has no access links, the
/// propagation delay of its path in both directions) plus the delay of its delay stages.
pub(crate) fn base_rtt(network: &Network<'_>, class: &ClassPlan, index: usize, delays: &[DelayPlan]) -> Span {
    let links = |way: &[usize]| way.iter().fold(Span::ZERO, |sum, &l| sum + network.links[l].delay);
    let own = match &class.access {
        Some(access) => access.rtt.mean(),
        None => links(&class.path) + links(&class.return_path),
    };
    own + delay::mean_of(delays, class, index, |link| [network.links[link].from, network.links[link].to])
}

/// Returns the mean of `value` over the flows of all `classes`, rounded to the nearest integer.
fn mean(classes: &[&ClassPlan], value: impl Fn(&ClassPlan) -> u64) -> u64 {
    let flows: u128 = classes.iter().map(|c| u128::from(c.expected_flows())).sum();
    let sum: u128 = classes.iter().map(|c| u128::from(value(c)) * u128::from(c.expected_flows())).sum();
    ((sum + flows / 2) / flows.max(1)) as u64
}
