//! What is drawn for the flows of a class: the same for every host that runs a plan with a seed.

use aqmlab_random::Stream;
use aqmlab_traffic::{Exchange, PacketSource, Session};
use aqmlab_units::Instant;

use crate::plan::{ClassPlan, Sessions, Workload};

/// What a flow does from its start on.
#[derive(Clone, Debug)]
pub enum FlowSource {
    /// A connection that writes once: all that it has, or without end.
    Stream,
    /// A connection whose applications write, pause and answer.
    Session(Session),
    /// Datagrams.
    Packets(PacketSource),
}

impl ClassPlan {
    /// When each flow starts, latest first; flows that start together are in falling order of their index.
    pub fn starts(&self, seed: u64) -> Vec<(Instant, u32)> {
        let path = format!("traffic/{}/start", self.name);
        let mut starts: Vec<_> = (0..self.count)
            .map(|i| {
                let after = self.start.value(i, self.count, Stream::indexed(seed, &path, i));
                (Instant::ZERO + after, i as u32)
            })
            .collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        starts
    }

    /// What flow `index` does, which starts at `now`.
    pub fn source(&self, index: u32, now: Instant, seed: u64) -> FlowSource {
        let index = u64::from(index);
        let draws = |what| Stream::indexed(seed, &format!("traffic/{}/{what}", self.name), index);
        match &self.workload {
            Workload::Packets { rate, sizes, spacing } => FlowSource::Packets(PacketSource::new(
                *rate,
                *sizes,
                *spacing,
                now,
                draws("gap"),
                draws("size"),
            )),
            Workload::OnOff { rate, size, times } => FlowSource::Packets(PacketSource::on_off(
                *rate,
                *size,
                times.clone(),
                now,
                draws("on"),
                draws("off"),
            )),
            Workload::Bulk { .. } => FlowSource::Stream,
            Workload::Sessions { sessions, .. } => FlowSource::Session(match sessions {
                Sessions::Greedy(times) => Session::greedy(times.clone(), draws("on"), draws("off")),
                Sessions::Bursts(bursty) => Session::bursts(bursty.clone(), draws("burst"), draws("off")),
                Sessions::Trace(trace) => {
                    let row = trace.connections[index as usize];
                    Session::Exchange(Exchange::new(row.request, row.response))
                }
            }),
        }
    }
}
