//! Packets and plans for tests of the router.
#![allow(dead_code)]

pub mod capture_report;

use aqmlab_live::frame::internet_checksum;
use aqmlab_live::router::{FIRST_CLIENT_PORT, FrameBudget, FrameSink, OutgoingFrame, SERVER_PORT};
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Dscp, Ecn};
use aqmlab_scenario::{Plan, parse};
use aqmlab_units::Instant;

/// The plans of a scenario text, one an arm.
pub fn plans(text: &str) -> Vec<Plan> {
    match parse(text, "test.toml") {
        Ok(experiment) => experiment.arms,
        Err(error) => panic!("{error}"),
    }
}

/// The only plan of a scenario text.
pub fn plan(text: &str) -> Plan {
    plans(text).remove(0)
}

/// Slots for packets of up to 1500 octets.
pub fn frame_budget(plan: &Plan, frames: usize) -> FrameBudget {
    FrameBudget { frames, largest: vec![1500; plan.classes.len()] }
}

/// A UDP datagram over IPv4 of `len` octets in all, from the host at `from` of flow `index`, or from a port of no flow.
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

/// The same packet over IPv4 with another code point.
pub fn with_dscp(mut octets: Vec<u8>, dscp: Dscp) -> Vec<u8> {
    octets[1] = dscp.0 << 2 | octets[1] & 3;
    octets[10..12].fill(0);
    let checksum = internet_checksum(&octets[..20]);
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Keeps what leaves.
#[derive(Default)]
pub struct Kept(pub Vec<(Instant, HostId, Option<u32>, Vec<u8>)>);

impl FrameSink for Kept {
    fn leave(&mut self, leaving: OutgoingFrame<'_>) {
        self.0.push((leaving.at, leaving.to, leaving.flow, leaving.octets.to_vec()));
    }
}

/// Counts what leaves.
#[derive(Default)]
pub struct Counted(pub u64);

impl FrameSink for Counted {
    fn leave(&mut self, _leaving: OutgoingFrame<'_>) {
        self.0 += 1;
    }
}
