//! The test kit for disciplines: random sequences of calls against the contract of [`crate::Qdisc`].
//!
//! [`check_entry`] is all that a new discipline's test needs:
//!
//! ```
//! use aqmlab_qdisc::contract::{LINK, check_entry};
//! use aqmlab_qdisc::Registry;
//!
//! let registry = Registry::builtin();
//! let entry = registry.find("red").unwrap();
//! for seed in 0..20 {
//!     check_entry(entry, &Default::default(), &LINK, seed).unwrap();
//! }
//! ```
//!
//! Each script runs four times: twice as it is (same calls, same outcome), once with `observe` called at
//! many instants, once with every pause cut into pieces, so that a law which catches up lazily is compared
//! with one that is woken often. A script that fails is shortened; the failure names the item of the
//! contract, the seed and the calls that show it.

mod checks;
mod packet;
mod run;
mod script;
mod variants;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use aqmlab_params::Settings;
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Rate, Span};

use crate::{Entry, LinkContext, Qdisc, resolve};
pub use checks::{Checks, Item, Subject, Violation};
pub use packet::TestPacket;
use run::{Disturbance, run};
pub use script::{Operation, script, shrink};
pub use variants::{Variant, presets, sample, words};

/// A breach with all that is needed to see it again.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The discipline.
    pub name: &'static str,
    /// The seed of script and draws.
    pub seed: u64,
    /// The breach that the shortened script shows.
    pub violation: Violation,
    /// The shortened script.
    pub script: Vec<Operation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} breaks {}", self.name, self.violation)?;
        writeln!(f, "replay: aqmlab_qdisc::contract::check_entry(entry, settings, link, {})", self.seed)?;
        write!(f, "shortened to {} operations: {:?}", self.script.len(), self.script)
    }
}

impl core::error::Error for Failure {}

/// A link to test behind: 10 Mbit/s, 1500-byte packets, a base round-trip time of 80 ms.
pub const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(10),
    delay: Span::ms(5),
    rtt: Some(Span::ms(80)),
    flows: Some(20),
    mean_packet: Bytes::new(1500),
};

/// Runs `script` against fresh instances of `subject` and checks the whole contract. Returns how often each item
/// was checked.
///
/// # Errors
/// The first breach.
pub fn check(subject: &Subject<'_>, script: &[Operation]) -> Result<Checks, Violation> {
    let (plain, mut checks) = run(subject, script, Disturbance::None)?;
    for (how, item, told) in [
        (Disturbance::None, Item::Replay, "a second run of the same calls differs"),
        (Disturbance::Observed, Item::CatchingUp, "calling observe changes the outcome"),
        (Disturbance::Poked, Item::CatchingUp, "more calls during a pause change the outcome"),
    ] {
        let (other, of_run) = run(subject, script, how)?;
        checks = checks.plus(of_run);
        checks.count(item, (plain.law.len() + plain.fates.len()) as u64);
        let same = plain.law.iter().zip(&other.law).take_while(|(a, b)| a == b).count();
        if same < plain.law.len() {
            let what =
                format!("{told}: law {:?} against {:?}", values(&plain.law[same]), values(&other.law[same]));
            return Err(Violation { item, operation: same, what });
        }
        if let Some((a, b)) = plain.fates.iter().zip(&other.fates).find(|(a, b)| a != b) {
            return Err(Violation {
                item,
                operation: script.len(),
                what: format!("{told}: {a:?} against {b:?}"),
            });
        }
        if plain.fates.len() != other.fates.len() {
            let what = format!("{told}: {} fates against {}", plain.fates.len(), other.fates.len());
            return Err(Violation { item, operation: script.len(), what });
        }
    }
    Ok(checks)
}

/// Resolves `given`, builds the discipline and checks the contract with the script and the draws of `seed`.
/// Returns how often each item was checked.
///
/// # Errors
/// The first breach, on a shortened script; a parameter that is wrong is a breach of item 7.
pub fn check_entry(
    entry: &Entry<TestPacket>,
    given: &Settings,
    link: &LinkContext,
    seed: u64,
) -> Result<Checks, Failure> {
    let name = entry.info.name;
    let refused = |what: String| Failure {
        name,
        seed,
        violation: Violation { item: Item::Replay, operation: 0, what },
        script: Vec::new(),
    };
    let effective = (entry.info.resolve)(given, link).map_err(|e| refused(e.message))?;
    let build = || (entry.build)(&effective, link, Stream::new(seed, "contract/draws"));
    if let Err(e) = build() {
        return Err(refused(e.message));
    }
    let make = || -> Box<dyn Qdisc<TestPacket>> { Box::new(build().expect("built a moment ago")) };
    let subject =
        Subject { make: &make, limit: resolve::limit(&effective).ok(), shaper: false, rate: link.rate };
    let script = script(seed);
    let first = match check(&subject, &script) {
        Ok(checks) => return Ok(checks),
        Err(first) => first,
    };
    let fails = |s: &[Operation]| matches!(check(&subject, s), Err(v) if v.item == first.item);
    let script = shrink(&script, fails);
    let violation = check(&subject, &script).expect_err("a shortened script fails like the whole one");
    Err(Failure { name, seed, violation, script })
}

fn values(bits: &[(&'static str, u64)]) -> Vec<(&'static str, f64)> {
    bits.iter().map(|&(name, value)| (name, f64::from_bits(value))).collect()
}
