//! The draws for the flows of a class: sources, and delays and losses outside the queues. Every
//! host that runs a given plan with a given seed makes the same draws.

use aqmlab_qdisc::Loss;
use aqmlab_random::Stream;
use aqmlab_traffic::packmime::{CloudConnection, HostDelay};
use aqmlab_traffic::{Content, End, Identity, Population, Requests, Session};
use aqmlab_transport::{Profile, TickPhases};
use aqmlab_units::{Instant, Span};

use crate::plan::{Access, ClassPlan, Plan};
use crate::traffic::{DelaysFrom, Draws, FlowSource, Opens, PageFetches, Start};

/// Incremented whenever a change here changes the starts, delays, losses or sources of a plan with a given
/// seed.
pub(crate) const VERSION: u32 = 1;

impl ClassPlan {
    /// Returns when each flow starts, with the latest start first. Flows that start together are in
    /// descending order of their index.
    ///
    /// # Panics
    /// If the file gives starts only for other seeds: see
    /// [`Plan::check_seed`](crate::Plan::check_seed).
    pub fn starts(&self, seed: u64) -> Vec<(Instant, u32)> {
        let draws = self.draws(seed);
        let mut starts: Vec<_> = (0..self.count)
            .map(|i| {
                let after = self.start.of(seed, i, self.count, draws.member("start", i));
                (Instant::ZERO + after, i as u32)
            })
            .collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        starts
    }

    /// Returns the population that opens the connections of the class, in its state before the first wake-up.
    ///
    /// # Panics
    /// If the file gives starts only for other seeds: see
    /// [`Plan::check_seed`](crate::Plan::check_seed).
    pub fn population(&self, seed: u64) -> Population {
        self.traffic.population(self.starts(seed), self.draws(seed))
    }

    /// Returns whether the class is a plain list of flows, each of them one connection or one
    /// stream of datagrams.
    pub fn is_list(&self) -> bool {
        matches!(self.traffic.opens(), Opens::Listed)
    }

    /// Returns the index that determines the values of a connection's host, such as its round-trip time. A
    /// connection has the values of its user, except that each connection of a browser, an arrival process or a
    /// cloud has values of its own.
    pub fn host_index(&self, of: Identity) -> u64 {
        match self.traffic.opens() {
            Opens::ByUsers { pages: Some(PageFetches { own_hosts: true, .. }), .. } => of.index(),
            Opens::Listed | Opens::ByUsers { .. } => of.user.into(),
            Opens::AtRate { .. } => of.serial.into(),
        }
    }

    /// Returns whether values are drawn anew for each connection, in which case the number of draws is
    /// unlimited.
    pub(crate) fn draws_by_connection(&self) -> bool {
        match self.traffic.opens() {
            Opens::Listed => false,
            Opens::AtRate { .. } => true,
            Opens::ByUsers { pages, .. } => pages.is_some_and(|pages| pages.own_hosts),
        }
    }

    /// Returns whether the hosts of the class delay what they send.
    pub fn delays_sending(&self) -> bool {
        self.traffic.tcp().is_some_and(|tcp| !tcp.send_jitter.is_zero())
    }

    /// Returns the draws for the send delays of a connection's sender and receiver, or `None` if
    /// they send without delay.
    pub fn send_jitter(&self, of: Identity, seed: u64) -> Option<[Stream; 2]> {
        let draws = |what| self.draws(seed).member(what, of.index());
        self.delays_sending().then(|| [draws("jitter"), draws("answer_jitter")])
    }

    /// Returns how far the clocks of a connection's sender and receiver are into a tick at time 0, as shares of a
    /// tick, or `None` if the endpoints of the class have no clocks of their own.
    pub fn clocks(&self, of: Identity, seed: u64) -> Option<[f64; 2]> {
        let own = self.traffic.tcp().is_some_and(|tcp| tcp.tick_phases == TickPhases::Random);
        let mut draws = own.then(|| self.draws(seed).member("tick_phase", of.index()))?;
        Some([draws.unit(), draws.unit()])
    }

