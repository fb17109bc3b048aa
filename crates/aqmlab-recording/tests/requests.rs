//! Requests in a recording: which requests count, their distributions, the sample, and rows that are written
//! in batches.

use std::io;
use std::path::Path;

use aqmlab_random::Stream;
use aqmlab_recording::{
    ColumnData, Digest, Ending, Exchange, Place, RecordingError, RequestRecorder, RequestSettings, SizeBands,
    Table, TableFile, TableWriter, schema,
};
use aqmlab_traffic::Identity;
use aqmlab_units::{Bytes, Instant, Span};

const T0: Instant = Instant::from_ns(1_000_000_000);
const T1: Instant = Instant::from_ns(9_000_000_000);

fn settings(seed: u64, sample: usize) -> RequestSettings {
    let bands = SizeBands::by_factor(Bytes::new(1000), 10, 4).expect("bands");
    let classes = vec![None, Some("web".to_owned()), Some("api".to_owned())];
    RequestSettings { seed, t0: T0, fetches_pages: vec![false; classes.len()], classes, bands, sample }
}

fn recorder(sample: usize) -> RequestRecorder {
    RequestRecorder::new(settings(1, sample), None)
}

/// Returns an exchange of user `n` of the class `web` that began at `start_ns`.
fn exchange(n: u32, start_ns: u64, response: u64) -> Exchange {
    Exchange {
        class: 1,
        of: Identity::first_of(n),
        number: 0,
        opens_connection: true,
        start: Instant::from_ns(start_ns),
        request: Bytes::new(300),
        response: Bytes::new(response),
    }
}

fn numbers(table: &Table, column: &str) -> Vec<u64> {
    match table.column(column) {
        Some(ColumnData::U64(values)) => values.clone(),
        other => panic!("`{column}` is {other:?}"),
    }
}

fn texts(table: &Table, column: &str) -> Vec<String> {
    match table.column(column) {
        Some(ColumnData::Str(values)) => values.iter().map(str::to_owned).collect(),
        other => panic!("`{column}` is {other:?}"),
    }
}

#[test]
fn what_ends_in_the_measured_interval_counts_whenever_it_began() {
    let mut recorder = recorder(10);
    let (t0, t1) = (T0.as_ns(), T1.as_ns());
    // An exchange that ends at t0 belongs to the warm-up. One that ends a nanosecond later is measured, with
    // its whole duration.
    for (user, at, how) in [
        (0, t0, Ending::Completed),
        (1, t0 + 1, Ending::Completed),
        (2, t1, Ending::Completed),
        (3, t0, Ending::Failed),
        (4, t0 + 1, Ending::Failed),
    ] {
        let at = Instant::from_ns(at);
        recorder.ended(&exchange(user, 500, 999), how, at);
    }
    recorder.ended(&exchange(5, t1 - 70, 999), Ending::Censored, T1);
    recorder.ended(&exchange(6, 500, 1000), Ending::Censored, T1);
    let [summary, histograms, sample] = recorder.finish().expect("nothing is written").tables;
    // Four bands for each of the two classes that make requests.
    assert_eq!(texts(&summary, "class"), [["web"; 4], ["api"; 4]].concat());
    assert_eq!(numbers(&summary, "response_low_bytes")[..4], [0, 1000, 10_000, 100_000]);
    let highs = ColumnData::NullableU64([Some(999), Some(9999), Some(99_999), None].repeat(2));
    assert_eq!(summary.column("response_high_bytes"), Some(&highs));
    assert_eq!(numbers(&summary, "completed"), [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&summary, "failed"), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&summary, "censored"), [1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&summary, "request_bytes")[..2], [600, 0]);
    assert_eq!(numbers(&summary, "response_bytes")[..2], [2 * 999, 0]);
    let Some(ColumnData::U128(sums)) = summary.column("response_time_sum_ns") else { panic!("no sums") };
    assert_eq!(sums[0], u128::from(t0 + 1 - 500 + t1 - 500));
    let Some(ColumnData::NullableU64(most)) = summary.column("response_time_max_ns") else {
        panic!("no maxima")
    };
    assert_eq!(most[..2], [Some(t1 - 500), None]);
    assert_eq!(
        texts(&histograms, "kind"),
        [
            ["response_time_ns", "response_time_ns", "waited_ns", "failed_ns", "entered_ns"].as_slice(),
            &["waited_ns", "entered_ns"]
        ]
        .concat(),
        "two completed, one censored and one failed of the first band, one censored of the second"
    );
    assert_eq!((numbers(&histograms, "low")[2], numbers(&histograms, "high")[2]), (70, 70));
    assert_eq!(numbers(&histograms, "response_low_bytes"), [0, 0, 0, 0, 0, 1000, 1000]);
    // Three exchanges of the first band and one of the second began before t0, and were as old at t0.
    assert_eq!(numbers(&histograms, "weight"), [1, 1, 1, 1, 3, 1, 1]);
    let (lows, highs) = (numbers(&histograms, "low"), numbers(&histograms, "high"));
    for (bin, age) in [(3, t0 + 1 - 500), (4, t0 - 500), (6, t0 - 500)] {
        assert!((lows[bin]..=highs[bin]).contains(&age), "{age} in {}..={}", lows[bin], highs[bin]);
    }
    assert_eq!(numbers(&sample, "user"), [1, 2], "a sample contains completed requests");
    assert_eq!(numbers(&sample, "response_time_ns"), [t0 + 1 - 500, t1 - 500]);
}

