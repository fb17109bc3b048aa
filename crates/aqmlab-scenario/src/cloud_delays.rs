//! Where the delays lie that clouds draw for their clients and servers.

use aqmlab_traffic::packmime::HostDelay;
use aqmlab_traffic::{Distribution, End};
use aqmlab_units::Span;

use crate::delay;
use crate::pass::Pass;
use crate::plan::{DelayPlan, PopulationPlan};
use crate::topology::Network;
use crate::traffic::ClassDraft;

impl Pass<'_, '_> {
    /// What a cloud draws for its clients and servers lies where delay stages stand for it, and else on access links.
    pub(crate) fn place_cloud_delays(
        &mut self,
        drafts: &mut [ClassDraft],
        delays: &[DelayPlan],
        network: &Network<'_>,
    ) {
        for (number, draft) in drafts.iter_mut().enumerate() {
            let ends = |link: usize| [network.links[link].from, network.links[link].to];
            let rules = delay::met(delays, &draft.plan, number, ends);
            let propagation = draft.plan.links_both_ways().map(|link| network.links[link].delay);
            let propagation = propagation.fold(Span::ZERO, |sum, delay| sum + delay);
            let PopulationPlan::Cloud(cloud) = &mut draft.plan.population else { continue };
            cloud.placed = End::ALL.map(|end| rules.iter().any(|rule| rule.places(end)));
            if !cloud.own_delays {
                continue;
            }
            let left: Vec<End> = End::ALL.into_iter().filter(|end| !cloud.placed[*end as usize]).collect();
            match &mut draft.plan.access {
                Some(access) => {
                    let own = left.iter().fold(Span::ZERO, |sum, end| sum + HostDelay::mean(*end) * 2);
                    access.rtt = Distribution::Constant(propagation + own);
                    self.amend(&format!("{}.rtt", draft.path), &(propagation + own));
                }
                None if left.is_empty() => {}
                None => {
                    let whose = left.iter().map(|end| format!("{}s", end.name())).collect::<Vec<_>>();
                    let rules = left.iter().map(|end| format!("`delay = \"{}\"`", end.name()));
                    let message = format!(
                        "{} of PackMime-HTTP have delays of their own, and `access_rate` is \"none\"; write a rate, and they \
                         lie on access links, or a [[delay]] with {}",
                        whose.join(" and "),
                        rules.collect::<Vec<_>>().join(" and one with ")
                    );
                    self.error(&draft.at, &draft.path, message);
                }
            }
        }
    }
}
