//! Connection vectors: what the connections of a class do, exchange by exchange, independently of
//! any network.

use aqmlab_traffic::{Content, Identity, Opening, PlannedExchange, Woken};
use aqmlab_units::{Instant, Span};

use crate::plan::ClassPlan;
use crate::trace::check_connection;
use crate::traffic::{FlowSource, Opens};

/// Largest number of connections. All of them are held in memory together with the resulting file, about 300
/// bytes each.
const MOST_CONNECTIONS: usize = 10_000_000;

/// A connection, with those actions of its two endpoints that do not depend on the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionVector {
    /// When the client opens it.
    pub start: Instant,
    /// The one-way delays between client and network and between network and server, if the connection has
    /// its own delays.
    pub delays: Option<[Span; 2]>,
    /// The exchanges of the connection in order, at least one.
    pub exchanges: Vec<PlannedExchange>,
}

impl ConnectionVector {
    /// Checks that a trace may contain the connection: that no time or size exceeds what a trace may contain,
    /// and that data follows data as it may there.
    ///
    /// # Errors
    /// A sentence without a full stop that names the exchange.
    pub fn check(&self) -> Result<(), String> {
        check_connection(self.start.saturating_since(Instant::ZERO), self.delays, &self.exchanges)
    }
}

impl ClassPlan {
    /// Returns the connections that open no later than `until` in a run with this seed, in the order in
    /// which they open.
    ///
    /// # Errors
    /// If the class has no exchanges, or the network decides when its connections open. The error
    /// is a sentence without a full stop.
    ///
    /// # Panics
    /// If the file gives starts only for other seeds: see
    /// [`Plan::check_seed`](crate::Plan::check_seed).
    pub fn vectors(&self, seed: u64, until: Instant) -> Result<Vec<ConnectionVector>, String> {
        self.check_vectors()?;
        if self.waits_for_answers() {
            return Err(format!(
                "the instants at which the users of \"{}\" open connections depend on the network; name a \
                 recording of a run that has `requests = {{ each = true }}` in [record]",
                self.name
            ));
        }
        let until = self.stop_at.map_or(until, |stop| until.min(last_before(stop)));
        let mut population = self.population(seed);
        let (mut wake, mut vectors) = (population.begin(), Vec::new());
        while let Some(next) = wake.filter(|wake| wake.at <= until) {
            if vectors.len() == MOST_CONNECTIONS {
                return Err(format!(
                    "more than {MOST_CONNECTIONS} connections of \"{}\" open within {}; write a shorter duration",
                    self.name,
                    until.saturating_since(Instant::ZERO)
                ));
            }
            let woken = population.on_wake(next);
            wake = woken.wake();
            let Woken::Opens(Opening { open, content, .. }) = woken else { continue };
            let delays = match content.connection() {
                Some(carried) => self.own_delays(carried),
                None => self.listed_delays(open.index()),
            };
            let source = self.source(open, content, next.at, seed);
            vectors.push(ConnectionVector { start: next.at, delays, exchanges: planned(source) });
        }
        Ok(vectors)
    }

    /// Does the same as [`ClassPlan::vectors`] for connections whose opening times are known.
    ///
    /// # Errors
    /// If the class has no exchanges.
    pub fn vectors_of(
        &self,
        opened: &[(Instant, Identity)],
        seed: u64,
    ) -> Result<Vec<ConnectionVector>, String> {
        self.check_vectors()?;
        let vector = |&(start, of): &(Instant, Identity)| ConnectionVector {
            start,
            delays: None,
            exchanges: planned(self.source(of, Content::Drawn, start, seed)),
        };
        Ok(opened.iter().map(vector).collect())
    }

    /// Returns whether the network decides when the connections of the class open.
    pub fn waits_for_answers(&self) -> bool {
        matches!(self.traffic.opens(), Opens::ByUsers { pages: None, .. })
    }

    /// Checks that connection vectors can describe what the connections of the class carry.
    fn check_vectors(&self) -> Result<(), String> {
        self.traffic.vectors_flaw(&self.name).map_or(Ok(()), Err)
    }
}

/// Returns the last instant before a class stops opening connections.
fn last_before(stop: Span) -> Instant {
    Instant::ZERO + Span::ns(stop.as_ns().saturating_sub(1))
}

fn planned(source: FlowSource) -> Vec<PlannedExchange> {
    match source {
        FlowSource::Session(session) => session.planned(),
        FlowSource::Stream(_) | FlowSource::Packets(_) | FlowSource::Dialogue { .. } => Vec::new(),
    }
}