#[test]
fn bands_are_adjacent_and_hold_their_sizes() {
    let bands = SizeBands::by_factor(Bytes::new(700), 3, 6).expect("bands");
    let mut next = Some(Bytes::ZERO);
    for band in 0..bands.count() {
        let (low, high) = bands.edges(band);
        assert_eq!(Some(low), next, "band {band}");
        assert_eq!(bands.of(low), band);
        if let Some(high) = high {
            assert_eq!(bands.of(high), band);
        }
        next = high.map(|high| Bytes::new(high.get() + 1));
    }
    assert_eq!((next, bands.count()), (None, 6));
    assert_eq!(bands.edges(5).0, Bytes::new(700 * 81));
    assert_eq!(bands.of(Bytes::new(u64::MAX)), 5);
    let wrong = [(0, 10, 3), (1000, 1, 3), (1000, 10, 0), (1 << 62, 2, 4), (1000, 10, 40)];
    for (first, factor, count) in wrong {
        assert_eq!(SizeBands::by_factor(Bytes::new(first), factor, count), None, "{first} {factor} {count}");
    }
    assert_eq!(SizeBands::by_factor(Bytes::new(1000), 10, 1).map(|bands| bands.count()), Some(1));
}

/// Returns the bin in which the value of rank `rank` (from 1) lies.
fn bin_of_rank(bins: &[(u64, u64, u64)], rank: u64) -> (u64, u64) {
    let mut sum = 0;
    let found = bins.iter().find(|&&(_, _, weight)| {
        sum += weight;
        sum >= rank
    });
    found.map(|&(low, high, _)| (low, high)).expect("there are enough bands")
}

