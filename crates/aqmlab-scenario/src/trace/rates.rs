//! Files about the rate of a link: levels (CSV or Parquet), and chances to send in Mahimahi's format.

use std::sync::Arc;

use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Content, Files, content};
use super::row::{Cell, LATEST, Names, When, number};
use crate::language::RATE_OR_ZERO;
use crate::plan::RateStep;

const WANTED_LEVELS: &str = "write a header with the columns `time_s` (or `time_ns`) and `rate_bps` (or `rate_kbps` or \
                             `rate_mbps`), and one row per level";
/// The columns of rates, with bit/s per unit.
const RATES: [(&str, f64); 3] = [("rate_bps", 1.0), ("rate_kbps", 1e3), ("rate_mbps", 1e6)];
const LEVEL_NAMES: Names =
    Names { all: &["time_s", "time_ns", "rate_bps", "rate_kbps", "rate_mbps"], wanted: WANTED_LEVELS };

const WANTED_CHANCES: &str =
    "write one line per chance to send 1500 bytes: the milliseconds since the beginning of the file";

/// The bytes that a line of Mahimahi's format stands for (mm-link(1): one 1500-byte packet).
pub(crate) const MAHIMAHI_CHANCE: Bytes = Bytes::new(1500);

/// Levels of a rate as a file lists them. Times count from the first row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LevelFile {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// The levels; the first is at zero.
    #[serde(skip)]
    pub(crate) steps: Arc<[RateStep]>,
    /// When the file ends: the last level lasts as long as the one before it.
    #[serde(skip)]
    pub(crate) length: Span,
}

/// Chances to send as a file in Mahimahi's format lists them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ChanceFile {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// The chances, in milliseconds, ascending. The last one is the length of the file.
    #[serde(skip)]
    pub(crate) stamps_ms: Arc<[u32]>,
}

impl LevelFile {
    /// Reads `file`.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that names the file and the row.
    pub(crate) fn read(files: &dyn Files, file: &str) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "rate trace", file, WANTED_LEVELS)?;
        let mut before: Option<Span> = None;
        let steps = bytes.rows("rate trace", file, WANTED_LEVELS, Columns::of, |columns, cells| {
            let RateStep { at, rate } = columns.row(cells)?;
            if let Some(before) = before.filter(|before| at <= *before) {
                return Err(format!(
                    "time `{at}` is not after `{before}` of the row before; sort the rows by time"
                ));
            }
            before = Some(at);
            Ok(RateStep { at, rate })
        })?;
        let Some(first) = steps.first().map(|step| step.at) else {
            return Err(format!("the rate trace `{file}` has no rows; write at least one level"));
        };
        let steps: Vec<RateStep> =
            steps.iter().map(|step| RateStep { at: step.at.saturating_sub(first), ..*step }).collect();
        let length = match steps[..] {
            [.., before, last] => last.at + last.at.saturating_sub(before.at),
            _ => Span::ZERO,
        };
        Ok(LevelFile { file: file.to_string(), digest, steps: steps.into(), length })
    }

    /// Returns the number of levels, at least one.
    pub fn levels(&self) -> usize {
        self.steps.len()
    }
}

impl ChanceFile {
    /// Reads `file`.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that names the file and the line.
    pub(crate) fn read(files: &dyn Files, file: &str) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "trace of chances", file, WANTED_CHANCES)?;
        let text = std::str::from_utf8(bytes.text())
            .map_err(|_| format!("the trace of chances `{file}` is not text; {WANTED_CHANCES}"))?;
        let mut stamps: Vec<u32> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let at = |message: String| format!("trace of chances `{file}`, line {}: {message}", number + 1);
            let line = line.trim();
            if line.is_empty() {
                return Err(at(format!("the line is empty; {WANTED_CHANCES}")));
            }
            let Ok(stamp) = line.parse::<u64>() else {
                return Err(at(format!("`{line}` is not a whole number; {WANTED_CHANCES}")));
            };
            let latest = LATEST.div_span(Span::ms(1));
            let Some(stamp) = u32::try_from(stamp).ok().filter(|stamp| u64::from(*stamp) <= latest) else {
                return Err(at(format!(
                    "`{line}` ms is beyond {}; write milliseconds",
                    Span::ms(u64::from(u32::MAX))
                )));
            };
            if let Some(before) = stamps.last().filter(|before| stamp < **before) {
                return Err(at(format!("`{stamp}` is before `{before}` of the line before; sort the lines")));
            }
            stamps.push(stamp);
        }
        if stamps.last() == Some(&0) {
            return Err(format!(
                "the trace of chances `{file}` takes no time: all its lines are 0; {WANTED_CHANCES}"
            ));
        }
        Ok(ChanceFile { file: file.to_string(), digest, stamps_ms: stamps.into() })
    }

    /// Returns the number of chances, at least one.
    pub fn chances(&self) -> usize {
        self.stamps_ms.len()
    }

    /// Returns the time after which the file is repeated: its last stamp.
    pub fn length(&self) -> Span {
        Span::ms(self.stamps_ms.last().copied().unwrap_or(0).into())
    }

    /// Returns the mean rate of the whole file with this many bytes per chance.
    pub fn mean(&self, chance: Bytes) -> Rate {
        Rate::of(chance * self.chances() as u64, self.length())
    }
}

/// The positions of the values in a row of levels.
struct Columns {
    when: When,
    rate: (usize, &'static str, f64),
}

impl Columns {
    fn of(names: &[&str]) -> Result<Self, String> {
        let names = LEVEL_NAMES.check(names)?;
        let mut rates =
            RATES.iter().filter_map(|(name, unit)| names.place(name).map(|at| (at, *name, *unit)));
        let rate = match (rates.next(), rates.next()) {
            (Some(rate), None) => rate,
            (Some((_, one, _)), Some((_, other, _))) => {
                return Err(format!("`{one}` and `{other}` mean the same; keep one of them"));
            }
            (None, _) => return names.need(RATES[0].0).map(|_| unreachable!("the column is missing")),
        };
        Ok(Columns { when: names.when(["time_s", "time_ns"])?, rate })
    }

    fn row(&self, cells: &[Cell<'_>]) -> Result<RateStep, String> {
        let (at, name, unit) = self.rate;
        let most = RATE_OR_ZERO.1.as_bps() as f64 / unit;
        let rate = number(name, &cells[at], 0.0, most)? * unit;
        Ok(RateStep { at: self.when.read(cells)?, rate: Rate::bps((rate + 0.5) as u64) })
    }
}
