//! The `packets` table: events of chosen packets, one row per event.

use aqmlab_qdisc::{Ecn, Packet, Reason};
use aqmlab_recording::{Cell, Table, schema};
use aqmlab_scenario::PacketEvent;
use aqmlab_transport::Flags;
use aqmlab_units::Instant;

use crate::packet::{SimPacket, Toward};

/// The packets and times to record.
pub struct Filter {
    /// The recorded events.
    pub events: Vec<PacketEvent>,
    /// Beginning of the recording.
    pub from: Instant,
    /// The instant at which the recording ends, inclusive.
    pub until: Instant,
    /// The numbers of the flows whose packets are recorded, in ascending order; `None` means all
    /// flows.
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
    /// The instant at which the number of rows first exceeded the limit.
    full_at: Option<Instant>,
}

impl PacketLog {
    /// Creates an empty log, which may have at most `limit` rows.
    pub fn new(filter: Filter, limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        PacketLog { filter, table: Table::new(&schema::PACKETS), limit, full_at: None }
    }

    /// Records that `event` happens to `packet`, which has this number, at the link or host called
    /// `at`.
    ///
    /// # Panics
    /// If the packet is recorded but has no number.
    pub fn note(
        &mut self,
        now: Instant,
        event: PacketEvent,
        at: &str,
        reason: Option<Reason>,
        (packet, number): (&SimPacket, Option<u64>),
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
            number.expect("the packets of recorded flows are numbered").into(),
            packet.wire_len().get().into(),
            ecn(packet.ecn()).into(),
            of_segment(|s| s.len),
            of_segment(|s| s.seq),
            of_segment(|s| s.ack),
            segment.map_or("", |s| flag_letters(s.flags, &mut letters)).into(),
        ]);
    }

    /// Returns which packets are recorded, and when.
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Returns when the number of rows first exceeded the limit, if it did.
    pub const fn full_at(&self) -> Option<Instant> {
        self.full_at
    }

    /// Returns the rows recorded so far.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Returns all rows.
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

/// Returns the code point's name in RFC 3168, section 5.
fn ecn(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}

/// Returns one letter per flag, such as `SA`, `A` or `FA`. As in tcpdump, E is ECE and W is CWR.
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
