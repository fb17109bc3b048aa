//! Compares the parser and the ECN mark with an independent reader and writer of packets.

use std::net::IpAddr;

use aqmlab_live::frame::{
    Headers, TcpPayload, parse, set_traffic_class, tcp_payload, tcp_segment, traffic_class,
};
use aqmlab_qdisc::PacketKind;
use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpAuthHeader, IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv4Options,
    Ipv6Extensions, Ipv6FragmentHeader, Ipv6Header, Ipv6HeaderSlice, Ipv6RawExtHeader, Ipv6RoutingExtensions,
    NetSlice, SlicedPacket, TcpHeader, TcpOptionElement, TcpSlice, TransportSlice, UdpHeader,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// The contents of a packet.
#[derive(Clone, Debug)]
struct Recipe {
    ipv6: bool,
    class: u8,
    source: [u8; 16],
    destination: [u8; 16],
    protocol: u8,
    ports: (u16, u16),
    /// FIN, SYN, RST, PSH, ACK of a TCP segment.
    flags: [bool; 5],
    options: usize,
    /// Whether an IPv6 packet has these extension headers: hop-by-hop options, destination options,
    /// routing, authentication, final destination options.
    extensions: [bool; 5],
    /// Offset in units of 8 octets, and whether more fragments follow; if this is given, an IPv6 packet has a
    /// fragment header.
    fragment: Option<(u16, bool)>,
    payload: Vec<u8>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let protocol = prop_oneof![3 => Just(6u8), 3 => Just(17u8), 1 => Just(1u8), 1 => Just(58u8), 1 => Just(132u8), 1 => Just(59u8)];
    let fragment = proptest::option::weighted(0.3, (0u16..0x2000, any::<bool>()));
    let payload = prop_oneof![1 => Just(vec![]), 3 => vec(any::<u8>(), 0..1400)];
    (
        (any::<bool>(), any::<u8>(), any::<[u8; 16]>(), any::<[u8; 16]>(), protocol),
        (any::<(u16, u16)>(), any::<[bool; 5]>(), 0usize..=10, any::<[bool; 5]>(), fragment, payload),
    )
        .prop_map(|((ipv6, class, source, destination, protocol), rest)| {
            let (ports, flags, options, extensions, fragment, payload) = rest;
            Recipe {
                ipv6,
                class,
                source,
                destination,
                protocol,
                ports,
                flags,
                options,
                extensions,
                fragment,
                payload,
            }
        })
}

impl Recipe {
    fn is_fragment(&self) -> bool {
        self.fragment.is_some_and(|(offset, more)| offset != 0 || more)
    }

    /// Returns the transport header, if there is one, and the payload.
    fn datagram(&self) -> Vec<u8> {
        let mut octets = match self.protocol {
            6 => {
                let mut header = TcpHeader::new(self.ports.0, self.ports.1, 7, 1000);
                header.acknowledgment_number = 11;
                [header.fin, header.syn, header.rst, header.psh, header.ack] = self.flags;
                header.to_bytes().to_vec()
            }
            17 => {
                let length = (8 + self.payload.len()) as u16;
                let header = UdpHeader {
                    source_port: self.ports.0,
                    destination_port: self.ports.1,
                    length,
                    checksum: 0,
                };
                header.to_bytes().to_vec()
            }
            _ => Vec::new(),
        };
        octets.extend(&self.payload);
        octets
    }

    fn packet(&self) -> Vec<u8> {
        if self.ipv6 { self.ipv6() } else { self.ipv4() }
    }

