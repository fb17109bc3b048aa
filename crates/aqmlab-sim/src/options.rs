//! TCP options and numbers of segments in flight. Few segments have options, and segments are numbered
//! only where packets are recorded, so both are stored separately: a packet carries the place of its
//! entry in the table, and the code that ends the packet's path frees the entry.

use aqmlab_qdisc::TcpHeader;
use aqmlab_transport::{Extras, Options, Segment};

use crate::packet::SimPacket;

/// For a packet with options or a number, the data that the packet itself does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The contents of the options.
    pub options: Options,
    /// The packet's window. It is kept here because the window field of the packet contains the
    /// number of this entry.
    window: u32,
    sack_len: u8,
    extras: Extras,
    /// The packet's number, if the packets of its class are numbered.
    number: Option<u64>,
    /// Whether the entry belongs to a packet at present.
    held: bool,
}

/// The options and numbers of all packets in flight.
#[derive(Debug, Default)]
pub struct OptionTable {
    places: Vec<Kept>,
    free: Vec<u32>,
}

/// Reports that the number of packets with options or numbers in the network differs from the number
/// of entries that hold them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionImbalance {
    /// number of packets with an entry that are in flight
    pub found: u64,
    /// number of packets in queues, which may or may not have an entry
    pub waiting: u64,
    /// number of entries that belong to a packet
    pub held: u64,
}

impl std::fmt::Display for OptionImbalance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OptionImbalance { found, waiting, held } = self;
        write!(
            f,
            "options or numbers of {held} packets are kept, but {found} packets that have some are in flight, \
             and at most {waiting} more wait in queues"
        )
    }
}

impl OptionTable {
    /// Returns the options of a packet in flight, if it has any.
    pub fn of(&self, packet: &SimPacket) -> Option<&Kept> {
        self.places.get(packet.entry()? as usize).filter(|kept| kept.held)
    }

    /// Returns the number of a packet in flight, if its class numbers its packets.
    pub fn number_of(&self, packet: &SimPacket) -> Option<u64> {
        packet.datagram_number().or_else(|| self.of(packet)?.number)
    }

    /// Returns the TCP header of a packet in flight; `None` for a datagram. Time stamps are left out: those of a
    /// host never decrease here, and it sends them with all of its segments or with none.
    pub fn tcp_header(&self, packet: &SimPacket) -> Option<TcpHeader> {
        let segment = packet.segment()?;
        let kept = self.of(packet);
        let mut header = TcpHeader::new(segment.ack, segment.flags.header_bits(), segment.len > 0);
        header.other_options = kept.is_some_and(|kept| kept.extras.has(Extras::SACK_PERMITTED));
        let blocks = kept.map_or(&[][..], |kept| kept.options.sack.blocks());
        blocks.iter().for_each(|(first, behind)| header.push_block(*first, *behind));
        Some(header)
    }

    /// Adds an entry for the packet that carries `segment`, which has options or a number. Returns
    /// the place of the entry, which the packet must contain.
    #[cold]
    pub fn put(&mut self, segment: &Segment, options: &Options, number: Option<u64>) -> u32 {
        let Some(place) = self.free.pop() else {
            self.add();
            return self.put(segment, options, number);
        };
        let Segment { window, sack_len, extras, .. } = *segment;
        self.places[place as usize] =
            Kept { options: *options, window, sack_len, extras, number, held: true };
        place
    }

    /// Returns a packet that has reached its host without its number: if the packet has no options,
    /// its entry is freed.
    pub fn take_number(&mut self, packet: SimPacket) -> SimPacket {
        match (packet.entry(), self.of(&packet)) {
            (Some(place), Some(&Kept { window, sack_len: 0, extras: Extras::NONE, .. })) => {
                self.take(place);
                packet.without_entry(window)
            }
            _ => packet,
        }
    }

    /// Makes room for one more packet.
    #[cold]
    #[inline(never)]
    fn add(&mut self) {
        let nothing = Kept {
            options: Options::NONE,
            window: 0,
            sack_len: 0,
            extras: Extras::NONE,
            number: None,
            held: false,
        };
        self.free.push(self.places.len() as u32);
        self.places.push(nothing);
    }

    /// Frees the entry at `place`, whose packet has left the network, and returns its options, which
    /// stay in the entry until others replace them.
    #[cold]
    pub fn take(&mut self, place: u32) -> &Kept {
        self.free.push(place);
        let options = &mut self.places[place as usize];
        assert!(options.held, "a packet's entry is removed once, when it leaves");
        options.held = false;
        options
    }

    /// Frees the entry of a lost packet if the packet has one.
    #[inline]
    pub fn forget(&mut self, packet: &SimPacket) {
        if let Some(place) = packet.entry() {
            self.take(place);
        }
    }

