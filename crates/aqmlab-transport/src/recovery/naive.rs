//! Compares the scoreboard with a slow reference, which has one flag per octet and follows the
//! definitions of RFC 6675, section 4, word for word. The sequences of events are random; a failure
//! prints its seed.

use std::println;
use std::vec::Vec;

use aqmlab_params::{Origin, Value};
use aqmlab_random::Stream;
use aqmlab_units::Bytes;
use aqmlab_units::text::Size;

use super::{Hole, Scoreboard};
use crate::profile::{Profile, profile_settings};

/// Octets 0 to HighData, and their state as the RFC defines it.
struct Naive {
    /// One flag per octet; the last octet is HighData.
    sacked: Vec<bool>,
    /// The octet HighACK; `None` before the first one is acknowledged.
    high_ack: Option<usize>,
    high_rxt: Option<usize>,
    rescue_rxt: Option<usize>,
    dup_thresh: usize,
    smss: usize,
}

impl Naive {
    fn first(&self) -> usize {
        self.high_ack.map_or(0, |octet| octet + 1)
    }

    fn outstanding(&self) -> std::ops::Range<usize> {
        self.first()..self.sacked.len()
    }

    /// "This routine returns whether the given sequence number is considered to be lost. The routine returns true when
    /// either DupThresh discontiguous SACKed sequences have arrived above 'SeqNum' or more than (DupThresh - 1) * SMSS
    /// bytes with sequence numbers greater than 'SeqNum' have been SACKed."
    fn is_lost(&self, seq_num: usize) -> bool {
        let above = &self.sacked[seq_num + 1..];
        let octets = above.iter().filter(|s| **s).count();
        let begins = |i: usize| above[i] && (i == 0 || !above[i - 1]);
        let sequences = (0..above.len()).filter(|i| begins(*i)).count();
        sequences >= self.dup_thresh || octets > (self.dup_thresh - 1) * self.smss
    }

    /// "After initializing pipe to zero, the following steps are taken for each octet 'S1' in the sequence space
    /// between HighACK and HighData that has not been SACKed: (a) If IsLost (S1) returns false: Pipe is incremented by
    /// 1 octet. (b) If S1 <= HighRxt: Pipe is incremented by 1 octet."
    fn pipe(&self) -> usize {
        let mut pipe = 0;
        for s1 in self.outstanding().filter(|s| !self.sacked[*s]) {
            pipe += usize::from(!self.is_lost(s1));
            pipe += usize::from(self.high_rxt.is_some_and(|high| s1 <= high));
        }
        pipe
    }

    /// "The smallest unSACKed sequence number 'S2' that meets: (1.a) S2 is greater than HighRxt. (1.b) S2 is less than
    /// the highest octet covered by any received SACK." With the condition (1.c), IsLost (S2), this is
    /// rule 1; without it, this is rule 3.
    fn s2(&self) -> Option<usize> {
        let highest = self.outstanding().rev().find(|s| self.sacked[*s])?;
        self.outstanding()
            .find(|s| !self.sacked[*s] && self.high_rxt.is_none_or(|high| *s > high) && *s < highest)
    }

    /// "(4) ... If HighACK is greater than RescueRxt (or RescueRxt is undefined), then one segment of up to SMSS octets
    /// that MUST include the highest outstanding unSACKed sequence number SHOULD be returned."
    fn rescue(&self) -> Option<usize> {
        if self.rescue_rxt.is_some_and(|rescue| self.high_ack.is_none_or(|high| high <= rescue)) {
            return None;
        }
        self.outstanding().rev().find(|s| !self.sacked[*s])
    }
}

/// The two scoreboards, and the profile that they share.
struct Twins {
    board: Scoreboard,
    naive: Naive,
    profile: Profile,
    draw: Stream,
}

impl Twins {
    fn new(seed: u64) -> Twins {
        let mut draw = Stream::new(seed, "scoreboard");
        let (dup_thresh, smss) = (1 + draw.below(4), 1 + draw.below(6));
        let mut settings = profile_settings("rfc").expect("built in");
        settings.set("dupthresh", Value::Integer(dup_thresh), Origin::Given);
        settings.set("mss", Value::Size(Size::Bytes(Bytes::new(smss))), Origin::Given);
        let naive = Naive {
            sacked: std::vec![false; 10 + draw.below(60) as usize],
            high_ack: None,
            high_rxt: None,
            rescue_rxt: Some(0),
            dup_thresh: dup_thresh as usize,
            smss: smss as usize,
        };
        let profile = Profile::resolve(&mut settings).expect("consistent");
        let mut board = Scoreboard::default();
        board.begin();
        board.first_retransmitted(1);
        let mut twins = Twins { board, naive, profile, draw };
        twins.naive.high_rxt = Some(0);
        twins.check();
        twins
    }

    fn sent(&self) -> u64 {
        self.naive.sacked.len() as u64
    }

