//! Frames and updates: which arrive in time. This code is the same for every host.
//!
//! A frame counts if it was captured within the measured interval `(t0, t1]`. Each frame has one fate: it is complete in
//! time, complete but late, discarded by its sender, lost (not complete by its deadline, which has passed, nor later),
//! or open (its deadline has not passed by `t1`). Its delay lasts from its capture to the arrival of its last packet.

use aqmlab_qdisc::Histogram;
use aqmlab_traffic::End;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::schema;
use crate::table::Table;

/// What to record about frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameSettings {
    /// The beginning of the measured interval.
    pub t0: Instant,
    /// The name and the deadline of each class with frames; `None` for the others.
    pub classes: Vec<Option<(String, Span)>>,
}

/// The state of a media sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SenderState {
    /// The target rate.
    pub target: Rate,
    /// Bytes that wait at the sender.
    pub queued: Bytes,
    /// The last round-trip time, if one was measured.
    pub rtt: Option<Span>,
}

/// The state of the frames of a run.
#[derive(Clone, Debug)]
pub struct FrameRecorder {
    t0: Instant,
    /// By class and receiving end.
    classes: Vec<Option<Class>>,
    series: Table,
}

#[derive(Clone, Debug)]
struct Class {
    name: String,
    deadline: Span,
    to: [Frames; 2],
}

#[derive(Clone, Debug, Default)]
struct Frames {
    captured: u64,
    on_time: u64,
    late: u64,
    discarded: u64,
    lost: u64,
    open: u64,
    bytes: u64,
    late_packets: u64,
    freezes: u64,
    frozen_ns: u64,
    delay_sum_ns: u128,
    delay_max: Option<Span>,
    delay_ns: Histogram,
}

impl FrameRecorder {
    /// Creates a recorder to which nothing has been reported yet.
    pub fn new(settings: FrameSettings) -> Self {
        let class = |(name, deadline)| Class { name, deadline, to: Default::default() };
        let classes = settings.classes.into_iter().map(|known| known.map(class)).collect();
        FrameRecorder { t0: settings.t0, classes, series: Table::new(&schema::MEDIA_SERIES) }
    }

    /// Returns the frames of a class to an end, if what happened at `at` counts.
    ///
    /// # Panics
    /// If the class has no frames.
    fn of(&mut self, class: usize, to: End, at: Instant) -> Option<&mut Frames> {
        let class = self.classes[class].as_mut().expect("its class has frames");
        (at > self.t0).then_some(&mut class.to[to as usize])
    }

    /// Records the capture of a frame of this size, headers included.
    pub fn captured(&mut self, class: usize, to: End, at: Instant, bytes: Bytes) {
        if let Some(frames) = self.of(class, to, at) {
            frames.captured += 1;
            frames.bytes += bytes.get();
        }
    }

    /// Records that a frame is complete.
    pub fn complete(&mut self, class: usize, to: End, captured: Instant, delay: Span, late: bool) {
        let Some(frames) = self.of(class, to, captured) else { return };
        *(if late { &mut frames.late } else { &mut frames.on_time }) += 1;
        frames.delay_sum_ns += u128::from(delay.as_ns());
        frames.delay_max = frames.delay_max.max(Some(delay));
        frames.delay_ns.add(delay.as_ns(), 1);
    }

    /// Records that a frame will not be complete.
    pub fn given_up(&mut self, class: usize, to: End, captured: Instant, discarded: bool) {
        if let Some(frames) = self.of(class, to, captured) {
            *(if discarded { &mut frames.discarded } else { &mut frames.lost }) += 1;
        }
    }

    /// Records a frame that is not complete at `end`, the end of the run. It should be complete by `due`.
    pub fn unfinished(&mut self, class: usize, to: End, captured: Instant, due: Instant, end: Instant) {
        if let Some(frames) = self.of(class, to, captured) {
            *(if due <= end { &mut frames.lost } else { &mut frames.open }) += 1;
        }
    }

    /// Records that a packet arrived after the deadline of its frame.
    pub fn late_packet(&mut self, class: usize, to: End, at: Instant) {
        if let Some(frames) = self.of(class, to, at) {
            frames.late_packets += 1;
        }
    }

    /// Records a freeze that ends at `at`.
    pub fn froze(&mut self, class: usize, to: End, at: Instant, gap: Span) {
        if let Some(frames) = self.of(class, to, at) {
            frames.freezes += 1;
            frames.frozen_ns += gap.as_ns();
        }
    }

    /// Adds a sample of a media sender. At one instant, flows are sampled in the order of their numbers.
    pub fn sample(&mut self, at: Instant, flow: u32, state: SenderState) {
        self.series.push([
            at.as_ns().into(),
            u64::from(flow).into(),
            state.target.as_bps().into(),
            state.queued.get().into(),
            state.rtt.map(Span::as_ns).into(),
        ]);
    }

    /// Returns the memory of the tables in bytes, estimated from their lengths.
    pub fn memory_bytes(&self) -> usize {
        let bins =
            |class: &Class| class.to.iter().map(|frames| frames.delay_ns.memory_bytes()).sum::<usize>();
        let cells = self.series.rows() * self.series.columns.len();
        self.classes.iter().flatten().map(bins).sum::<usize>() + cells * size_of::<u64>()
    }

    /// Returns the tables [`schema::FRAME_SUMMARY`], [`schema::FRAME_HISTOGRAMS`] and [`schema::MEDIA_SERIES`].
    pub fn finish(self) -> [Table; 3] {
        let (mut summary, mut histograms) =
            (Table::new(&schema::FRAME_SUMMARY), Table::new(&schema::FRAME_HISTOGRAMS));
        for class in self.classes.into_iter().flatten() {
            for end in End::ALL {
                let frames = &class.to[end as usize];
                // Media flows have frames to the server only.
                if frames.captured == 0 && end == End::Client {
                    continue;
                }
                frames.push(&mut summary, &class, end);
                for bin in frames.delay_ns.bins() {
                    histograms.push([
                        class.name.as_str().into(),
                        end.name().into(),
                        "frame_delay_ns".into(),
                        bin.low.into(),
                        bin.high.into(),
                        bin.weight.into(),
                    ]);
                }
            }
        }
        [summary, histograms, self.series]
    }
}

impl Frames {
    fn push(&self, table: &mut Table, class: &Class, to: End) {
        table.push([
            class.name.as_str().into(),
            to.name().into(),
            class.deadline.as_ns().into(),
            self.captured.into(),
            self.on_time.into(),
            self.late.into(),
            self.discarded.into(),
            self.lost.into(),
            self.open.into(),
            self.bytes.into(),
            self.late_packets.into(),
            self.freezes.into(),
            self.frozen_ns.into(),
            self.delay_sum_ns.into(),
            self.delay_max.map(Span::as_ns).into(),
        ]);
    }
}