    fn ipv4(&self) -> Vec<u8> {
        let datagram = self.datagram();
        let first = |octets: &[u8; 16]| [octets[0], octets[1], octets[2], octets[3]];
        let number = IpNumber(self.protocol);
        let mut header =
            Ipv4Header::new(datagram.len() as u16, 64, number, first(&self.source), first(&self.destination))
                .unwrap();
        header.dscp = IpDscp::try_new(self.class >> 2).unwrap();
        header.ecn = IpEcn::try_new(self.class & 3).unwrap();
        header.options = Ipv4Options::try_from(&vec![1u8; 4 * self.options][..]).unwrap();
        if let Some((offset, more)) = self.fragment {
            (header.fragment_offset, header.more_fragments) = (IpFragOffset::try_new(offset).unwrap(), more);
        }
        header.set_payload_len(datagram.len()).unwrap();
        header.header_checksum = header.calc_header_checksum();
        let mut octets = header.to_bytes().to_vec();
        octets.extend(datagram);
        octets
    }

    fn ipv6(&self) -> Vec<u8> {
        let raw = |length: usize| Ipv6RawExtHeader::new_raw(IpNumber(0), &vec![0u8; 6 + 8 * length]).unwrap();
        let [hop_by_hop, destination, routing, auth, last] = self.extensions;
        let mut extensions = Ipv6Extensions {
            hop_by_hop_options: hop_by_hop.then(|| raw(self.options % 3)),
            destination_options: destination.then(|| raw(1)),
            routing: (routing || last).then(|| Ipv6RoutingExtensions {
                routing: raw(2),
                final_destination_options: last.then(|| raw(self.options)),
            }),
            fragment: self.fragment.map(|(offset, more)| {
                Ipv6FragmentHeader::new(IpNumber(0), IpFragOffset::try_new(offset).unwrap(), more, 4711)
            }),
            auth: auth.then(|| IpAuthHeader::new(IpNumber(0), 1, 2, &vec![3u8; 4 * self.options]).unwrap()),
        };
        let first = extensions.set_next_headers(IpNumber(self.protocol));
        let mut behind = Vec::new();
        extensions.write(&mut behind, first).unwrap();
        behind.extend(self.datagram());
        let mut header = Ipv6Header {
            traffic_class: self.class,
            payload_length: behind.len() as u16,
            next_header: first,
            hop_limit: 64,
            source: self.source,
            destination: self.destination,
            ..Ipv6Header::default()
        };
        header.flow_label = 0xabcde.try_into().unwrap();
        let mut octets = header.to_bytes().to_vec();
        octets.extend(behind);
        octets
    }
}

/// Returns what the independent reader finds in a packet; `None` if it reports an error.
fn read_by_the_other(packet: &[u8]) -> Option<Headers> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (ports, kind) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => (Some((tcp.source_port(), tcp.destination_port())), kind_of(tcp)),
        Some(TransportSlice::Udp(udp)) => {
            (Some((udp.source_port(), udp.destination_port())), PacketKind::Other)
        }
        _ => (None, PacketKind::Other),
    };
    let net = sliced.net.as_ref()?;
    let payload = net.ip_payload_ref()?;
    let (total_len, traffic_class, source, destination) = match net {
        NetSlice::Ipv4(ip) => {
            let h = ip.header();
            let class = h.dcp().value() << 2 | h.ecn().value();
            (h.total_len(), class, IpAddr::from(h.source_addr()), IpAddr::from(h.destination_addr()))
        }
        NetSlice::Ipv6(ip) => {
            let h = ip.header();
            (40 + h.payload_length(), h.traffic_class(), h.source_addr().into(), h.destination_addr().into())
        }
        NetSlice::Arp(_) => return None,
    };
    let (protocol, fragment) = (payload.ip_number.0, payload.fragmented);
    Some(Headers { total_len, traffic_class, protocol, fragment, source, destination, ports, kind })
}

/// Returns the kind of a TCP segment, determined from its individual flags.
fn kind_of(tcp: &TcpSlice<'_>) -> PacketKind {
    match (tcp.rst(), tcp.syn(), tcp.payload().is_empty(), tcp.fin()) {
        (true, ..) => PacketKind::Other,
        (_, true, ..) => PacketKind::Syn,
        (_, _, false, _) => PacketKind::Data,
        (_, _, true, true) => PacketKind::Fin,
        (_, _, true, false) => PacketKind::Ack,
    }
}

