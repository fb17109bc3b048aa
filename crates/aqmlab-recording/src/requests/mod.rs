//! Requests: the waiting times of clients. This code is the same for every host.
//!
//! An exchange is a request and its response. Its response time lasts from the instant at which the
//! client passes the request to TCP (including the set-up of the connection if the exchange opens
//! it) to the arrival of the response's last byte. Exchanges are measured if they end within the
//! measured interval `(t0, t1]`, regardless of when they began. An exchange that has not ended by
//! `t1` is *censored*: it is recorded with its waiting time so far. An exchange that began before `t0` is
//! also recorded with its age at `t0`, because those that began as early and ended sooner are not recorded.
//! `docs/recording.md` describes the tables.
//!
//! Pages are recorded in the same way, in their own tables. A page counts as one exchange, from the opening
//! of its first connection to the last byte of its last object. A page's band is determined by its size in
//! bytes.
//!
//! A host reports the end of each exchange once. It may report ahead of its clock, and in any order, because
//! histograms, sums and the sample do not depend on the order, and rows are written in the order in which the
//! exchanges ended. Data that no server answers is not a request.

mod exchange;
mod log;
mod sample;

use aqmlab_qdisc::Histogram;
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

pub use exchange::{Ending, Exchange};
use log::Log;
use sample::{Sample, SampledRequest};

use crate::error::RecordingError;
use crate::schema::{self, Schema};
use crate::streamed::{StreamedTable, TableWriter};
use crate::table::Table;

/// Bands of sizes whose upper limits grow by a constant factor: below `first`, below `first` times
/// the factor, and so on. The last band has no upper limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeBands {
    /// The smallest size of each band except the first, ascending.
    starts: Vec<Bytes>,
}

impl SizeBands {
    /// Creates this many bands. Returns `None` if there are zero bands, if their sizes do not increase, or if
    /// one begins beyond 2^63 bytes.
    pub fn by_factor(first: Bytes, factor: u64, count: u32) -> Option<Self> {
        if count == 0 || first.is_zero() || factor < 2 {
            return None;
        }
        let mut starts = Vec::new();
        for n in 1..count {
            let start = factor.checked_pow(n - 1)?.checked_mul(first.get())?;
            starts.push(Bytes::new(i64::try_from(start).ok()?.unsigned_abs()));
        }
        Some(SizeBands { starts })
    }

    /// Returns the number of bands.
    pub fn count(&self) -> usize {
        self.starts.len() + 1
    }

    /// Returns the number of the band to which this size belongs.
    pub fn of(&self, size: Bytes) -> usize {
        self.starts.partition_point(|&start| start <= size)
    }

    /// Returns the smallest and the largest size of a band. The last band has no largest size.
    pub fn edges(&self, band: usize) -> (Bytes, Option<Bytes>) {
        let low = band.checked_sub(1).map_or(Bytes::ZERO, |before| self.starts[before]);
        (low, self.starts.get(band).map(|&next| Bytes::new(next.get() - 1)))
    }
}

/// What to record about requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestSettings {
    /// The run's seed, from which the sample is drawn.
    pub seed: u64,
    /// The beginning of the measured interval.
    pub t0: Instant,
    /// The name of each class that makes requests; `None` for the others.
    pub classes: Vec<Option<String>>,
    /// Whether each class fetches pages, which are recorded in addition to its requests.
    pub fetches_pages: Vec<bool>,
    /// The size bands of responses.
    pub bands: SizeBands,
    /// Maximum number of completed exchanges in the sample of each class.
    pub sample: usize,
}

/// The state of the requests of a run.
pub struct RequestRecorder {
    t0: Instant,
    bands: SizeBands,
    /// Requests by class; `None` for a class that makes no requests.
    classes: Vec<Option<Class>>,
    /// Pages by class.
    pages: Vec<Option<Class>>,
    log: Option<Log>,
}

/// The recording of a run's requests.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestRecord {
    /// [`schema::REQUEST_SUMMARY`], [`schema::REQUEST_HISTOGRAMS`], [`schema::REQUEST_SAMPLE`].
    pub tables: [Table; 3],
    /// [`schema::PAGE_SUMMARY`], [`schema::PAGE_HISTOGRAMS`], [`schema::PAGE_SAMPLE`], if a class fetches pages.
    pub pages: Option<[Table; 3]>,
    /// [`schema::REQUESTS`], if the plan requires a row for every exchange.
    pub rows: Option<StreamedTable>,
}