/// Exponentially distributed times over seven decades: the bin of each quantile is narrow and contains the
/// value found by sorting.
#[test]
fn quantiles_of_each_band_are_those_of_the_sorted_times() {
    let mut draws = Stream::new(7, "test/times");
    let mut exact: [Vec<u64>; 4] = Default::default();
    let mut recorder = recorder(0);
    for n in 0..40_000 {
        let size = 10u64.pow(1 + draws.below(5) as u32) * (1 + draws.below(9));
        let scale = 10f64.powi(3 + draws.below(7) as i32);
        let took = Span::ns((draws.exponential() * scale) as u64);
        let at = T1;
        let start = Instant::from_ns(at.as_ns().saturating_sub(took.as_ns()));
        recorder.ended(&exchange(n, start.as_ns(), size), Ending::Completed, at);
        let band = (0..3).take_while(|&band| size >= 1000 * 10u64.pow(band)).count();
        exact[band].push(at.as_ns() - start.as_ns());
    }
    let [_, histograms, _] = recorder.finish().expect("nothing is written").tables;
    let band_of: Vec<_> = numbers(&histograms, "response_low_bytes");
    let (low, high, weight) =
        (numbers(&histograms, "low"), numbers(&histograms, "high"), numbers(&histograms, "weight"));
    for (band, start) in [0, 1000, 10_000, 100_000].into_iter().enumerate() {
        let rows = (0..band_of.len()).filter(|&row| band_of[row] == start);
        let bins: Vec<_> = rows.map(|row| (low[row], high[row], weight[row])).collect();
        let sorted = &mut exact[band];
        sorted.sort_unstable();
        assert!(sorted.len() > 4000, "band {band} has only {}", sorted.len());
        for percent in [1, 10, 50, 90, 99, 100] {
            let rank = (sorted.len() as u64 * percent).div_ceil(100);
            let truth = sorted[rank as usize - 1];
            let (low, high) = bin_of_rank(&bins, rank);
            assert!((low..=high).contains(&truth), "band {band}, {percent} %: {truth} not in {low}..={high}");
            assert!((high - low) as f64 <= 0.01 * low as f64, "{low}..={high}");
        }
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), sorted.len() as u64);
    }
}

/// A sample keeps 30 of 300 exchanges; over 4000 seeds, all 300 are chosen equally often. The seeds are
/// fixed, so the test does not depend on chance. If all exchanges are equally likely, the statistic has a
/// chi-square distribution with 299 degrees of freedom: mean 299, standard deviation 24.5.
#[test]
fn a_sample_is_uniform_over_exchanges() {
    const OFFERED: usize = 300;
    const KEPT: usize = 30;
    const SEEDS: u64 = 4000;
    // Ten users with three connections of ten exchanges each.
    let of = |n: usize| Exchange {
        of: Identity { user: (n % 10) as u32, serial: (n / 10 % 3) as u32 },
        number: (n / 30) as u32,
        ..exchange(0, 10 + n as u64, 50)
    };
    let mut hits = [0u64; OFFERED];
    for seed in 0..SEEDS {
        let mut recorder = RequestRecorder::new(settings(seed, KEPT), None);
        for n in 0..OFFERED {
            recorder.ended(&of(n), Ending::Completed, T1);
        }
        let [_, _, sample] = recorder.finish().expect("nothing is written").tables;
        assert_eq!(sample.rows(), KEPT);
        for start in numbers(&sample, "start_ns") {
            hits[start as usize - 10] += 1;
        }
    }
    let share = KEPT as f64 / OFFERED as f64;
    let expected = SEEDS as f64 * share;
    let squares: f64 = hits.iter().map(|&hits| (hits as f64 - expected).powi(2)).sum();
    // Without replacement, a count has the variance `expected * (1 - share)`, and the counts of a seed add up
    // to 30.
    let chi_square = squares / (expected * (1.0 - share)) * (OFFERED as f64 - 1.0) / OFFERED as f64;
    assert!((299.0 - 4.0 * 24.5..299.0 + 4.0 * 24.5).contains(&chi_square), "{chi_square}");
}

#[test]
fn the_order_in_which_ends_are_reported_changes_nothing() {
    let ends: Vec<_> = (0..500u32).map(|n| (exchange(n % 50, u64::from(n), 100), T1)).collect();
    let tables = |ends: &mut dyn Iterator<Item = &(Exchange, Instant)>| {
        let mut recorder = recorder(20);
        for (exchange, at) in ends {
            // Each exchange of a user is on a connection of its own.
            let serial = (exchange.start.as_ns() / 50) as u32;
            let of = Identity { serial, ..exchange.of };
            recorder.ended(&Exchange { of, ..*exchange }, Ending::Completed, *at);
        }
        recorder.finish().expect("nothing is written")
    };
    assert!(tables(&mut ends.iter()) == tables(&mut ends.iter().rev()));
}

