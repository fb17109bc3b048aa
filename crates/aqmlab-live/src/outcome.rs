//! Results of a live run: its tables, the verdict on its faithfulness, and its entries in the manifest.

use std::collections::BTreeMap;

use aqmlab_network::{End, Engine, RunFacts, flow_table};
use aqmlab_recording::capture::{CaptureFailure, CaptureReport, CapturedPackets};
use aqmlab_recording::live::{
    Frames, GeneratorReport, HostCounters, KernelQueueReport, LiveDrops, LiveMarks, LiveReport,
    OffloadReport, Policy, ProgramReport, RouteMetrics, Stall,
};
use aqmlab_recording::{Host, Recording, RecordingError, StoppedBy};
use aqmlab_scenario::{Plan, Traffic, Wait};
use aqmlab_units::Span;

use crate::addresses::HostId;
use crate::busiest::changes_rates;
use crate::calibration::Calibration;
use crate::capture_report;
use crate::data_plane::DataPlaneReport;
use crate::faithfulness::{Faithfulness, KernelObserved, Observed, TimeScales};
use crate::feasible;
use crate::found;
use crate::frame::Malformed;
use crate::host::{Counters, Hosts, KernelCounts, Stack};
use crate::kernel_queue::KernelQueueBooks;
use crate::quantiles::{distribution, quantile};
use crate::router::{FlowBooks, HostBooks, RouterRecord};
use crate::traffic::{FlowRow, OPTIONAL, Outcome};

/// The engine of live runs. Its version covers all its parts, except those that a plan names, which have
/// versions of their own.
pub const ENGINE: Engine = Engine { host: Host::Live, version: 1 };

/// Result of a live run.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveRun {
    /// The same tables as those of a simulated run, to the extent that kernels report the data; the
    /// verdict and the reasons for it are in the manifest.
    pub recording: Recording,
    /// Whether the run can be trusted.
    pub faithfulness: Faithfulness,
    /// Report on the file of captured packets, if there is one.
    pub captured: Option<CaptureReport>,
}

impl LiveRun {
    /// Discards the capture, because its packets left too little space on the disk for the tables, as `error`
    /// states.
    pub fn give_up_capture(&mut self, error: &RecordingError) {
        let manifest = &mut self.recording.manifest;
        let (Some(report), Some(live)) = (self.captured.take(), &mut manifest.live) else { return };
        if let Some(words) = capture_report::incomplete(&report) {
            live.remarks.retain(|remark| *remark != words);
        }
        let lost = |port: CapturedPackets| {
            let CapturedPackets { port, written, missed } = port;
            CapturedPackets { port, written: 0, missed: written + missed }
        };
        let ports: Vec<_> = report.ports.into_iter().map(lost).collect();
        let reason = format!("{}, and the tables needed the space that the capture took", error.reason());
        capture_report::add_failure(live, &ports, manifest.t1, &reason);
    }
}

/// The complete results of a run that has ended.
pub struct Ran<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The plan with each link at its highest rate (see `at_the_busiest`).
    pub busiest: &'a Plan,
    /// The seed.
    pub seed: u64,
    /// The hosts.
    pub hosts: &'a Hosts,
    /// Best performance of the machine, measured just before the run.
    pub calibration: Calibration,
    /// How the router waited.
    pub wait: Wait,
    /// Tables and books of the router.
    pub record: RouterRecord,
    /// Punctuality of the router on this machine's clock.
    pub report: DataPlaneReport,
    /// Results of the traffic generator.
    pub traffic: Outcome,
    /// The programs that ran.
    pub programs: Vec<ProgramReport>,
    /// Counters of the hosts' kernels, in the order of [`HostId::number`].
    pub counters: Vec<Counters>,
    /// Counts of the kernel queues.
    pub kernels: Vec<KernelCounts>,
    /// Outcome of the capture, if there was one.
    pub captured: Option<Result<CaptureReport, Box<CaptureFailure>>>,
    /// Duration of the whole run.
    pub wall: Span,
}

