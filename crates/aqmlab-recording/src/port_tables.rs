//! The tables of a run's ports: samples during the run, sums at its end. This code is the same for every
//! host.

use aqmlab_qdisc::books::{Arrivals, ClassBooks, Fates, Tally, TimeWeighted};
use aqmlab_qdisc::{Backlog, Books, Classed, Histogram, LawSamples, PacketKind, Port, Reason};
use aqmlab_units::{Instant, Span};

use crate::column::Cell;
use crate::schema;
use crate::table::Table;

/// The recording of the ports of a run.
pub struct PortTables {
    /// The queues of each port.
    ports: Vec<Vec<SampledQueue>>,
    class_names: Vec<String>,
    queues: Table,
    law: Table,
    law_buffer: LawSamples,
}

/// The finished tables.
#[derive(Clone, PartialEq, Debug)]
pub struct PortRecord {
    /// see [`schema::SUMMARY`]
    pub summary: Table,
    /// see [`schema::KINDS`]
    pub kinds: Table,
    /// see [`schema::HISTOGRAMS`]
    pub histograms: Table,
    /// see [`schema::QUEUES`]
    pub queues: Table,
    /// see [`schema::LAW`]
    pub law: Table,
}

/// Counters of a port; a sample contains their increases since the previous sample. Differences use
/// wrapping arithmetic, because a counter that is carried across a restart of the books is
/// negative.
#[derive(Clone, Copy, Default)]
struct Counters {
    arrivals_packets: u64,
    arrivals_bytes: u64,
    departures_bytes: u64,
    dropped_by_law: u64,
    dropped_not_by_law: u64,
    marked: u64,
}

impl Counters {
    fn of(books: &Books) -> Self {
        let mut sum = Counters::default();
        for class in books.classes() {
            let arrived = class.arrived();
            sum.arrivals_packets += arrived.packets;
            sum.arrivals_bytes += arrived.bytes;
            sum.departures_bytes += class.departed.bytes;
            // Most ports never drop or mark. The counts of drops and marks of these ports are not read,
            // because the reads would miss the processor's cache.
            for fates in class.fates.iter().filter(|_| books.has_fates()) {
                for reason in Reason::ALL {
                    let dropped = fates.dropped[reason as usize].packets;
                    match reason {
                        Reason::Early | Reason::Forced => sum.dropped_by_law += dropped,
                        _ => sum.dropped_not_by_law += dropped,
                    }
                }
                sum.marked += fates.marked_total().packets;
            }
        }
        sum
    }

    fn minus(self, other: Counters) -> Counters {
        Counters {
            arrivals_packets: self.arrivals_packets.wrapping_sub(other.arrivals_packets),
            arrivals_bytes: self.arrivals_bytes.wrapping_sub(other.arrivals_bytes),
            departures_bytes: self.departures_bytes.wrapping_sub(other.departures_bytes),
            dropped_by_law: self.dropped_by_law.wrapping_sub(other.dropped_by_law),
            dropped_not_by_law: self.dropped_not_by_law.wrapping_sub(other.dropped_not_by_law),
            marked: self.marked.wrapping_sub(other.marked),
        }
    }
}

/// A queue of a port; the port's own queue comes first, then the queues inside it.
struct SampledQueue {
    name: String,
    /// Counters at its last sample.
    last: Counters,
}

impl SampledQueue {
    fn new(name: String) -> Self {
        SampledQueue { name, last: Counters::default() }
    }

    fn carry(&mut self, books: &Books) {
        self.last = self.last.minus(Counters::of(books));
    }
}

impl PortTables {
    /// Creates empty tables for the ports of the links `link_names`. The books of each port have
    /// separate counts for the classes `class_names`.
    pub fn new(link_names: Vec<String>, class_names: Vec<String>) -> Self {
        PortTables {
            ports: link_names.into_iter().map(|name| vec![SampledQueue::new(name)]).collect(),
            class_names,
            queues: Table::new(&schema::QUEUES),
            law: Table::new(&schema::LAW),
            law_buffer: LawSamples::new(),
        }
    }

