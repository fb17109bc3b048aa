//! One run of a script against one instance, with every call checked.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::{Checks, Item, Operation, Subject, TestPacket, Violation};
use crate::books::Tally;
use crate::{Backlog, Cause, Ecn, LawSamples, Observer, Qdisc, Reason, TcpHeader};

/// Number of times that a call may access packets; `LOOKS_PER_FATE` further accesses are allowed
/// for each fate that the call reports.
const LOOKS_PER_CALL: usize = 64;
const LOOKS_PER_FATE: usize = 16;
/// Number of consecutive deadlines that a shaper may let pass without releasing a packet.
const EMPTY_DEADLINES: usize = 64;
/// Number of arrivals that are added to a script at instants at which the law changes.
const ARRIVALS_AT_UPDATES: u64 = 6;
/// Number of times that a call's duration is measured; the shortest result counts.
const TRIES: u32 = 5;

/// A disturbance of a run that must not affect the discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disturbance {
    None,
    /// `observe` is called between the operations and during the pauses.
    Observed,
    /// Each pause is cut into pieces, and at each cut the rate "changes" to its current value.
    Poked,
}

/// The observable outcome of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct CallLog {
    /// (instant, packet, fate)
    pub fates: Vec<(Instant, usize, Fate)>,
    /// Law values after each operation, as bits.
    pub law: Vec<Vec<(&'static str, u64)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Left,
    Dropped(Cause),
    Marked(Cause),
}

impl Fate {
    const fn by_law(self) -> bool {
        match self {
            Fate::Left => false,
            Fate::Dropped(at) => matches!(at.reason, Reason::Early | Reason::Forced),
            Fate::Marked(_) => true,
        }
    }
}

/// Whether a packet is inside or outside the discipline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Inside,
    Outside,
}

/// Runs `script`.
pub(super) fn run(
    subject: &Subject<'_>,
    script: &[Operation],
    how: Disturbance,
) -> Result<(CallLog, Checks), Violation> {
    let mut run = Run::new(subject, how, subject.draws);
    for (index, operation) in script.iter().enumerate() {
        run.operate(*operation).map_err(|(item, what)| Violation { item, operation: index, what })?;
    }
    Ok((run.witness.log, run.witness.checks))
}

/// Runs `script` once for each of `streams` and returns, for each run, the packets that the law drops or
/// marks. Other violations in the runs are ignored.
pub(super) fn notified(
    subject: &Subject<'_>,
    script: &[Operation],
    streams: impl Iterator<Item = Stream>,
) -> Vec<Vec<bool>> {
    let of_run = |stream| {
        let mut run = Run::new(subject, Disturbance::None, stream);
        let _ = script.iter().try_for_each(|operation| run.operate(*operation));
        let mut notified = alloc::vec![false; run.witness.places.len()];
        for (_, number, fate) in &run.witness.log.fates {
            notified[*number] |= fate.by_law();
        }
        notified
    };
    streams.map(of_run).collect()
}

/// Returns `script` with additional arrivals: in some of the pauses during which the law changes by
/// itself, a packet arrives at the instant of the change. An update that is due at t precedes the
/// arrival of a packet at t.
pub(super) fn with_arrivals_at_updates(subject: &Subject<'_>, script: &[Operation]) -> Vec<Operation> {
    let mut run = Run::new(subject, Disturbance::None, subject.draws);
    let (mut whole, mut added) = (Vec::new(), 0);
    for (index, operation) in script.iter().enumerate() {
        let mut operation = *operation;
        if let Operation::Pass(span) = operation
            && added < ARRIVALS_AT_UPDATES
            && let Some(until) = run.next_change(span)
        {
            let ecn = if added % 2 == 0 { Ecn::NotEct } else { Ecn::Ect0 };
            let arrival = Operation::Arrive { size: Bytes::new(1500), flow: added % 8, ecn };
            for added in [Operation::Pass(until), arrival] {
                let _ = run.operate(added);
                whole.push(added);
            }
            added += 1;
            operation = Operation::Pass(span.saturating_sub(until));
        }
        whole.push(operation);
        if run.operate(operation).is_err() {
            whole.extend_from_slice(&script[index + 1..]);
            break;
        }
    }
    whole
}

