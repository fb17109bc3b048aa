//! The event loop: it reads the frames that have arrived, processes due events, and waits for the
//! next instant.

use std::io;

use aqmlab_units::{Instant, Span};

use super::batch::Batch;
use super::clock::Poller;
use super::control::DataPlaneControl;
use super::device::Device;
use super::report::{DataPlaneReport, Duty, Reading, Stall};
use super::settings::DataPlaneSettings;
use crate::addresses::HostId;
use crate::error::LiveError;
use crate::faithfulness::LONGEST_SILENCE;
use crate::frame::offload;
use crate::router::{FrameSink, OutgoingFrame, Router};

/// Maximum number of frames read from one device before the loop turns to the other devices and to
/// its other work, so that a sender that never pauses does not block the router's links.
const READS: usize = 8;
/// Maximum time that a pass of the loop waits, so that requests are noticed soon; a much longer silence can
/// then only be a stall.
const HEARTBEAT: Span = Span::ms(4);
/// Length of the read buffer. It exceeds the length of any packet, so that a packet longer than its class
/// allows is recognised.
const SCRATCH: usize = offload::HEADER + (1 << 16);
/// A machine counts as suspended if it appears to have slept for longer than this; a shorter sleep
/// may merely be the time that passed between the readings of the two clocks.
const ASLEEP: Span = Span::ms(100);

/// The loop's state.
pub struct EventLoop<D, P> {
    router: Router,
    poller: P,
    /// The settings, of which the loop uses only `spin`, `gather` and `offload`.
    settings: DataPlaneSettings,
    /// Whether packets leave in such quick succession that the last write contained several; if so, the first
    /// packet of the next batch need not wake the thread.
    dense: bool,
    scratch: Box<[u8]>,
    ready: Vec<bool>,
    duty: Duty,
    /// Time at which the last pass began.
    last_pass: Instant,
    /// Whether the measured interval is in progress.
    measuring: bool,
    sink: DeviceSink<D>,
}

/// The devices through which frames leave, and the frames' lateness.
struct DeviceSink<D> {
    devices: Vec<D>,
    report: DataPlaneReport,
    /// Packets that wait to be written together.
    batch: Batch,
    /// Whether packets wait for others, to be written together. Once true, it remains true until
    /// the end of the run, because if packets no longer waited, the load that made waiting
    /// necessary would return.
    gathers: bool,
}

/// The devices and the clock.
struct TimedSink<'a, D, P> {
    sink: &'a mut DeviceSink<D>,
    poller: &'a P,
}

impl<D: Device, P: Poller> FrameSink for TimedSink<'_, D, P> {
    fn leave(&mut self, leaving: OutgoingFrame<'_>) {
        let DeviceSink { devices, report, batch, gathers } = &mut *self.sink;
        if *gathers {
            batch.add(&leaving);
            return if batch.is_full() {
                self.write_batch()
            };
        }
        // Recording the final state at the end of the run takes a moment, which does not count as lateness.
        if let Some(limit) = leaving.measured {
            report.late(self.poller.now().saturating_since(leaving.at), limit);
        }
        if devices[leaving.to.number()].write_to_link(leaving.link, leaving.octets).is_err() {
            report.write_errors += 1;
        }
    }
}

impl<D: Device, P: Poller> TimedSink<'_, D, P> {
    /// Writes the packets that wait.
    fn write_batch(&mut self) {
        let DeviceSink { devices, report, batch, .. } = &mut *self.sink;
        for write in batch.take() {
            let now = self.poller.now();
            for &(at, measured) in &write.due {
                if let Some(limit) = measured {
                    report.late(now.saturating_since(at), limit);
                }
            }
            let packets = write.due.len() as u64;
            match devices[write.to].write_to_link(&write.link, write.octets()) {
                Ok(()) => {
                    report.offload.writes += 1;
                    report.offload.packets_written += packets;
                }
                Err(_) => report.write_errors += packets,
            }
        }
    }
}

/// The parts of a loop that remain after it has ended.
pub type Parts<D> = (Router, Vec<D>, DataPlaneReport);

