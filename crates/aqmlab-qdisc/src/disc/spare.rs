//! A wrapper that spares short flows: the law of the queue behind it neither drops nor marks the first packets of
//! a flow. Its parameters.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use aqmlab_params::{Kind, ParamError, Row, Settings, Value, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::inner::{A_QUEUE, BuildInner, Inner, needs, quick_red, replace, resolve_inner};
use crate::flow_table::FlowTable;
use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity};
use crate::links::{Linked, Links, List};
use crate::{Arrived, Backlog, Inside, LawSamples, LinkContext, Observer, Packet, Qdisc, resolve};

/// A flow that the table knows.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The hash of the flow.
    key: u64,
    /// What it has brought, in the unit of [`Below`].
    brought: u64,
    /// Its last arrival.
    last: Instant,
    links: Links,
}

impl Linked for Known {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The amount below which a flow is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Below {
    Packets(u64),
    Bytes(u64),
}

/// A filter that passes the first packets of each flow to its queue in such a way that the law there spares them.
#[derive(Clone, Debug)]
pub struct Spare<Q> {
    queue: Q,
    below: Below,
    /// Silence after which a flow counts as a new one.
    forget: Span,
    /// The most flows in the table.
    most: usize,
    /// The place in `known` of each flow.
    places: FlowTable<u32>,
    known: Vec<Known>,
    /// The flows in the order of their last arrivals, the longest silent one first.
    silent: List,
    salt: u64,
    spared: u64,
}

impl<Q> Spare<Q> {
    /// Returns whether the flow of a packet is short, and counts the packet.
    fn is_short(&mut self, now: Instant, pkt: &impl Packet) -> bool {
        let key = pkt.flow_hash(self.salt);
        let new = Known { key, brought: 0, last: now, links: Links::NONE };
        let at = match self.places.get(key) {
            Some(at) => {
                self.silent.unlink(&mut self.known, *at);
                *at
            }
            None if self.known.len() < self.most => {
                self.known.push(new);
                self.known.len() as u32 - 1
            }
            None => {
                let at = self.silent.head;
                self.silent.unlink(&mut self.known, at);
                self.places.remove(self.known[at as usize].key);
                self.known[at as usize] = new;
                at
            }
        };
        *self.places.get_or_default(key) = at;
        let flow = &mut self.known[at as usize];
        if now.saturating_since(flow.last) > self.forget {
            flow.brought = 0;
        }
        flow.last = now;
        let (amount, below) = match self.below {
            Below::Packets(below) => (1, below),
            Below::Bytes(below) => (pkt.wire_len().get(), below),
        };
        let short = flow.brought < below;
        flow.brought = flow.brought.saturating_add(amount);
        self.silent.append(&mut self.known, at);
        short
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Spare<Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.is_short(now, &pkt) {
            self.enqueue_spared(now, pkt, obs);
        } else {
            self.queue.enqueue(now, pkt, obs);
        }
    }

    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.spared += 1;
        self.queue.enqueue_spared(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.queue.dequeue(now, obs)
    }

    fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.queue.rate_changed(now, rate);
    }

    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        self.queue.shape(now, rate)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.queue.next_len()
    }

    fn settles_at_enqueue(&self) -> bool {
        self.queue.settles_at_enqueue()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        let flows = flows.min(self.most);
        self.places.reserve(flows);
        self.known.reserve_exact(flows.saturating_sub(self.known.len()));
        self.queue.reserve(packets, flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.queue.each_inner(visit);
    }

    /// Appends `known` (flows in the table), `spared` (packets so far), and the values of the inner queue.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        out.extend([("known", self.known.len() as f64), ("spared", self.spared as f64)]);
        self.queue.observe(now, out);
    }
}

/// The disciplines that tell a spared packet from another: one queue whose law decides at arrivals.
const SPARING: [&str; 8] = ["red", "ared", "scred", "pi", "pie", "rem", "blue", "avq"];

/// The entry of the wrapper in the catalogue.
pub(crate) const SPARE_INFO: Info = Info {
    name: "spare",
    title: "Sparing of short flows",
    summary: "a queue whose law neither drops nor marks the first packets of a flow",
    version: 1,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: &[],
    derive: Derive::Containing(derive),
    samples: || {
        let below = |below| [Parameters::below().is(below), Parameters::queue().pair(quick_red())];
        let few = [Parameters::flows().is(3), Parameters::forget().is(Span::ms(50))];
        let bytes = below(Size::Bytes(Bytes::new(9000)));
        alloc::vec![
            ("", resolve::given(&below(super::table::packets(6)))),
            ("few", resolve::given(&[&bytes[..], &few].concat())),
        ]
    },
};

const SOURCE: &str = "Le, Aikat, Jeffay, Smith 2003 (SIGCOMM), discussion; the rule is ours";

params! {
    struct Parameters {
        /// amount that a flow must have brought before a packet for the law to treat the packet as any other; a
        /// flow that has brought less is short
        below: Size = Row::size().default(super::table::packets(10)).source(SOURCE),
        /// silence after which a flow counts as a new one
        forget: Span = Row::span(Span::us(1), Span::s(1_000_000)).default(Span::s(10)).source(SOURCE),
        /// the most flows that the table knows; a further one takes the place of the flow that has been silent for
        /// the longest time
        flows: u64 = Row::integer(1, 16_777_216).default(65_536).source(SOURCE),
        /// the queue behind it, whose law decides at arrivals: RED, Adaptive RED, Self-Configuring RED, PI, PIE,
        /// REM, BLUE or AVQ
        queue: Inner = Row::of(Kind::Discipline).source(SOURCE),
    }
}

/// Resolves the queue, and refuses one whose law cannot spare packets.
fn derive(all: &mut Settings, link: &LinkContext, catalogue: &Catalogue) -> Result<(), ParamError> {
    needs(all, Parameters::queue(), A_QUEUE)?;
    resolve::absolute_size(all, Parameters::below(), link)?;
    let Parameters { queue: (kind, settings), .. } = Parameters::read(all)?;
    let decides_late = settings.get("decide") == Some(&Value::Choice("dequeue"));
    let resolved = resolve_inner((kind, settings), link, catalogue)?;
    if !SPARING.contains(&kind) || decides_late {
        let whose = if decides_late { " with decide `dequeue`" } else { "" };
        return Err(Parameters::queue().error(format!(
            "`{kind}`{whose} has no law that decides at arrivals about the packets of one queue, so it cannot spare \
             flows; write one of {}",
            SPARING.map(|name| format!("`{name}`")).join(", ")
        )));
    }
    replace(all, Parameters::queue(), resolved);
    Ok(())
}

/// Builds the wrapper from these parameters; `build` makes the queue behind it.
pub(crate) fn build_spare<Q>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<'_, Q>,
) -> Result<Spare<Box<Q>>, ParamError> {
    let Parameters { below, forget, flows, queue } = Parameters::read(s)?;
    let below = match below {
        Size::Packets(packets) => Below::Packets(packets.get()),
        Size::Bytes(bytes) => Below::Bytes(bytes.get()),
        _ => return Err(Parameters::below().error("below has not been resolved")),
    };
    Ok(Spare {
        queue: Box::new(build(&Effective::inner(queue, *s.link()), draws)?),
        below,
        forget,
        most: flows as usize,
        places: FlowTable::with_room(0),
        known: Vec::new(),
        silent: List::EMPTY,
        salt: draws.at(SALT_DRAW),
        spared: 0,
    })
}

/// Number of the draw that gives the salt. The queue shares the stream and never reaches this number, nor that of
/// its own salt.
const SALT_DRAW: u64 = u64::MAX - 1;