/// Runs `script`, a pause and one arrival several times, and returns the shortest time that `clock` measures
/// for the arrival.
pub(super) fn time_after_pause(
    subject: &Subject<'_>,
    script: &[Operation],
    pause: Span,
    clock: &dyn Fn() -> u64,
) -> u64 {
    let of_try = |_| {
        let mut run = Run::new(subject, Disturbance::None, subject.draws);
        let _ = script.iter().try_for_each(|operation| run.operate(*operation));
        run.now += pause;
        let begin = clock();
        let _ = run.arrive(Bytes::new(1500), 0, Ecn::NotEct);
        clock().saturating_sub(begin)
    };
    (0..TRIES).map(of_try).min().unwrap_or(0)
}

type Checked = Result<(), (Item, String)>;

struct Run<'a> {
    subject: &'a Subject<'a>,
    how: Disturbance,
    qdisc: Box<dyn Qdisc<TestPacket>>,
    now: Instant,
    rate: Rate,
    largest: Bytes,
    arrived: Tally,
    left: Tally,
    looks: Arc<AtomicUsize>,
    witness: Witness,
}

/// The observer: records each fate and any error in it.
#[derive(Default)]
struct Witness {
    now: Instant,
    places: Vec<Place>,
    marked: Vec<bool>,
    /// Whether the discipline declares that it settles everything at enqueue.
    settles: bool,
    /// The packet that is being enqueued.
    arriving: Option<usize>,
    /// The last packet that left.
    last_left: Option<usize>,
    dropped: Tally,
    reports: usize,
    log: CallLog,
    checks: Checks,
    complaint: Option<(Item, String)>,
}

impl<'a> Run<'a> {
    fn new(subject: &'a Subject<'a>, how: Disturbance, draws: Stream) -> Self {
        let qdisc = (subject.make)(draws);
        let settles = qdisc.settles_at_enqueue();
        Run {
            subject,
            how,
            qdisc,
            now: Instant::ZERO,
            rate: subject.rate,
            largest: Bytes::ZERO,
            arrived: Tally::default(),
            left: Tally::default(),
            looks: Arc::new(AtomicUsize::new(0)),
            witness: Witness { settles, ..Witness::default() },
        }
    }

    fn operate(&mut self, operation: Operation) -> Checked {
        match operation {
            Operation::Pass(span) => self.pass(span)?,
            Operation::Arrive { size, flow, ecn } => self.arrive(size, flow, ecn)?,
            Operation::Depart => self.depart()?,
            Operation::SetRate(rate) => {
                self.rate = rate;
                self.call(|q, now, _| q.rate_changed(now, rate))?;
            }
        }
        if self.how == Disturbance::Observed {
            let _ = self.law_values();
            let _ = self.law_values();
        }
        let values = self.law_values();
        self.witness.log.law.push(values);
        Ok(())
    }

    fn pass(&mut self, span: Span) -> Checked {
        let end = self.now + span;
        let cut = Span::ns(span.as_ns() / 7 + 1);
        while self.how != Disturbance::None && self.now + cut < end {
            self.now += cut;
            if self.how == Disturbance::Observed {
                let _ = self.law_values();
            } else {
                let rate = self.rate;
                self.call(|q, now, _| q.rate_changed(now, rate))?;
            }
        }
        self.now = end;
        if self.how == Disturbance::Poked {
            // Makes the law catch up once more, so that an update that is due now takes place.
            let rate = self.rate;
            self.call(|q, now, _| q.rate_changed(now, rate))?;
        }
        Ok(())
    }

    /// Returns how long it takes until the law's values differ from the present ones, or `None` if they
    /// differ after one nanosecond or do not differ at the end of `span`.
    fn next_change(&self, span: Span) -> Option<Span> {
        let at = |span| self.law_values_at(self.now + span);
        let now = at(Span::ZERO);
        let (mut same, mut other) = (1, span.as_ns());
        if other <= same || at(Span::ns(same)) != now || at(Span::ns(other)) == now {
            return None;
        }
        while other - same > 1 {
            let middle = same + (other - same) / 2;
            if at(Span::ns(middle)) == now { same = middle } else { other = middle }
        }
        Some(Span::ns(other))
    }

