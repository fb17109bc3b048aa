//! Shortest paths through a graph of directed links.

use std::collections::BTreeSet;

use aqmlab_units::Span;

use crate::topology::LinkDraft;

/// Returns the links from node `from` to node `to`, in order, or `None` if there is no path.
/// Prefers the path with the fewest hops; among equals, the one with the least propagation delay;
/// among equals again, the one whose links come first in the file.
pub(crate) fn shortest(links: &[LinkDraft<'_>], nodes: usize, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut best: Vec<Option<(u64, Span)>> = vec![None; nodes];
    let mut last: Vec<Option<usize>> = vec![None; nodes];
    best[from] = Some((0, Span::ZERO));
    let mut open = BTreeSet::from([(0, Span::ZERO, from)]);
    while let Some((hops, delay, node)) = open.pop_first() {
        if node == to {
            break;
        }
        for (i, link) in links.iter().enumerate().filter(|(_, l)| l.from == node) {
            // A delay is at most an hour and a path has at most a few thousand links, so the sum
            // fits.
            let cost = (hops + 1, delay + link.delay);
            if best[link.to].is_none_or(|known| cost < known) {
                if let Some((h, d)) = best[link.to].replace(cost) {
                    open.remove(&(h, d, link.to));
                }
                last[link.to] = Some(i);
                open.insert((cost.0, cost.1, link.to));
            }
        }
    }
    let mut path = Vec::new();
    let mut node = to;
    while node != from {
        let link = last[node]?;
        path.push(link);
        node = links[link].from;
    }
    path.reverse();
    Some(path)
}

#[cfg(test)]
mod tests {
    use aqmlab_units::{Bytes, Rate};

    use super::*;
    use crate::plan::Faults;

    fn links(ends: &[(usize, usize, u64)]) -> Vec<LinkDraft<'static>> {
        let link = |&(from, to, ms)| LinkDraft {
            name: format!("{from}-{to}"),
            from,
            to,
            changes: None,
            rate: Rate::mbit(1),
            delay: Span::ms(ms),
            overhead: Bytes::ZERO,
            autorate: None,
            faults: Faults::default(),
            queue: None,
            queue_path: String::new(),
            at: 0..0,
        };
        ends.iter().map(link).collect()
    }

    #[test]
    fn fewest_hops_then_least_delay_then_the_first_of_the_file() {
        let net = links(&[(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 0), (0, 3, 50), (0, 3, 50)]);
        assert_eq!(shortest(&net, 4, 0, 3), Some(vec![4]), "one hop beats two, the first of equals wins");
        assert_eq!(shortest(&net[..4], 4, 0, 3), Some(vec![2, 3]), "the faster of two ways of two hops");
        assert_eq!(shortest(&net, 4, 3, 0), None, "links have a direction");
        assert_eq!(shortest(&net, 4, 2, 2), Some(vec![]));
    }

    #[test]
    fn a_loop_does_not_trap_it() {
        let net = links(&[(0, 1, 0), (1, 0, 0), (1, 2, 0)]);
        assert_eq!(shortest(&net, 3, 0, 2), Some(vec![0, 2]));
    }
}
