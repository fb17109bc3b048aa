//! Flows that nobody announced: those of programs, found by the addresses, ports and protocol of their packets.
//!
//! A flow is both directions between a client's address and port and a server's (for ICMP, the identifier of an
//! echo takes the place of both ports). The first packet with a new combination begins a flow, and so does the
//! SYN of another connection with a combination that is already known. Each flow has the next row of its class;
//! packets without a row belong to no flow: fragments, whose ports are unknown, errors reported by ICMP, and the
//! packets of flows beyond the number that the plan allows.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use aqmlab_network::End;
use aqmlab_units::Instant;

use crate::frame::{Headers, tcp_payload};

/// The two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ends {
    /// The number of the protocol above IP.
    pub protocol: u8,
    /// The client's address and port.
    pub client: (IpAddr, u16),
    /// The server's address and port.
    pub server: (IpAddr, u16),
}

/// A flow that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its ends.
    pub ends: Ends,
    /// When its first packet entered the network.
    pub first: Instant,
    /// When its last packet entered or left the network.
    pub last: Instant,
    /// The initial sequence number of a connection whose opening was seen, and the direction of its SYN.
    opened: Option<(u32, End)>,
}

/// The flows of a class, by their ends. It allocates nothing after it has been created.
pub struct Finder {
    found: Vec<Found>,
    /// Hears of each new flow.
    heard: Option<SyncSender<Ends>>,
    /// The row of each flow, plus 1, at a place that its ends determine; zero where there is none.
    places: Vec<u32>,
    most: usize,
}

/// The number of new flows that may wait until they are heard of.
const UNHEARD: usize = 1024;

/// The number of TCP above IP.
pub const TCP: u8 = 6;
/// The number of UDP above IP.
pub const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

impl Finder {
    /// Returns a finder for at most `most` flows.
    pub fn new(most: u32) -> Self {
        let most = most as usize;
        // At least half of the places are always free, so searches are short.
        Finder {
            found: Vec::with_capacity(most),
            heard: None,
            places: vec![0; (2 * most).next_power_of_two()],
            most,
        }
    }

    /// Returns the ends of each flow that a client begins, when it is found. A flow that finds no room there is not
    /// reported.
    pub fn hear(&mut self) -> Receiver<Ends> {
        let (heard, hears) = sync_channel(UNHEARD);
        self.heard = Some(heard);
        hears
    }

    /// Returns the flows found so far, by row.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Returns the row of a packet that enters the network at `now` from this side; `None` if it belongs to no
    /// flow.
    pub fn row(&mut self, now: Instant, side: End, headers: &Headers, octets: &[u8]) -> Option<u32> {
        let ends = ends(side, headers, octets)?;
        let opens = match (headers.protocol, tcp_payload(octets)) {
            (TCP, Some(segment)) if segment.syn && segment.ack.is_none() => Some((segment.seq, side)),
            _ => None,
        };
        let place = self.place(&ends);
        if let Some(row) = self.places[place].checked_sub(1) {
            let flow = &mut self.found[row as usize];
            if opens.is_none() || opens == flow.opened {
                flow.last = flow.last.max(now);
                return Some(row);
            }
        }
        if self.found.len() == self.most {
            return None;
        }
        if let Some(heard) = self.heard.as_ref().filter(|_| side == End::Client) {
            let _ = heard.try_send(ends);
        }
        let row = self.found.len() as u32;
        self.found.push(Found { ends, first: now, last: now, opened: opens });
        self.places[place] = row + 1;
        Some(row)
    }

    /// Notes that a packet of a row has left the network.
    pub fn left(&mut self, row: u32, at: Instant) {
        if let Some(flow) = self.found.get_mut(row as usize) {
            flow.last = flow.last.max(at);
        }
    }

