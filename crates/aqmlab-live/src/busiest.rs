//! What a plan demands of this machine while the rates of its links are highest.

use std::borrow::Cow;

use aqmlab_scenario::Plan;
use aqmlab_units::Span;

/// The time over which a changing rate is averaged here. It is also the time over which a router judges how busy it is.
const WINDOW: Span = Span::ms(100);

/// Returns whether the rate of a link changes during the run.
pub fn changes_rates(plan: &Plan) -> bool {
    plan.links.iter().any(|link| link.changes.is_some())
}

/// Returns the plan with each link whose rate changes at its highest mean rate over a tenth of a second in the run with this seed.
/// Memory, the machine's capacity, and the time for which packets may wait to be written together follow from this plan.
pub fn at_the_busiest(plan: &Plan, seed: u64) -> Cow<'_, Plan> {
    if !changes_rates(plan) {
        return Cow::Borrowed(plan);
    }
    let mut busiest = plan.clone();
    for link in &mut busiest.links {
        if let Some(changes) = &link.changes {
            let highest = changes.highest(&link.name, seed, plan.stop.at, WINDOW);
            // A link that stands still for the whole run has a mean rate beyond it.
            link.rate = highest.max(link.rate);
        }
    }
    Cow::Owned(busiest)
}