/// Returns the checksum of a whole header, its checksum field included, computed by independent
/// code; the result is zero if that field is right.
fn sum_over(header: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(header).ones_complement()
}

/// Returns whether a router may forward the packet, according to the independent reader's interpretation of
/// the fixed header.
fn is_acceptable(octets: &[u8]) -> bool {
    match octets.first().map(|first| first >> 4) {
        Some(4) => Ipv4HeaderSlice::from_slice(octets).is_ok_and(|slice| {
            let total = usize::from(slice.total_len());
            total >= slice.slice().len() && total <= octets.len() && sum_over(slice.slice()) == 0
        }),
        Some(6) => Ipv6HeaderSlice::from_slice(octets)
            .is_ok_and(|slice| 40 + usize::from(slice.payload_length()) <= octets.len().min(0xffff)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Addresses, traffic class, protocol, fragments and ports agree with the independent writer and
    /// reader.
    #[test]
    fn headers_are_read_as_they_were_meant(recipe in recipe()) {
        let packet = recipe.packet();
        let headers = parse(&packet).unwrap();
        prop_assert_eq!(usize::from(headers.total_len), packet.len());
        prop_assert_eq!(headers.traffic_class, recipe.class);
        prop_assert_eq!(traffic_class(&packet), recipe.class);
        prop_assert_eq!(headers.fragment, recipe.is_fragment());
        let has_ports = matches!(recipe.protocol, 6 | 17) && !recipe.is_fragment();
        prop_assert_eq!(headers.ports, has_ports.then_some(recipe.ports));
        if !recipe.is_fragment() {
            let [_, syn, _, _, has_ack] = recipe.flags;
            let len = recipe.payload.len() as u32;
            let payload = TcpPayload { seq: 7, syn, ack: has_ack.then_some(11), len };
            prop_assert_eq!(tcp_payload(&packet), (recipe.protocol == 6).then_some(payload));
        }
        // After a fragment header, other extension headers are part of the fragment's payload.
        if !recipe.is_fragment() {
            prop_assert_eq!(headers.protocol, recipe.protocol);
            // The independent reader also parses ICMP, and rejects a packet that is shorter than the ICMP
            // header.
            let cut_icmp = matches!(recipe.protocol, 1 | 58) && recipe.payload.len() < 8;
            if !cut_icmp {
                prop_assert_eq!(Some(headers), read_by_the_other(&packet));
            }
        }
        if recipe.ipv6 {
            prop_assert_eq!(headers.source, IpAddr::from(recipe.source));
            prop_assert_eq!(headers.destination, IpAddr::from(recipe.destination));
        }
    }

    /// The fields of a TCP header that queues may read are those of the independent writer.
    #[test]
    fn tcp_headers_are_read_as_they_were_meant(
        recipe in recipe(),
        (ack, flags) in any::<(u32, [bool; 8])>(),
        (stamps, sack) in (any::<Option<(u32, u32)>>(), vec(any::<(u32, u32)>(), 0..3)),
        other: bool,
    ) {
        let mut header = TcpHeader::new(1, 2, 3, 4);
        header.acknowledgment_number = ack;
        [header.fin, header.syn, header.rst, header.psh, header.ack, header.urg, header.ece, header.cwr] = flags;
        let more = sack.get(1..).unwrap_or_default();
        let options: Vec<_> = [
            other.then_some(TcpOptionElement::WindowScale(7)),
            stamps.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)),
            sack.first().map(|first| {
                TcpOptionElement::SelectiveAcknowledgement(*first, [more.first().copied(), None, None])
            }),
        ]
        .into_iter()
        .flatten()
        .collect();
        header.set_options(&options).unwrap();
        let mut segment = header.to_bytes().to_vec();
        segment.extend(&recipe.payload);
        let read = aqmlab_qdisc::TcpHeader::read(&segment).unwrap();
        let number = |bit: usize| u16::from(flags[bit]) << bit;
        prop_assert_eq!((read.ack, read.flags), (ack, (0..8).map(number).sum()));
        prop_assert_eq!((read.payload, read.other_options), (!recipe.payload.is_empty(), other));
        prop_assert_eq!(read.stamps, stamps.map(<[u32; 2]>::from));
        prop_assert_eq!(read.blocks(), sack.into_iter().map(<[u32; 2]>::from).collect::<Vec<_>>());
        let whole = recipe.protocol == 6 && !recipe.is_fragment();
        let packet = recipe.packet();
        let found = tcp_segment(&packet).and_then(aqmlab_qdisc::TcpHeader::read);
        prop_assert_eq!(found.map(|found| found.payload), whole.then_some(!recipe.payload.is_empty()));
    }

    /// All fragments of a datagram belong to one flow: same addresses, same protocol, no ports.
    #[test]
    fn fragments_of_one_datagram_are_alike(recipe in recipe(), offset in 1u16..0x2000) {
        let part = |offset, more| {
            let recipe = Recipe { fragment: Some((offset, more)), ..recipe.clone() };
            parse(&recipe.packet()).unwrap()
        };
        let (first, middle, last) = (part(0, true), part(offset, true), part(offset, false));
        prop_assert_eq!(first, middle);
        prop_assert_eq!(first, last);
        prop_assert!(first.fragment && first.ports.is_none());
    }

    /// A mark changes the traffic class; in IPv4, the updated checksum equals one that is computed from
    /// scratch.
    #[test]
    fn a_changed_class_leaves_a_right_checksum(recipe in recipe(), class: u8) {
        let before = recipe.packet();
        let mut after = before.clone();
        set_traffic_class(&mut after, class);
        let headers = parse(&after).unwrap();
        prop_assert_eq!(headers, Headers { traffic_class: class, ..parse(&before).unwrap() });
        if !recipe.ipv6 {
            let header = Ipv4HeaderSlice::from_slice(&after).unwrap();
            prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        }
        // Nothing else has changed: with the old values restored, the packet is the original.
        set_traffic_class(&mut after, recipe.class);
        prop_assert_eq!(after, before);
    }

    /// The parser returns a correct result for any octets.
    #[test]
    fn any_octets_have_an_answer(octets in vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(parse(&octets).is_ok(), is_acceptable(&octets));
        prop_assert!(tcp_payload(&octets).is_none_or(|payload| (payload.len as usize) < octets.len()));
    }

    /// Damaged packets are refused for faults that the independent reader also finds, and are parsed with the
    /// same result if it finds none.
    #[test]
    fn damaged_packets_have_an_answer(
        recipe in recipe(),
        damage in vec((0usize..80, any::<u8>()), 0..3),
        cut in 0usize..1500,
        repair: bool,
    ) {
        let mut octets = recipe.packet();
        for (at, value) in damage {
            if let Some(octet) = octets.get_mut(at) {
                *octet = value;
            }
        }
        octets.truncate(cut);
        if repair && let Ok(length) = Ipv4HeaderSlice::from_slice(&octets).map(|slice| slice.slice().len()) {
            octets[10..12].fill(0);
            // The independent reader adds up words in native byte order, so the sum is also written
            // in that order.
            let checksum = sum_over(&octets[..length]).to_ne_bytes();
            octets[10..12].copy_from_slice(&checksum);
        }
        let ours = parse(&octets);
        prop_assert_eq!(ours.is_ok(), is_acceptable(&octets), "{:?}", ours);
        if let (Ok(ours), Some(theirs)) = (ours, read_by_the_other(&octets))
            && !ours.fragment && !theirs.fragment
            // The independent reader does not continue after mobility, HIP and Shim6 headers.
            && !matches!(theirs.protocol, 135 | 139 | 140)
            && !goes_on_without_us(&octets)
        {
            // The independent reader follows any number of extension headers.
            prop_assert_eq!(ours, theirs);
        }
    }
}

