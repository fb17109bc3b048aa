//! Scenario texts of small graphs in which packets meet at chosen instants.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A link: from, to, rate, delay, and how many packets may wait in front of it (`None` is the
/// default buffer).
pub type Link<'a> = (&'a str, &'a str, &'a str, &'a str, Option<u32>);

/// Packets of 1000 B at equal intervals: name, from, to, rate, and when the first packet is sent.
pub type Stream<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// Returns the scenario text of a graph without access links. Links and streams have the same order
/// in the plan as here.
pub fn graph(duration: &str, links: &[Link<'_>], streams: &[Stream<'_>]) -> String {
    let mut text = format!("duration = {duration:?}\n[topology]\nkind = \"graph\"\naccess_rate = \"none\"\n");
    let nodes: BTreeSet<&str> = links.iter().flat_map(|link| [link.0, link.1]).collect();
    for node in nodes {
        writeln!(text, "[[node]]\nname = {node:?}").expect("a String accepts any text");
    }
    for (from, to, rate, delay, room) in links {
        let queue = room.map(|n| format!("queue = {{ kind = \"droptail\", limit = \"{n}p\" }}\n"));
        write!(
            text,
            "[[link]]\nfrom = {from:?}\nto = {to:?}\nrate = {rate:?}\ndelay = {delay:?}\n{}",
            queue.unwrap_or_default()
        )
        .expect("a String accepts any text");
    }
    for (name, from, to, rate, start) in streams {
        write!(
            text,
            "[[traffic]]\nname = {name:?}\nkind = \"cbr\"\nfrom = {from:?}\nto = {to:?}\nrate = {rate:?}\n\
             size = \"1000B\"\nstart = {start:?}\n"
        )
        .expect("a String accepts any text");
    }
    text
}