    fn arrive(&mut self, size: Bytes, flow: u64, ecn: Ecn) -> Checked {
        let number = self.witness.places.len();
        let pkt = TestPacket::new((number, self.now), size, flow, ecn, &self.looks);
        self.witness.places.push(Place::Inside);
        self.witness.marked.push(false);
        self.arrived = self.arrived.plus(Tally { packets: 1, bytes: size.get() });
        self.largest = self.largest.max(size);
        self.witness.arriving = Some(pkt.number);
        let (at_once, before) = (self.qdisc.passes_at_once(size), self.witness.reports);
        if at_once && !self.qdisc.backlog().packets.is_zero() {
            return Err((Item::Replay, "passes_at_once returned true although packets wait".into()));
        }
        let outcome = self.call(|q, now, obs| q.enqueue(now, pkt, obs));
        self.witness.arriving = None;
        if at_once && self.witness.reports > before {
            return Err((
                Item::Replay,
                "passes_at_once returned true, but enqueue dropped or marked a packet".into(),
            ));
        }
        outcome
    }

    fn depart(&mut self) -> Checked {
        let mut taken = None;
        self.witness.checks.count(Item::Liveness, 1);
        self.take(&mut taken)?;
        if taken.is_some() || self.qdisc.backlog().packets.is_zero() {
            return Ok(());
        }
        if !self.subject.shaper {
            let what = format!("dequeue returned no packet although {:?} waits", self.qdisc.backlog());
            return Err((Item::Replay, what));
        }
        // This is a shaper, so its deadlines must lead to a packet. As a host would, the test
        // advances the time to each deadline.
        for _ in 0..EMPTY_DEADLINES {
            self.now = self.checked_deadline()?;
            self.witness.checks.count(Item::Deadline, 1);
            self.take(&mut taken)?;
            if taken.is_some() || self.qdisc.backlog().packets.is_zero() {
                return Ok(());
            }
        }
        Err((Item::Deadline, format!("{EMPTY_DEADLINES} deadlines passed without a packet")))
    }

    fn checked_deadline(&self) -> Result<Instant, (Item, String)> {
        match self.qdisc.deadline() {
            None => Err((
                Item::Liveness,
                "packets wait, but dequeue returned none and there is no deadline".into(),
            )),
            Some(at) if at <= self.now => Err((
                Item::Deadline,
                format!("the deadline {at} is not after the dequeue at {} that returned no packet", self.now),
            )),
            Some(at) => Ok(at),
        }
    }

    /// Dequeues once and records the packet that leaves.
    fn take(&mut self, taken: &mut Option<usize>) -> Checked {
        let mut pkt = None;
        self.enter(|q, now, obs| pkt = q.dequeue(now, obs));
        if let Some(pkt) = pkt {
            *taken = Some(pkt.number);
            self.left = self.left.plus(Tally { packets: 1, bytes: pkt.size.get() });
            self.witness.went(&pkt, Fate::Left);
            self.witness.check_order(pkt.number);
        }
        self.verify()
    }

    fn call(&mut self, call: impl FnOnce(&mut dyn Qdisc<TestPacket>, Instant, &mut Witness)) -> Checked {
        self.enter(call);
        self.verify()
    }

    fn enter(&mut self, call: impl FnOnce(&mut dyn Qdisc<TestPacket>, Instant, &mut Witness)) {
        self.looks.store(0, Ordering::Relaxed);
        self.witness.checks.count(Item::Bounded, 1);
        self.witness.now = self.now;
        self.witness.reports = 0;
        call(&mut *self.qdisc, self.now, &mut self.witness);
        let (looks, allowed) =
            (self.looks.load(Ordering::Relaxed), LOOKS_PER_CALL + LOOKS_PER_FATE * self.witness.reports);
        if looks > allowed {
            self.witness.complain(
                Item::Bounded,
                format!("one call accessed packets {looks} times, more than the allowed {allowed}"),
            );
        }
    }

    /// Checks the invariants that hold after every call.
    fn verify(&mut self) -> Checked {
        if let Some(complaint) = self.witness.complaint.take() {
            return Err(complaint);
        }
        self.witness.checks.count(Item::Conservation, 1);
        let backlog = self.qdisc.backlog();
        let gone = self.left.plus(self.witness.dropped).plus(Tally::of(backlog));
        if gone != self.arrived {
            let what = format!(
                "arrived {:?}, but left {:?} + dropped {:?} + backlog {:?}",
                self.arrived, self.left, self.witness.dropped, backlog
            );
            return Err((Item::Conservation, what));
        }
        self.within_limit(backlog)
    }

