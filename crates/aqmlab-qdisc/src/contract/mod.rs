//! The test kit for disciplines: random sequences of calls, checked against the contract of [`crate::Qdisc`].
//!
//! A new discipline's test needs only [`check_entry`]:
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
//! Each script runs four times: twice unchanged (same calls, same outcome), once with `observe` called at
//! many instants, and once with every pause cut into pieces. The last run thereby compares a law that catches
//! up lazily with one that is woken often. Packets also arrive exactly at the instants of updates. A failing
//! script is shortened; the failure names the violated item of the contract, the seed, and the calls that
//! lead to the violation.
//!
//! Two checks are separate functions: [`check_draws`] compares runs of a script that draw from different
//! streams, and [`check_work`] needs a clock, with which it times calls after long pauses. [`Variant::idle`]
//! names an action, dropping or marking, that a discipline should have taken but took in none of the scripts.

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

use crate::{Entry, LinkContext, Qdisc, Registry, resolve};
pub use checks::{Checks, Item, Subject, Violation};
pub use packet::TestPacket;
use run::{Disturbance, notified, run, time_after_pause, with_arrivals_at_updates};
pub use script::{Operation, script, shrink};
pub use variants::{Variant, presets, words};

/// A violation with everything that is needed to reproduce it.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The discipline.
    pub name: &'static str,
    /// The seed of the script and of the draws.
    pub seed: u64,
    /// The violation that the shortened script shows.
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

/// A link for tests: 10 Mbit/s, 1500-byte packets, a base round-trip time of 80 ms.
pub const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(10),
    delay: Span::ms(5),
    rtt: Some(Span::ms(80)),
    flows: Some(20),
    mean_packet: Bytes::new(1500),
};

/// Runs `script` against fresh instances of `subject` and checks the whole contract. Returns the
/// number of checks of each item.
///
/// # Errors
/// Returns the first violation.
pub fn check(subject: &Subject<'_>, script: &[Operation]) -> Result<Checks, Violation> {
    let (plain, mut checks) = run(subject, script, Disturbance::None)?;
    for (how, item, finding) in [
        (Disturbance::None, Item::Replay, "a second run of the same calls differs"),
        (Disturbance::Observed, Item::CatchingUp, "calling observe changes the outcome"),
        (Disturbance::Poked, Item::CatchingUp, "more calls during a pause change the outcome"),
    ] {
        let (other, of_run) = run(subject, script, how)?;
        checks = checks.plus(of_run);
        checks.count(item, (plain.law.len() + plain.fates.len()) as u64);
        let same = plain.law.iter().zip(&other.law).take_while(|(a, b)| a == b).count();
        if same < plain.law.len() {
            let what = format!(
                "{finding}: law {:?} against {:?}",
                values(&plain.law[same]),
                values(&other.law[same])
            );
            return Err(Violation { item, operation: same, what });
        }
        if let Some((a, b)) = plain.fates.iter().zip(&other.fates).find(|(a, b)| a != b) {
            return Err(Violation {
                item,
                operation: script.len(),
                what: format!("{finding}: {a:?} against {b:?}"),
            });
        }
        if plain.fates.len() != other.fates.len() {
            let what = format!("{finding}: {} fates against {}", plain.fates.len(), other.fates.len());
            return Err(Violation { item, operation: script.len(), what });
        }
    }
    Ok(checks)
}

/// Returns the script that `seed` determines, with arrivals at instants at which the subject's law changes by
/// itself.
pub fn script_for(subject: &Subject<'_>, seed: u64) -> Vec<Operation> {
    with_arrivals_at_updates(subject, &script(seed))
}

/// Number of runs that [`check_draws`] compares; the further a script proceeds, the fewer of them still share
/// a history.
const RUNS: u64 = 128;
const FEW: usize = 24;

/// Checks that each decision has a draw of its own (item 7). Runs `script` with many streams. In runs in
/// which all packets so far have met the same fates, the law is in the same state, so a packet's fate depends
/// only on its draw. If the law then drops or marks two consecutive packets in exactly the same
/// runs, one draw decided both. Returns the number of pairs that could be compared.
///
/// # Errors
/// Returns the first pair of packets with a common draw.
pub fn check_draws(subject: &Subject<'_>, script: &[Operation]) -> Result<u64, Violation> {
    let streams = (0..RUNS).map(|run| Stream::indexed(run, "contract/draws", subject.draws.at(0)));
    let mut runs = notified(subject, script, streams);
    let packets = runs.iter().map(Vec::len).min().unwrap_or(0);
    let (mut pairs, mut packet) = (0, 0);
    while packet + 1 < packets && runs.len() >= FEW {
        let in_how_many = |packet: usize| runs.iter().filter(|run| run[packet]).count();
        let mixed = |packet| (3..=runs.len() - 3).contains(&in_how_many(packet));
        if mixed(packet) && mixed(packet + 1) {
            pairs += 1;
            if runs.iter().all(|run| run[packet] == run[packet + 1]) {
                let what = format!(
                    "the law drops or marks either both or neither of packets {packet} and {} in each of {} runs \
                     with different draws: one draw decides both",
                    packet + 1,
                    runs.len()
                );
                return Err(Violation { item: Item::Replay, operation: 0, what });
            }
        }
        let fate = 2 * in_how_many(packet) > runs.len();
        runs.retain(|run| run[packet] == fate);
        packet += 1;
    }
    Ok(pairs)
}

/// Checks how long a call takes (item 6): after `script` and a pause, an arrival must take no longer if the
/// pause was thirty hours than if it was one hour. `clock` counts nanoseconds.
///
/// # Errors
/// If the arrival takes longer after the longer pause.
pub fn check_work(
    subject: &Subject<'_>,
    script: &[Operation],
    clock: &dyn Fn() -> u64,
) -> Result<(), Violation> {
    let after = |hours| time_after_pause(subject, script, Span::s(3600) * hours, clock);
    let (short, long) = (after(1), after(30));
    if long <= 8 * short + 50_000 {
        return Ok(());
    }
    let what = format!(
        "a call takes {short} ns after a pause of one hour and {long} ns after one of thirty: catching up takes one \
         step per update"
    );
    Err(Violation { item: Item::Bounded, operation: script.len(), what })
}

/// Resolves `given`, builds the discipline and checks the contract with the script and the draws that `seed`
/// determines. Returns the number of checks of each item.
///
/// # Errors
/// Returns the first violation, on a shortened script; a wrong parameter is a violation of item 7.
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
    let effective = entry.info.resolve(given, link).map_err(|e| refused(e.message))?;
    let draws = Stream::new(seed, "contract/draws");
    let registry = Registry::builtin();
    let build = |draws| (entry.build)(&effective, draws, &registry);
    let shaper = match build(draws) {
        Ok(queue) => queue.holds_back(),
        Err(e) => return Err(refused(e.message)),
    };
    let make = |draws| -> Box<dyn Qdisc<TestPacket>> { Box::new(build(draws).expect("built a moment ago")) };
    let limit = resolve::limit(&effective).ok();
    let subject = Subject { make: &make, draws, limit, shaper, rate: link.rate };
    let script = script_for(&subject, seed);
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
