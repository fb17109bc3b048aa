//! What a kind of traffic answers: everything about a class that depends on its kind.

use std::borrow::Cow;
use std::fmt;

use aqmlab_params::{Setting, Settings};
use aqmlab_random::Stream;
use aqmlab_traffic::{Count, Distribution, End, Identity, MeanConnection, Population, Starts};
use aqmlab_transport::Profile;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::delays::OwnDelays;
use super::source::FlowSource;
use crate::settings_json::{table, to_map};

/// The name of a part of the program, and its version: see [`Parts`](crate::Parts).
pub type Part = (&'static str, u32);

// Measured on a simulated 10 Gbit/s dumbbell with 200 000 TCP flows: 1.6 kB per flow, including all its
// packets in flight. The figures here are rounded up.

/// Bytes for the state of a TCP connection: both endpoints, their timers and reordering lists, and
/// the flow's row in the record.
pub(super) const TCP_FLOW: u64 = 2048;
/// Bytes for the state of a connection's applications: their periods, each with its stream of
/// draws.
pub(super) const SESSION: u64 = 160;
/// Bytes for the state of a source of packets.
pub(super) const PACKET_FLOW: u64 = 256;

/// A kind of traffic with its effective parameters.
pub trait TrafficKind: fmt::Debug {
    /// Returns what each flow or connection carries.
    fn carries(&self) -> Carries<'_>;

    /// Returns the parts with versions that the class uses, apart from TCP; `all` are those of its kind.
    fn uses(&self, all: &'static [Part]) -> &'static [Part] {
        all
    }

    /// Returns when connections open.
    fn opens(&self) -> Opens<'_> {
        Opens::Listed
    }

    /// Returns the population that opens the connections, in its state before the first wake-up. The starts of
    /// the flows are sorted, the latest first.
    fn population(&self, starts: Vec<(Instant, u32)>, _draws: Draws<'_>) -> Population {
        Population::List(Starts::new(starts))
    }

    /// Returns the source of a flow or connection whose content belongs to its identity.
    ///
    /// # Panics
    /// If the population determines everything that its connections carry.
    fn source(&self, _start: Start<'_>) -> FlowSource {
        unreachable!("the population determines what its connections carry")
    }

    /// Returns the end that closes a connection first, if that is not the end that sends the last data.
    fn closed_by(&self) -> Option<End> {
        None
    }

    /// Returns whether clients send data, and whether servers do.
    fn data_of(&self) -> [bool; 2] {
        [true, !matches!(self.opens(), Opens::Listed)]
    }

    /// Returns whether connections or flows carry requests that a server answers.
    fn makes_requests(&self) -> bool {
        self.data_of()[1]
    }

    /// Returns whether both ends of a flow send datagrams.
    fn is_dialogue(&self) -> bool {
        false
    }

    /// Returns whether what a connection carries depends on the order in which others have become free.
    fn shares_connections(&self) -> bool {
        false
    }

    /// Returns the time by which frames or updates should arrive, if the flows have any.
    fn deadline(&self) -> Option<Span> {
        None
    }

    /// Returns whether flows ever end by themselves.
    fn completes(&self) -> bool {
        false
    }

    /// Returns what a connection carries on average, if connections can open at a rate.
    fn mean_connection(&self) -> Option<MeanConnection> {
        None
    }

    /// Returns the delays that connections have of their own, if they have any.
    fn own_delays(&self) -> Option<OwnDelays<'_>> {
        None
    }

    /// Returns whether a file lists the flows with their starts.
    fn is_from_file(&self) -> bool {
        false
    }

    /// Returns why connection vectors cannot describe the connections of a class with this name, or `None` if
    /// they can.
    fn vectors_flaw(&self, class: &str) -> Option<String> {
        Some(format!(
            "the flows of \"{class}\" carry no exchanges; classes of kind \"packmime\", \"requests\" and \"trace\" do"
        ))
    }

    /// Returns the memory for the state of a flow, in bytes.
    fn flow_bytes(&self) -> u64 {
        match self.carries() {
            Carries::Stream(_) => TCP_FLOW,
            Carries::Sessions(_) | Carries::Programs(_) => TCP_FLOW + SESSION,
            Carries::Datagrams(_) => PACKET_FLOW,
        }
    }

    /// Returns what needs less memory than the class does.
    fn smaller(&self) -> &'static str {
        "fewer flows, or sample less often in [record]"
    }
}

impl dyn TrafficKind + '_ {
    /// Returns the TCP parameters of the connections, if there are any.
    pub fn tcp(&self) -> Option<&Profile> {
        self.carries().tcp().map(|tcp| &*tcp.profile)
    }

    /// Returns the name of the congestion control of the connections, if there are any.
    pub fn congestion(&self) -> Option<String> {
        self.carries().tcp()?.settings.get("congestion").map(ToString::to_string)
    }

    /// Returns the long-run network-layer rate of a flow that does not react to congestion, or
    /// `None` if it does react.
    pub fn mean_rate(&self) -> Option<Rate> {
        match self.carries() {
            Carries::Datagrams(datagrams) => datagrams.mean_rate,
            Carries::Stream(_) | Carries::Sessions(_) | Carries::Programs(_) => None,
        }
    }

    /// Returns the size of a full data packet at the network layer, or the mean if sizes vary.
    pub fn data_packet(&self) -> Bytes {
        match self.carries() {
            Carries::Stream(Tcp { profile, .. })
            | Carries::Sessions(Tcp { profile, .. })
            | Carries::Programs(Tcp { profile, .. }) => {
                Bytes::new(u64::from(profile.mss) + u64::from(profile.header))
            }
            Carries::Datagrams(datagrams) => datagrams.mean_size,
        }
    }

    /// Returns whether packets are ECN-capable.
    pub fn ecn_capable(&self) -> bool {
        match self.carries() {
            Carries::Stream(tcp) | Carries::Sessions(tcp) | Carries::Programs(tcp) => tcp.profile.ecn,
            Carries::Datagrams(datagrams) => datagrams.ecn_capable,
        }
    }
}