struct Class {
    name: String,
    /// The draws that select the sample: each connection has its own stream, in which each exchange
    /// has one draw.
    draws: Stream,
    bands: Vec<Band>,
    sample: Sample,
}

/// The exchanges of one class, with responses in one band, that ended in the measured interval.
#[derive(Clone, Default)]
struct Band {
    completed: u64,
    failed: u64,
    censored: u64,
    request_bytes: u64,
    response_bytes: u64,
    response_time_sum_ns: u128,
    response_time_max: Option<Span>,
    /// Response times of completed exchanges.
    response_time_ns: Histogram,
    /// Waiting times of censored exchanges.
    waited_ns: Histogram,
    /// Durations of failed exchanges.
    failed_ns: Histogram,
    /// Ages at `t0` of the exchanges, however they ended, that began before `t0`.
    entered_ns: Histogram,
}

impl std::fmt::Debug for RequestRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestRecorder")
            .field("t0", &self.t0)
            .field("bands", &self.bands)
            .finish_non_exhaustive()
    }
}

impl RequestRecorder {
    /// Creates a recorder to which no ending has been reported yet. If `rows` is given, every exchange is
    /// written to it; it must be a table of [`schema::REQUESTS`].
    ///
    /// # Panics
    /// If `rows` is not a table of requests.
    pub fn new(settings: RequestSettings, rows: Option<TableWriter>) -> Self {
        let RequestSettings { seed, t0, classes, fetches_pages, bands, sample } = settings;
        let log =
            rows.map(|file| Log::new(file, classes.iter().map(|c| c.clone().unwrap_or_default()).collect()));
        let class = |what: &str, name: String| Class {
            draws: Stream::new(seed, format_args!("{what}/{name}/sample")),
            name,
            bands: vec![Band::default(); bands.count()],
            sample: Sample::new(sample),
        };
        let pages = classes.iter().zip(fetches_pages);
        let pages = pages.map(|(name, fetches)| Some(class("pages", name.clone().filter(|_| fetches)?)));
        let pages = pages.collect();
        let classes = classes.into_iter().map(|name| Some(class("requests", name?))).collect();
        RequestRecorder { t0, bands, classes, pages, log }
    }

    /// Records that an exchange ended at `at`.
    ///
    /// # Panics
    /// If its class makes no requests.
    pub fn ended(&mut self, exchange: &Exchange, how: Ending, at: Instant) {
        if at <= self.t0 {
            return;
        }
        let class = self.classes[exchange.class as usize].as_mut().expect("its class makes requests");
        class.ended(self.bands.of(exchange.response), exchange, how, (self.t0, at));
        if let Some(log) = &mut self.log {
            log.note(exchange, how, at);
        }
    }

    /// Records that a page ended at `at`; the module's documentation says how a page is represented
    /// as an exchange. Pages have no rows.
    ///
    /// # Panics
    /// If its class fetches no pages.
    pub fn page_ended(&mut self, page: &Exchange, how: Ending, at: Instant) {
        if at > self.t0 {
            let class = self.pages[page.class as usize].as_mut().expect("its class fetches pages");
            class.ended(self.bands.of(page.response), page, how, (self.t0, at));
        }
    }

    /// Declares that all exchanges that ended before the host's `clock` have been reported. Rows up to that
    /// time may be written. A host calls this occasionally; between two calls, rows are held in memory.
    pub fn settle(&mut self, clock: Instant) {
        if let Some(log) = self.log.as_mut().filter(|log| log.is_full()) {
            log.write_until(clock);
        }
    }

    /// Returns the reason why rows could not be written, if any; after such an error, further rows are
    /// ignored.
    pub fn failure(&self) -> Option<&RecordingError> {
        self.log.as_ref().and_then(Log::failure)
    }

    /// Returns the recorder's memory use in bytes, estimated from the lengths of its lists.
    pub fn memory_bytes(&self) -> usize {
        let of_class = |class: &Class| {
            let bins = class.bands.iter().flat_map(Band::histograms).map(Histogram::memory_bytes);
            class.sample.memory_bytes() + bins.sum::<usize>()
        };
        let classes: usize = self.classes.iter().chain(&self.pages).flatten().map(of_class).sum();
        classes + self.log.as_ref().map_or(0, Log::memory_bytes)
    }

