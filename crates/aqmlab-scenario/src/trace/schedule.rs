//! Schedules: lists of datagrams in a file (CSV or Parquet) next to the scenario.
//!
//! Columns, in any order: `time_s` (seconds since the run's beginning, decimals allowed) or `time_ns`,
//! `size_bytes` (packet headers included), and optionally `ecn` and `flow`. Rows may be in any order; packets
//! of one flow that are due at the same instant leave in the order of the file.

use std::ops::Range;

use aqmlab_qdisc::Ecn;
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Content, Files, content};
use super::row::{Cell, Names, When, whole};
use crate::suggest::nearest;

const WANTED: &str = "write a header with the columns `time_s` (or `time_ns`), `size_bytes` and, optionally, `ecn` and \
                      `flow`, and one row per packet";
const SIZE: &str = "size_bytes";
const ECN: &str = "ecn";
const FLOW: &str = "flow";
const NAMES: Names = Names { all: &["time_s", "time_ns", SIZE, ECN, FLOW], wanted: WANTED };

/// The smallest and the largest packet: an IPv4 header and a UDP header alone, and the largest IPv4
/// packet. The same limits apply to every other datagram in a scenario.
const SIZES: (u64, u64) = (28, 65_535);
/// Largest flow number. In practice, other limits come first: hosts support far fewer flows per
/// class, and every flow number up to the largest must have a packet.
const MOST_FLOWS: u64 = u32::MAX as u64;

/// The words for ECN fields, each at the index of its code point (RFC 3168, section 5).
const WORDS: [(&str, Ecn); 4] =
    [("not-ect", Ecn::NotEct), ("ect1", Ecn::Ect1), ("ect0", Ecn::Ect0), ("ce", Ecn::Ce)];

/// Returns the ECN field with this name.
pub(crate) fn ecn_of(word: &str) -> Option<Ecn> {
    WORDS.iter().find(|(name, _)| *name == word).map(|(_, ecn)| *ecn)
}

/// Returns the name of an ECN field.
pub(crate) fn ecn_word(ecn: Ecn) -> &'static str {
    WORDS[ecn as usize].0
}

/// Packets as a file lists them: by flow, and within a flow in the order in which they leave. The list takes
/// twelve bytes per packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Schedule {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// When each packet leaves, in nanoseconds.
    #[serde(skip)]
    times: Vec<u64>,
    /// The size of each packet in the low 16 bits, and above them its ECN field.
    #[serde(skip)]
    packets: Vec<u32>,
    /// The row at which each flow's packets begin, followed by the total number of rows.
    #[serde(skip)]
    begins: Vec<usize>,
}

/// One packet of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// When it leaves.
    pub at: Span,
    /// The size of the packet at the network layer.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
}

impl Schedule {
    /// Incremented whenever a change here changes a result.
    pub const VERSION: u32 = 1;

