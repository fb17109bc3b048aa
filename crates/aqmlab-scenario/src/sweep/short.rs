//! Axes and their short names: the shortest suffix of an axis's path that identifies the axis.

use crate::names::RESERVED;

/// One swept dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The name of the axis: the key's dotted path, the name of a `[[sweep.zip]]`, or `"case"`.
    pub name: String,
    /// The shortest suffix of the path that no other axis shares; the name itself if it is not a path.
    pub short: String,
    /// The dotted paths that the axis sets.
    pub keys: Vec<String>,
    /// One label per value, all different.
    pub labels: Vec<String>,
}

/// Returns the short name of each axis.
pub(crate) fn shorts(axes: &[&Axis]) -> Vec<String> {
    axes.iter()
        .map(|axis| {
            let free = |tail: &&str| {
                let taken = |other: &&Axis| other.name != axis.name && ends_in(&other.name, tail);
                !RESERVED.contains(tail) && !axes.iter().any(taken)
            };
            tails(&axis.name).find(free).unwrap_or(&axis.name).to_string()
        })
        .collect()
}

/// Returns the axes that `name` may mean: the one with this name, or all whose names end in it.
pub(crate) fn meant<'a>(name: &str, axes: &[&'a Axis]) -> Vec<&'a Axis> {
    match axes.iter().find(|axis| axis.name == name) {
        Some(axis) => vec![axis],
        None => axes.iter().copied().filter(|axis| ends_in(&axis.name, name)).collect(),
    }
}

fn ends_in(path: &str, tail: &str) -> bool {
    tails(path).any(|t| t == tail)
}

/// Iterates over the suffixes of a path, shortest first, such as `count`, `ftp.count` and
/// `traffic.ftp.count`.
fn tails(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('.').map(|(dot, _)| &path[dot + 1..]).chain(std::iter::once(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str) -> Axis {
        Axis { name: name.into(), short: String::new(), keys: Vec::new(), labels: Vec::new() }
    }

    #[test]
    fn the_shortest_end_that_no_other_axis_has() {
        let axes =
            ["topology.rate", "traffic.ftp.count", "traffic.web.count", "topology.queue", "rtt"].map(axis);
        let all: Vec<&Axis> = axes.iter().collect();
        assert_eq!(shorts(&all), ["rate", "ftp.count", "web.count", "topology.queue", "rtt"]);
        assert_eq!(meant("count", &all).len(), 2);
        assert_eq!(meant("ftp.count", &all)[0].name, "traffic.ftp.count");
        assert!(meant("ount", &all).is_empty());
    }

    #[test]
    fn a_name_stands_before_ends_of_paths() {
        let axes = ["traffic.ftp.count", "count"].map(axis);
        let all: Vec<&Axis> = axes.iter().collect();
        assert_eq!(shorts(&all), ["ftp.count", "count"]);
        assert_eq!(meant("count", &all)[0].name, "count");
    }
}