    /// Returns the tables. The host must first have reported exchanges in progress as [`Ending::Censored`].
    ///
    /// # Errors
    /// If rows could not be written.
    pub fn finish(mut self) -> Result<RequestRecord, RecordingError> {
        let rows = self.log.take().map(Log::finish).transpose()?;
        let tables_of = |classes, schemas, kind| tables(&self.bands, classes, schemas, kind);
        let requests = [&schema::REQUEST_SUMMARY, &schema::REQUEST_HISTOGRAMS, &schema::REQUEST_SAMPLE];
        let tables = tables_of(self.classes, requests, "response_time_ns");
        let of_pages = [&schema::PAGE_SUMMARY, &schema::PAGE_HISTOGRAMS, &schema::PAGE_SAMPLE];
        let any = self.pages.iter().any(Option::is_some);
        let pages = any.then(|| tables_of(self.pages, of_pages, "page_time_ns"));
        Ok(RequestRecord { tables, pages, rows })
    }
}

/// Returns the tables of these schemas; `kind` is the name that the histograms use for the times of completed
/// exchanges.
fn tables(
    bands: &SizeBands,
    classes: Vec<Option<Class>>,
    schemas: [&'static Schema; 3],
    kind: &str,
) -> [Table; 3] {
    let mut tables = schemas.map(Table::new);
    let [summary, histograms, sample] = &mut tables;
    for class in classes.into_iter().flatten() {
        for (number, band) in class.bands.iter().enumerate() {
            let edges = bands.edges(number);
            band.push_sums(summary, &class.name, edges);
            band.push_bins(histograms, &class.name, edges.0, kind);
        }
        class.sample.push(sample, &class.name);
    }
    tables
}

impl Class {
    /// Records that an exchange ended at `at`, after the beginning `t0` of the measured interval.
    fn ended(&mut self, band: usize, exchange: &Exchange, how: Ending, (t0, at): (Instant, Instant)) {
        let took = at.saturating_since(exchange.start);
        let band = &mut self.bands[band];
        if exchange.start < t0 {
            band.entered_ns.add(t0.saturating_since(exchange.start).as_ns(), 1);
        }
        match how {
            Ending::Completed => {
                band.complete(exchange, took);
                self.draw(exchange, took);
            }
            Ending::Failed => {
                band.failed += 1;
                band.failed_ns.add(took.as_ns(), 1);
            }
            Ending::Censored => {
                band.censored += 1;
                band.waited_ns.add(took.as_ns(), 1);
            }
        }
    }

    /// Offers the exchange to the sample.
    fn draw(&mut self, exchange: &Exchange, took: Span) {
        let key = self.draws.member(exchange.of.index()).at(exchange.number.into());
        self.sample.offer(SampledRequest {
            key,
            id: exchange.id(),
            exchange: *exchange,
            response_time: took,
        });
    }
}

impl Band {
    const fn histograms(&self) -> [&Histogram; 4] {
        [&self.response_time_ns, &self.waited_ns, &self.failed_ns, &self.entered_ns]
    }

    fn complete(&mut self, exchange: &Exchange, took: Span) {
        self.completed += 1;
        self.request_bytes += exchange.request.get();
        self.response_bytes += exchange.response.get();
        self.response_time_sum_ns += u128::from(took.as_ns());
        self.response_time_max = self.response_time_max.max(Some(took));
        self.response_time_ns.add(took.as_ns(), 1);
    }

    fn push_sums(&self, table: &mut Table, class: &str, (low, high): (Bytes, Option<Bytes>)) {
        table.push([
            class.into(),
            low.get().into(),
            high.map(Bytes::get).into(),
            self.completed.into(),
            self.failed.into(),
            self.censored.into(),
            self.request_bytes.into(),
            self.response_bytes.into(),
            self.response_time_sum_ns.into(),
            self.response_time_max.map(Span::as_ns).into(),
        ]);
    }

    fn push_bins(&self, table: &mut Table, class: &str, low: Bytes, completed: &str) {
        let kinds = [completed, "waited_ns", "failed_ns", "entered_ns"];
        for (kind, histogram) in kinds.into_iter().zip(self.histograms()) {
            for bin in histogram.bins() {
                table.push([
                    class.into(),
                    low.get().into(),
                    kind.into(),
                    bin.low.into(),
                    bin.high.into(),
                    bin.weight.into(),
                ]);
            }
        }
    }
}
