//! Decides where to place the delays that clouds draw, or traces give, for clients and servers.

use aqmlab_traffic::{Distribution, End};
use aqmlab_units::Span;

use crate::class::ClassDraft;
use crate::delay;
use crate::pass::Pass;
use crate::plan::DelayPlan;
use crate::topology::Network;
use crate::traffic::OwnDelays;

impl Pass<'_, '_> {
    /// Places the delays that a cloud draws, or a trace gives, for its clients and servers: in the
    /// delay stages that represent them, if there are any, and otherwise on access links.
    pub(crate) fn place_own_delays(
        &mut self,
        drafts: &mut [ClassDraft],
        delays: &[DelayPlan],
        network: &Network<'_>,
    ) {
        for (number, draft) in drafts.iter_mut().enumerate() {
            let Some(OwnDelays { from, apply }) = draft.plan.traffic.own_delays() else { continue };
            let whose = from.name();
            let ends = |link: usize| [network.links[link].from, network.links[link].to];
            let rules = delay::met(delays, &draft.plan, number, ends);
            draft.plan.placed = End::ALL.map(|end| rules.iter().any(|rule| rule.places(end)));
            if !apply {
                continue;
            }
            let placed = draft.plan.placed;
            let left: Vec<End> = End::ALL.into_iter().filter(|end| !placed[*end as usize]).collect();
            let propagation = draft.plan.links_both_ways().map(|link| network.links[link].delay);
            let propagation = propagation.fold(Span::ZERO, |sum, delay| sum + delay);
            let own = left.iter().fold(Span::ZERO, |sum, end| sum + draft.plan.mean_end(*end) * 2);
            match &mut draft.plan.access {
                // If the delays of both ends are on access links, the round-trip time has already
                // been entered.
                Some(_) if left.len() == End::ALL.len() => {}
                Some(access) => {
                    access.rtt = Distribution::Constant(propagation + own);
                    self.amend(&format!("{}.rtt", draft.path), &(propagation + own));
                }
                None if left.is_empty() => {}
                None => {
                    let ends = left.iter().map(|end| format!("{}s", end.name())).collect::<Vec<_>>();
                    let rules = left.iter().map(|end| format!("`delay = \"{}\"`", end.name()));
                    let message = format!(
                        "{} of {whose} have delays of their own, and `access_rate` is \"none\"; write a \
                         rate, which puts the delays on access links, or a [[delay]] with {}",
                        ends.join(" and "),
                        rules.collect::<Vec<_>>().join(" and one with ")
                    );
                    self.error(&draft.at, &draft.path, message);
                }
            }
        }
    }
}