/// What each flow or connection of a class carries.
#[derive(Clone, Copy, Debug)]
pub enum Carries<'a> {
    /// A TCP connection whose client writes once, when it opens.
    Stream(&'a Tcp),
    /// TCP connections whose applications write, pause and respond.
    Sessions(&'a Tcp),
    /// UDP packets: in one direction or, in a dialogue, in both.
    Datagrams(DatagramFlow),
    /// Whatever programs send; these are the settings of their hosts' TCP.
    Programs(&'a Tcp),
}

impl<'a> Carries<'a> {
    /// Returns the endpoints' parameters, if there are connections.
    pub const fn tcp(self) -> Option<&'a Tcp> {
        match self {
            Carries::Stream(tcp) | Carries::Sessions(tcp) | Carries::Programs(tcp) => Some(tcp),
            Carries::Datagrams(_) => None,
        }
    }
}

/// The endpoints of TCP connections.
#[derive(Clone, PartialEq, Debug)]
pub struct Tcp {
    /// Their effective parameters.
    pub profile: Box<Profile>,
    /// The same parameters as settings, with origins.
    pub settings: Settings,
}

/// Endpoints are written as their parameters, without those that the others imply.
impl Serialize for Tcp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let implied = |setting: &Setting| {
            let param = Profile::TABLE.iter().find(|param| param.name == setting.name);
            let implied = param.filter(|param| param.implied);
            implied.is_some_and(|param| {
                Profile::default_of(param, &self.settings).as_ref() == Some(&setting.value)
            })
        };
        to_map(self.settings.iter().filter(|setting| !implied(setting))).serialize(serializer)
    }
}

impl JsonSchema for Tcp {
    fn schema_name() -> Cow<'static, str> {
        "Tcp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        table(Profile::TABLE)
    }
}

/// The packets of a UDP flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DatagramFlow {
    /// The mean size, headers included.
    pub mean_size: Bytes,
    /// The largest size; `None` if sizes are exponential and only the network limits them.
    pub largest: Option<Bytes>,
    /// The network-layer rate at which the flow sends; `None` if a file lists the packets.
    pub rate: Option<Rate>,
    /// The long-run rate, if there is one.
    pub mean_rate: Option<Rate>,
    /// Whether any of the packets are ECN-capable.
    pub ecn_capable: bool,
}

/// When the connections of a class open.
#[derive(Clone, Copy, Debug)]
pub enum Opens<'a> {
    /// Each flow is one connection, or one stream of datagrams, and starts once.
    Listed,
    /// At a rate, whatever the state of earlier connections. All of them count as one flow.
    AtRate {
        /// Connections per second.
        per_s: f64,
        /// Whether they open in bursts on all time scales, unlike a Poisson process.
        bursty: bool,
    },
    /// Each flow is a user who thinks before opening the next connection or fetching the next page.
    ByUsers {
        /// The time for which a user thinks.
        think: &'a Distribution,
        /// What the users fetch; `None` if each has one connection at a time, whatever it carries.
        pages: Option<PageFetches<'a>>,
    },
}

/// The connections with which users fetch pages.
#[derive(Clone, Copy, Debug)]
pub struct PageFetches<'a> {
    /// The number of connections that a page opens, apart from one.
    pub opened: &'a Distribution<Count>,
    /// The number of connections that a user has open at the same time, apart from one; `None` if there are no others.
    pub at_once: Option<&'a Distribution<Count>>,
    /// Whether each connection goes to a host of its own, with its own delays.
    pub own_hosts: bool,
}

impl<'a> Opens<'a> {
    /// Returns how many connections per second are opened, if they open at a rate.
    pub const fn per_s(self) -> Option<f64> {
        match self {
            Opens::AtRate { per_s, .. } => Some(per_s),
            Opens::Listed | Opens::ByUsers { .. } => None,
        }
    }

    /// Returns the pages that users fetch, if they fetch any.
    pub const fn pages(self) -> Option<PageFetches<'a>> {
        match self {
            Opens::ByUsers { pages, .. } => pages,
            Opens::Listed | Opens::AtRate { .. } => None,
        }
    }
}

/// The random streams of a class in one run.
#[derive(Clone, Copy, Debug)]
pub struct Draws<'a> {
    pub(crate) class: &'a str,
    pub(crate) seed: u64,
}

impl Draws<'_> {
    /// Returns the family of streams for one thing that the class draws.
    pub(super) fn of(self, what: &str) -> Stream {
        Stream::new(self.seed, format_args!("traffic/{}/{what}", self.class))
    }

    /// Returns a member of that family.
    pub(crate) fn member(self, what: &str, index: u64) -> Stream {
        Stream::indexed(self.seed, format_args!("traffic/{}/{what}", self.class), index)
    }
}

/// The start of a flow or connection.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    pub(crate) of: Identity,
    /// The number of exchanges that it carries, if its population determines that number.
    pub(crate) exchanges: Option<u32>,
    pub(crate) now: Instant,
    pub(crate) draws: Draws<'a>,
}

impl Start<'_> {
    /// Returns the stream for one thing that the flow or connection draws.
    pub(super) fn draws(self, what: &str) -> Stream {
        self.draws.member(what, self.of.index())
    }
}

/// Returns when the only flow of a class whose connections open at a rate starts.
pub(super) fn first_start(starts: &[(Instant, u32)]) -> Instant {
    starts.first().map_or(Instant::ZERO, |&(at, _)| at)
}
