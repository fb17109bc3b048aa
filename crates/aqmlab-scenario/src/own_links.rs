//! The delays and losses of single flows outside the queues, drawn from the seed: every host draws alike.

use aqmlab_qdisc::Loss;
use aqmlab_random::Stream;
use aqmlab_units::Span;

use crate::plan::{Access, ClassPlan, Plan};

impl Plan {
    /// Propagation delay of the paths of class number `class`, there and back.
    pub fn propagation(&self, class: usize) -> Span {
        let class = &self.classes[class];
        let links = class.path.iter().chain(&class.return_path);
        links.fold(Span::ZERO, |sum, &link| sum + self.links[link].delay)
    }
}

/// The base round-trip time of a flow whose path has this `propagation` delay there and back, and which has so many access
/// links with `access` each, if any, and delay stages that add `stages`. What the division among the links cut off is
/// not made up for: it is what they really take.
pub fn base_rtt(propagation: Span, access: Option<(Span, u64)>, stages: Span) -> Span {
    propagation + access.map_or(Span::ZERO, |(delay, links)| delay * links) + stages
}

impl ClassPlan {
    /// The delay of each of the access links of the host `index` ([`ClassPlan::host_index`]), where path and return path have this `propagation` delay
    /// together; `None` if it has no such links.
    pub fn access_delay(&self, index: u64, propagation: Span, seed: u64) -> Option<Span> {
        let access = self.access.as_ref()?;
        let rtt = access.rtt.value(
            index,
            self.count,
            Stream::indexed(seed, &format!("traffic/{}/rtt", self.name), index),
        );
        Some(rtt.saturating_sub(propagation).div(access.links()))
    }

    /// The delay of each access link of a flow with the mean base round-trip time: for packets that belong to the class
    /// but to none of its flows, which real hosts send.
    pub fn mean_access_delay(&self, propagation: Span) -> Option<Span> {
        let access = self.access.as_ref()?;
        Some(access.rtt.mean().saturating_sub(propagation).div(access.links()))
    }

    /// How many access links a flow has: one for each direction at each end that has them.
    pub fn access_links(&self) -> u64 {
        self.access.as_ref().map_or(0, Access::links)
    }

    /// Whether this end of its flows (0: the sender) has access links.
    pub fn has_access(&self, end: usize) -> bool {
        self.access.as_ref().is_some_and(|access| access.ends[end])
    }

    /// The losses of the connection of this index ([`Identity::index`](aqmlab_traffic::Identity::index)) at the entrance of its sender's access link, if it has any.
    pub fn access_losses(&self, index: u64, seed: u64) -> Option<Loss> {
        let draws = || Stream::indexed(seed, &format!("traffic/{}/loss", self.name), index);
        (self.access_loss > 0.0).then(|| Loss::new(self.access_loss, draws()))
    }
}