/// Returns whether the independent reader finds more in a packet than our parser does. Damage to a
/// packet seldom leads to this. The independent reader continues after authentication headers over IPv4,
/// which no flow here has, and takes a payload length of zero for that of a jumbogram, which none of our
/// links carries.
fn goes_on_without_us(octets: &[u8]) -> bool {
    match octets[0] >> 4 {
        4 => octets[9] == IpNumber::AUTHENTICATION_HEADER.0,
        _ => octets[4..6] == [0, 0] && octets.len() > 40,
    }
}

#[test]
fn where_the_other_reader_goes_on_without_us_we_say_what_the_header_says() {
    let recipe = Recipe {
        flags: [false, false, false, true, true],
        ipv6: true,
        class: 0,
        source: [10; 16],
        destination: [20; 16],
        protocol: 17,
        ports: (1, 2),
        options: 0,
        extensions: [false; 5],
        fragment: None,
        payload: vec![0; 100],
    };
    let mut six = recipe.packet();
    six[4..6].fill(0);
    let headers = parse(&six).unwrap();
    assert_eq!((headers.total_len, headers.protocol, headers.ports), (40, 17, None));
    assert_eq!(read_by_the_other(&six).unwrap().ports, Some((1, 2)));
    // An authentication header of 24 octets (six words); the next header is UDP.
    let payload = [&[17, 4, 0, 0][..], &[0; 20], &recipe.datagram()].concat();
    let four = Recipe { ipv6: false, protocol: 51, payload, ..recipe }.packet();
    let headers = parse(&four).unwrap();
    assert_eq!((headers.protocol, headers.ports), (51, None));
    assert_eq!(read_by_the_other(&four).unwrap().protocol, 17);
    assert!([six, four].iter().all(|octets| goes_on_without_us(octets)));
}