impl<D: Device, P: Poller> EventLoop<D, P> {
    /// Creates a loop between these devices, one for each of the router's hosts, in the order of the hosts'
    /// numbers. Allocates all memory that the loop will need.
    pub fn new(router: Router, devices: Vec<D>, poller: P, settings: DataPlaneSettings) -> Self {
        let reading = Reading { now: poller.now(), used: poller.thread_time() };
        let ready = vec![true; devices.len() + router.kernel_fds().count()];
        // The buffer is filled with nonzero bytes, so that its pages are allocated now: the system would
        // allocate pages of zeros only when they are written.
        let scratch = vec![0xa5; SCRATCH].into_boxed_slice();
        let (batch, gathers) = (Batch::new(settings.offload), settings.offload);
        let sink = DeviceSink { devices, report: DataPlaneReport::new(), batch, gathers };
        EventLoop {
            router,
            poller,
            settings,
            dense: false,
            scratch,
            ready,
            duty: Duty::new(reading),
            last_pass: reading.now,
            measuring: false,
            sink,
        }
    }

    /// Returns the report, to which facts about the loop's thread can be added.
    pub fn report_mut(&mut self) -> &mut DataPlaneReport {
        &mut self.sink.report
    }

    /// Runs until `control` requests the end.
    ///
    /// # Errors
    /// If the machine was suspended, or if a device or the wait fails.
    pub fn run(mut self, control: &DataPlaneControl) -> Result<Parts<D>, LiveError> {
        self.begin();
        control.set_ready();
        while !control.is_finished() {
            let now = self.pass(control)?;
            self.wait(now)?;
        }
        let now = self.poller.now();
        self.router.advance(now, &mut TimedSink { sink: &mut self.sink, poller: &self.poller });
        self.out().write_batch();
        self.settle_measuring(now);
        if self.measuring {
            self.sink.report.duty = self.duty.measured(self.reading());
        }
        Ok((self.router, self.sink.devices, self.sink.report))
    }