    /// Returns the place of the flow with these ends, or the free place where it belongs.
    fn place(&self, ends: &Ends) -> usize {
        let mask = self.places.len() - 1;
        // The hash has fixed keys, and only decides where a flow is looked for, not which row it has.
        let mut place = BuildHasherDefault::<DefaultHasher>::default().hash_one(ends) as usize & mask;
        while let Some(row) = self.places[place].checked_sub(1) {
            if self.found[row as usize].ends == *ends {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }
}

/// Returns the ends of the flow of a packet from this side; `None` if they are not known.
fn ends(side: End, headers: &Headers, octets: &[u8]) -> Option<Ends> {
    let protocol = headers.protocol;
    let (from, to) = match (protocol, headers.ports) {
        _ if headers.fragment => return None,
        (_, Some(ports)) => ports,
        // A segment or datagram without a whole header.
        (TCP | UDP, None) => return None,
        (ICMP | ICMPV6, None) => {
            let id = echo(headers, octets)?;
            (id, id)
        }
        (_, None) => (0, 0),
    };
    let (source, destination) = ((headers.source, from), (headers.destination, to));
    let (client, server) = match side {
        End::Client => (source, destination),
        End::Server => (destination, source),
    };
    Some(Ends { protocol, client, server })
}

/// Returns the identifier of an echo request or reply (RFC 792; RFC 4443, section 4).
fn echo(headers: &Headers, octets: &[u8]) -> Option<u16> {
    let header = match headers.source {
        IpAddr::V4(_) => 4 * usize::from(octets.first()? & 0x0f),
        IpAddr::V6(_) => 40,
    };
    let [kind, _, _, _, high, low, ..] = *octets.get(header..)? else { return None };
    let is_echo = match headers.protocol {
        ICMP => matches!(kind, 0 | 8),
        _ => matches!(kind, 128 | 129),
    };
    is_echo.then(|| u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::parse;

    use etherparse::PacketBuilder;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn find(finder: &mut Finder, ms: u64, side: End, octets: &[u8]) -> Option<u32> {
        finder.row(at(ms), side, &parse(octets).expect("a packet"), octets)
    }

    const CLIENT: [u8; 4] = [198, 18, 0, 1];
    const SERVER: [u8; 4] = [198, 19, 0, 1];

    fn tcp(from: u16, to: u16, seq: u32, syn: bool, ack: bool) -> Vec<u8> {
        let mut builder = PacketBuilder::ipv4(CLIENT, SERVER, 64).tcp(from, to, seq, 1000);
        builder = if syn { builder.syn() } else { builder };
        builder = if ack { builder.ack(7) } else { builder };
        let mut octets = Vec::new();
        builder.write(&mut octets, &[]).expect("memory");
        octets
    }

    fn from_server(octets: Vec<u8>) -> Vec<u8> {
        let mut octets = octets;
        // Swapping addresses leaves the header's checksum as it is.
        let (client, server): (Vec<u8>, Vec<u8>) = (octets[12..16].to_vec(), octets[16..20].to_vec());
        octets[12..16].copy_from_slice(&server);
        octets[16..20].copy_from_slice(&client);
        octets
    }

    #[test]
    fn both_directions_are_one_flow_and_other_ports_another() {
        let mut finder = Finder::new(3);
        assert_eq!(find(&mut finder, 1, End::Client, &tcp(40_000, 80, 5, true, false)), Some(0));
        let answer = from_server(tcp(80, 40_000, 9, true, true));
        assert_eq!(find(&mut finder, 2, End::Server, &answer), Some(0));
        assert_eq!(find(&mut finder, 3, End::Client, &tcp(40_001, 80, 5, true, false)), Some(1));
        assert_eq!(find(&mut finder, 4, End::Client, &tcp(40_000, 443, 5, false, true)), Some(2));
        assert_eq!(find(&mut finder, 5, End::Client, &tcp(40_002, 80, 5, true, false)), None, "three rows");
        assert_eq!(find(&mut finder, 6, End::Client, &tcp(40_000, 80, 6, false, true)), Some(0));
        finder.left(1, at(9));
        let times: Vec<_> = finder.found().iter().map(|flow| (flow.first, flow.last)).collect();
        assert_eq!(times, [(at(1), at(6)), (at(3), at(9)), (at(4), at(4))]);
    }

    #[test]
    fn a_repeated_syn_is_the_same_connection_and_another_syn_is_the_next() {
        let mut finder = Finder::new(9);
        let mut syn = |seq| find(&mut finder, 1, End::Client, &tcp(40_000, 80, seq, true, false));
        assert_eq!([syn(5), syn(5), syn(6), syn(6)], [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(find(&mut finder, 2, End::Client, &tcp(40_000, 80, 7, false, true)), Some(1));
    }

    #[test]
    fn echoes_are_flows_by_identifier_and_fragments_belong_to_none() {
        let mut finder = Finder::new(9);
        let echo = |id| {
            let mut octets = Vec::new();
            let builder = PacketBuilder::ipv4(CLIENT, SERVER, 64).icmpv4_echo_request(id, 1);
            builder.write(&mut octets, &[1; 8]).expect("memory");
            octets
        };
        let found = [echo(3), echo(4), echo(3)].map(|octets| find(&mut finder, 1, End::Client, &octets));
        assert_eq!(found, [Some(0), Some(1), Some(0)]);
        let headers = Headers { fragment: true, ports: None, ..parse(&echo(3)).expect("a packet") };
        assert_eq!(finder.row(at(2), End::Client, &headers, &echo(3)), None);
    }

    #[test]
    fn as_many_flows_as_allowed_are_told_apart() {
        let mut finder = Finder::new(1000);
        for round in 0..2 {
            for port in 0..1000u16 {
                let octets = tcp(1024 + port, 80, 1, false, true);
                assert_eq!(find(&mut finder, round, End::Client, &octets), Some(port.into()));
            }
        }
        assert_eq!(find(&mut finder, 3, End::Client, &tcp(9000, 80, 1, false, true)), None);
    }
}