    /// Checks that the table has entries for the packets in the network, and for no others. `found`
    /// packets in flight have an entry; for `waiting` other packets, this is unknown.
    ///
    /// # Errors
    /// Returns the numbers if they do not agree.
    pub fn check(&self, found: u64, waiting: u64) -> Result<(), OptionImbalance> {
        let held = (self.places.len() - self.free.len()) as u64;
        if (found..=found + waiting).contains(&held) {
            return Ok(());
        }
        Err(OptionImbalance { found, waiting, held })
    }

    /// Returns the memory of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Kept>() + self.free.capacity() * size_of::<u32>()
    }
}

impl Kept {
    /// Completes the segment of the packet to which these options belong.
    pub fn complete(&self, segment: Segment) -> Segment {
        let Kept { window, sack_len, extras, .. } = *self;
        Segment { window, sack_len, extras, ..segment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Begin, FlowId, Toward};
    use aqmlab_qdisc::{Ecn, Packet};
    use aqmlab_transport::{Flags, Sack, Stamps};
    use aqmlab_units::Instant;

    fn segment(sack_len: u8) -> Segment {
        Segment {
            seq: 1,
            ack: 2,
            len: 0,
            flags: Flags::ACK,
            window: 1 << 30,
            ecn: Ecn::NotEct,
            extras: Extras::NONE,
            sack_len,
        }
    }

    fn packet(table: &mut OptionTable, segment: &Segment, sack: Sack) -> SimPacket {
        let flow = FlowId { slot: 0, number: 0, class: 0 };
        let packet = SimPacket::tcp(flow, Toward::Sender, Begin::default(), segment, 40);
        if !segment.has_options() {
            return packet;
        }
        let options = Options { sack, ..Options::NONE };
        packet.with_entry(table.put(segment, &options, None), segment.sack_len)
    }

    #[test]
    fn a_segment_arrives_as_it_was_sent_and_its_place_is_used_again() {
        let mut table = OptionTable::default();
        let mut sack = Sack::NONE;
        sack.push(100, 200);
        for _ in 0..3 {
            let sent = segment(12);
            let packet = packet(&mut table, &sent, sack);
            assert_eq!((packet.wire_len().get(), packet.toward()), (52, Toward::Sender));
            assert!(table.check(1, 0).is_ok() && table.check(0, 1).is_ok() && table.check(0, 0).is_err());
            let options = *table.take(packet.entry().expect("it has some"));
            let arrived = options.complete(packet.segment().expect("a segment"));
            assert_eq!((arrived, options.options.sack), (sent, sack));
            assert!(table.check(0, 0).is_ok() && table.check(1, 0).is_err());
        }
        assert_eq!(table.places.len(), 1);
        let sent =
            packet(&mut table, &Segment { flags: Flags::ACK.with_if(Flags::ECE, true), ..segment(12) }, sack);
        let header = table.tcp_header(&sent).expect("a segment");
        assert_eq!((header.ack, header.flags, header.payload), (2, TcpHeader::ACK | 0x40, false));
        assert_eq!((header.blocks(), header.other_options), (&[[100, 200]][..], false));
        table.forget(&sent);
        let plain = packet(&mut table, &segment(0), Sack::NONE);
        assert_eq!((plain.segment(), plain.entry()), (Some(segment(0)), None));
        assert_eq!(table.tcp_header(&plain), Some(TcpHeader::new(2, TcpHeader::ACK, false)));
    }

    #[test]
    #[should_panic(expected = "once")]
    fn options_do_not_arrive_twice() {
        let mut table = OptionTable::default();
        let packet = packet(&mut table, &segment(12), Sack::NONE);
        table.forget(&packet);
        table.forget(&packet);
    }

    #[test]
    fn a_numbered_segment_reaches_its_host_as_it_was_sent() {
        let mut table = OptionTable::default();
        let sent = segment(0);
        let plain = packet(&mut table, &sent, Sack::NONE);
        let number = Some(u64::from(u32::MAX) + 7);
        let numbered = plain.with_entry(table.put(&sent, &Options::NONE, number), 0);
        assert_eq!((table.number_of(&plain), table.number_of(&numbered)), (None, number));
        assert_eq!(numbered.wire_len(), plain.wire_len());
        assert!(table.take_number(numbered) == plain && table.check(0, 0).is_ok());
        // A segment with options keeps its entry until its host takes it, be it SACK or time stamps alone.
        let mut sack = Sack::NONE;
        sack.push(100, 200);
        let stamps = Stamps::echoing(Instant::from_ns(7_000_000));
        let stamped = Segment { extras: Extras::STAMPED, ..segment(0) };
        for (sent, options) in
            [(segment(12), Options { sack, ..Options::NONE }), (stamped, Options { stamps, ..Options::NONE })]
        {
            let entry = table.put(&sent, &options, number);
            let packet = plain.with_entry(entry, sent.sack_len);
            assert_eq!(packet.wire_len().get(), 40 + u64::from(sent.sack_len));
            assert!(table.take_number(packet) == packet && table.check(1, 0).is_ok());
            let kept = table.take(entry);
            assert_eq!((kept.complete(packet.segment().expect("a segment")), kept.options), (sent, options));
        }
        assert!(table.check(0, 0).is_ok());
    }
}
