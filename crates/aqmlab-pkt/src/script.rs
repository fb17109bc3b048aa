//! A script as data.

use std::fmt;

/// Why a script failed or was not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line of the script, from 1.
    pub line: usize,
    /// The cause.
    pub cause: Cause,
}

/// What kind of failure it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The script is malformed.
    Syntax(String),
    /// The script needs something that the endpoints or this runner do not have.
    Unsupported(String),
    /// Something else happened than the script expects.
    Mismatch {
        /// What the script expects.
        expected: String,
        /// What happened.
        got: String,
    },
}

impl Failure {
    pub(crate) fn syntax(line: usize, text: impl Into<String>) -> Failure {
        Failure { line, cause: Cause::Syntax(text.into()) }
    }

    pub(crate) fn unsupported(line: usize, text: impl Into<String>) -> Failure {
        Failure { line, cause: Cause::Unsupported(text.into()) }
    }

    pub(crate) fn mismatch(line: usize, expected: impl Into<String>, got: impl Into<String>) -> Failure {
        Failure { line, cause: Cause::Mismatch { expected: expected.into(), got: got.into() } }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.line)?;
        match &self.cause {
            Cause::Syntax(text) => write!(f, "{text}"),
            Cause::Unsupported(text) => write!(f, "not supported: {text}"),
            Cause::Mismatch { expected, got } => write!(f, "expected {expected}; got {got}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Nanoseconds of script time; differences may be negative.
pub(crate) type Ns = i64;

/// When an event happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// At this time since the start.
    At(Ns),
    /// This long after the previous event.
    After(Ns),
    /// In a range, which counts from the previous event if `relative` is true.
    Within { from: Ns, to: Ns, relative: bool },
    /// At any time.
    Any,
}

/// An event of a script.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    pub line: usize,
    pub when: When,
    /// When a blocking call returns; it counts like `when`.
    pub until: Option<Ns>,
    pub action: Action,
}

/// What happens in an event.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// The other side sends a segment.
    Inject(Packet),
    /// The endpoint must send a segment.
    Expect(Packet),
    /// The application calls a function of its socket.
    Call(Call),
    /// A router reports that packets may have at most this many bytes (ICMP).
    PathMtu(u32),
    /// A shell command.
    Command(String),
    /// Assertions about the socket.
    Assert(String),
}

/// A call of the socket interface, with its arguments as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub name: String,
    pub args: Vec<String>,
    /// The text after `=`.
    pub result: String,
}

/// The control bits of a header's thirteenth and fourteenth octets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Bits(pub u16);

impl Bits {
    pub const FIN: u16 = 0x01;
    pub const SYN: u16 = 0x02;
    pub const RST: u16 = 0x04;
    pub const PSH: u16 = 0x08;
    pub const ACK: u16 = 0x10;
    pub const URG: u16 = 0x20;
    pub const ECE: u16 = 0x40;
    pub const CWR: u16 = 0x80;
    pub const AE: u16 = 0x100;
    const LETTERS: [(u16, char); 9] = [
        (Self::SYN, 'S'),
        (Self::FIN, 'F'),
        (Self::RST, 'R'),
        (Self::PSH, 'P'),
        (Self::URG, 'U'),
        (Self::ECE, 'E'),
        (Self::CWR, 'W'),
        (Self::AE, 'A'),
        (Self::ACK, '.'),
    ];

    /// Reads letters; a digit is the field of AccECN (RFC 9768, 3.1.2), made of AE, CWR and ECE.
    pub fn parse(text: &str) -> Option<Bits> {
        let mut bits = 0;
        for letter in text.chars() {
            bits |= match letter {
                '-' if text.len() == 1 => 0,
                '0'..='7' => {
                    let ace = letter as u16 - u16::from(b'0');
                    let bit = |place: u16, flag| if ace & place == 0 { 0 } else { flag };
                    bit(4, Self::AE) | bit(2, Self::CWR) | bit(1, Self::ECE)
                }
                _ => Self::LETTERS.iter().find(|(_, name)| *name == letter)?.0,
            };
        }
        Some(Bits(bits))
    }

    pub fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("-");
        }
        Self::LETTERS.iter().filter(|(bit, _)| self.has(*bit)).try_for_each(|(_, name)| write!(f, "{name}"))
    }
}

/// The ECN field as a script writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    NoEcn,
    Ect0,
    Ect1,
    Ce,
}

/// An option of TCP, without padding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Opt {
    Mss(u16),
    Scale(u8),
    SackOk,
    Sack(Vec<(u32, u32)>),
    Stamps(u32, u32),
    /// A signature (RFC 2385).
    Signature,
    /// AccECN (RFC 9768, 3.2.3): its counters in the order of the option.
    AccEcn(Vec<(String, u32)>),
}

impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opt::Mss(mss) => write!(f, "mss {mss}"),
            Opt::Scale(scale) => write!(f, "wscale {scale}"),
            Opt::SackOk => f.write_str("sackOK"),
            Opt::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(from, to)| write!(f, " {from}:{to}"))
            }
            Opt::Signature => f.write_str("md5"),
            Opt::Stamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            Opt::AccEcn(fields) => {
                f.write_str("ECN")?;
                fields.iter().try_for_each(|(name, count)| write!(f, " {name} {count}"))
            }
        }
    }
}

/// A segment of a script: numbers are relative to the initial numbers of both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub mark: Option<Mark>,
    pub bits: Bits,
    pub seq: u32,
    pub len: u32,
    pub ack: Option<u32>,
    pub window: Option<u16>,
    /// `None` if the script does not compare options.
    pub options: Option<Vec<Opt>>,
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mark) = self.mark {
            let name = match mark {
                Mark::NoEcn => "noecn",
                Mark::Ect0 => "ect0",
                Mark::Ect1 => "ect1",
                Mark::Ce => "ce",
            };
            write!(f, "[{name}] ")?;
        }
        let end = self.seq.wrapping_add(self.len);
        write!(f, "{} {}:{end}({})", self.bits, self.seq, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match self.options.as_deref() {
            None => f.write_str(" <...>"),
            Some([]) => Ok(()),
            Some(options) => {
                let texts: Vec<String> = options.iter().map(Opt::to_string).collect();
                write!(f, " <{}>", texts.join(","))
            }
        }
    }
}

/// A script.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Script {
    /// The lines `--name=value`, with their numbers.
    pub options: Vec<(usize, String, String)>,
    pub events: Vec<Event>,
}