    /// Reads `file`.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that names the file and the row.
    pub(crate) fn read(files: &dyn Files, file: &str) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "schedule", file, WANTED)?;
        let rows = bytes.rows("schedule", file, WANTED, Columns::of, Columns::row)?;
        Schedule::of(file, digest, rows)
    }

    /// Creates a schedule from `rows`, each of which gives the flow, the time in nanoseconds, the size and
    /// the ECN field.
    fn of(file: &str, digest: String, mut rows: Vec<(u32, u64, u32)>) -> Result<Self, String> {
        if rows.is_empty() {
            return Err(format!("the schedule `{file}` has no rows; write at least one packet"));
        }
        rows.sort_by_key(|&(flow, at, _)| (flow, at));
        let mut begins = Vec::new();
        for (i, &(flow, ..)) in rows.iter().enumerate() {
            if begins.len() == flow as usize {
                begins.push(i);
            } else if begins.len() < flow as usize {
                return Err(format!(
                    "schedule `{file}`: there is a flow {flow} but no flow {}; number flows from 0 upwards without gaps",
                    begins.len()
                ));
            }
        }
        begins.push(rows.len());
        let times = rows.iter().map(|row| row.1).collect();
        let packets = rows.iter().map(|row| row.2).collect();
        Ok(Schedule { file: file.to_string(), digest, times, packets, begins })
    }

    /// Returns the number of packets, at least one.
    pub fn packets(&self) -> usize {
        self.times.len()
    }

    /// Returns the number of flows, at least one.
    pub fn flows(&self) -> usize {
        self.begins.len() - 1
    }

    /// Returns the rows of a flow in the order in which they leave, at least one.
    pub fn rows(&self, flow: usize) -> Range<usize> {
        self.begins[flow]..self.begins[flow + 1]
    }

    /// Returns the packet of a row.
    #[inline]
    pub fn row(&self, row: usize) -> Scheduled {
        let packet = self.packets[row];
        Scheduled {
            at: Span::ns(self.times[row]),
            size: Bytes::new(u64::from(packet & 0xffff)),
            ecn: WORDS[(packet >> 16) as usize].1,
        }
    }

    /// Returns when each flow starts, which is when its first packet leaves.
    pub(crate) fn starts(&self) -> Vec<Span> {
        self.begins[..self.flows()].iter().map(|&row| Span::ns(self.times[row])).collect()
    }

    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.packets.iter().map(|packet| u64::from(packet & 0xffff))
    }

    /// Returns the mean size of a packet, rounded to the nearest byte.
    pub fn mean_size(&self) -> Bytes {
        let (sum, count) = (self.sizes().sum::<u64>(), self.packets() as u64);
        Bytes::new((sum + count / 2) / count)
    }

    /// Returns the size of the largest packet.
    pub fn largest(&self) -> Bytes {
        Bytes::new(self.sizes().max().unwrap_or(0))
    }

    /// Returns whether the schedule has a packet that queues may mark.
    pub fn is_ecn_capable(&self) -> bool {
        self.packets.iter().any(|packet| packet >> 16 != 0)
    }

    /// Returns the mean rate of a flow over the time between the first and the last packet of the
    /// whole schedule, or `None` if all packets leave at the same instant.
    pub fn mean_rate(&self) -> Option<Rate> {
        let (first, last) = (self.times.iter().min()?, self.times.iter().max()?);
        let bytes = Bytes::new(self.sizes().sum::<u64>() / self.flows() as u64);
        (last > first).then(|| Rate::of(bytes, Span::ns(last - first)))
    }
}

/// The positions of the values in a row.
struct Columns {
    when: When,
    size: usize,
    ecn: Option<usize>,
    flow: Option<usize>,
}

impl Columns {
    /// Finds the columns by the names in the header.
    fn of(names: &[&str]) -> Result<Self, String> {
        let names = NAMES.check(names)?;
        Ok(Columns {
            when: names.when(["time_s", "time_ns"])?,
            size: names.need(SIZE)?,
            ecn: names.place(ECN),
            flow: names.place(FLOW),
        })
    }

    /// Returns the row with these values.
    fn row(&self, cells: &[Cell<'_>]) -> Result<(u32, u64, u32), String> {
        let at = self.when.read(cells)?;
        let size = whole(SIZE, &cells[self.size], SIZES.0, SIZES.1)?;
        let ecn = self.ecn.map_or(Ok(Ecn::NotEct), |at| ecn(&cells[at]))?;
        let flow = match self.flow {
            Some(at) => whole(FLOW, &cells[at], 0, MOST_FLOWS)?,
            None => 0,
        };
        Ok((flow as u32, at.as_ns(), size as u32 | (ecn as u32) << 16))
    }
}

/// Returns the ECN field that the cell gives by name or, as captures do, as a code point. An empty cell means
/// not ECN-capable.
fn ecn(cell: &Cell<'_>) -> Result<Ecn, String> {
    let found = match cell {
        Cell::Nothing => return Ok(Ecn::NotEct),
        Cell::Text(text) if text.trim().is_empty() => return Ok(Ecn::NotEct),
        Cell::Text(text) => ecn_of(text.trim()).or_else(|| code_point(text.trim().parse().ok()?)),
        Cell::Whole(n) => code_point(*n),
        Cell::Number(_) => None,
    };
    found.ok_or_else(|| {
        let near = nearest(&cell.to_string(), WORDS.map(|(word, _)| word));
        let meant = near.map_or(String::new(), |near| format!("did you mean \"{near}\"? Otherwise "));
        format!("`{ECN}` is `{cell}`; {meant}write not-ect, ect0, ect1 or ce, or a code point from 0 to 3")
    })
}

fn code_point(n: i64) -> Option<Ecn> {
    Some(WORDS.get(usize::try_from(n).ok()?)?.1)
}
