//! What is new in the picture of a run: samples of one queue, of its law and of the flows, and the packets there.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_qdisc::books::ClassBooks;
use aqmlab_qdisc::{Classed, Ecn, Packet};
use aqmlab_recording::{ColumnData, Table};
use aqmlab_scenario::{PacketEvent, Plan};
use aqmlab_sim::{Seen, SimPacket, Stepped, Toward};
use aqmlab_units::Instant;
use serde_json::{Map, Value, json};

/// The number of flows whose own windows are shown.
const MOST_FLOWS: usize = 12;

/// The number of waiting packets that are shown one by one.
const MOST_HELD: usize = 600;
/// The number of drops and marks of which each is shown.
const MOST_FATES: usize = 100;

/// What a picture has shown so far. It is drawn from the recording's own samples, as they are taken.
pub struct Picture {
    link: usize,
    /// The name of the link's queue in the tables.
    queue: String,
    /// The number of rows of each table of samples that have been shown.
    shown: [usize; 3],
    /// The class of each flow of the plan, by the number of the first flow that follows the class.
    until: Vec<u64>,
    /// The flows whose own windows are shown.
    chosen: Vec<u64>,
    /// What each flow's receiver had delivered at the last sample.
    delivered: BTreeMap<u64, u64>,
    /// The weight of each bin of the waiting times at the last news, by the bin's lower end, per class.
    waited: Vec<BTreeMap<u64, u64>>,
    /// The packets that wait, in the order of their arrival.
    held: VecDeque<Held>,
    /// The packet that left last, and when it did.
    sending: Option<(Instant, SimPacket)>,
    /// The latest drops (0) and marks (1) since the last news.
    fates: VecDeque<(u8, Instant, SimPacket)>,
}

/// A packet that waits.
struct Held {
    arrived: Instant,
    packet: SimPacket,
}

impl Picture {
    /// Creates an empty picture of a link of `plan`.
    pub fn new(plan: &Plan, link: usize) -> Self {
        let counts = plan.classes.iter().map(|class| class.count);
        let until: Vec<u64> = counts
            .scan(0, |sum, count| {
                *sum += count;
                Some(*sum)
            })
            .collect();
        // The first few of each class.
        let each = MOST_FLOWS.div_ceil(until.len().max(1)) as u64;
        let begins = [0].into_iter().chain(until.iter().copied());
        let chosen = begins.zip(&until).flat_map(|(begin, &end)| begin..end.min(begin + each)).collect();
        Picture {
            link,
            queue: plan.links[link].name.clone(),
            shown: [0; 3],
            until,
            chosen,
            delivered: BTreeMap::new(),
            waited: vec![BTreeMap::new(); plan.classes.len()],
            held: VecDeque::new(),
            sending: None,
            fates: VecDeque::with_capacity(MOST_FATES),
        }
    }

    /// Returns what is new since the last call, as JSON. `queue` has the columns of the recording's table `queues`,
    /// `law` a list of points (s, value) per value of the law, `flows` a list of (s, segments, s) per chosen flow, and
    /// `classes` a list of (s, flows, mean window, mean round-trip time in s, bytes delivered since the last sample)
    /// per class. `waited` has pairs of waiting times in ns and numbers of packets per class. `held` has the packets that wait:
    /// flow, class, length in bytes, whether they are marked, and whether they travel to their sender. `sending` has
    /// the packet that left last, and when it did; `fates` has the same of packets that were dropped (0) or marked (1).
    pub fn news(&mut self, stepped: &mut Stepped<'_>, ended: bool) -> Value {
        self.follow(stepped.take_seen());
        let fate = |(fate, at, packet): (u8, Instant, SimPacket)| json!([fate, at.as_ns(), shown(&packet)]);
        let fates: Vec<Value> = self.fates.drain(..).map(fate).collect();
        let next = stepped.next_at().map(|at| at.as_ns());
        let backlog = stepped.port(self.link).backlog();
        let waited = self.waited(stepped);
        let [queues, law, flows] = stepped.samples();
        let (queue, law) = (self.queue(queues), self.law(law));
        let (flows, classes) = self.flows(flows);
        let sending = self.sending.map(|(at, packet)| json!([at.as_ns(), shown(&packet)]));
        let held: Vec<Value> = self.held.iter().take(MOST_HELD).map(|held| shown(&held.packet)).collect();
        json!({
            "now_ns": stepped.now().as_ns(), "next_ns": next, "events": stepped.events(), "ended": ended,
            "backlog": [backlog.packets.get(), backlog.bytes.get()],
            "queue": queue, "law": law, "flows": flows, "classes": classes, "waited": waited,
            "held": held, "sending": sending, "fates": fates,
        })
    }

    /// Follows the packets through the queue.
    pub fn follow(&mut self, events: Vec<Seen>) {
        for seen in events {
            let of = |held: &Held| held.arrived == seen.arrived && is_same(&held.packet, &seen.packet);
            match seen.event {
                PacketEvent::Enqueue => {
                    self.held.push_back(Held { arrived: seen.arrived, packet: seen.packet });
                }
                PacketEvent::Mark => {
                    if let Some(held) = self.held.iter_mut().rfind(|held| of(held)) {
                        held.packet = seen.packet;
                    }
                    self.note(1, &seen);
                }
                PacketEvent::Drop => {
                    if let Some(at) = self.held.iter().rposition(of) {
                        self.held.remove(at);
                    }
                    self.note(0, &seen);
                }
                _ => {
                    if let Some(at) = self.held.iter().position(of) {
                        self.held.remove(at);
                    }
                    self.sending = Some((seen.at, seen.packet));
                }
            }
        }
    }

