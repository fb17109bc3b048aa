//! Files about the rate of a link: levels (CSV or Parquet), and chances to send in Mahimahi's format.

use std::sync::Arc;

use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Content, Files, content};
use super::row::{Cell, LATEST, Names, When, number};
use crate::language::RATE_OR_ZERO;

const WANTED_LEVELS: &str = "write a header with the columns `time_s` (or `time_ns`) and `rate_bps` (or `rate_kbps` or \
                             `rate_mbps`), `delay_ms` or `loss`, and one row per level";
/// The columns of rates, with bit/s per unit.
const RATES: [(&str, f64); 3] = [("rate_bps", 1.0), ("rate_kbps", 1e3), ("rate_mbps", 1e6)];
const DELAY: &str = "delay_ms";
const LOSS: &str = "loss";
const LEVEL_NAMES: Names = Names {
    all: &["time_s", "time_ns", "rate_bps", "rate_kbps", "rate_mbps", DELAY, LOSS],
    wanted: WANTED_LEVELS,
};
/// The longest delay, as for all links.
const MOST_DELAY_MS: f64 = 3_600_000.0;

const WANTED_CHANCES: &str =
    "write one line per chance to send 1500 bytes: the milliseconds since the beginning of the file";

/// The bytes that a line of Mahimahi's format stands for (mm-link(1): one 1500-byte packet).
pub(crate) const MAHIMAHI_CHANCE: Bytes = Bytes::new(1500);

/// The rate from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RateStep {
    /// The instant.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// The rate, which may be zero.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
}

/// The delay from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct DelayStep {
    /// The instant.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// The delay.
    #[serde(rename = "delay_ns")]
    pub delay: Span,
}

/// The loss probability from an instant on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LossStep {
    /// The instant.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// The probability.
    pub loss: f64,
}

/// Levels of a rate, a delay and a loss probability as a file lists them. Times count from the first row.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LevelFile {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// The levels of the rate; the first is at zero. Empty if the file has no such column, like the next two.
    #[serde(skip)]
    pub(crate) steps: Arc<[RateStep]>,
    #[serde(skip)]
    pub(crate) delays: Arc<[DelayStep]>,
    #[serde(skip)]
    pub(crate) losses: Arc<[LossStep]>,
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
        let rows = bytes.rows("rate trace", file, WANTED_LEVELS, Columns::of, |columns, cells| {
            let row = columns.row(cells)?;
            let at = row.at;
            if let Some(before) = before.filter(|before| at <= *before) {
                return Err(format!(
                    "time `{at}` is not after `{before}` of the row before; sort the rows by time"
                ));
            }
            before = Some(at);
            Ok(row)
        })?;
        let Some(first) = rows.first().map(|row| row.at) else {
            return Err(format!("the rate trace `{file}` has no rows; write at least one level"));
        };
        let length = match &rows[..] {
            [.., before, last] => last.at.saturating_sub(first) + last.at.saturating_sub(before.at),
            _ => Span::ZERO,
        };
        let at = |row: &Row| row.at.saturating_sub(first);
        let steps = rows.iter().filter_map(|row| Some(RateStep { at: at(row), rate: row.rate? })).collect();
        let delays =
            rows.iter().filter_map(|row| Some(DelayStep { at: at(row), delay: row.delay? })).collect();
        let losses = rows.iter().filter_map(|row| Some(LossStep { at: at(row), loss: row.loss? })).collect();
        Ok(LevelFile { file: file.to_string(), digest, steps, delays, losses, length })
    }

    /// Returns the file, or an error if it has no column of rates, delays or losses, as `what` says.
    pub(crate) fn with(self: Arc<Self>, what: &str) -> Result<Arc<Self>, String> {
        let (has, columns) = match what {
            "rate" => (!self.steps.is_empty(), "`rate_bps`, `rate_kbps` or `rate_mbps`"),
            "delay" => (!self.delays.is_empty(), "`delay_ms`"),
            _ => (!self.losses.is_empty(), "`loss`"),
        };
        if has {
            return Ok(self);
        }
        Err(format!("the rate trace `{}` has no column {columns}", self.file))
    }

    /// Returns the number of levels, at least one.
    pub fn levels(&self) -> usize {
        self.steps.len().max(self.delays.len()).max(self.losses.len())
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

/// A row of levels.
struct Row {
    at: Span,
    rate: Option<Rate>,
    delay: Option<Span>,
    loss: Option<f64>,
}

/// The positions of the values in a row of levels.
struct Columns {
    when: When,
    rate: Option<(usize, &'static str, f64)>,
    delay: Option<usize>,
    loss: Option<usize>,
}

impl Columns {
    fn of(names: &[&str]) -> Result<Self, String> {
        let names = LEVEL_NAMES.check(names)?;
        let mut rates =
            RATES.iter().filter_map(|(name, unit)| names.place(name).map(|at| (at, *name, *unit)));
        let rate = rates.next();
        if let (Some((_, one, _)), Some((_, other, _))) = (rate, rates.next()) {
            return Err(format!("`{one}` and `{other}` mean the same; keep one of them"));
        }
        let (delay, loss) = (names.place(DELAY), names.place(LOSS));
        if rate.is_none() && delay.is_none() && loss.is_none() {
            return Err(format!("there is nothing that changes; {WANTED_LEVELS}"));
        }
        Ok(Columns { when: names.when(["time_s", "time_ns"])?, rate, delay, loss })
    }

    fn row(&self, cells: &[Cell<'_>]) -> Result<Row, String> {
        let rate = self.rate.map(|(at, name, unit)| {
            let most = RATE_OR_ZERO.1.as_bps() as f64 / unit;
            number(name, &cells[at], 0.0, most).map(|rate| Rate::bps((rate * unit + 0.5) as u64))
        });
        let delay = self.delay.map(|at| {
            let ms = number(DELAY, &cells[at], 0.0, MOST_DELAY_MS)?;
            Ok::<_, String>(Span::try_from_secs_f64(ms / 1e3).unwrap_or(Span::ZERO))
        });
        let loss = self.loss.map(|at| number(LOSS, &cells[at], 0.0, 1.0));
        let at = self.when.read(cells)?;
        Ok(Row { at, rate: rate.transpose()?, delay: delay.transpose()?, loss: loss.transpose()? })
    }
}
