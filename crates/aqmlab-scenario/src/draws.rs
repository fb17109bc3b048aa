//! The draws for the flows of a class: sources, and delays and losses outside the queues. Every
//! host that runs a given plan with a given seed makes the same draws.

use std::ops::Range;
use std::sync::Arc;

use aqmlab_qdisc::{Ecn, Loss};
use aqmlab_random::Stream;
use aqmlab_traffic::packmime::{Carried, HostDelay, PackMime};
use aqmlab_traffic::{
    Arrivals, Browsers, Cloud, End, Identity, PacketSource, PageObject, PageUsers, Population, Requests,
    Session, Starts, Users,
};
use aqmlab_units::{Bytes, Instant, Span};

use crate::plan::{Access, ClassPlan, CloudPlan, Plan, PopulationPlan, Sessions, Workload};
use crate::trace::{Schedule, Trace};

/// Incremented whenever a change here changes the starts, delays, losses or sources of a plan with a given
/// seed.
pub(crate) const VERSION: u32 = 1;

/// The behaviour of a flow, beginning at its start.
#[derive(Clone, Debug)]
pub enum FlowSource {
    /// A connection that writes only once: all its data, or an endless stream.
    Stream,
    /// A connection whose applications write, pause and respond.
    Session(Session),
    /// Datagrams.
    Packets(DatagramSource),
}

impl FlowSource {
    /// Returns the source of a connection that carries these exchanges, which its cloud has drawn.
    pub fn carried(carried: Carried) -> Self {
        FlowSource::Session(Session::Requests(Requests::of_web(carried.exchanges)))
    }

    /// Returns the source of a connection that requests these objects immediately, and further ones whenever
    /// its user asks for them.
    pub fn multiplexed(objects: Vec<PageObject>) -> Self {
        FlowSource::Session(Session::multiplexed(objects))
    }
}

/// A flow's datagrams.
#[derive(Clone, Debug)]
pub enum DatagramSource {
    /// Datagrams at a rate, all with the same ECN field.
    Rate {
        /// Determines the departure times and the sizes of the datagrams.
        source: PacketSource,
        /// The ECN field.
        ecn: Ecn,
    },
    /// Datagrams from a list.
    Listed {
        /// The schedule of the class.
        schedule: Arc<Schedule>,
        /// The rows that have not been sent yet.
        rows: Range<usize>,
    },
}

impl DatagramSource {
    /// Creates the source of flow `index`, with the rows of that flow.
    fn listed(schedule: &Arc<Schedule>, index: u64) -> Self {
        DatagramSource::Listed { rows: schedule.rows(index as usize), schedule: schedule.clone() }
    }

    /// Returns when the next datagram leaves, or `None` after the last.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        match self {
            DatagramSource::Rate { source, .. } => Some(source.next_at()),
            DatagramSource::Listed { schedule, rows } => {
                (!rows.is_empty()).then(|| Instant::ZERO + schedule.row(rows.start).at)
            }
        }
    }

    /// Emits the datagram that is due at [`DatagramSource::next_at`]: returns its size at the
    /// network layer and its ECN field.
    ///
    /// # Panics
    /// If no datagram is left.
    pub fn emit(&mut self) -> (Bytes, Ecn) {
        match self {
            DatagramSource::Rate { source, ecn } => (source.emit(), *ecn),
            DatagramSource::Listed { schedule, rows } => {
                let row = schedule.row(rows.next().expect("a row is due"));
                (row.size, row.ecn)
            }
        }
    }
}