    /// Returns seeds for the draws of a connection's sender and receiver, or `None` if their congestion control makes
    /// none.
    pub fn congestion_seeds(&self, of: Identity, seed: u64) -> Option<[u64; 2]> {
        let own = self.traffic.tcp().is_some_and(Profile::needs_seed);
        let mut draws = own.then(|| self.draws(seed).member("congestion", of.index()))?;
        Some([draws.bits(), draws.bits()])
    }

    /// Returns the source of a flow or connection that starts at `now`.
    ///
    /// # Panics
    /// If the content is drawn, but the class is a cloud or fetches pages: its population then determines what
    /// the connections carry.
    pub fn source(&self, of: Identity, content: Content, now: Instant, seed: u64) -> FlowSource {
        let exchanges = match content {
            Content::Drawn => None,
            Content::Counted(count) => Some(count),
            Content::Cloud(connection) => {
                let session = Session::Requests(Requests::of_web(connection.exchanges));
                return FlowSource::Session(self.closing(session));
            }
            Content::Objects(objects) => return FlowSource::Session(Session::multiplexed(objects)),
        };
        match self.traffic.source(Start { of, exchanges, now, draws: self.draws(seed) }) {
            FlowSource::Session(session) => FlowSource::Session(self.closing(session)),
            other => other,
        }
    }

    /// Returns a session with the end that closes it first.
    fn closing(&self, session: Session) -> Session {
        match self.traffic.closed_by() {
            Some(end) => session.closed_by(end),
            None => session,
        }
    }

    /// Returns the random streams of the class.
    fn draws(&self, seed: u64) -> Draws<'_> {
        Draws { class: &self.name, seed }
    }
}

impl Plan {
    /// Returns the propagation delay of the path of class number `class`, summed over both directions.
    pub fn propagation(&self, class: usize) -> Span {
        let links = self.classes[class].links_both_ways();
        links.fold(Span::ZERO, |sum, link| sum + self.links[link].delay)
    }
}

/// Returns the base round-trip time of a flow whose path has this `propagation` delay, summed over both
/// directions. `access` holds the delay of each access link and the number of these links, if the flow has any;
/// `stages` is the delay that delay stages add. Dividing a delay evenly among the links may leave a remainder,
/// which is not added: the result is the time that the links actually take.
pub fn base_rtt(propagation: Span, access: Option<(Span, u64)>, stages: Span) -> Span {
    propagation + access.map_or(Span::ZERO, |(delay, links)| delay * links) + stages
}

/// Returns the delay of each access link of a connection that has these one-way delays between client and
/// network and between network and server.
fn shared([client, server]: [Span; 2], access: &Access) -> Span {
    ((client + server) * 2).div(access.links())
}

impl ClassPlan {
    /// Returns the delay of each access link of a connection for which the class's cloud has drawn the values
    /// `connection`. Returns `None` if the connection has no access links, or if the delays of the class apply
    /// instead.
    pub fn cloud_delay(&self, connection: &CloudConnection) -> Option<Span> {
        Some(shared(self.on_links(self.own_delays(connection)?), self.access.as_ref()?))
    }

    /// Returns the part of a connection's one-way delays that its access links represent: zero for
    /// an end whose delays a delay stage represents.
    fn on_links(&self, delays: [Span; 2]) -> [Span; 2] {
        End::ALL.map(|end| if self.placed[end as usize] { Span::ZERO } else { delays[end as usize] })
    }

    /// Returns the one-way delays of the client and the server of a connection, or `None` if there
    /// is no trace that gives them.
    pub fn traced_delays(&self, of: Identity) -> Option<[Span; 2]> {
        match self.traffic.own_delays()?.from {
            DelaysFrom::Trace(trace) => trace.delays(self.host_index(of) as usize),
            DelaysFrom::Packmime => None,
        }
    }

    /// Returns whether the delays of the connections' ends are known, because a cloud draws them or
    /// a trace gives them.
    pub(crate) fn knows_ends(&self) -> bool {
        self.traffic.own_delays().is_some()
    }