    fn out(&mut self) -> TimedSink<'_, D, P> {
        TimedSink { sink: &mut self.sink, poller: &self.poller }
    }

    /// Starts the measurements afresh, so that time before the loop began does not count as a stall.
    fn begin(&mut self) {
        let reading = self.reading();
        self.duty = Duty::new(reading);
        self.last_pass = reading.now;
        self.settle_measuring(reading.now);
    }

    /// Executes one pass; returns the time at which it ends.
    fn pass(&mut self, control: &DataPlaneControl) -> Result<Instant, LiveError> {
        let begun = self.poller.now();
        self.look_for_a_stall(begun);
        self.read_all()?;
        let now = self.poller.now();
        self.router.advance(now, &mut TimedSink { sink: &mut self.sink, poller: &self.poller });
        if let Some(why) = control.wanted(now) {
            self.router.end(now, why, &mut TimedSink { sink: &mut self.sink, poller: &self.poller });
        }
        if self.batch_ends().is_some_and(|at| at <= now) {
            self.dense = self.sink.batch.packets() > 1;
            self.out().write_batch();
        }
        self.settle_measuring(now);
        if self.duty.is_due(now) {
            self.end_window(now)?;
        }
        let report = &self.sink.report;
        control.report(self.router.ended(), self.router.held(), report.lateness_max);
        Ok(now)
    }

    /// Reads a few frames from each device that has any. The clock is read after each frame, and
    /// the router processes earlier events before it accepts the frame.
    fn read_all(&mut self) -> Result<(), LiveError> {
        for number in 0..self.sink.devices.len() {
            let mut reads = 0;
            while self.ready[number] && reads < READS {
                self.ready[number] =
                    self.read(number).map_err(|error| LiveError::io("read from", host(number))(error))?;
                reads += 1;
            }
        }
        for number in self.sink.devices.len()..self.ready.len() {
            if self.ready[number] {
                self.ready[number] = false;
                self.collect(number - self.sink.devices.len())?;
            }
        }
        match self.router.take_fault() {
            Some(error) => Err(LiveError::io("use", KERNEL_QUEUE)(error)),
            None => Ok(()),
        }
    }

    /// Collects the packets that have left the `nth` kernel queue.
    fn collect(&mut self, nth: usize) -> Result<(), LiveError> {
        let now = self.poller.now();
        let mut out = TimedSink { sink: &mut self.sink, poller: &self.poller };
        self.router.collect(now, nth, &mut out).map_err(LiveError::io("use", KERNEL_QUEUE))
    }

    /// Reads one frame; returns whether there was one.
    fn read(&mut self, number: usize) -> io::Result<bool> {
        let Some(length) = self.sink.devices[number].read(&mut self.scratch)? else { return Ok(false) };
        let now = self.poller.now();
        let link = self.sink.devices[number].link();
        let (read, host) = (&mut self.scratch[..length], HostId::of_number(number));
        let mut packets = 0;
        let mut out = TimedSink { sink: &mut self.sink, poller: &self.poller };
        let mut accept = |packet: &[u8]| {
            packets += 1;
            // The host's books record why a frame is refused.
            let _ = self.router.accept_from_link(now, host, packet, link.as_ref(), &mut out);
        };
        if self.settings.offload || link.is_some() {
            offload::split(read, accept);
        } else {
            accept(read);
        }
        let counts = &mut self.sink.report.offload;
        counts.reads += 1;
        counts.packets_read += packets;
        // Reading from all devices may take longer than packets may wait, so overdue packets are written
        // here.
        if self.sink.batch.oldest().is_some_and(|at| at + self.settings.gather <= now) {
            self.out().write_batch();
        }
        Ok(true)
    }

    /// Waits for a departure, an event inside the router or an arrival, but no longer than [`HEARTBEAT`];
    /// does not wait if frames are known to be ready for reading.
    fn wait(&mut self, now: Instant) -> Result<(), LiveError> {
        let heartbeat = now + HEARTBEAT;
        let departure = self.router.next_leaving().unwrap_or(Instant::FAR_FUTURE);
        let first = if self.dense { departure.saturating_add(self.settings.gather) } else { departure };
        let leaving = self.batch_ends().unwrap_or(first);
        let inside = self.router.next_inside().unwrap_or(Instant::FAR_FUTURE);
        let due = leaving.min(inside).min(heartbeat);
        let until = if self.ready.contains(&true) { now } else { due };
        // The thread spins only if a frame leaves at the instant `due`; if none does, no frame can be late.
        let spin = if due == departure && !self.dense && self.duty.may_spin() {
            self.settings.spin
        } else {
            Span::ZERO
        };
        let waited = self.poller.wait(until, spin, &mut self.ready);
        waited.map_err(|error| LiveError::io("wait for", "packets")(error))
    }

    /// Returns the instant at which the waiting packets are to be written: when the first has
    /// waited for long enough, or immediately if no other packet leaves before then. `None` if no
    /// packet waits.
    fn batch_ends(&self) -> Option<Instant> {
        let first = self.sink.batch.oldest()?;
        let end = first + self.settings.gather;
        let others = self.router.next_leaving().is_some_and(|at| at <= end);
        Some(if others { end } else { first })
    }

    /// Records a stall if too much time has passed since the last pass. The loop runs every few milliseconds,
    /// so any longer gap is caused by the machine. Frames that arrived during the gap have a wrong arrival
    /// time, and events that were due during it were late.
    fn look_for_a_stall(&mut self, now: Instant) {
        let length = now.saturating_since(self.last_pass);
        // `self.measuring` may be out of date: it was last set before the gap, and the interval may
        // have begun during the gap.
        let measuring = self.router.ended().is_none() && now >= self.router.measured_from();
        if length > LONGEST_SILENCE && measuring {
            self.sink.report.stalled(Stall { at: self.last_pass, length });
        }
        self.last_pass = now;
    }

    /// Begins or ends the measured interval of the report, when the router's begins or ends.
    fn settle_measuring(&mut self, now: Instant) {
        let measuring = self.router.ended().is_none() && now >= self.router.measured_from();
        if measuring == self.measuring {
            return;
        }
        self.measuring = measuring;
        let reading = self.reading();
        if measuring {
            self.duty.measure(reading);
        } else {
            self.sink.report.duty = self.duty.measured(reading);
        }
    }

    /// Ends a window, which lasts about a tenth of a second: records how busy the thread was, and
    /// fails if the machine has been suspended.
    fn end_window(&mut self, now: Instant) -> Result<(), LiveError> {
        let lost = self.poller.suspended();
        if lost > ASLEEP {
            return Err(LiveError::Suspended { at: now, lost });
        }
        let spun = self.duty.may_spin();
        let reading = self.reading();
        let length = self.duty.next_window(reading);
        self.sink.gathers |= !self.duty.may_spin();
        if !spun && self.measuring {
            self.sink.report.without_spin += length;
        }
        Ok(())
    }

    fn reading(&self) -> Reading {
        Reading { now: self.poller.now(), used: self.poller.thread_time() }
    }
}

const KERNEL_QUEUE: &str = "the kernel's queue";

/// Names a device by its host, for use in messages: for example, *the client of class 1*.
fn host(number: usize) -> String {
    let HostId { class, side } = HostId::of_number(number);
    format!("the {} of class {}", side.name(), class + 1)
}
