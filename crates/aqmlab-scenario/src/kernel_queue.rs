//! Queues of a kernel (`kind = "tc"`): the live router hands its packets to a discipline that tc
//! sets up. The simulator does not support kernel queues.

use aqmlab_params::{Kind, Param, ParamError, Settings};
use aqmlab_qdisc::LinkContext;
use aqmlab_qdisc::registry::{Decides, Derive, Info, Maturity};

/// The `kind` of a kernel queue.
pub const TC_QUEUE: &str = "tc";
/// The parameter that contains the arguments for tc.
pub(crate) const TC_SPEC: &str = "spec";

/// The entry that describes this kind; it is in no catalogue, because nothing here implements the kind.
pub(crate) static TC_INFO: Info = Info {
    name: TC_QUEUE,
    title: "a kernel queue",
    summary: "a kernel queue discipline, which tc sets up behind a shaper; live only",
    version: 1,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: Decides::Both,
    params: PARAMS,
    presets: &[],
    derive: Derive::Alone(derive),
    samples: Vec::new,
};

static PARAMS: &[Param] = &[Param {
    name: TC_SPEC,
    source: "tc(8)",
    help: "the discipline and its options, written as they would follow `tc qdisc add dev DEV root`",
    ..Param::of(Kind::Text)
}];

fn derive(all: &mut Settings, _link: &LinkContext) -> Result<(), ParamError> {
    let spec = all.text(TC_SPEC)?;
    let words: Vec<&str> = spec_words(&spec).collect();
    if let Some((name, lacks, instead)) = words.first().and_then(|word| of_several_lines(word)) {
        let message = format!("`{name}` in one specification has {lacks}; write {instead}");
        return Err(ParamError::new(TC_SPEC, message));
    }
    let named = words.first().is_some_and(|word| is_discipline(word));
    if named && words[0] != "tc" && !words.iter().any(|word| OF_PLACES.contains(word)) {
        return Ok(());
    }
    let message = "write the discipline first, then its options: `red limit 400000 min 30000 max 90000 avpkt 1500`; \
                   aqmlab adds `tc qdisc add`, the device, `parent` and `handle`";
    Err(ParamError::new(TC_SPEC, message))
}

/// Returns what a discipline lacks that tc sets up in several lines, if this is one, and what does what is meant.
fn of_several_lines(word: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    SEVERAL_LINES.iter().find(|(name, ..)| *name == word)
}

const SEVERAL_LINES: [(&str, &str, &str); 5] = [
    (
        "htb",
        "no classes, so Linux sends all packets unshaped",
        "`kind = \"htb\"`, or a shaper of one line such as `tbf rate 8mbit burst 5000 latency 50ms`",
    ),
    (
        "gred",
        "no virtual queues, so no packet meets RED",
        "`kind = \"gred\"`, or a discipline of one line such as `red`",
    ),
    (
        "drr",
        "no classes, so Linux drops all packets",
        "`kind = \"classes\"` with scheduler `drr`, or `ets quanta 3000 1500`",
    ),
    (
        "qfq",
        "no classes, so Linux drops all packets",
        "`kind = \"classes\"` with scheduler `drr`, or `ets quanta 3000 1500`",
    ),
    (
        "hfsc",
        "no classes, so Linux drops all packets",
        "`kind = \"htb\"`, or a shaper of one line such as `tbf rate 8mbit burst 5000 latency 50ms`",
    ),
];

/// Iterates over the words of the arguments for tc.
pub fn spec_words(spec: &str) -> impl Iterator<Item = &str> {
    spec.split_whitespace()
}

/// Words that tell tc where to attach a queue. They are refused because the link determines where
/// its queue is attached.
const OF_PLACES: [&str; 5] = ["dev", "parent", "handle", "root", "ingress"];

fn is_discipline(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