/// Number of reported exchanges: a multiple of 64, plus one that is censored.
const REPORTED: u32 = 64 * 1600 + 1;

/// Three batches are filled during the run. Reports may arrive up to 63 us ahead of the host's clock, and
/// therefore out of order.
fn report_many(recorder: &mut RequestRecorder, ahead: bool) {
    for n in 0..REPORTED - 1 {
        let at = Instant::from_ns(T0.as_ns() + 1 + 1000 * u64::from(if ahead { n ^ 63 } else { n }));
        let settled = if ahead { Instant::from_ns(at.as_ns().saturating_sub(63_000)) } else { at };
        let how = if at.as_ns().is_multiple_of(7) { Ending::Failed } else { Ending::Completed };
        let user = (at.as_ns() / 1000 % 1_000_000) as u32;
        recorder.ended(&exchange(user, at.as_ns() - 1234, 100), how, at);
        recorder.settle(settled);
    }
    recorder.ended(&exchange(0, 10, 100), Ending::Censored, T1);
}

#[test]
fn rows_are_written_in_the_order_of_their_ends() {
    let records = [false, true].map(|ahead| {
        let mut recorder =
            RequestRecorder::new(settings(1, 100), Some(TableWriter::in_memory(&schema::REQUESTS)));
        report_many(&mut recorder, ahead);
        assert!(recorder.memory_bytes() < 8 << 20, "{} bytes", recorder.memory_bytes());
        recorder.finish().expect("written")
    });
    let [in_order, ahead] = records;
    assert!(in_order.tables == ahead.tables, "sums, bins and the sample depend on the order");
    let (rows, of_ahead) = (in_order.rows.expect("asked for"), ahead.rows.expect("asked for"));
    assert_eq!((rows.rows, rows.digest), (of_ahead.rows, of_ahead.digest));
    assert_eq!(rows.rows, u64::from(REPORTED));
    let outcomes = ["completed", "failed", "censored"].map(|name| numbers(&ahead.tables[0], name));
    assert_eq!(outcomes.iter().flatten().sum::<u64>(), rows.rows, "every row has one outcome");
    let Place::Memory(batches) = of_ahead.place else { panic!("the rows are in memory") };
    assert!(batches.len() >= 3, "{} batches", batches.len());
    let ends: Vec<u64> = batches.iter().flat_map(|batch| numbers(batch, "end_ns")).collect();
    assert_eq!(ends.len(), REPORTED as usize);
    assert!(ends.is_sorted());
    assert_eq!(ends.last(), Some(&T1.as_ns()));
}

/// Accepts one batch, like a disk that becomes full.
struct Small(bool);

impl TableFile for Small {
    fn append(&mut self, _batch: &Table) -> Result<(), RecordingError> {
        if std::mem::replace(&mut self.0, true) {
            return Err(RecordingError::io("write", Path::new("x"))(io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Digest, RecordingError> {
        unreachable!("nothing is written after an error")
    }
}

#[test]
fn a_disk_that_becomes_full_is_told_and_rows_are_held_no_longer() {
    let file = TableWriter::new(&schema::REQUESTS, Box::new(Small(false)));
    let mut recorder = RequestRecorder::new(settings(1, 1), Some(file));
    report_many(&mut recorder, false);
    let failure = recorder.failure().map(ToString::to_string);
    assert_eq!(failure.as_deref(), Some("cannot write `x`: the disk is full"));
    assert!(recorder.memory_bytes() < 1 << 20, "{} bytes", recorder.memory_bytes());
    let error = recorder.finish().expect_err("there are rows missing");
    assert!(error.is_host_limit());
}
