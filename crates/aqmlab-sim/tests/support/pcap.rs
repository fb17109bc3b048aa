//! Captures in memory, which an independent reader reads.
#![allow(dead_code)]

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use aqmlab_recording::Recording;
use aqmlab_recording::capture::PortCapture;
use aqmlab_scenario::Plan;
use aqmlab_sim::{Control, RunError, RunFiles, captured_ports, run_into};
use aqmlab_storage::Capture;
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapNGSlice, traits::PcapNGPacketBlock};

/// A sink whose content can be read later. It accepts `room` bytes and refuses the rest.
#[derive(Clone)]
pub struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        if bytes.len() + buf.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.extend_from_slice(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A packet of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    pub interface: u32,
    /// The option `epb_packetid`.
    pub id: u64,
    pub at_ns: u64,
    pub head: Vec<u8>,
    pub len: u32,
    pub comment: String,
    /// 1: inbound, 2: outbound.
    pub direction: u32,
}

impl Captured {
    /// The time in nanoseconds that the packet has waited.
    pub fn waited_ns(&self) -> u64 {
        let rest = self.comment.strip_prefix("queueing delay ").expect("the delay comes first");
        rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
    }

    pub fn says(&self, words: &str) -> bool {
        self.comment.split(", ").any(|part| part == words)
    }
}

/// Runs with a capture of `links` that keeps `snap` bytes per packet, and at most `room` bytes in total.
pub fn capture(
    plan: &Plan,
    seed: u64,
    links: &[usize],
    snap: u32,
    room: usize,
) -> (Result<Recording, RunError>, Vec<u8>) {
    let sink = Sink { bytes: Arc::default(), room };
    let ports = captured_ports(plan, links);
    let file = Capture::on(Box::new(sink.clone()), Path::new("packets.pcapng"), &ports, snap).unwrap();
    let capture = Some(PortCapture { links: links.to_vec(), file: Box::new(file) });
    let files = RunFiles { capture, ..RunFiles::default() };
    let registry = aqmlab_qdisc::Registry::builtin();
    let recording = run_into(plan, seed, &Control::default(), &registry, files);
    let bytes = sink.bytes.lock().unwrap().clone();
    (recording, bytes)
}

/// The names of the interfaces in a file, and its packets.
pub fn read(bytes: &[u8]) -> (Vec<String>, Vec<Captured>) {
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    for block in PcapNGSlice::from_slice(bytes).expect("a section comes first") {
        match block.expect("every block is whole") {
            PcapBlockOwned::NG(Block::InterfaceDescription(port)) => {
                assert_eq!((port.linktype.0, port.if_tsresol), (101, 9));
                let name = port.if_name().expect("a name").expect("UTF-8");
                interfaces.push(name.to_owned());
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let option = |code| packet.options.iter().find(|option| option.code == code);
                let comment = option(OptionCode::Comment).expect("every packet has a comment");
                let flags = option(OptionCode(2)).expect("every packet has flags");
                let id = option(OptionCode(5)).expect("every packet has an identification");
                let id = id.value.as_ref().try_into().expect("eight octets");
                packets.push(Captured {
                    interface: packet.if_id,
                    id: u64::from_le_bytes(id),
                    at_ns: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
                    head: packet.packet_data().to_vec(),
                    len: packet.origlen,
                    comment: comment.as_str().expect("UTF-8").to_owned(),
                    direction: flags.as_u32_le().expect("four octets"),
                });
            }
            _ => {}
        }
    }
    (interfaces, packets)
}