    /// Returns the mean one-way delay of this end of the connections, taken over the trace's
    /// connections or from the cloud's distribution.
    pub(crate) fn mean_end(&self, end: End) -> Span {
        self.traffic.own_delays().map_or(Span::ZERO, |delays| delays.from.mean(end))
    }

    /// Returns the minimum one-way delay of this end of the connections.
    pub(crate) fn least_end(&self, end: End) -> Span {
        self.traffic.own_delays().map_or(Span::ZERO, |delays| delays.from.least(end))
    }

    /// Returns the source of the delays that the connections have of their own, unless the delays of the class
    /// apply instead.
    fn applying_delays(&self) -> Option<DelaysFrom<'_>> {
        self.traffic.own_delays().filter(|delays| delays.apply).map(|delays| delays.from)
    }

    /// Returns the one-way delays that a trace gives for the client and the server of a connection,
    /// or `None` if the delays of the class apply.
    pub fn listed_delays(&self, index: u64) -> Option<[Span; 2]> {
        match self.applying_delays()? {
            DelaysFrom::Trace(trace) => trace.delays(index as usize),
            DelaysFrom::Packmime => None,
        }
    }

    /// Returns the one-way delays that the cloud has drawn for the client and the server of a
    /// connection, or `None` if the delays of the class apply.
    pub fn own_delays(&self, connection: &CloudConnection) -> Option<[Span; 2]> {
        match self.applying_delays()? {
            DelaysFrom::Packmime => Some([connection.client_delay, connection.server_delay]),
            DelaysFrom::Trace(_) => None,
        }
    }

    /// Returns the delay of each access link of the host `index` ([`ClassPlan::host_index`]), or
    /// `None` if it has no access links. `propagation` is the delay of the path, summed over both
    /// directions.
    pub fn access_delay(&self, index: u64, propagation: Span, seed: u64) -> Option<Span> {
        let access = self.access.as_ref()?;
        if let Some(delays) = self.listed_delays(index) {
            return Some(shared(self.on_links(delays), access));
        }
        let rtt = access.rtt.value(index, self.count, self.draws(seed).member("rtt", index));
        Some(rtt.saturating_sub(propagation).div(access.links()))
    }

    /// Returns the delay of each access link for packets that real hosts of the class send but that
    /// belong to none of its flows: the same delay as for a flow with the mean base round-trip
    /// time.
    pub fn mean_access_delay(&self, propagation: Span) -> Option<Span> {
        let access = self.access.as_ref()?;
        Some(access.rtt.mean().saturating_sub(propagation).div(access.links()))
    }

    /// Returns the smallest delay that an access link of a flow may have, or zero if flows have no
    /// access links.
    pub fn least_access_delay(&self, propagation: Span) -> Span {
        let Some(access) = &self.access else { return Span::ZERO };
        let listed = (0..self.count).filter_map(|index| self.listed_delays(index));
        if let Some(least) = listed.map(|delays| shared(self.on_links(delays), access)).min() {
            return least;
        }
        let least = match self.applying_delays() {
            Some(DelaysFrom::Packmime) => {
                let on_links = End::ALL.into_iter().filter(|end| !self.placed[*end as usize]);
                on_links.fold(Span::ZERO, |sum, end| sum + HostDelay::least(end) * 2)
            }
            _ => access.rtt.least().saturating_sub(propagation),
        };
        least.div(access.links())
    }

    /// Returns the number of access links of a flow: one per direction at each end that has access links.
    pub fn access_links(&self) -> u64 {
        self.access.as_ref().map_or(0, Access::links)
    }

    /// Returns whether this end of the flows (0: the sender) has access links.
    pub fn has_access(&self, end: usize) -> bool {
        self.access.as_ref().is_some_and(|access| access.at.has(end))
    }

    /// Returns the loss process at the entrance to the sender's access link for the connection with
    /// this index ([`Identity::index`](aqmlab_traffic::Identity::index)), or `None` if nothing is
    /// lost there.
    pub fn access_losses(&self, index: u64, seed: u64) -> Option<Loss> {
        (self.access_loss > 0.0).then(|| Loss::new(self.access_loss, self.draws(seed).member("loss", index)))
    }
}
