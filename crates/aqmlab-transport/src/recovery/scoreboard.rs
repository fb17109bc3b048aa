//! The sender's scoreboard: the data that the other side has received beyond the cumulative acknowledgment,
//! the losses among the rest, and the amount in flight (RFC 6675, sections 3 and 4).
//!
//! The RFC defines its functions octet by octet. Here, a run of octets is one entry, and every
//! function is computed from the runs. All octets below a certain edge are lost, and none above it
//! is, so IsLost is one comparison once the edge is known. The edge is found among the topmost
//! DupThresh runs. The pipe is computed from stored sums.

use crate::profile::Profile;
use crate::ranges::Ranges;

/// The state that a sender needs to fill holes.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Scoreboard {
    /// Octets that SACK blocks report above the cumulative acknowledgment.
    sacked: Ranges,
    /// The cumulative acknowledgment: one past HighACK.
    una: u64,
    /// One past HighRxt, the highest octet retransmitted in this recovery; at least `una`.
    high_rxt: u64,
    /// Number of octets from `una` to `high_rxt` that are not SACKed: they have been retransmitted
    /// and are in flight again.
    again: u64,
    /// One past RescueRxt.
    rescue: u64,
    /// ns-2's own estimate of the segments in flight, `pipe_` of its Sack1 agent. This estimate may
    /// be negative.
    pub counter: i64,
}

/// Octets `[from, to)` that have not been acknowledged in any way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    pub from: u64,
    pub to: u64,
}

/// The octets that are lost according to IsLost of RFC 6675, section 4: all octets below an edge
/// that are not SACKed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lost {
    edge: u64,
    /// Number of SACKed octets above the edge.
    sacked_above: u64,
}

impl Scoreboard {
    /// Records that everything below `una` has arrived.
    pub(crate) fn acknowledge(&mut self, una: u64) {
        let edge = self.high_rxt.min(una);
        self.again -= (edge - self.una) - self.sacked.remove_below(edge);
        self.sacked.remove_below(una);
        self.una = una;
        self.high_rxt = self.high_rxt.max(una);
    }

    /// Processes a SACK block for `[from, to)`. Returns the number of newly reported octets, which
    /// is zero if the block is not within the outstanding data (from `una` to `sent`).
    pub(crate) fn sack(&mut self, from: u64, to: u64, sent: u64) -> u64 {
        let from = from.max(self.una);
        if from >= to || to > sent {
            return 0;
        }
        if from >= self.high_rxt {
            return self.sacked.insert(from, to);
        }
        let below = self.sacked.insert(from, to.min(self.high_rxt));
        self.again -= below;
        let above = if to > self.high_rxt { self.sacked.insert(self.high_rxt, to) } else { 0 };
        below + above
    }

    /// Forgets all reports: "After a retransmit timeout the data sender SHOULD turn off all of the SACKed
    /// bits" (RFC 2018, section 5). This method is also called when a scoreboard that was out of use is used
    /// again, and when ns-2's Sack1 agent forgets its scoreboard.
    pub(crate) fn clear(&mut self, una: u64) {
        self.sacked.clear();
        (self.una, self.high_rxt, self.again) = (una, una, 0);
    }

    /// Begins a recovery, in which nothing has been retransmitted yet (RFC 6675, section 5, step
    /// 4.3).
    pub(crate) fn begin(&mut self) {
        (self.high_rxt, self.again) = (self.una, 0);
    }

    /// Notes that the first segment of a recovery is retransmitted, up to `to`; there is no rescue
    /// retransmission until data beyond this segment is acknowledged (RFC 6675, section 5, step
    /// 4.3).
    pub(crate) fn first_retransmitted(&mut self, to: u64) {
        self.retransmitted(self.una, to);
        self.rescue = to;
    }

    /// Notes that the part `[from, to)` of the lowest hole above HighRxt is retransmitted.
    pub(crate) fn retransmitted(&mut self, from: u64, to: u64) {
        self.again += to - from;
        self.high_rxt = to;
    }

    /// Notes that the rescue retransmission of this recovery has been used (RFC 6675, section 4,
    /// rule 4): RescueRxt becomes RecoveryPoint.
    pub(crate) fn rescued(&mut self, recover: u64) {
        self.rescue = recover;
    }

    /// Returns whether nothing is SACKed.
    pub(crate) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }

    /// Returns the number of SACKed octets below `edge`.
    pub(crate) fn sacked_below(&self, edge: u64) -> u64 {
        if self.sacked.end().is_none_or(|end| end <= edge) {
            return self.sacked.covered();
        }
        self.sacked.covered_below(edge)
    }

    /// IsLost: "either DupThresh discontiguous SACKed sequences have arrived above SeqNum or more than
    /// (DupThresh - 1) * SMSS bytes with sequence numbers greater than SeqNum have been SACKed" (RFC 6675,
    /// section 4). Examines at most DupThresh runs.
    pub(crate) fn lost(&self, profile: &Profile) -> Lost {
        let enough = u64::from(profile.dupthresh - 1) * u64::from(profile.mss);
        let mut above = 0;
        for (runs, (from, to)) in (1..).zip(self.sacked.topmost_first()) {
            above += to - from;
            if runs >= profile.dupthresh || above > enough {
                return Lost { edge: from, sacked_above: above };
            }
        }
        Lost { edge: self.una, sacked_above: above }
    }

    /// SetPipe: returns the number of octets up to `sent` that are in flight (RFC 6675, section 4). Each
    /// octet that is not SACKed counts once if it is not lost, and once more if it has been retransmitted.
    pub(crate) fn pipe(&self, lost: Lost, sent: u64) -> u64 {
        sent - lost.edge - lost.sacked_above + self.again
    }

    /// NextSeg, rules 1 and 3: returns a hole, starting at the lowest octet above HighRxt that is not
    /// SACKed and lies below a SACKed one. Rule 1 applies if the octet [is also
    /// lost](Lost::covers).
    pub(crate) fn next_hole(&self) -> Option<Hole> {
        let from = self.sacked.gap_from(self.high_rxt);
        self.sacked.end_of_gap(from).map(|to| Hole { from, to })
    }

    /// NextSeg, rule 4: returns the `mss` octets that end with the highest outstanding octet that is not
    /// SACKed, once per recovery and only if HighACK is greater than RescueRxt.
    pub(crate) fn rescue(&self, sent: u64, mss: u32) -> Option<Hole> {
        if self.una <= self.rescue {
            return None;
        }
        let mut runs = self.sacked.topmost_first().peekable();
        let to = runs.next_if(|run| run.1 == sent).map_or(sent, |run| run.0);
        let floor = runs.next().map_or(self.una, |run| run.1);
        (to > floor).then(|| Hole { from: floor.max(to.saturating_sub(u64::from(mss))), to })
    }

    /// Returns the first range of octets at or above `from` that are not SACKed; it extends to the
    /// next SACKed octet, or indefinitely if there is none.
    pub(crate) fn gap_from(&self, from: u64) -> Hole {
        let from = self.sacked.gap_from(from);
        Hole { from, to: self.sacked.end_of_gap(from).unwrap_or(u64::MAX) }
    }
}

impl Lost {
    /// Returns the result of IsLost for an octet that is not SACKed.
    pub(crate) fn covers(self, octet: u64) -> bool {
        octet < self.edge
    }
}
