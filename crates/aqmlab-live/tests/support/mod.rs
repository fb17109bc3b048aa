//! Packets and plans for tests of the router.
#![allow(dead_code)]

pub mod capture_report;

use std::net::IpAddr;

use aqmlab_live::addresses::{Addresses, FIRST_CLIENT_PORT, SERVER_PORT};
use aqmlab_live::frame::internet_checksum;
use aqmlab_live::router::{FrameBudget, FrameSink, OutgoingFrame};
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Dscp, Ecn};
use aqmlab_scenario::{IpVersion, Plan, parse};
use aqmlab_units::Instant;

/// Returns the plans of a scenario text, one per arm.
pub fn plans(text: &str) -> Vec<Plan> {
    match parse(text, "test.toml") {
        Ok(experiment) => experiment.arms,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the only plan of a scenario text.
pub fn plan(text: &str) -> Plan {
    plans(text).remove(0)
}

/// Returns a budget of slots for packets of up to 1500 octets.
pub fn frame_budget(plan: &Plan, frames: usize) -> FrameBudget {
    FrameBudget { frames, largest: vec![1500; plan.classes.len()] }
}

/// Returns a UDP datagram over IPv4, of `len` octets in total, that the host `from` sends in flow `index`,
/// or, if there is no index, from or to a port that belongs to no flow.
pub fn datagram(from: HostId, index: Option<u16>, ecn: Ecn, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    octets[0] = 0x45;
    octets[1] = ecn as u8;
    octets[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    octets[8] = 64;
    octets[9] = 17;
    let host = |side: End| [198, 18 + side as u8, from.class as u8, 1];
    octets[12..16].copy_from_slice(&host(from.side));
    octets[16..20].copy_from_slice(&host(from.side.other()));
    let client = index.map_or(1, |index| FIRST_CLIENT_PORT + index);
    let (source, destination) =
        if from.side == End::Client { (client, SERVER_PORT) } else { (SERVER_PORT, client) };
    octets[20..22].copy_from_slice(&source.to_be_bytes());
    octets[22..24].copy_from_slice(&destination.to_be_bytes());
    octets[24..26].copy_from_slice(&(len as u16 - 20).to_be_bytes());
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// A TCP segment over IPv4.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub ecn: Ecn,
    /// Octets of the whole packet.
    pub len: usize,
    /// Octets of its payload.
    pub payload: usize,
    pub seq: u32,
    /// The flags, encoded as in the TCP header (RFC 9293, section 3.1).
    pub flags: u8,
}

/// Returns the packet in which the host `from` sends a segment to or from this client port.
pub fn segment(from: HostId, client_port: u32, segment: Segment) -> Vec<u8> {
    let Segment { ecn, len, payload, seq, flags } = segment;
    let client = Addresses(IpVersion::V4).client(from.class, client_port);
    let mut octets = datagram(from, None, ecn, len);
    let (address, port) = if from.side == End::Client { (12, 20) } else { (16, 22) };
    if let IpAddr::V4(client) = client.ip() {
        octets[address..address + 4].copy_from_slice(&client.octets());
    }
    octets[port..port + 2].copy_from_slice(&client.port().to_be_bytes());
    octets[24..28].copy_from_slice(&seq.to_be_bytes());
    as_tcp(octets, payload, flags)
}

/// Turns a datagram into a TCP segment with the same ports and this much payload.
pub fn as_tcp(mut octets: Vec<u8>, payload: usize, flags: u8) -> Vec<u8> {
    let (header, ecn) = (octets.len() - 20 - payload, octets[1]);
    assert!(header.is_multiple_of(4) && (20..=60).contains(&header), "a TCP header of {header} octets");
    octets[9] = 6;
    octets[32] = (header as u8 / 4) << 4;
    octets[33] = flags;
    with_dscp(octets, Dscp(ecn >> 2))
}

/// Returns the flags of a segment, given their letters in the table `packets`.
pub fn flags_of(letters: &str) -> u8 {
    [('F', 1), ('S', 2), ('R', 4), ('A', 16)]
        .iter()
        .filter(|(letter, _)| letters.contains(*letter))
        .map(|(_, bit)| bit)
        .sum()
}

/// Returns the same IPv4 packet with the code point `dscp`.
pub fn with_dscp(mut octets: Vec<u8>, dscp: Dscp) -> Vec<u8> {
    octets[1] = dscp.0 << 2 | octets[1] & 3;
    octets[10..12].fill(0);
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Keeps the packets that leave.
#[derive(Default)]
pub struct Kept(pub Vec<(Instant, HostId, Option<u32>, Vec<u8>)>);

impl FrameSink for Kept {
    fn leave(&mut self, leaving: OutgoingFrame<'_>) {
        self.0.push((leaving.at, leaving.to, leaving.flow, leaving.octets.to_vec()));
    }
}

/// Counts the packets that leave.
#[derive(Default)]
pub struct Counted(pub u64);

impl FrameSink for Counted {
    fn leave(&mut self, _leaving: OutgoingFrame<'_>) {
        self.0 += 1;
    }
}