impl ClassPlan {
    /// Returns when each flow starts, with the latest start first. Flows that start together are in
    /// descending order of their index.
    ///
    /// # Panics
    /// If the file gives starts only for other seeds: see
    /// [`Plan::check_seed`](crate::Plan::check_seed).
    pub fn starts(&self, seed: u64) -> Vec<(Instant, u32)> {
        let path = format!("traffic/{}/start", self.name);
        let mut starts: Vec<_> = (0..self.count)
            .map(|i| {
                let after = match &self.seed_starts {
                    Some(starts) => {
                        let starts = starts.of(seed).expect("`Plan::check_seed` has checked the seed");
                        starts[i as usize % starts.len()]
                    }
                    None => self.start.value(i, self.count, Stream::indexed(seed, &path, i)),
                };
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
        let starts = self.starts(seed);
        let draws = |what| Stream::new(seed, format_args!("traffic/{}/{what}", self.name));
        match &self.population {
            PopulationPlan::List => Population::List(Starts::new(starts)),
            PopulationPlan::Arrivals(gaps) => {
                let start = starts.first().map_or(Instant::ZERO, |&(at, _)| at);
                Population::Arrivals(Arrivals::new(*gaps, start, draws("gap")))
            }
            PopulationPlan::Users(think) => {
                Population::Users(Users::new(starts, think.clone(), draws("think")))
            }
            PopulationPlan::Pages(plan) => {
                let users = PageUsers::new(starts, plan.clone(), draws("pages"), draws("think"));
                Population::Pages(Box::new(users))
            }
            PopulationPlan::Browsers(plan) => {
                let users = Browsers::new(starts, plan.clone(), draws("pages"), draws("think"));
                Population::Browsers(Box::new(users))
            }
            PopulationPlan::Cloud(cloud) => {
                let start = starts.first().map_or(Instant::ZERO, |&(at, _)| at);
                let model = PackMime::new(cloud.per_s, cloud.pauses, &draws("packmime"));
                let model = if cloud.persistent { model } else { model.without_persistence() };
                let model = match cloud.max_response {
                    Some(most) => model.with_max_response(most.get()),
                    None => model,
                };
                Population::Cloud(Box::new(Cloud::new(model, start)))
            }
        }
    }

    /// Returns whether the class is a plain list of flows, each of them one connection or one
    /// stream of datagrams.
    pub const fn is_list(&self) -> bool {
        matches!(self.population, PopulationPlan::List)
    }

    /// Returns the index that determines the values of a connection's host, such as its round-trip time. A
    /// connection has the values of its user, except that each connection of a browser, an arrival process or a
    /// cloud has values of its own.
    pub const fn host_index(&self, of: Identity) -> u64 {
        match self.population {
            PopulationPlan::List | PopulationPlan::Users(_) | PopulationPlan::Pages(_) => of.user as u64,
            PopulationPlan::Arrivals(_) | PopulationPlan::Cloud(_) => of.serial as u64,
            PopulationPlan::Browsers(_) => of.index(),
        }
    }

    /// Returns whether values are drawn anew for each connection, in which case the number of draws is
    /// unlimited.
    pub const fn draws_by_connection(&self) -> bool {
        matches!(
            self.population,
            PopulationPlan::Arrivals(_) | PopulationPlan::Cloud(_) | PopulationPlan::Browsers(_)
        )
    }

    /// Returns whether the hosts of the class delay what they send.
    pub fn delays_sending(&self) -> bool {
        self.workload.tcp().is_some_and(|tcp| !tcp.send_jitter.is_zero())
    }

    /// Returns the draws for the send delays of a connection's sender and receiver, or `None` if
    /// they send without delay.
    pub fn send_jitter(&self, of: Identity, seed: u64) -> Option<[Stream; 2]> {
        let draws = |what| Stream::indexed(seed, format_args!("traffic/{}/{what}", self.name), of.index());
        self.delays_sending().then(|| [draws("jitter"), draws("answer_jitter")])
    }

    /// Returns the source of a flow or connection that starts at `now`; `exchanges` is the number
    /// of exchanges that it carries, if its population determines that number.
    ///
    /// # Panics
    /// If the class is a cloud or fetches pages, because its population then determines what the
    /// connections carry.
    pub fn source(&self, of: Identity, exchanges: Option<u32>, now: Instant, seed: u64) -> FlowSource {
        let index = of.index();
        let draws = |what| Stream::indexed(seed, format_args!("traffic/{}/{what}", self.name), index);
        match &self.workload {
            Workload::Packets { rate, sizes, spacing, ecn } => {
                let source = PacketSource::new(*rate, *sizes, *spacing, now, draws("gap"), draws("size"));
                FlowSource::Packets(DatagramSource::Rate { source, ecn: *ecn })
            }
            Workload::OnOff { rate, size, times, ecn } => {
                let source =
                    PacketSource::on_off(*rate, *size, times.clone(), now, draws("on"), draws("off"));
                FlowSource::Packets(DatagramSource::Rate { source, ecn: *ecn })
            }
            Workload::Schedule(schedule) => FlowSource::Packets(DatagramSource::listed(schedule, index)),
            Workload::Bulk { .. } => FlowSource::Stream,
            Workload::Sessions { sessions, .. } => FlowSource::Session(match sessions {
                Sessions::Greedy(times) => Session::greedy(times.clone(), draws("on"), draws("off")),
                Sessions::Bursts(bursty) => Session::bursts(bursty.clone(), draws("burst"), draws("off")),
                Sessions::Trace { trace, .. } => trace.session(index as usize),
                Sessions::Web | Sessions::Pages => {
                    unreachable!("the population of such a class determines what its connections carry")
                }
                Sessions::Requests(plan) => {
                    let family = |what| Stream::new(seed, format_args!("traffic/{}/{what}", self.name));
                    let draws = family("exchange");
                    Session::Requests(match exchanges {
                        Some(count) => Requests::counted(plan.clone(), of, &draws, count),
                        None => Requests::new(plan.clone(), of, &draws, &family("exchanges")),
                    })
                }
            }),
        }
    }
}

impl Plan {
    /// Returns the propagation delay of the path of class number `class`, summed over both directions.
    pub fn propagation(&self, class: usize) -> Span {
        let class = &self.classes[class];
        let links = class.path.iter().chain(&class.return_path);
        links.fold(Span::ZERO, |sum, &link| sum + self.links[link].delay)
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
    /// `carried`. Returns `None` if the connection has no access links, or if the delays of the class apply
    /// instead.
    pub fn cloud_delay(&self, carried: &Carried) -> Option<Span> {
        Some(shared(self.on_links(self.own_delays(carried)?), self.access.as_ref()?))
    }

    /// Returns the part of a connection's one-way delays that its access links represent: zero for
    /// an end whose delays a delay stage represents.
    fn on_links(&self, delays: [Span; 2]) -> [Span; 2] {
        End::ALL.map(|end| if self.placed[end as usize] { Span::ZERO } else { delays[end as usize] })
    }

    /// Returns the one-way delays of the client and the server of a connection, or `None` if there
    /// is no trace that gives them.
    pub fn traced_delays(&self, of: Identity) -> Option<[Span; 2]> {
        self.trace()?.delays(self.host_index(of) as usize)
    }

    /// Returns whether the delays of the connections' ends are known, because a cloud draws them or
    /// a trace gives them.
    pub(crate) fn knows_ends(&self) -> bool {
        matches!(self.population, PopulationPlan::Cloud(_))
            || self.trace().is_some_and(|trace| trace.mean_delays().is_some())
    }

    /// Returns the mean one-way delay of this end of the connections, taken over the trace's
    /// connections or from the cloud's distribution.
    pub(crate) fn mean_end(&self, end: End) -> Span {
        let Some(trace) = self.trace() else { return HostDelay::mean(end) };
        let delays = trace.delays_of(end);
        let count = delays.len().max(1) as u128;
        Span::ns((delays.map(|delay| u128::from(delay.as_ns())).sum::<u128>() / count) as u64)
    }

    /// Returns the minimum one-way delay of this end of the connections.
    pub(crate) fn least_end(&self, end: End) -> Span {
        let Some(trace) = self.trace() else { return HostDelay::least(end) };
        trace.delays_of(end).min().unwrap_or(Span::ZERO)
    }

    fn trace(&self) -> Option<&Trace> {
        match &self.workload {
            Workload::Sessions { sessions: Sessions::Trace { trace, .. }, .. } => Some(trace),
            _ => None,
        }
    }

    /// Returns the one-way delays that a trace gives for the client and the server of a connection,
    /// or `None` if the delays of the class apply.
    pub fn listed_delays(&self, index: u64) -> Option<[Span; 2]> {
        match &self.workload {
            Workload::Sessions { sessions: Sessions::Trace { trace, own_delays: true }, .. } => {
                trace.delays(index as usize)
            }
            _ => None,
        }
    }

    /// Returns the one-way delays that the cloud has drawn for the client and the server of a
    /// connection, or `None` if the delays of the class apply.
    pub fn own_delays(&self, carried: &Carried) -> Option<[Span; 2]> {
        let PopulationPlan::Cloud(CloudPlan { own_delays: true, .. }) = &self.population else { return None };
        Some([carried.client_delay, carried.server_delay])
    }

    /// Returns the delay of each access link of the host `index` ([`ClassPlan::host_index`]), or
    /// `None` if it has no access links. `propagation` is the delay of the path, summed over both
    /// directions.
    pub fn access_delay(&self, index: u64, propagation: Span, seed: u64) -> Option<Span> {
        let access = self.access.as_ref()?;
        if let Some(delays) = self.listed_delays(index) {
            return Some(shared(self.on_links(delays), access));
        }
        let rtt = access.rtt.value(
            index,
            self.count,
            Stream::indexed(seed, format_args!("traffic/{}/rtt", self.name), index),
        );
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
        let least = match &self.population {
            PopulationPlan::Cloud(cloud) if cloud.own_delays => {
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
        self.access.as_ref().is_some_and(|access| access.ends[end])
    }

    /// Returns the loss process at the entrance to the sender's access link for the connection with
    /// this index ([`Identity::index`](aqmlab_traffic::Identity::index)), or `None` if nothing is
    /// lost there.
    pub fn access_losses(&self, index: u64, seed: u64) -> Option<Loss> {
        let draws = || Stream::indexed(seed, format_args!("traffic/{}/loss", self.name), index);
        (self.access_loss > 0.0).then(|| Loss::new(self.access_loss, draws()))
    }
}