impl Ran<'_> {
    /// Returns the recording, and the checks of faithfulness.
    pub fn settle(self) -> LiveRun {
        let interrupted = self.record.stopped_by == StoppedBy::Interrupted;
        let faithfulness = Faithfulness::of(&self.observed(), &self.time_scales(), interrupted);
        let facts = self.facts(&faithfulness);
        let mut rows: Vec<FlowRow> =
            self.traffic.rows.iter().map(|row| with_path(*row, &self.record)).collect();
        let found = found::rows(self.plan, self.seed, &self.record);
        let runs_programs = self.record.found.iter().any(|found| !found.is_empty());
        rows.extend(found.iter().map(|row| with_path(*row, &self.record)));
        let unknown: Vec<&str> =
            if runs_programs { [OPTIONAL, found::UNKNOWN].concat() } else { OPTIONAL.to_vec() };
        let flows = flow_table(self.plan, &mut rows, &unknown);
        let found = found::table(self.plan, &self.record);
        let RouterRecord { ports, changing, capacities, run, .. } = self.record;
        let mut recording = facts.recording(self.plan, ports, run, flows, self.traffic.series, changing);
        recording.manifest.note_capacities(&capacities);
        recording.tables.extend(found);
        if let Some(requests) = self.traffic.requests {
            recording.add_requests(requests);
        }
        LiveRun { recording, faithfulness, captured: self.captured.and_then(Result::ok) }
    }

    fn time_scales(&self) -> TimeScales {
        let found = found::rows(self.plan, self.seed, &self.record);
        let least = self.traffic.rows.iter().chain(&found).map(|row| row.base_rtt).min();
        TimeScales::of(self.busiest, least.unwrap_or(Span::ZERO))
    }

    fn observed(&self) -> Observed {
        let hosts = &self.record.hosts;
        let mut hidden: Vec<(String, u64)> = Vec::new();
        let of_queues = self.kernels.iter().map(|kernel| &kernel.counters);
        for (place, count) in self.counters.iter().chain(of_queues).flat_map(Counters::hidden_drops) {
            match hidden.iter_mut().find(|(known, _)| known == place) {
                Some((_, sum)) => *sum += count,
                None => hidden.push((place.to_owned(), count)),
            }
        }
        Observed {
            measured: self.record.t1.saturating_since(self.record.t0),
            left: self.report.lateness.total(),
            lateness_p99: quantile(&self.report.lateness, 0.99),
            beyond_limit: changes_rates(self.plan).then_some(self.report.beyond_limit),
            stalls: self.report.stalls,
            longest_stall: self.report.longest_stall,
            duty: self.report.duty,
            traffic_lateness_p99: Some(&self.traffic.lateness_ns)
                .filter(|lateness| lateness.total() > 0)
                .map(|lateness| quantile(lateness, 0.99)),
            write_errors: self.report.write_errors,
            oversize: hosts.iter().map(|host| host.oversize).sum(),
            no_room: hosts.iter().map(|host| host.no_slot).sum(),
            hidden_drops: hidden,
            at_sockets: self.traffic.socket_errors.of_hosts().map(|(what, n)| (what.to_owned(), n)).collect(),
            handed_over: (
                // A packet that a device refused has left the network without reaching a receiver. Behind an interface of
                // this machine, nobody counts.
                (0..hosts.len())
                    .filter(|&number| !self.is_wire(number))
                    .map(|number| hosts[number].left.packets)
                    .sum::<u64>()
                    .saturating_sub(self.report.write_errors)
                    - (self.report.offload.packets_written - self.report.offload.writes),
                self.counters.iter().map(|counters| counters.get("dev.rx_packets")).sum(),
            ),
            kernels: self
                .kernels
                .iter()
                .zip(&self.record.kernels)
                .map(|(counts, (link, books))| {
                    debug_assert_eq!(counts.link, *link, "both are in the order of their links");
                    KernelObserved {
                        link: self.plan.links[*link].name.clone(),
                        lateness_p99: (books.lateness.total() > 0).then(|| quantile(&books.lateness, 0.99)),
                        offered: books.offered,
                        returned: books.returned,
                        strays: books.strays,
                        dropped: counts.dropped.into(),
                        waiting: counts.waiting.into(),
                    }
                })
                .collect(),
            marks: (0..hosts.len())
                .filter(|&number| !self.is_wire(number))
                .map(|number| (hosts[number].left_ce, self.counters[number].marked_in()))
                .collect(),
        }
    }

    /// Whether an interface of this machine is in the place of a host.
    fn is_wire(&self, number: usize) -> bool {
        let traffic = &self.plan.classes[HostId::of_number(number).class].traffic;
        matches!(traffic, Traffic::Program(program) if program.interfaces.is_some())
    }
}

