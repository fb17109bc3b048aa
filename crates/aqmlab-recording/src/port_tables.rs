//! The tables of a run's ports: samples while the run goes on, sums at its end. The same for every host.

use aqmlab_qdisc::books::{ClassBooks, TimeWeighted};
use aqmlab_qdisc::{Books, Classed, Histogram, LawSamples, Port, Reason};
use aqmlab_units::{Instant, Span};

use crate::column::Cell;
use crate::schema;
use crate::table::Table;

/// What the ports of a run put into its recording.
pub struct PortTables {
    link_names: Vec<String>,
    class_names: Vec<String>,
    queues: Table,
    law: Table,
    /// Counters of each port at its last sample.
    last: Vec<Counters>,
    law_buffer: LawSamples,
}

/// The finished tables.
#[derive(Clone, PartialEq, Debug)]
pub struct PortRecord {
    /// see [`schema::SUMMARY`]
    pub summary: Table,
    /// see [`schema::HISTOGRAMS`]
    pub histograms: Table,
    /// see [`schema::QUEUES`]
    pub queues: Table,
    /// see [`schema::LAW`]
    pub law: Table,
}

/// Counters of a port that samples show as differences. Differences wrap: a count that is carried over a restart
/// of the books is below zero.
#[derive(Clone, Copy, Default)]
struct Counters {
    arrivals_packets: u64,
    arrivals_bytes: u64,
    departures_bytes: u64,
    dropped_by_aqm: u64,
    dropped_not_by_aqm: u64,
    marked: u64,
}

impl Counters {
    fn of(classes: &[ClassBooks]) -> Self {
        let mut sum = Counters::default();
        for class in classes {
            sum.arrivals_packets += class.arrived.packets;
            sum.arrivals_bytes += class.arrived.bytes;
            sum.departures_bytes += class.departed.bytes;
            for reason in Reason::ALL {
                let dropped = class.dropped[reason as usize].packets;
                match reason {
                    Reason::Early | Reason::Forced => sum.dropped_by_aqm += dropped,
                    _ => sum.dropped_not_by_aqm += dropped,
                }
            }
            sum.marked += class.marked_total().packets;
        }
        sum
    }

    fn minus(self, other: Counters) -> Counters {
        Counters {
            arrivals_packets: self.arrivals_packets.wrapping_sub(other.arrivals_packets),
            arrivals_bytes: self.arrivals_bytes.wrapping_sub(other.arrivals_bytes),
            departures_bytes: self.departures_bytes.wrapping_sub(other.departures_bytes),
            dropped_by_aqm: self.dropped_by_aqm.wrapping_sub(other.dropped_by_aqm),
            dropped_not_by_aqm: self.dropped_not_by_aqm.wrapping_sub(other.dropped_not_by_aqm),
            marked: self.marked.wrapping_sub(other.marked),
        }
    }
}

impl PortTables {
    /// Empty tables of the ports of these links, whose books tell these classes apart.
    pub fn new(link_names: Vec<String>, class_names: Vec<String>) -> Self {
        PortTables {
            last: vec![Counters::default(); link_names.len()],
            link_names,
            class_names,
            queues: Table::new(&schema::QUEUES),
            law: Table::new(&schema::LAW),
            law_buffer: LawSamples::new(),
        }
    }

    /// Makes room for so many samples of each of these ports, so that taking them allocates nothing.
    pub fn reserve<'a, P: Classed + 'a>(&mut self, samples: usize, ports: impl Iterator<Item = &'a Port<P>>) {
        self.queues.reserve(samples * self.link_names.len());
        let mut values = 0;
        for port in ports {
            self.law_buffer.clear();
            port.observe(Instant::ZERO, &mut self.law_buffer);
            values += self.law_buffer.len();
            self.law_buffer.iter().for_each(|(name, _)| self.law.expect_name("name", name));
        }
        self.law.reserve(samples * values);
        for name in &self.link_names {
            self.queues.expect_name("queue", name);
            self.law.expect_name("queue", name);
        }
    }

    /// The warm-up is over. The ports' books are about to start anew; what they have counted since the last sample
    /// is carried into the next one.
    pub fn warmup_ended<'a, P: Classed + 'a>(&mut self, ports: impl Iterator<Item = &'a Port<P>>) {
        for (last, port) in self.last.iter_mut().zip(ports) {
            *last = last.minus(Counters::of(port.books().classes()));
        }
    }