/// Each kind of malformed packet that a TUN may deliver is refused with the error that names its
/// fault: a single octet, version 5, a header of 2 words, a length beyond the end, or a wrong
/// checksum.
#[test]
fn each_fault_has_its_name() {
    use aqmlab_live::frame::Malformed::*;
    let recipe = Recipe {
        flags: [false, false, false, true, true],
        ipv6: false,
        class: 2,
        source: [10; 16],
        destination: [20; 16],
        protocol: 17,
        ports: (1, 2),
        options: 0,
        extensions: [false; 5],
        fragment: None,
        payload: vec![0; 100],
    };
    let good = recipe.packet();
    let with = |at: usize, value: u8| {
        let mut octets = good.clone();
        octets[at] = value;
        parse(&octets).unwrap_err()
    };
    assert_eq!(parse(&[]), Err(Short));
    assert_eq!(parse(&good[..1]), Err(Short));
    assert_eq!(parse(&good[..19]), Err(Short));
    assert_eq!(with(0, 0x55), Version);
    assert_eq!(with(0, 0x42), HeaderLength);
    assert_eq!(with(2, 0xff), TotalLength);
    assert_eq!(parse(&good[..100]), Err(TotalLength));
    assert_eq!(with(8, 1), Checksum);
    let six = Recipe { ipv6: true, ..recipe }.packet();
    assert_eq!(parse(&six[..39]), Err(Short));
    assert_eq!(parse(&six[..100]), Err(TotalLength));
}

/// The chain of extension headers is followed only to a bounded length.
#[test]
fn an_endless_chain_of_extension_headers_ends() {
    let mut octets = Ipv6Header { payload_length: 8 * 1000, ..Ipv6Header::default() }.to_bytes().to_vec();
    // A thousand headers of destination options in a row, each of 8 octets.
    octets[6] = 60;
    octets.extend([60, 0, 0, 0, 0, 0, 0, 0].repeat(1000));
    let headers = parse(&octets).unwrap();
    assert_eq!((headers.protocol, headers.ports), (60, None));
}
