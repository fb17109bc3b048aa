//! Runs many scripts of the contract kit on a few threads, in rounds: all trials with one seed,
//! then all with the next.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;

use aqmlab_qdisc::Registry;
use aqmlab_qdisc::contract::{Checks, Failure, LINK, TestPacket, Variant, check_entry};

use crate::pool::{TICK, panic_text};

/// A discipline with the settings under test.
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    pub(crate) variant: Variant,
}

/// The finding of one script.
pub(crate) enum Finding {
    /// The contract is violated.
    Breach(Failure),
    /// The discipline panicked, with this text.
    Panic(String),
}

/// The results of all scripts of a trial.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) scripts: u64,
    pub(crate) checks: Checks,
    /// The smallest seed that led to a finding, and this finding.
    pub(crate) finding: Option<(u64, Finding)>,
}

/// The progress of the scripts.
pub(crate) struct Progress {
    pub(crate) done: u64,
    /// `None` if the scripts run until the caller stops them.
    pub(crate) total: Option<u64>,
    pub(crate) findings: u64,
}

/// The scripts to run.
pub(crate) struct Lot<'t> {
    pub(crate) trials: &'t [Trial],
    pub(crate) first_seed: u64,
    /// Number of scripts per trial; `None` if they run until the caller stops them.
    pub(crate) seeds: Option<u64>,
}

impl Lot<'_> {
    fn total(&self) -> Option<u64> {
        self.seeds.map(|seeds| seeds.saturating_mul(self.trials.len() as u64))
    }
}

/// Runs all scripts on `workers` threads; a trial ends with its first finding. `tick` is called about ten
/// times per second; when it returns `false`, scripts in progress are finished and no others are
/// started.
///
/// The finding of a trial does not depend on the number of threads: its seeds are started in
/// ascending order, and the finding with the smallest seed is kept.
pub(crate) fn run_all(lot: &Lot<'_>, workers: usize, mut tick: impl FnMut(&Progress) -> bool) -> Vec<Tried> {
    let bench = Bench {
        lot,
        tried: lot.trials.iter().map(|_| Mutex::default()).collect(),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        findings: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    // Nothing is sent: the channel closes when the last worker ends.
    let (alive, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let (bench, alive) = (&bench, alive.clone());
            scope.spawn(move || {
                bench.work();
                drop(alive);
            });
        }
        drop(alive);
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if !tick(&bench.progress()) {
                bench.stop.store(true, Ordering::Relaxed);
            }
        }
    });
    tick(&bench.progress());
    bench.tried.into_iter().map(|t| t.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// State that the workers share.
struct Bench<'t> {
    lot: &'t Lot<'t>,
    tried: Vec<Mutex<Tried>>,
    /// Number of the next script, over all seeds and trials.
    next: AtomicU64,
    done: AtomicU64,
    findings: AtomicU64,
    stop: AtomicBool,
}

impl Bench<'_> {
    fn work(&self) {
        let registry = Registry::builtin();
        let trials = self.lot.trials.len() as u64;
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.lot.total().is_some_and(|total| number >= total) || trials == 0 {
                return;
            }
            let seed = self.lot.first_seed.wrapping_add(number / trials);
            self.try_one(&registry, (number % trials) as usize, seed);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn try_one(&self, registry: &Registry<TestPacket>, index: usize, seed: u64) {
        if self.with(index, |tried| tried.finding.is_some()) {
            return;
        }
        let trial = &self.lot.trials[index];
        let entry = registry.find(trial.name).expect("trials are made of registered disciplines");
        // Data that a panic leaves inconsistent is dropped with the instance.
        let result =
            catch_unwind(AssertUnwindSafe(|| check_entry(entry, &trial.variant.settings, &LINK, seed)));
        let finding = match result {
            Ok(Ok(checks)) => {
                return self.with(index, |tried| {
                    tried.scripts += 1;
                    tried.checks = tried.checks.plus(checks);
                });
            }
            Ok(Err(failure)) => Finding::Breach(failure),
            Err(panic) => Finding::Panic(panic_text(panic.as_ref())),
        };
        self.with(index, |tried| {
            tried.scripts += 1;
            match &tried.finding {
                Some((least, _)) if *least < seed => {}
                before => {
                    self.findings.fetch_add(u64::from(before.is_none()), Ordering::Relaxed);
                    tried.finding = Some((seed, finding));
                }
            }
        });
    }

    fn with<R>(&self, index: usize, act: impl FnOnce(&mut Tried) -> R) -> R {
        act(&mut self.tried[index].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn progress(&self) -> Progress {
        Progress {
            done: self.done.load(Ordering::Relaxed),
            total: self.lot.total(),
            findings: self.findings.load(Ordering::Relaxed),
        }
    }
}
