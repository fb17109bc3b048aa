//! The `packets` table: what happens to chosen packets, one row each time.

use aqmlab_qdisc::{Ecn, Packet, Reason};
use aqmlab_recording::{Cell, Table, schema};
use aqmlab_scenario::PacketEvent;
use aqmlab_transport::Flags;
use aqmlab_units::Instant;

use crate::packet::{SimPacket, Toward};

/// Which packets are written down, when.
pub struct Filter {
    /// What is written down of them.
    pub events: Vec<PacketEvent>,
    /// From when on.
    pub from: Instant,
    /// Until when, that instant included.
    pub until: Instant,
    /// The numbers of the flows, ascending; everybody's packets if `None`.
    pub flows: Option<Vec<u32>>,
}

impl Filter {
    fn takes(&self, now: Instant, event: PacketEvent, flow: u32) -> bool {
        self.events.contains(&event)
            && (self.from..=self.until).contains(&now)
            && self.flows.as_ref().is_none_or(|flows| flows.binary_search(&flow).is_ok())
    }
}

/// The rows so far.
pub struct PacketLog {
    filter: Filter,
    table: Table,
    limit: usize,
    /// When there was a row too many.
    full_at: Option<Instant>,
}

impl PacketLog {
    /// No rows yet, and at most `limit` ever.
    pub fn new(filter: Filter, limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        PacketLog { filter, table: Table::new(&schema::PACKETS), limit, full_at: None }
    }

    /// `event` happens to `packet` at a queue or host called `at`.
    pub fn note(
        &mut self,
        now: Instant,
        event: PacketEvent,
        at: &str,
        reason: Option<Reason>,
        packet: &SimPacket,
    ) {
        let flow = packet.flow().number;
        if !self.filter.takes(now, event, flow) {
            return;
        }
        if self.table.rows() >= self.limit {
            self.full_at.get_or_insert(now);
            return;
        }
        let segment = packet.segment();
        let of_segment = |pick: fn(&aqmlab_transport::Segment) -> u32| -> Cell<'static> {
            segment.as_ref().map(|s| u64::from(pick(s))).into()
        };
        let mut letters = String::new();
        self.table.push([
            now.as_ns().into(),
            event.name().into(),
            at.into(),
            reason.map_or("", Reason::name).into(),
            u64::from(flow).into(),
            toward(packet).into(),
            packet.wire_len().get().into(),
            ecn(packet.ecn()).into(),
            of_segment(|s| s.len),
            of_segment(|s| s.seq),
            of_segment(|s| s.ack),
            segment.map_or("", |s| flag_letters(s.flags, &mut letters)).into(),
        ]);
    }

    /// When there was a row too many, if there was.
    pub const fn full_at(&self) -> Option<Instant> {
        self.full_at
    }

    /// The rows so far.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// All rows.
    pub fn into_table(self) -> Table {
        self.table
    }
}

fn toward(packet: &SimPacket) -> &'static str {
    match packet.toward() {
        Toward::Receiver => "receiver",
        Toward::Sender => "sender",
    }
}

/// The codepoint by its name in RFC 3168, section 5.
fn ecn(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}

/// A letter for each flag: `SA`, `A`, `FA`; E is ECE, W is CWR, as tcpdump has it.
fn flag_letters(flags: Flags, letters: &mut String) -> &str {
    const LETTERS: [(Flags, char); 6] = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::ACK, 'A'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
    ];
    letters.extend(LETTERS.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter));
    letters
}