    /// Reserves room for this many samples of each of these ports, so that sampling allocates
    /// nothing.
    pub fn reserve<'a, P: Classed + 'a>(&mut self, samples: usize, ports: impl Iterator<Item = &'a Port<P>>) {
        let mut values = 0;
        for (own, port) in self.ports.iter_mut().zip(ports) {
            know(own, port);
            let law = &mut self.law;
            let mut expect = |law_buffer: &mut LawSamples, observe: &dyn Fn(&mut LawSamples)| {
                law_buffer.clear();
                observe(law_buffer);
                values += law_buffer.len();
                law_buffer.iter().for_each(|(name, _)| law.expect_name("name", name));
            };
            expect(&mut self.law_buffer, &|out| port.observe(Instant::ZERO, out));
            port.each_inner(|_, queue| {
                expect(&mut self.law_buffer, &|out| queue.observe(Instant::ZERO, out));
            });
        }
        self.law.reserve(samples * values);
        self.queues.reserve(samples * self.ports.iter().map(Vec::len).sum::<usize>());
        for queue in self.ports.iter().flatten() {
            self.queues.expect_name("queue", &queue.name);
            self.law.expect_name("queue", &queue.name);
        }
    }

    /// Ends the warm-up. Must be called before the ports' books restart, so that their counts since the last
    /// sample are carried over into the next sample.
    pub fn warmup_ended<'a, P: Classed + 'a>(&mut self, ports: impl Iterator<Item = &'a Port<P>>) {
        for (own, port) in self.ports.iter_mut().zip(ports) {
            know(own, port);
            let books = port.books();
            let all = std::iter::once(books).chain(books.inner().iter().map(|inner| &inner.books));
            own.iter_mut().zip(all).for_each(|(queue, books)| queue.carry(books));
        }
    }

    /// Adds one row to the table `queues` for each queue, and one row to the table `law` for each
    /// value of the queue's law.
    pub fn sample<'a, P: Classed + 'a>(&mut self, now: Instant, ports: impl Iterator<Item = &'a Port<P>>) {
        let PortTables { ports: own, queues, law, law_buffer, .. } = self;
        for (own, port) in own.iter_mut().zip(ports) {
            know(own, port);
            let mut own = own.iter_mut();
            let mut sample = |books: &Books, backlog: Backlog, observe: &dyn Fn(&mut LawSamples)| {
                let queue = own.next().expect("the queue is already known");
                push_sample(queues, queue, now, books, backlog);
                law_buffer.clear();
                observe(law_buffer);
                for &(value_name, value) in law_buffer.iter() {
                    law.push([
                        now.as_ns().into(),
                        queue.name.as_str().into(),
                        value_name.into(),
                        value.into(),
                    ]);
                }
            };
            sample(port.books(), port.backlog(), &|out| port.observe(now, out));
            port.each_inner(|inner, queue| {
                sample(&inner.books, queue.backlog(), &|out| queue.observe(now, out));
            });
        }
    }

    /// Returns the samples of queues and of laws, so far.
    pub fn samples(&self) -> [&Table; 2] {
        [&self.queues, &self.law]
    }

    /// Returns the number of cells that the samples have filled so far.
    pub fn cells(&self) -> usize {
        self.samples().iter().map(|t| t.rows() * t.columns.len()).sum()
    }

    /// Returns the tables, with sums and distributions from the ports' books at the end.
    pub fn finish<'a>(self, books: impl Iterator<Item = &'a Books>) -> PortRecord {
        let mut sums = Sums {
            class_names: &self.class_names,
            summary: Table::new(&schema::SUMMARY),
            kinds: Table::new(&schema::KINDS),
            histograms: Table::new(&schema::HISTOGRAMS),
        };
        for (own, books) in self.ports.iter().zip(books) {
            let link = &own[0].name;
            sums.push(link, books, books.busy().as_ns().into());
            for inner in books.inner() {
                sums.push(&inner_name(link, &inner.path), &inner.books, Cell::Null);
            }
        }
        let Sums { summary, kinds, histograms, .. } = sums;
        PortRecord { summary, kinds, histograms, queues: self.queues, law: self.law }
    }
}

/// Returns the name, in tables, of a queue inside a link's queue, such as `bottleneck/gold`.
fn inner_name(link: &str, path: &str) -> String {
    format!("{link}/{path}")
}

/// Adds an entry for each queue inside a port when the port is first seen.
fn know<P: Classed>(own: &mut Vec<SampledQueue>, port: &Port<P>) {
    let inner = port.books().inner();
    if own.len() <= inner.len() {
        let link = own[0].name.clone();
        own.extend(inner.iter().map(|inner| SampledQueue::new(inner_name(&link, &inner.path))));
    }
}

