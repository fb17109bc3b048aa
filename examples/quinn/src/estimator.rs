//! Round-trip times as quinn-proto's controllers take them.
//!
//! `quinn_proto::RttEstimator` has no public constructor. It consists of four durations, one of them optional, so any four
//! durations are one. Which of them is the smoothed and which the minimum is found with its public methods, and nothing is
//! run if the result is not as expected.

use std::mem::{size_of, transmute_copy};
use std::time::Duration;

use aqmlab_kit::RoundTrips;
use aqmlab_units::Span;
use quinn_proto::RttEstimator;

const _: () = assert!(size_of::<RttEstimator>() == size_of::<[Duration; 4]>());

/// The places of the latest, smoothed and minimum round-trip times in an estimator.
#[derive(Clone, Copy)]
pub struct Estimators {
    latest: usize,
    smoothed: usize,
    least: usize,
}

fn estimator(durations: [Duration; 4]) -> RttEstimator {
    // Four durations fill the estimator, and the niche of an optional duration is no valid duration.
    unsafe { transmute_copy(&durations) }
}

impl Estimators {
    /// Finds the places.
    ///
    /// # Panics
    /// If the estimator does not consist of four durations.
    pub fn find() -> Self {
        let place = |read: &dyn Fn(&RttEstimator) -> Duration| {
            let marked = |at: usize| {
                let mut durations = [1, 1, 1, 1].map(Duration::from_secs);
                durations[at] = Duration::from_secs(9);
                read(&estimator(durations)) == Duration::from_secs(9)
            };
            (0..4).filter(|at| marked(*at)).collect::<Vec<_>>()
        };
        let (smoothed, least) = (place(&RttEstimator::get), place(&RttEstimator::min));
        let conservative = place(&RttEstimator::conservative);
        let latest: Vec<usize> = conservative.into_iter().filter(|at| !smoothed.contains(at)).collect();
        match (&latest[..], &smoothed[..], &least[..]) {
            (&[latest], &[smoothed], &[least]) => Estimators { latest, smoothed, least },
            _ => panic!("this version of quinn-proto has another estimator"),
        }
    }

    /// Returns an estimator with these round-trip times.
    pub fn of(self, rtt: &RoundTrips) -> RttEstimator {
        let duration = |span: Span| Duration::from_nanos(span.as_ns());
        let mut durations = [duration(rtt.variance); 4];
        durations[self.latest] = duration(rtt.latest);
        durations[self.smoothed] = duration(rtt.smoothed);
        durations[self.least] = duration(rtt.least);
        estimator(durations)
    }
}
