//! Fills the tables of a recording: samples while the run goes on, sums at its end.

use aqmlab_qdisc::books::{ClassBooks, TimeWeighted};
use aqmlab_qdisc::{Histogram, LawSamples, Reason};
use aqmlab_recording::{Cell, Table, schema};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

use crate::fates::{Fates, Tally};
use crate::flow::{Flow, FlowCounts, FlowTable};
use crate::network::Link;

/// What a run puts into its recording.
pub struct Recorder {
    link_names: Vec<String>,
    class_names: Vec<String>,
    queues: Table,
    law: Table,
    flow_series: Table,
    /// Rows of `flows`, in the order in which flows ended.
    ended: Vec<FlowRow>,
    /// Counters of each port at its last sample.
    last: Vec<Counters>,
    law_buffer: LawSamples,
}

/// One row of `flows`.
struct FlowRow {
    number: u32,
    class: u16,
    index: u32,
    start: Instant,
    end: Option<Instant>,
    base_rtt: Span,
    counts: FlowCounts,
    at_warmup: FlowCounts,
}

/// Counters of a port that samples show as differences. Differences wrap: a count that is carried over a restart
/// of the books is below zero.
#[derive(Clone, Copy, Default)]
struct Counters {
    arrivals_packets: u64,
    arrivals_bytes: u64,
    departures_bytes: u64,
    dropped_early: u64,
    dropped_overflow: u64,
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
                    Reason::Early | Reason::Forced => sum.dropped_early += dropped,
                    _ => sum.dropped_overflow += dropped,
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
            dropped_early: self.dropped_early.wrapping_sub(other.dropped_early),
            dropped_overflow: self.dropped_overflow.wrapping_sub(other.dropped_overflow),
            marked: self.marked.wrapping_sub(other.marked),
        }
    }
}