    /// One row of `queues` for each link and one of `law` for each value of its law.
    pub fn sample<'a, P: Classed + 'a>(&mut self, now: Instant, ports: impl Iterator<Item = &'a Port<P>>) {
        let t_ns = now.as_ns();
        for (i, port) in ports.enumerate() {
            let name = self.link_names[i].as_str();
            let backlog = port.backlog();
            let sum = Counters::of(port.books().classes());
            let since = sum.minus(std::mem::replace(&mut self.last[i], sum));
            self.queues.push([
                t_ns.into(),
                name.into(),
                backlog.packets.get().into(),
                backlog.bytes.get().into(),
                since.arrivals_packets.into(),
                since.arrivals_bytes.into(),
                since.departures_bytes.into(),
                since.dropped_by_aqm.into(),
                since.dropped_not_by_aqm.into(),
                since.marked.into(),
            ]);
            self.law_buffer.clear();
            port.observe(now, &mut self.law_buffer);
            for &(value_name, value) in &self.law_buffer {
                self.law.push([t_ns.into(), name.into(), value_name.into(), value.into()]);
            }
        }
    }

    /// How many cells the samples have filled so far.
    pub fn cells(&self) -> usize {
        [&self.queues, &self.law].iter().map(|t| t.rows() * t.columns.len()).sum()
    }

    /// The tables, with sums and distributions from the ports' books as they are at the end.
    pub fn finish<'a>(self, books: impl Iterator<Item = &'a Books>) -> PortRecord {
        let mut summary = Table::new(&schema::SUMMARY);
        let mut histograms = Table::new(&schema::HISTOGRAMS);
        for (queue, books) in self.link_names.iter().zip(books) {
            push_books(&mut summary, &mut histograms, queue, &self.class_names, books);
        }
        PortRecord { summary, histograms, queues: self.queues, law: self.law }
    }
}

/// The row of a queue that stands for all classes together.
const ALL_CLASSES: &str = "*";

/// The rows of one queue.
fn push_books(
    summary: &mut Table,
    histograms: &mut Table,
    queue: &str,
    class_names: &[String],
    books: &Books,
) {
    let total = books.total();
    let packets = books.backlog_packets();
    let of_all: [Cell<'_>; 11] = [
        packets.integral.into(),
        packets.integral_of_square.into(),
        books.backlog_bytes().integral.into(),
        least(&packets).into(),
        packets.max.into(),
        books.backlog_bytes().max.into(),
        books.busy().as_ns().into(),
        total.sojourn_sum_ns.into(),
        total.sojourn_ns.total().into(),
        total.initial.packets.into(),
        total.held().packets.into(),
    ];
    summary.push(class_cells(queue, ALL_CLASSES, &total).chain(of_all));
    push_bins(histograms, [queue, ALL_CLASSES, "sojourn_ns"], &total.sojourn_ns);
    push_bins(histograms, [queue, ALL_CLASSES, "backlog_packets"], &packets.histogram);
    for (class, name) in books.classes().iter().zip(class_names) {
        summary.push(class_cells(queue, name, class).chain([Cell::Null; 11]));
        push_bins(histograms, [queue, name, "sojourn_ns"], &class.sojourn_ns);
    }
}

/// The least value that lasted, zero if no time has passed.
fn least(series: &TimeWeighted) -> u64 {
    if series.min == u64::MAX { 0 } else { series.min }
}

/// The cells of a summary row that every class has.
fn class_cells<'a>(queue: &'a str, class: &'a str, books: &ClassBooks) -> impl Iterator<Item = Cell<'a>> {
    let head = [queue.into(), class.into()];
    let tallies = [books.arrived, books.arrived_ect, books.departed];
    let by_reason = books.dropped.into_iter().chain(books.marked);
    let counts: Vec<_> = tallies.into_iter().chain(by_reason).flat_map(|t| [t.packets, t.bytes]).collect();
    head.into_iter().chain(counts.into_iter().map(Cell::from))
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

/// How many samples a run takes of its ports: one each `interval`, the end included.
pub fn samples_in(run: Span, interval: Span) -> usize {
    if interval.is_zero() { 0 } else { run.div_span(interval) as usize }
}