    fn within_limit(&mut self, backlog: Backlog) -> Checked {
        self.witness.checks.count(Item::Replay, u64::from(self.subject.limit.is_some()));
        match self.subject.limit {
            Some(limit) if !limit.holds(backlog, self.largest) => {
                Err((Item::Replay, format!("{backlog:?} exceeds {limit:?}")))
            }
            _ => Ok(()),
        }
    }

    fn law_values(&self) -> Vec<(&'static str, u64)> {
        self.law_values_at(self.now)
    }

    fn law_values_at(&self, now: Instant) -> Vec<(&'static str, u64)> {
        let mut samples = LawSamples::new();
        self.qdisc.observe(now, &mut samples);
        samples.into_iter().map(|(name, value)| (name, value.to_bits())).collect()
    }
}

impl Witness {
    fn complain(&mut self, item: Item, what: String) {
        self.complaint.get_or_insert((item, what));
    }

    /// Records that a packet has left the discipline, sent or lost.
    fn went(&mut self, pkt: &TestPacket, fate: Fate) {
        match self.places.get_mut(pkt.number) {
            Some(place @ Place::Inside) => *place = Place::Outside,
            _ => self.complain(Item::Conservation, format!("packet {} left twice", pkt.number)),
        }
        self.check_field(pkt);
        self.checks.law_drops += u64::from(fate.by_law());
        self.log.fates.push((self.now, pkt.number, fate));
    }

    /// Checks that CE is set only on ECT, and is reported exactly when it was set here.
    fn check_field(&mut self, pkt: &TestPacket) {
        self.checks.count(Item::Replay, 1);
        let set_here = pkt.ecn == Ecn::Ce && pkt.sent_as != Ecn::Ce;
        if set_here && pkt.sent_as == Ecn::NotEct {
            self.complain(Item::Replay, format!("packet {} is not ECN-capable but was marked", pkt.number));
        } else if set_here != self.marked[pkt.number] {
            let what =
                format!("packet {}: marked {set_here}, reported {}", pkt.number, self.marked[pkt.number]);
            self.complain(Item::Replay, what);
        }
        if self.settles && pkt.dscp != pkt.sent_with {
            let what = format!("settles_at_enqueue returned true, but packet {} was re-marked", pkt.number);
            self.complain(Item::Replay, what);
        }
    }

    /// For a discipline that settles everything at enqueue: checks that packets leave in the order
    /// of arrival.
    fn check_order(&mut self, number: usize) {
        if self.settles && self.last_left.is_some_and(|last| last > number) {
            let what =
                format!("settles_at_enqueue returned true, but packet {number} left after a later one");
            self.complain(Item::Replay, what);
        }
        self.last_left = Some(number);
    }

    /// For a discipline that settles everything at enqueue: checks that only the arriving packet is marked or
    /// lost.
    fn check_settled(&mut self, number: usize) {
        if self.settles && self.arriving != Some(number) {
            let what =
                format!("settles_at_enqueue returned true, but packet {number} was marked or lost later");
            self.complain(Item::Replay, what);
        }
    }

    fn check_time(&mut self, now: Instant) {
        self.checks.count(Item::Time, 1);
        if now != self.now {
            self.complain(Item::Time, format!("a fate at {now} is reported in a call at {}", self.now));
        }
    }
}

impl Observer<TestPacket> for Witness {
    fn dropped(&mut self, now: Instant, pkt: TestPacket, at: Cause) {
        self.check_time(now);
        self.check_settled(pkt.number);
        self.reports += 1;
        self.dropped = self.dropped.plus(Tally { packets: 1, bytes: pkt.size.get() });
        self.went(&pkt, Fate::Dropped(at));
    }

    fn marked(&mut self, now: Instant, pkt: &TestPacket, at: Cause) {
        self.check_time(now);
        self.check_settled(pkt.number);
        self.reports += 1;
        self.marked[pkt.number] = true;
        self.checks.marks += 1;
        self.log.fates.push((now, pkt.number, Fate::Marked(at)));
    }

    fn tcp_header(&self, pkt: &TestPacket) -> Option<TcpHeader> {
        pkt.is_ack().then(|| TcpHeader::new(pkt.number as u32, TcpHeader::ACK, false))
    }
}