/// Adds a row of `queues`.
fn push_sample(queues: &mut Table, queue: &mut SampledQueue, now: Instant, books: &Books, backlog: Backlog) {
    let sum = Counters::of(books);
    let since = sum.minus(std::mem::replace(&mut queue.last, sum));
    queues.push([
        now.as_ns().into(),
        queue.name.as_str().into(),
        backlog.packets.get().into(),
        backlog.bytes.get().into(),
        since.arrivals_packets.into(),
        since.arrivals_bytes.into(),
        since.departures_bytes.into(),
        since.dropped_by_law.into(),
        since.dropped_not_by_law.into(),
        since.marked.into(),
    ]);
}

/// The class name that stands for all classes together.
const ALL_CLASSES: &str = "*";

/// The tables of sums and distributions, which have rows for each queue.
struct Sums<'a> {
    class_names: &'a [String],
    summary: Table,
    kinds: Table,
    histograms: Table,
}

impl Sums<'_> {
    /// Adds the rows of one queue. A queue inside another one has no link whose busy time could be measured.
    fn push(&mut self, queue: &str, books: &Books, busy: Cell<'_>) {
        let total = books.total();
        let packets = books.backlog_packets();
        let of_all: [Cell<'_>; 11] = [
            packets.integral.into(),
            packets.integral_of_square.into(),
            books.backlog_bytes().integral.into(),
            least(&packets).into(),
            packets.max.into(),
            books.backlog_bytes().max.into(),
            busy,
            total.sojourn_sum_ns.into(),
            total.sojourn_ns.total().into(),
            total.initial.packets.into(),
            total.held().packets.into(),
        ];
        self.summary.push(class_cells(queue, ALL_CLASSES, &total).chain(of_all));
        push_bins(&mut self.histograms, [queue, ALL_CLASSES, "sojourn_ns"], &total.sojourn_ns);
        push_bins(&mut self.histograms, [queue, ALL_CLASSES, "backlog_packets"], &packets.histogram);
        for (class, name) in books.classes().zip(self.class_names) {
            self.summary.push(class_cells(queue, name, &class).chain([Cell::Null; 11]));
            push_bins(&mut self.histograms, [queue, name, "sojourn_ns"], &class.sojourn_ns);
            for kind in PacketKind::ALL {
                let counts = (class.arrivals[kind as usize], class.fates[kind as usize]);
                if counts != Default::default() {
                    let head = [queue, name, kind.name()].into_iter().map(Cell::from);
                    self.kinds.push(head.chain(tally_cells(counts, None)));
                }
            }
        }
    }
}

/// Returns the smallest value that lasted for any time at all; zero if no time has passed.
fn least(series: &TimeWeighted) -> u64 {
    if series.min == u64::MAX { 0 } else { series.min }
}

/// Returns the cells that every summary row has, whether for one class or for all classes together.
fn class_cells<'a>(queue: &'a str, class: &'a str, books: &ClassBooks<'_>) -> impl Iterator<Item = Cell<'a>> {
    let sent = Cell::from(books.sent_bytes);
    let tallies = tally_cells(books.all_kinds(), Some(books.departed));
    [queue.into(), class.into()].into_iter().chain(tallies).chain([sent])
}

/// Returns the cells of arrivals, of departures (if known), and of drops and marks by reason.
fn tally_cells<'a>(
    (arrivals, fates): (Arrivals, Fates),
    departed: Option<Tally>,
) -> impl Iterator<Item = Cell<'a>> + use<'a> {
    let came = [arrivals.all, arrivals.ect].into_iter().chain(departed);
    let tallies = came.chain(fates.dropped).chain(fates.marked);
    tallies.flat_map(|tally| [tally.packets, tally.bytes]).map(Cell::from)
}

fn push_bins(table: &mut Table, [queue, class, kind]: [&str; 3], histogram: &Histogram) {
    for bin in histogram.bins() {
        table.push([
            queue.into(),
            class.into(),
            kind.into(),
            bin.low.into(),
            bin.high.into(),
            bin.weight.into(),
        ]);
    }
}

/// Returns the number of samples that a run takes of its ports: one per `interval`, including one at the end.
pub fn samples_in(run: Span, interval: Span) -> usize {
    if interval.is_zero() { 0 } else { run.div_span(interval) as usize }
}