    fn some(&mut self, range: std::ops::Range<usize>) -> usize {
        range.start + self.draw.below(range.len() as u64) as usize
    }

    fn step(&mut self) {
        let outstanding = self.naive.outstanding();
        if outstanding.is_empty() || self.draw.hit(0.2) {
            return self
                .naive
                .sacked
                .resize(self.naive.sacked.len() + 1 + self.draw.below(9) as usize, false);
        }
        match self.draw.below(10) {
            0..5 => self.tell(),
            5..7 => self.retransmit(),
            7 => self.acknowledge(),
            8 => self.rescue(),
            _ if self.draw.hit(0.2) => self.forget(),
            _ => self.begin(),
        }
    }

    /// Gives both scoreboards the same SACK block, usually one within the outstanding data.
    fn tell(&mut self) {
        let from = self.some(0..self.naive.sacked.len());
        let to = from + 1 + self.draw.below(8) as usize;
        let news = if to <= self.naive.sacked.len() {
            let first = self.naive.first();
            let told = (from.max(first)..to).filter(|s| !std::mem::replace(&mut self.naive.sacked[*s], true));
            told.count()
        } else {
            0 // not within the outstanding data
        };
        assert_eq!(self.board.sack(from as u64, to as u64, self.sent()), news as u64);
    }

    fn acknowledge(&mut self) {
        let octet = self.some(self.naive.outstanding());
        self.naive.high_ack = Some(octet);
        self.board.acknowledge(octet as u64 + 1);
        let una = octet as u64 + 1;
        // The acknowledgment also covers SACKed data that is now in order.
        let reached = (una as usize..self.naive.sacked.len()).take_while(|s| self.naive.sacked[*s]).count();
        if reached > 0 {
            self.naive.high_ack = Some(octet + reached);
            self.board.acknowledge(una + reached as u64);
        }
    }

    /// Retransmits the segment that NextSeg returns by rule 1 or 3.
    fn retransmit(&mut self) {
        let Some(s2) = self.naive.s2() else { return };
        let hole = (s2..self.naive.sacked.len()).take_while(|s| !self.naive.sacked[*s]).count();
        let len = hole.min(self.naive.smss);
        self.naive.high_rxt = Some(s2 + len - 1);
        self.board.retransmitted(s2 as u64, (s2 + len) as u64);
    }

    fn rescue(&mut self) {
        if self.naive.rescue().is_some() {
            self.naive.rescue_rxt = Some(self.naive.sacked.len() - 1);
            self.board.rescued(self.sent());
        }
    }

    /// Begins a recovery, which retransmits the first segment.
    fn begin(&mut self) {
        let first = self.naive.first();
        let hole = (first..self.naive.sacked.len()).take_while(|s| !self.naive.sacked[*s]).count();
        let len = hole.min(self.naive.smss);
        if len > 0 {
            (self.naive.high_rxt, self.naive.rescue_rxt) = (Some(first + len - 1), Some(first + len - 1));
            self.board.begin();
            self.board.first_retransmitted((first + len) as u64);
        }
    }

    /// Simulates a timeout, after which nothing counts as SACKed or as retransmitted.
    fn forget(&mut self) {
        let first = self.naive.first();
        self.naive.sacked[first..].fill(false);
        self.naive.high_rxt = self.naive.high_ack;
        self.board.clear(first as u64);
    }

    fn check(&self) {
        let (board, naive, sent) = (&self.board, &self.naive, self.sent());
        let lost = board.lost(&self.profile);
        for octet in naive.outstanding().filter(|s| !naive.sacked[*s]) {
            assert_eq!(lost.covers(octet as u64), naive.is_lost(octet), "IsLost({octet})");
        }
        assert_eq!(board.pipe(lost, sent), naive.pipe() as u64, "SetPipe");
        assert_eq!(board.next_hole().map(|hole| hole.from), naive.s2().map(|s| s as u64), "NextSeg, 1 and 3");
        let rescue = board.rescue(sent, self.profile.mss);
        assert_eq!(rescue.map(|hole| hole.to - 1), naive.rescue().map(|s| s as u64), "NextSeg, 4");
        if let Some(Hole { from, to }) = rescue {
            assert!(to - from <= naive.smss as u64 && (from..to).all(|s| !naive.sacked[s as usize]));
        }
        let edge = sent / 2;
        let below = naive.outstanding().filter(|s| naive.sacked[*s] && (*s as u64) < edge).count();
        assert_eq!(board.sacked_below(edge), below as u64);
    }
}

#[test]
fn agrees_with_the_definitions_of_rfc_6675_octet_by_octet() {
    let seeds = match std::env::var("AQMLAB_SEED") {
        Ok(seed) => seed.parse().map(|n| n..n + 1).expect("a number"),
        Err(_) => 0..400,
    };
    for seed in seeds {
        println!("replay with AQMLAB_SEED={seed}");
        let mut twins = Twins::new(seed);
        for _ in 0..300 {
            twins.step();
            twins.check();
        }
    }
}