impl Ran<'_> {
    fn facts(&self, faithfulness: &Faithfulness) -> RunFacts {
        RunFacts {
            engine: ENGINE,
            seed: self.seed,
            t0: self.record.t0,
            t1: self.record.t1,
            stopped_by: self.record.stopped_by,
            // The events of a live run are the packets that arrived.
            events: self.record.hosts.iter().map(|host| host.read.packets).sum(),
            wall_s: self.wall.as_secs_f64(),
            live: Some(Box::new(self.live(faithfulness))),
        }
    }

    /// Returns the manifest's `live` object.
    fn live(&self, faithfulness: &Faithfulness) -> LiveReport {
        let report = &self.report;
        let stall = |stall: &crate::data_plane::Stall| Stall {
            at_ns: stall.at.as_ns(),
            length_ns: stall.length.as_ns(),
        };
        let measured = self.record.t1.saturating_since(self.record.t0);
        let mut live = LiveReport {
            faithful: faithfulness.is_faithful(),
            interrupted: faithfulness.interrupted,
            reasons: faithfulness.reasons().map(str::to_owned).collect(),
            checks: faithfulness.checks.clone(),
            lateness: distribution(&report.lateness),
            stalls: report.first_stalls.iter().map(stall).collect(),
            stall_count: report.stalls,
            longest_stall_ns: report.longest_stall.as_ns(),
            duty_percent: 100.0 * report.duty,
            policy: if report.realtime { Policy::Fifo } else { Policy::Other },
            memory_locked: report.locked,
            wait: self.wait.name(),
            virtual_time: self.calibration.in_virtual_time(),
            offload: self.plan.live.offload.then(|| self.offload()),
            without_spin_percent: percent_without_spin(self.wait, report.without_spin, measured),
            frames: frames(&self.record.hosts),
            most_held: self.record.most_held as u64,
            drops: self.drops(),
            marks: self.marks(),
            remarks: self.hosts.remarks().into_iter().chain(feasible::remarks(self.plan)).collect(),
            stack: self
                .by_class(|class| self.hosts.of(HostId { class, side: End::Client }).applied.values.clone()),
            routes: self.by_class(|class| route(&self.hosts.stacks[class])),
            counters: self.by_class(|class| self.counters_of(class)),
            generator: self.generator(),
            kernel_queues: self.kernel_queues(),
            programs: self.programs.clone(),
            capture: None,
            capture_failure: None,
            ping: distribution(&self.calibration.ping_ns),
            capacity: self.calibration.capacity_for(self.busiest),
            machine: None,
        };
        match &self.captured {
            Some(Ok(report)) => capture_report::add(&mut live, report),
            Some(Err(failure)) => {
                capture_report::add_failure(&mut live, &failure.ports, failure.at, &failure.error.reason());
            }
            None => {}
        }
        live
    }

    fn offload(&self) -> OffloadReport {
        let counts = self.report.offload;
        OffloadReport {
            reads: counts.reads,
            packets_read: counts.packets_read,
            writes: counts.writes,
            packets_written: counts.packets_written,
        }
    }

    fn kernel_queues(&self) -> BTreeMap<String, KernelQueueReport> {
        let report = |(counts, (link, books)): (&KernelCounts, &(usize, KernelQueueBooks))| {
            let report = KernelQueueReport {
                spec: counts.spec.clone(),
                offered: books.offered,
                returned: books.returned,
                dropped: books.dropped,
                marked: books.marked,
                kernel_dropped: counts.dropped.into(),
                lateness: distribution(&books.lateness),
                shown: counts.shown.clone(),
            };
            (self.plan.links[*link].name.clone(), report)
        };
        self.kernels.iter().zip(&self.record.kernels).map(report).collect()
    }

    fn counters_of(&self, class: usize) -> HostCounters {
        let of = |side| {
            let counters = &self.counters[HostId { class, side }.number()];
            counters.iter().map(|(name, count)| (name.to_owned(), count)).collect()
        };
        HostCounters { client: of(End::Client), server: of(End::Server) }
    }

    fn marks(&self) -> LiveMarks {
        let hosts = &self.record.hosts;
        LiveMarks {
            marked: hosts.iter().map(|host| host.left_marked).sum(),
            ce_delivered: hosts.iter().map(|host| host.left_ce).sum(),
            ce_received: self.counters.iter().map(Counters::marked_in).sum(),
        }
    }

    /// Counts the packets that did not arrive although no discipline dropped them.
    fn drops(&self) -> LiveDrops {
        let hosts = &self.record.hosts;
        let sum = |of: fn(&HostBooks) -> u64| hosts.iter().map(of).sum();
        LiveDrops {
            malformed: sum(HostBooks::malformed),
            oversize: sum(|host| host.oversize),
            no_slot: sum(|host| host.no_slot),
            write_error: self.report.write_errors,
            tun: self.counters.iter().map(|c| c.get("dev.tx_dropped")).sum(),
            still_held: self.record.still_held,
        }
    }

    fn generator(&self) -> GeneratorReport {
        let seconds = self.record.t1.as_secs_f64().max(f64::MIN_POSITIVE);
        GeneratorReport {
            lateness: distribution(&self.traffic.lateness_ns),
            processor_percent: 100.0 * self.traffic.processor_time.as_secs_f64() / seconds,
            trouble: self.traffic.socket_errors.iter().collect(),
        }
    }

    fn by_class<T>(&self, of: impl Fn(usize) -> T) -> BTreeMap<String, T> {
        let classes = self.plan.classes.iter().enumerate();
        classes.map(|(class, plan)| (plan.name.clone(), of(class))).collect()
    }
}