    fn note(&mut self, fate: u8, seen: &Seen) {
        if self.fates.len() == MOST_FATES {
            self.fates.pop_front();
        }
        self.fates.push_back((fate, seen.at, seen.packet));
    }

    fn queue(&mut self, table: &Table) -> Value {
        let rows = self.new_rows(0, table);
        let names = names(table, "queue");
        let own: Vec<usize> = rows.filter(|&row| names.row(row) == self.queue).collect();
        let column = |name: &'static str| {
            let values = whole(table, name);
            json!(own.iter().map(|&row| values[row]).collect::<Vec<_>>())
        };
        let columns = [
            "t_ns",
            "backlog_packets",
            "backlog_bytes",
            "arrivals_bytes",
            "departures_bytes",
            "dropped_by_law_packets",
            "dropped_not_by_law_packets",
            "marked_packets",
        ];
        columns.into_iter().map(|name| (name.to_owned(), column(name))).collect::<Map<_, _>>().into()
    }

    fn law(&mut self, table: &Table) -> Value {
        let rows = self.new_rows(1, table);
        let (queues, values) = (names(table, "queue"), names(table, "name"));
        let (times, numbers) = (whole(table, "t_ns"), real(table, "value"));
        let mut found: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
        for row in rows.filter(|&row| queues.row(row) == self.queue) {
            found.entry(values.row(row)).or_default().push([times[row] as f64 / 1e9, numbers[row]]);
        }
        json!(found)
    }

    fn flows(&mut self, table: &Table) -> (Value, Value) {
        let rows = self.new_rows(2, table);
        let (times, numbers) = (whole(table, "t_ns"), whole(table, "flow"));
        let (windows, delivered) = (real(table, "cwnd_segments"), whole(table, "delivered_bytes"));
        let Some(ColumnData::NullableU64(trips)) = table.column("srtt_ns") else {
            unreachable!("a known column")
        };
        let mut own: BTreeMap<u64, Vec<[f64; 3]>> = BTreeMap::new();
        let mut classes: Vec<BTreeMap<u64, Sum>> = vec![BTreeMap::new(); self.until.len()];
        for row in rows {
            let flow = numbers[row];
            let trip = trips[row].map_or(0.0, |trip| trip as f64 / 1e9);
            if self.chosen.contains(&flow) {
                own.entry(flow).or_default().push([times[row] as f64 / 1e9, windows[row], trip]);
            }
            let before = self.delivered.insert(flow, delivered[row]).unwrap_or(0);
            let Some(class) = self.until.iter().position(|&until| flow < until) else { continue };
            let sum = classes[class].entry(times[row]).or_default();
            sum.flows += 1.0;
            sum.window += windows[row];
            sum.trip += trip;
            sum.bytes += delivered[row].saturating_sub(before) as f64;
        }
        let point = |(t, sum): (u64, Sum)| {
            [t as f64 / 1e9, sum.flows, sum.window / sum.flows, sum.trip / sum.flows, sum.bytes]
        };
        let classes: Vec<Vec<[f64; 5]>> =
            classes.into_iter().map(|of| of.into_iter().map(point).collect()).collect();
        (json!(own), json!(classes))
    }

    /// Returns the waiting times of the packets of each class that have left since the last call.
    fn waited(&mut self, stepped: &Stepped<'_>) -> Vec<Vec<[u64; 2]>> {
        let classes = stepped.port(self.link).books().classes();
        let news = |(known, class): (&mut BTreeMap<u64, u64>, ClassBooks<'_>)| {
            let (mut news, mut bins) = (Vec::new(), BTreeMap::new());
            for bin in class.sojourn_ns.bins() {
                let before = known.get(&bin.low).copied().unwrap_or(0);
                // Books begin again at the end of the warm-up.
                let more = if bin.weight < before { bin.weight } else { bin.weight - before };
                if more > 0 {
                    news.push([bin.low.midpoint(bin.high), more]);
                }
                bins.insert(bin.low, bin.weight);
            }
            *known = bins;
            news
        };
        self.waited.iter_mut().zip(classes).map(news).collect()
    }

    fn new_rows(&mut self, which: usize, table: &Table) -> std::ops::Range<usize> {
        let from = std::mem::replace(&mut self.shown[which], table.rows());
        from..table.rows()
    }
}

/// Sums over the flows of a class at one sample.
#[derive(Clone, Default)]
struct Sum {
    flows: f64,
    window: f64,
    trip: f64,
    bytes: f64,
}

/// Returns whether both are the same packet, which may have been marked in between.
fn is_same(one: &SimPacket, other: &SimPacket) -> bool {
    let key = |packet: &SimPacket| {
        (packet.flow(), packet.toward(), packet.wire_len(), packet.segment().map(|s| s.seq))
    };
    key(one) == key(other)
}

fn shown(packet: &SimPacket) -> Value {
    let back = u8::from(packet.toward() == Toward::Sender);
    let marked = u8::from(packet.ecn() == Ecn::Ce);
    json!([packet.flow().number, packet.class(), packet.wire_len().get(), marked, back])
}

fn whole<'t>(table: &'t Table, name: &str) -> &'t [u64] {
    match table.column(name) {
        Some(ColumnData::U64(values)) => values,
        _ => unreachable!("`{name}` is a column of whole numbers"),
    }
}

fn real<'t>(table: &'t Table, name: &str) -> &'t [f64] {
    match table.column(name) {
        Some(ColumnData::F64(values)) => values,
        _ => unreachable!("`{name}` is a column of real numbers"),
    }
}

fn names<'t>(table: &'t Table, name: &str) -> &'t aqmlab_recording::Dictionary {
    match table.column(name) {
        Some(ColumnData::Str(values)) => values,
        _ => unreachable!("`{name}` is a column of names"),
    }
}
