//! One endpoint that receives what a vector lists, at the times that the vector gives.

use aqmlab_transport::{AccEcnOption, EcnCounters, Endpoint, Extras, Flags, Options, Profile, Sack, Segment};
use aqmlab_units::{Ecn, Instant, Span};

use super::vectors::{Row, number};

/// What a segment says: sequence and acknowledgment number, length, flags, the code point of its packet, and the
/// fields of its AccECN option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Said {
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub flags: Flags,
    pub ecn: Ecn,
    pub fields: [Option<u32>; 3],
}

/// What an endpoint sent, and what it knew after each arrival.
#[derive(Default)]
pub struct Replay<K> {
    pub sent: Vec<(Instant, Said)>,
    pub known: Vec<K>,
}

fn code_point(row: &Row) -> Ecn {
    match &*row["ecn"] {
        "not-ect" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        other => panic!("{other}"),
    }
}

fn flags(row: &Row) -> Flags {
    row["flags"].chars().fold(Flags::NONE.with_ace(number(&row["ace"]) as u8), |flags, letter| {
        flags
            | match letter {
                'S' => Flags::SYN,
                'A' => Flags::ACK,
                'F' => Flags::FIN,
                other => panic!("{other}"),
            }
    })
}

fn field(row: &Row, name: &str) -> Option<u32> {
    (!row[name].is_empty()).then(|| number(&row[name]) as u32)
}

/// Returns the options of a row; those of AccECN have all three fields, as Linux sends them.
fn options(row: &Row) -> Options {
    let mut options = Options::NONE;
    for block in row.get("sack").map_or("", String::as_str).split_whitespace() {
        let (from, to) = block.split_once('-').expect("from-to");
        options.sack.push(number(from) as u32, number(to) as u32);
    }
    if let Some(ect0_bytes) = field(row, "ee0b") {
        let (ce_bytes, ect1_bytes) = (number(&row["eceb"]) as u32, number(&row["ee1b"]) as u32);
        let counters = EcnCounters { ce_packets: 0, ce_bytes, ect0_bytes, ect1_bytes };
        options.accurate_ecn = AccEcnOption::new(&counters, 1, 3);
    }
    options
}

fn segment(row: &Row, sack: &Sack) -> Segment {
    let syn = row["flags"].contains('S');
    let blocks = sack.blocks().len() as u8;
    Segment {
        seq: number(&row["sequence"]) as u32,
        ack: number(&row["ack"]) as u32,
        len: number(&row["length"]) as u32,
        flags: flags(row),
        window: 1 << 20,
        ecn: code_point(row),
        extras: Extras::NONE.with_if(Extras::SACK_PERMITTED, syn),
        sack_len: if blocks == 0 { 0 } else { 4 + 8 * blocks },
    }
}

/// Returns the time of a row.
pub fn at(row: &Row) -> Instant {
    Instant::ZERO + Span::ms(1) + Span::ns(number(&row["time_ns"]))
}

/// Returns what a row says.
pub fn said(row: &Row) -> Said {
    Said {
        seq: number(&row["sequence"]) as u32,
        ack: number(&row["ack"]) as u32,
        len: number(&row["length"]) as u32,
        flags: flags(row),
        ecn: code_point(row),
        fields: [field(row, "ee0b"), field(row, "eceb"), field(row, "ee1b")],
    }
}

/// Returns what the kernel sent.
pub fn kernels(rows: &[Row]) -> Vec<(Instant, Said)> {
    rows.iter().filter(|row| row["event"] == "sent").map(|row| (at(row), said(row))).collect()
}

/// Compares what an endpoint sent with what the kernel sent, up to this difference in time; returns the first
/// difference.
pub fn compare(kernels: &[(Instant, Said)], ours: &[(Instant, Said)], clock: Span) -> Result<(), String> {
    for (n, (kernels, ours)) in kernels.iter().zip(ours).enumerate() {
        let apart = ours.0.saturating_since(kernels.0).max(kernels.0.saturating_since(ours.0));
        if ours.1 != kernels.1 || apart > clock {
            return Err(format!("segment {n}, {apart} apart:\n  Linux {kernels:?}\n  ours  {ours:?}"));
        }
    }
    if kernels.len() == ours.len() { Ok(()) } else { Err(format!("{} and {}", kernels.len(), ours.len())) }
}

/// Delivers to an endpoint what a vector lists as arrived. `write` is what its application writes, and when. After each
/// arrival, `knows` reads something from the endpoint.
pub fn replay<K>(
    endpoint: &mut Endpoint,
    rows: &[Row],
    mut write: Option<(Instant, u64)>,
    profile: &Profile,
    mut knows: impl FnMut(&Endpoint) -> K,
) -> Replay<K> {
    let mut replay = Replay { sent: Vec::new(), known: Vec::new() };
    let sent = &mut replay.sent;
    let mut drain = |endpoint: &mut Endpoint, now| {
        while let Some(segment) = endpoint.poll_transmit(now, profile) {
            let fields = endpoint.options(&segment, profile).accurate_ecn.fields();
            let Segment { seq, ack, len, flags, ecn, .. } = segment;
            sent.push((now, Said { seq, ack, len, flags, ecn, fields }));
        }
        while endpoint.poll_event().is_some() {}
    };
    let end = Instant::ZERO + Span::s(3600);
    let mut arrivals = rows.iter().filter(|row| row["event"] == "arrived").peekable();
    drain(endpoint, rows.first().map_or(Instant::ZERO, at));
    loop {
        let next = arrivals.peek().map_or(end, |row| at(row));
        if let Some((now, bytes)) = write.take_if(|(now, _)| *now <= next) {
            endpoint.write(bytes);
            drain(endpoint, now);
        } else if let Some(due) = endpoint.deadline().filter(|due| *due < next) {
            endpoint.on_timer(due, profile);
            drain(endpoint, due);
        } else if let Some(row) = arrivals.next() {
            let options = options(row);
            let segment = segment(row, &options.sack);
            endpoint.on_segment_with_options(next, &segment, &options, profile);
            replay.known.push(knows(endpoint));
            drain(endpoint, next);
        } else {
            return replay;
        }
    }
}