/// Counts the packets that all hosts sent into the network, and the anomalies among them.
fn frames(hosts: &[HostBooks]) -> Frames {
    let sum = |of: fn(&HostBooks) -> u64| hosts.iter().map(of).sum();
    let malformed = |kind: &Malformed| (kind.name(), hosts.iter().map(|host| host.malformed_as(*kind)).sum());
    Frames {
        read: sum(|host| host.read.packets),
        let_in: sum(|host| host.accepted.packets),
        fragments: sum(|host| host.fragments),
        of_no_flow: sum(|host| host.of_no_flow),
        malformed: Malformed::ALL.iter().map(malformed).collect(),
    }
}

/// Returns the settings of the interfaces and routes of a class's hosts.
fn route(stack: &Stack) -> RouteMetrics {
    let metrics = &stack.metrics;
    RouteMetrics {
        mtu: stack.mtu,
        initial_window: metrics.initial_window,
        initial_receive_window: metrics.initial_receive_window,
        receive_window: metrics.receive_window,
        min_rto_ms: metrics.min_rto_ms,
        quick_ack: metrics.quick_ack,
    }
}

/// Returns the percentage of the measured interval during which the loop should have spun but did not.
fn percent_without_spin(wait: Wait, without: Span, measured: Span) -> f64 {
    if wait != Wait::Hybrid || measured.is_zero() {
        return 0.0;
    }
    // The time is counted in whole windows, the first of which may have begun before the interval.
    (100.0 * without.as_secs_f64() / measured.as_secs_f64()).min(100.0)
}

/// Returns the row of a flow, completed with the router's counts, which cover both directions if the server
/// responds, as in the simulator.
fn with_path(mut row: FlowRow, record: &RouterRecord) -> FlowRow {
    let Some(flow) = record.flows.get(row.number as usize) else { return row };
    let before = [0, 1].map(|direction| flow.all[direction].since(flow.measured[direction]));
    for (counts, books) in [(&mut row.counts, flow.all), (&mut row.at_warmup, before)] {
        let sum = |of: fn(&FlowBooks) -> u64| Some(books.iter().map(of).sum());
        counts.received_bytes = sum(|books| books.received_bytes);
        counts.received_by_client_bytes = Some(books[1].received_bytes);
        counts.ce_received = sum(|books| books.delivered_ce);
        counts.lost_outside_queues_packets = sum(|books| books.lost);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_is_counted_by_name_and_over_all_doors() {
        let mut hosts = [HostBooks { fragments: 1, of_no_flow: 2, ..HostBooks::default() }; 2];
        hosts[0].malformed = [1, 2, 3, 4, 5];
        hosts[1].malformed[Malformed::Checksum as usize] = 10;
        let counted = frames(&hosts);
        assert_eq!((counted.fragments, counted.of_no_flow), (2, 4));
        let counts =
            [("short", 1), ("version", 2), ("header length", 3), ("total length", 4), ("checksum", 15)];
        assert_eq!(counted.malformed, BTreeMap::from(counts));
        assert_eq!(hosts.iter().map(HostBooks::malformed).sum::<u64>(), 25);
    }

    #[test]
    fn a_loop_that_gave_up_spinning_is_reported_only_where_it_was_to_spin() {
        let percent = |wait, without| percent_without_spin(wait, Span::ms(without), Span::s(2));
        assert_eq!((percent(Wait::Hybrid, 500), percent(Wait::Epoll, 500)), (25.0, 0.0));
        assert_eq!(percent(Wait::Hybrid, 2050), 100.0, "the first window began before the interval");
        assert_eq!(percent_without_spin(Wait::Hybrid, Span::ZERO, Span::ZERO), 0.0);
    }
}
