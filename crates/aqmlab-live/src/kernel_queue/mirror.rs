//! The packets of a kernel queue, represented as a discipline at the router's port.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aqmlab_qdisc::{Backlog, Cause, Ecn, LawSamples, Observer, Packet, Qdisc, Reason, Stamped};
use aqmlab_scenario::spec_words;
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use crate::frame::LiveFrame;

/// Number of distinct packet numbers, which is also the maximum number of packets in the kernel at
/// the same time.
const NUMBERS: usize = 1 << 16;

/// The properties of a kernel discipline, which follow from its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Habits {
    /// Whether all packets leave in order of arrival; if not, packets keep their order only within
    /// each flow.
    pub one_line: bool,
    /// Whether a packet can be dropped only when it arrives.
    pub at_arrival: bool,
    /// Whether every drop means that the buffer is full.
    pub only_overflow: bool,
    /// Whether it holds packets while the link is idle, as a shaper does.
    pub holds: bool,
}

impl Habits {
    /// Returns the properties of the discipline that tc adds for `spec`, according to its source in Linux 6.1
    /// (net/sched), or 7.3 for `dualpi2`. Disciplines that are not named here, such as `fq_codel`, `cake` and
    /// `dualpi2`, have several queues and may drop packets that leave. `tbf` contains a `bfifo`.
    pub fn of(spec: &str) -> Self {
        let mut words = spec_words(spec);
        let name = words.next().unwrap_or_default();
        let shapes = name == "cake" && words.any(|word| word == "bandwidth") && !spec.contains("unlimited");
        Habits {
            one_line: matches!(
                name,
                "pfifo" | "bfifo" | "tbf" | "red" | "gred" | "pie" | "codel" | "choke" | "sfb" | "blackhole"
            ),
            at_arrival: matches!(
                name,
                "pfifo"
                    | "bfifo"
                    | "pfifo_fast"
                    | "tbf"
                    | "red"
                    | "gred"
                    | "pie"
                    | "fq_pie"
                    | "sfb"
                    | "blackhole"
            ),
            only_overflow: matches!(name, "pfifo" | "bfifo" | "pfifo_fast" | "tbf"),
            holds: shapes || matches!(name, "tbf" | "netem" | "fq" | "cbs" | "etf" | "hfsc" | "taprio"),
        }
    }

    const fn reason(self) -> Reason {
        if self.only_overflow { Reason::Overflow } else { Reason::Early }
    }
}

/// A copy that the kernel has forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Returned {
    pub number: u16,
    pub traffic_class: u8,
}

/// The state that a [`Mirror`] shares with its [`KernelQueue`](super::KernelQueue).
pub(super) struct Held {
    /// The packets in the kernel, by number.
    packets: Vec<Option<Stamped<LiveFrame>>>,
    /// The numbers of these packets, in order of arrival.
    order: VecDeque<u16>,
    backlog: Backlog,
    /// Returned copies whose packets have not left yet, in the order of the copies' return.
    returned: VecDeque<Returned>,
    /// The number of the packet that arrives next, and whether the kernel has already dropped it.
    pub coming: Option<(u16, bool)>,
    last: u16,
    /// The properties of the discipline.
    pub habits: Habits,
    /// Number of packets found to have been dropped.
    pub dropped: u64,
    /// Number of packets found to have been marked.
    pub marked: u64,
}

impl Held {
    fn new() -> Self {
        Held {
            packets: (0..NUMBERS).map(|_| None).collect(),
            order: VecDeque::with_capacity(NUMBERS),
            backlog: Backlog::default(),
            returned: VecDeque::with_capacity(NUMBERS),
            coming: None,
            last: 0,
            habits: Habits::default(),
            dropped: 0,
            marked: 0,
        }
    }

    /// Returns a number that no packet in the kernel has; `None` if all numbers are taken.
    pub fn free_number(&mut self) -> Option<u16> {
        let mut number = self.last;
        for _ in 0..NUMBERS {
            number = number.wrapping_add(1);
            if self.packets[usize::from(number)].is_none() {
                self.last = number;
                return Some(number);
            }
        }
        None
    }

