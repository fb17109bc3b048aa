//! The quantities of a scenario: their bounds, and the distributions that they accept.

use aqmlab_params::Kind;
use aqmlab_units::{Packets, Rate, Span};

use crate::field::Drawn;

/// A year; a longer run can only be a mistake.
const YEAR: Span = Span::s(365 * 24 * 3600);
const HOUR: Span = Span::s(3600);

pub(super) const RUN_TIME: Kind = Kind::Span { min: Span::ms(1), max: YEAR };
pub(crate) const MOMENT: Kind = Kind::Span { min: Span::ZERO, max: YEAR };
/// Propagation delay. The limit is generous: in an hour, light travels beyond Jupiter.
pub(crate) const DELAY: Kind = Kind::Span { min: Span::ZERO, max: HOUR };
/// A clock tick; kernels have had 1, 4 or 10 ms.
pub(super) const TICK: Kind = Kind::Span { min: Span::ZERO, max: Span::s(1) };
pub(crate) const RATE: Kind = Kind::Rate { min: Rate::kbit(1), max: Rate::gbit(100_000) };
pub(super) const OVERHEAD: Kind = Kind::Bytes { min: 0, max: 1000 };
pub(crate) const TRANSFER: Kind = Kind::Bytes { min: 1, max: 1 << 50 };
pub(crate) const CHANCE: Kind = Kind::Number { min: 0.0, max: 1.0 };
/// Sizes of UDP packets: from an IP header and a UDP header alone to the largest IPv4 packet.
pub(crate) const PACKET: Kind = Kind::Bytes { min: 28, max: 65_535 };
/// Intervals between samples. Below a microsecond, there would be more to record than to simulate.
pub(super) const INTERVAL: Kind = Kind::Span { min: Span::ZERO, max: YEAR };
pub(crate) const COUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000 };

/// No distribution of times exceeds a year.
const ANY_TIME: Kind = MOMENT;

/// Times that are distributed over the flows of a class.
pub(crate) const TIMES: Drawn = Drawn {
    kind: ANY_TIME,
    noun: "time",
    example: "\"80ms\"",
    forms: &["uniform", "spread", "exponential", "pareto", "list", "empirical"],
};

/// When the flows of a class start: times that are distributed over the flows, or a list for each seed.
pub(crate) const STARTS: Drawn = Drawn {
    kind: ANY_TIME,
    noun: "time",
    example: "\"80ms\"",
    forms: &["uniform", "spread", "exponential", "pareto", "list", "empirical", "seeds"],
};

/// Times that are drawn repeatedly.
pub(crate) const PERIODS: Drawn = Drawn {
    kind: ANY_TIME,
    noun: "time",
    example: "\"500ms\"",
    forms: &["exponential", "pareto", "uniform", "list", "empirical"],
};

/// Times by which individual packets are delayed. (A list has no draws of its own.)
pub(super) const JITTERS: Drawn = Drawn {
    kind: DELAY,
    noun: "time",
    example: "\"3ms\"",
    forms: &["uniform", "exponential", "pareto", "empirical"],
};

/// Amounts of data that are drawn repeatedly.
pub(crate) const TRANSFERS: Drawn = Drawn {
    kind: TRANSFER,
    noun: "size",
    example: "\"12kB\"",
    forms: &["exponential", "pareto", "uniform", "list", "empirical"],
};

/// Sizes of datagrams that are drawn repeatedly.
pub(crate) const UPDATES: Drawn =
    Drawn { kind: PACKET, noun: "size", example: "\"100B\"", forms: &["uniform", "list", "empirical"] };

/// Counts that are drawn repeatedly, such as the number of exchanges on a connection.
pub(crate) const COUNTS: Drawn = Drawn {
    kind: Kind::Integer { min: 1, max: 1_000_000_000 },
    noun: "number",
    example: "5",
    forms: &["uniform", "list", "empirical"],
};

/// Number of origins of a web page.
pub(crate) const ORIGINS: Drawn = Drawn { kind: Kind::Integer { min: 1, max: 10 }, ..COUNTS };

/// Number of objects of a web page; all of them are in memory while the page is fetched.
pub(crate) const OBJECTS: Drawn =
    Drawn { kind: Kind::Integer { min: 1, max: 100_000 }, example: "70", ..COUNTS };

/// Number of objects of a page besides its document.
pub(crate) const EMBEDDED: Drawn = Drawn {
    kind: Kind::Integer { min: 0, max: 100_000 },
    noun: "number",
    example: "4",
    forms: &["exponential", "uniform", "list", "empirical"],
};

/// Number of servers of a page, or number of its parallel connections.
pub(crate) const PARALLEL: Drawn = Drawn { kind: Kind::Integer { min: 1, max: 100 }, example: "2", ..COUNTS };

/// Probabilities that are distributed over flows.
pub(super) const CHANCES: Drawn = Drawn {
    kind: CHANCE,
    noun: "probability",
    example: "0.01",
    forms: &["uniform", "spread", "list", "empirical"],
};

/// Rates that are distributed over flows.
pub(super) const RATES: Drawn = Drawn {
    kind: RATE,
    noun: "rate",
    example: "\"1Mbit\"",
    forms: &["uniform", "spread", "list", "empirical"],
};

/// Largest number of links on one path: the time-to-live field of an IP packet is one octet (RFC 791, section
/// 3.1), and access links use up part of its range.
pub(crate) const MOST_LINKS_OF_A_PATH: usize = 250;

/// Largest size of a buffer. Unused room costs nothing; the limit keeps sums of sizes from
/// overflowing.
pub(crate) const MOST_PACKETS: Packets = Packets::new(1_000_000_000_000);
