//! Connections that open at a rate, whatever the state of earlier ones: the load that they offer to
//! links, and the number that are open.

use aqmlab_units::Span;

use crate::class::Number;
use crate::pass::{Pass, Section};
use crate::plan::{ClassPlan, LinkPlan, Plan};
use crate::traffic::Opens;

/// A class distinguishes its connections by a 32-bit number.
const MOST_CONNECTIONS: f64 = u32::MAX as f64;

/// A load of this many times a link's rate counts as a mistake unless the class allows it.
const OVERLOAD: f64 = 10.0;

/// The packets without payload that a connection sends in each direction: SYN and FIN.
const CONTROL_PACKETS: f64 = 2.0;

impl ClassPlan {
    /// Returns the bit rates that connections opened at a rate offer to each link on the path of
    /// requests and to each link on the path of responses. They include payload, and the headers of
    /// data, SYN and FIN. Acknowledgments and retransmissions are not included.
    fn open_load(&self) -> Option<[f64; 2]> {
        let (per_s, tcp) = (self.traffic.opens().per_s()?, self.traffic.tcp()?);
        let (mss, header) = (f64::from(tcp.mss), f64::from(tcp.header));
        let bytes = self.traffic.mean_connection()?.bytes;
        Some(bytes.map(|bytes| 8.0 * per_s * (bytes + header * (bytes / mss + CONTROL_PACKETS))))
    }

    /// Returns the bit rate that connections opened at a rate offer to link number `link`.
    fn open_load_on(&self, link: usize) -> f64 {
        let [requests, responses] = self.open_load().unwrap_or_default();
        let of = |way: &[usize], load| if way.contains(&link) { load } else { 0.0 };
        of(&self.path, requests) + of(&self.return_path, responses)
    }

    /// Returns the largest number of connections of the class that are open at the same time, or
    /// `None` if they do not open at a rate. Connections that the narrowest link on their path
    /// cannot carry accumulate until the end of the run. Of those that it can carry, the number
    /// open at the same time is the number that arrive during the lifetime of one connection; the
    /// lifetime is computed without slow start.
    pub(crate) fn most_open(&self, plan: &Plan) -> Option<f64> {
        let (per_s, mean) = (self.traffic.opens().per_s()?, self.traffic.mean_connection()?);
        let carried =
            per_s / fullest(plan, |link| self.open_load_on(link)).map_or(1.0, |(_, times)| times.max(1.0));
        let propagation =
            || self.links_both_ways().fold(Span::ZERO, |sum, link| sum + plan.links[link].delay);
        let rtt = self.access.as_ref().map_or_else(propagation, |access| access.rtt.mean());
        let takes = (mean.exchanges + 1.0) * rtt.as_secs_f64() + mean.waits_s;
        let run = plan.stop.at.as_secs_f64();
        Some((per_s - carried) * run + carried * takes.min(run))
    }
}

/// Returns the index of the link whose `load` is the largest multiple of its rate, and that
/// multiple.
fn fullest(plan: &Plan, load: impl Fn(usize) -> f64) -> Option<(usize, f64)> {
    let times = |(i, link): (usize, &LinkPlan)| (i, load(i) / link.rate.as_bps() as f64);
    plan.links.iter().enumerate().map(times).max_by(|a, b| a.1.total_cmp(&b.1))
}

impl Pass<'_, '_> {
    /// Returns whether a class may offer a link a load of many times the link's rate.
    pub(crate) fn allows_overload(&mut self, section: &Section<'_>, opens: Opens<'_>) -> Option<bool> {
        // Elsewhere the key is unknown, which has been reported.
        let is_key = section.fields.iter().any(|field| field.name == "allow_overload");
        let Some(node) = section.node("allow_overload").filter(|_| is_key) else { return Some(false) };
        if opens.per_s().is_none() {
            let message =
                "`allow_overload` belongs to `rate`; users who wait for responses never offer such a load";
            self.error(&node.at, &section.sub("allow_overload"), message);
        }
        self.flag(section, "allow_overload")
    }

    /// Checks that connections opened at a rate can all be distinguished, and that they do not
    /// offer any link a load of many times the link's rate. Reports the first error. `numbers` has
    /// an entry for each class of `plan`.
    pub(crate) fn rates_are_sound(&mut self, plan: &Plan, numbers: &[Number]) -> bool {
        let mut few = true;
        for (class, number) in plan.classes.iter().zip(numbers) {
            few &= self.can_be_told_apart(class, plan, number);
        }
        few && self.is_no_overload(plan, numbers)
    }

    fn can_be_told_apart(&mut self, class: &ClassPlan, plan: &Plan, number: &Number) -> bool {
        let per_s = class.traffic.opens().per_s().unwrap_or_default();
        let (expected, most) = (plan.stop.at.as_secs_f64() * per_s, MOST_CONNECTIONS / 2.0);
        if expected > most {
            let message = format!(
                "about {expected:.0} connections would open before the end of the run at `{}`; at most {most:.0} can \
                 be distinguished: write a lower rate, or a shorter run",
                plan.stop.at
            );
            self.error(&number.at, &number.path, message);
        }
        expected <= most
    }

    fn is_no_overload(&mut self, plan: &Plan, numbers: &[Number]) -> bool {
        let counted = || plan.classes.iter().zip(numbers).filter(|(_, number)| !number.allows_overload);
        let load = |link: usize| counted().map(|(class, _)| class.open_load_on(link)).sum();
        let Some((link, times)) = fullest(plan, load).filter(|(_, times)| *times >= OVERLOAD) else {
            return true;
        };
        let largest = counted().max_by(|a, b| a.0.open_load_on(link).total_cmp(&b.0.open_load_on(link)));
        let Some((_, number)) = largest else { return true };
        let link = &plan.links[link];
        let message = format!(
            "connections that open at a rate offer `{}` {times:.0} times its rate (`{}`); a load of {OVERLOAD} times the \
             rate or more needs `allow_overload = true`",
            link.name, link.rate
        );
        self.error(&number.at, &number.path, message);
        false
    }
}