    /// Records that a copy has returned; returns whether its packet is known.
    pub fn come_back(&mut self, returned: Returned) -> bool {
        let known = self.packets[usize::from(returned.number)].is_some()
            || self.coming.is_some_and(|(number, _)| number == returned.number);
        if known {
            self.returned.push_back(returned);
        }
        known
    }

    /// Returns the arrival time of the packet that leaves next, which is the one whose copy
    /// returned first among the packets that have not left.
    pub fn arrived(&self) -> Option<Instant> {
        let first = self.returned.front()?;
        self.packets[usize::from(first.number)].as_ref().map(|packet| packet.arrived)
    }

    fn put(&mut self, number: u16, packet: Stamped<LiveFrame>) {
        self.backlog.packets += Packets::new(1);
        self.backlog.bytes += packet.wire_len();
        self.packets[usize::from(number)] = Some(packet);
        self.order.push_back(number);
    }

    fn take(&mut self, number: u16) -> Option<Stamped<LiveFrame>> {
        let packet = self.packets[usize::from(number)].take()?;
        self.backlog.packets -= Packets::new(1);
        self.backlog.bytes -= packet.wire_len();
        // The search begins at the front, because most packets leave from there. The number must be removed,
        // because it will eventually be given to a later packet.
        let place = self.order.iter().position(|&other| other == number).expect("the number is in `order`");
        self.order.remove(place);
        Some(packet)
    }

    /// Returns the number of a packet that the kernel must have dropped, because packet `number`
    /// has overtaken it although their order is fixed.
    fn overtaken(&self, number: u16) -> Option<u16> {
        let flow = |packet: &Stamped<LiveFrame>| packet.flow_hash(0);
        let own = flow(self.packets[usize::from(number)].as_ref()?);
        let keeps_its_place = |packet: &Stamped<LiveFrame>| self.habits.one_line || flow(packet) == own;
        let earlier = self.order.iter().take_while(|&&other| other != number);
        earlier.copied().find(|&other| self.packets[usize::from(other)].as_ref().is_some_and(keeps_its_place))
    }
}

/// The packets that are in the kernel queue.
pub struct Mirror(Arc<Mutex<Held>>);

impl Mirror {
    /// Returns an empty mirror and a handle to its state.
    pub(super) fn new() -> (Self, Arc<Mutex<Held>>) {
        let held = Arc::new(Mutex::new(Held::new()));
        (Mirror(Arc::clone(&held)), held)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        locked(&self.0)
    }
}

/// Locks the shared state. Both sides are on one thread, so neither ever waits here.
pub(super) fn locked(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Qdisc<Stamped<LiveFrame>> for Mirror {
    fn enqueue(
        &mut self,
        now: Instant,
        packet: Stamped<LiveFrame>,
        observer: &mut dyn Observer<Stamped<LiveFrame>>,
    ) {
        let mut held = self.held();
        match held.coming.take() {
            Some((number, false)) => held.put(number, packet),
            // The kernel has dropped the packet, or the packet could not be handed to the kernel.
            Some((_, true)) | None => {
                held.dropped += 1;
                observer.dropped(now, packet, Cause::of(held.habits.reason()));
            }
        }
    }

    fn dequeue(
        &mut self,
        now: Instant,
        observer: &mut dyn Observer<Stamped<LiveFrame>>,
    ) -> Option<Stamped<LiveFrame>> {
        let mut held = self.held();
        loop {
            let Returned { number, traffic_class } = held.returned.pop_front()?;
            while let Some(lost) = held.overtaken(number) {
                let packet = held.take(lost).expect("it was present");
                held.dropped += 1;
                observer.dropped(now, packet, Cause::of(held.habits.reason()));
            }
            let Some(mut packet) = held.take(number) else { continue };
            if traffic_class & 3 == Ecn::Ce as u8 && packet.ecn() != Ecn::Ce {
                packet.mark_ce();
                held.marked += 1;
                observer.marked(now, &packet, Cause::of(Reason::Early));
            }
            return Some(packet);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    fn backlog(&self) -> Backlog {
        self.held().backlog
    }

    fn next_len(&mut self) -> Option<Bytes> {
        None
    }

    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}