impl Recorder {
    /// Empty tables for a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Recorder {
            link_names: plan.links.iter().map(|l| l.name.clone()).collect(),
            class_names: plan.classes.iter().map(|c| c.name.clone()).collect(),
            queues: Table::new(&schema::QUEUES),
            law: Table::new(&schema::LAW),
            flow_series: Table::new(&schema::FLOW_SERIES),
            ended: Vec::new(),
            last: vec![Counters::default(); plan.links.len()],
            law_buffer: LawSamples::new(),
        }
    }

    /// The warm-up is over: nothing that ended flows have done is measured. The ports' books are about to start
    /// anew; what they have counted since the last sample is carried into the next one.
    pub fn warmup_ended(&mut self, links: &[Link]) {
        for row in &mut self.ended {
            row.at_warmup = row.counts;
        }
        for (last, link) in self.last.iter_mut().zip(links) {
            *last = last.minus(Counters::of(link.port.books().classes()));
        }
    }

    /// One row of `queues` for each link and one of `law` for each value of its law.
    pub fn sample_queues(&mut self, now: Instant, links: &[Link]) {
        let t_ns = now.as_ns();
        for (i, link) in links.iter().enumerate() {
            let name = self.link_names[i].as_str();
            let backlog = link.port.backlog();
            let sum = Counters::of(link.port.books().classes());
            let since = sum.minus(std::mem::replace(&mut self.last[i], sum));
            self.queues.push([
                t_ns.into(),
                name.into(),
                backlog.packets.get().into(),
                backlog.bytes.get().into(),
                since.arrivals_packets.into(),
                since.arrivals_bytes.into(),
                since.departures_bytes.into(),
                since.dropped_early.into(),
                since.dropped_overflow.into(),
                since.marked.into(),
            ]);
            self.law_buffer.clear();
            link.port.observe(now, &mut self.law_buffer);
            for &(value_name, value) in &self.law_buffer {
                self.law.push([t_ns.into(), name.into(), value_name.into(), value.into()]);
            }
        }
    }

    /// One row of `flow_series` for each connection that is alive, in the order of their numbers.
    pub fn sample_flows(&mut self, now: Instant, flows: &mut FlowTable) {
        let mut alive: Vec<&mut Flow> = flows.iter_mut().collect();
        alive.sort_unstable_by_key(|f| f.id.number);
        for flow in alive {
            let Some((sender, delivered)) = flow.sample() else { continue };
            let ssthresh = Some(sender.ssthresh).filter(|s| s.is_finite());
            self.flow_series.push([
                now.as_ns().into(),
                u64::from(flow.id.number).into(),
                sender.cwnd.into(),
                ssthresh.into(),
                sender.srtt.map(Span::as_ns).into(),
                sender.flight.get().into(),
                sender.acked.get().into(),
                delivered.get().into(),
            ]);
        }
    }

    /// A flow has ended, or the run has.
    pub fn flow_ended(&mut self, flow: &Flow) {
        self.ended.push(FlowRow {
            number: flow.id.number,
            class: flow.id.class,
            index: flow.index,
            start: flow.start,
            end: Some(flow.completed).filter(|&at| at != Instant::FAR_FUTURE),
            base_rtt: flow.base_rtt,
            counts: flow.counts(),
            at_warmup: flow.counts_at_warmup(),
        });
    }

    /// Bytes that the tables take, estimated from their lengths.
    pub fn memory_bytes(&self) -> usize {
        let cells: usize =
            [&self.queues, &self.law, &self.flow_series].iter().map(|t| t.rows() * t.columns.len()).sum();
        cells * size_of::<u64>() + self.ended.capacity() * size_of::<FlowRow>()
    }

    /// All tables, in the order of the schema.
    pub fn finish(mut self, links: &[Link], run: Table) -> Vec<Table> {
        let (summary, histograms) = self.queue_tables(links);
        let flows = self.flow_table();
        vec![summary, histograms, run, self.queues, self.law, flows, self.flow_series]
    }

    fn flow_table(&mut self) -> Table {
        let mut table = Table::new(&schema::FLOWS);
        self.ended.sort_unstable_by_key(|row| row.number);
        for row in &self.ended {
            let (all, before) = (row.counts, row.at_warmup);
            table.push([
                u64::from(row.number).into(),
                self.class_names[usize::from(row.class)].as_str().into(),
                u64::from(row.index).into(),
                row.start.as_ns().into(),
                row.end.map(Instant::as_ns).into(),
                row.base_rtt.as_ns().into(),
                all.sent_segments.into(),
                all.sent_bytes.into(),
                all.delivered_bytes.into(),
                all.retransmitted_segments.into(),
                all.timeouts.into(),
                all.fast_retransmits.into(),
                all.ecn_reductions.into(),
                all.ce_received.into(),
                all.spurious_retransmissions.into(),
                all.multiple_loss_windows.into(),
                all.lost_packets.into(),
                (all.delivered_bytes - before.delivered_bytes).into(),
                (all.sent_bytes - before.sent_bytes).into(),
                (all.timeouts - before.timeouts).into(),
                (all.retransmitted_segments - before.retransmitted_segments).into(),
                (all.fast_retransmits - before.fast_retransmits).into(),
                (all.ecn_reductions - before.ecn_reductions).into(),
                (all.ce_received - before.ce_received).into(),
                (all.spurious_retransmissions - before.spurious_retransmissions).into(),
                (all.multiple_loss_windows - before.multiple_loss_windows).into(),
                (all.lost_packets - before.lost_packets).into(),
            ]);
        }
        table
    }

    fn queue_tables(&self, links: &[Link]) -> (Table, Table) {
        let mut summary = Table::new(&schema::SUMMARY);
        let mut histograms = Table::new(&schema::HISTOGRAMS);
        for (i, link) in links.iter().enumerate() {
            let queue = self.link_names[i].as_str();
            let books = link.port.books();
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
            push_bins(&mut histograms, [queue, ALL_CLASSES, "sojourn_ns"], &total.sojourn_ns);
            push_bins(&mut histograms, [queue, ALL_CLASSES, "backlog_packets"], &packets.histogram);
            for (class, name) in books.classes().iter().zip(&self.class_names) {
                summary.push(class_cells(queue, name, class).chain([Cell::Null; 11]));
                push_bins(&mut histograms, [queue, name, "sojourn_ns"], &class.sojourn_ns);
            }
        }
        (summary, histograms)
    }
}

/// The row of a queue that stands for all classes together.
const ALL_CLASSES: &str = "*";

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

/// The one row of `run`.
pub fn run_table(t0: Instant, t1: Instant, fates: &Fates, resident: Tally) -> Table {
    let tallies = [fates.sent, fates.delivered, fates.dropped, fates.lost, resident];
    let head = [t0.as_ns(), t1.as_ns(), fates.packet_hops];
    let packets = tallies.iter().map(|t| t.packets.get());
    let bytes = tallies.iter().map(|t| t.bytes.get());
    let mut table = Table::new(&schema::RUN);
    table.push(head.into_iter().chain(packets).chain(bytes).map(Cell::from));
    table
}
