//! Connections in the two formats of Tmix, which ns-2 reads: the original one and the alternate
//! one.
//!
//! The start, the exchanges, the round-trip time of a connection and, on request, the end that closes it
//! are used. The one-way delays between
//! client and network and between network and server add up to half of the round-trip time. Windows, segment
//! sizes, loss rates, the numbers of connections and the times at which they close are ignored.
//!
//! Source: M. C. Weigle, P. Adurthi, F. Hernández-Campos, K. Jeffay and F. D. Smith, "Tmix: a tool
//! for generating realistic TCP application workloads in ns-2", Computer Communication Review
//! 36(3), 2006; the ns manual, chapter Tmix.

use aqmlab_traffic::{End, PlannedExchange};
use aqmlab_units::Span;

use super::connections::Connections;
use super::leaving_out::{LeftOut, OnUnsupported, Unsupported};
use super::row;

/// The extensions of Tmix files.
const ENDINGS: [&str; 3] = [".cvec", ".tcvec", ".ns"];
/// The first words of a connection's header, in the alternate format and in the original one.
const SEQUENTIAL: [&str; 2] = ["S", "SEQ"];
const CONCURRENT: [&str; 2] = ["C", "CONC"];

const WANTED: &str =
    "write connections in the original format of Tmix (`SEQ ..`) or in the alternate one (`S ..`)";

/// Returns whether a file is written for Tmix, judged by its name or by the first line that is not a comment.
pub(super) fn is_tmix(file: &str, content: &[u8]) -> bool {
    ENDINGS.iter().any(|ending| file.ends_with(ending)) || {
        let mut lines = content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
        let mut words = first.unwrap_or_default().split(u8::is_ascii_whitespace);
        let head = words.next().unwrap_or_default();
        SEQUENTIAL.iter().chain(&CONCURRENT).any(|word| word.as_bytes() == head)
            && words.all(|word| word.iter().all(u8::is_ascii_digit))
    }
}

/// Returns the connections of `content`, a file called `file`.
///
/// # Errors
/// Returns a sentence without a full stop that names the file and the line.
pub(super) fn read(file: &str, content: &[u8], unsupported: OnUnsupported) -> Result<Connections, String> {
    let Ok(text) = std::str::from_utf8(content) else {
        return Err(format!("trace `{file}`: it is not UTF-8 text; {WANTED}"));
    };
    let mut reader =
        Reader { unsupported, connection: None, leaves_out: false, left_out: LeftOut::default() };
    let mut read = Connections::default();
    for (number, line) in (1..).zip(text.lines()) {
        let at_line = |message: String| format!("trace `{file}`, line {number}: {message}");
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() && !words[0].starts_with('#') {
            reader.line(number, &words, &mut read).map_err(at_line)?;
        }
    }
    reader.end(&mut read).map_err(|(line, message)| format!("trace `{file}`, line {line}: {message}"))?;
    read.left_out = reader.left_out;
    if read.list.is_empty() {
        return Err(match read.left_out.total() {
            0 => format!("the trace `{file}` has no connections; {WANTED}"),
            _ => format!("the trace `{file}` has only connections that are left out ({})", read.left_out),
        });
    }
    // If all delays are zero, the file is treated as giving none, and the scenario defines them.
    if read.delays.iter().flatten().all(|delay| delay.is_zero()) {
        read.delays.clear();
    }
    Ok(read)
}

/// The state of the reader.
struct Reader {
    unsupported: OnUnsupported,
    /// The connection that is being read, if there is one.
    connection: Option<Connection>,
    /// Whether the lines that follow belong to a connection that is left out.
    leaves_out: bool,
    left_out: LeftOut,
}

struct Connection {
    /// The line of the connection's header.
    line: u64,
    is_original: bool,
    start: Span,
    rtt: Span,
    exchanges: Vec<PlannedExchange>,
    /// The end that sent last, if any data has been sent.
    sender: Option<End>,
    /// In the original format, the time before the next transmission, if written.
    waits: Option<Span>,
    /// The end that has closed first, if any has.
    closed_by: Option<End>,
}

/// The reason why a line cannot be read.
enum Problem {
    /// The file is wrong.
    Wrong(String),
    /// The connection cannot be expressed.
    Unsupported(Unsupported),
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Problem::Wrong(message)
    }
}

impl Reader {
    fn line(&mut self, number: u64, words: &[&str], read: &mut Connections) -> Result<(), String> {
        if SEQUENTIAL.contains(&words[0]) || CONCURRENT.contains(&words[0]) {
            self.end(read).map_err(|(line, message)| format!("the connection in line {line}: {message}"))?;
            self.leaves_out = false;
        } else if self.leaves_out {
            return Ok(());
        }
        match self.connection_line(number, words, read) {
            Ok(()) => Ok(()),
            Err(Problem::Wrong(message)) => Err(message),
            Err(Problem::Unsupported(what)) => {
                self.leave_out(what)?;
                (self.connection, self.leaves_out) = (None, true);
                Ok(())
            }
        }
    }

    fn connection_line(&mut self, line: u64, words: &[&str], read: &Connections) -> Result<(), Problem> {
        if CONCURRENT.contains(&words[0]) {
            return Err(Problem::Unsupported(Unsupported::Concurrent));
        }
        if !SEQUENTIAL.contains(&words[0]) {
            let connection = self.connection.as_mut();
            let connection = connection
                .ok_or_else(|| format!("`{}` belongs to no connection; {WANTED}", words.join(" ")))?;
            return connection.line(words);
        }
        let (start, _epochs) = (time(words, 1)?, bytes(words, 2)?);
        if let Some(before) = read.list.last().filter(|before| start < before.start) {
            return Err(Problem::Wrong(format!(
                "the connection starts at `{start}`, but the one listed before it starts at `{}`; list \
                 connections in the order of their starts",
                before.start
            )));
        }
        self.connection = Some(Connection {
            line,
            is_original: words[0] == SEQUENTIAL[1],
            start,
            rtt: Span::ZERO,
            exchanges: Vec::new(),
            sender: None,
            waits: None,
            closed_by: None,
        });
        Ok(())
    }

    /// Completes the current connection. If the connection is incomplete, returns the line of its header and
    /// what it lacks.
    fn end(&mut self, read: &mut Connections) -> Result<(), (u64, String)> {
        let Some(Connection { line, start, rtt, exchanges, closed_by, .. }) = self.connection.take() else {
            return Ok(());
        };
        if exchanges.is_empty() {
            return self.leave_out(Unsupported::Empty).map_err(|message| (line, message));
        }
        // Half of a packet's one-way delay belongs to each end.
        read.begin(start, Some([rtt.div(4); 2])).map_err(|message| (line, message))?;
        exchanges.into_iter().for_each(|exchange| read.add(exchange));
        read.close(closed_by);
        Ok(())
    }

    fn leave_out(&mut self, what: Unsupported) -> Result<(), String> {
        match self.unsupported {
            OnUnsupported::Skip => {
                self.left_out.count(what);
                Ok(())
            }
            OnUnsupported::Refuse => {
                Err(format!("{what}; leave the connection out, or write `on_unsupported = \"skip\"`"))
            }
        }
    }
}

impl Connection {
    fn line(&mut self, words: &[&str]) -> Result<(), Problem> {
        match (words[0], self.is_original) {
            ("m" | "w" | "l", _) => Ok(()),
            ("r", _) => {
                // Twice the sum of two delays.
                self.rtt = micros(words, 1, 4)?;
                Ok(())
            }
            ("t", true) => match self.waits.replace(time(words, 1)?) {
                None => Ok(()),
                Some(_) => Err("two waiting times follow each other; write their sum".to_string().into()),
            },
            (">", true) => self.original(End::Client, words),
            ("<", true) => self.original(End::Server, words),
            ("I", false) => self.alternate(End::Client, words),
            ("A", false) => self.alternate(End::Server, words),
            _ => {
                let line = words.join(" ");
                Err(format!("`{line}` is not a line of this format of Tmix; {WANTED}").into())
            }
        }
    }

    fn original(&mut self, end: End, words: &[&str]) -> Result<(), Problem> {
        let (wait, size) = (self.waits.take().unwrap_or(Span::ZERO), bytes(words, 1)?);
        if self.sender.is_none() && !wait.is_zero() {
            return Err(Problem::Unsupported(Unsupported::Stalled));
        }
        self.transmission(end, wait, size)
    }

    fn alternate(&mut self, end: End, words: &[&str]) -> Result<(), Problem> {
        let (after_sending, after_arrival, size) = (time(words, 1)?, time(words, 2)?, bytes(words, 3)?);
        // Closing takes no time here.
        let wait = match (self.sender, after_sending.is_zero(), after_arrival.is_zero()) {
            _ if size == 0 => Span::ZERO,
            (None, true, true) => Span::ZERO,
            (None, ..) => return Err(Problem::Unsupported(Unsupported::Stalled)),
            (Some(sender), _, true) if sender == end => after_sending,
            (Some(sender), true, false) if sender != end => after_arrival,
            _ => return Err(Problem::Unsupported(Unsupported::Overlapping)),
        };
        self.transmission(end, wait, size)
    }

    /// Adds `size` bytes that `end` sends once the time `wait` has passed since the data of the other end
    /// arrived or, if `end` also sent the previous data, since it did so. Without bytes, `end` closes.
    fn transmission(&mut self, end: End, wait: Span, size: u64) -> Result<(), Problem> {
        if size == 0 {
            self.closed_by.get_or_insert(end);
            return Ok(());
        }
        if self.closed_by.is_some() {
            return Err(Problem::Unsupported(Unsupported::HalfClosed));
        }
        match (end, self.exchanges.last_mut()) {
            (End::Client, _) => {
                let exchange = PlannedExchange { pause: wait, request: size, ..PlannedExchange::default() };
                self.exchanges.push(exchange);
            }
            (End::Server, Some(asked)) if self.sender == Some(End::Client) => {
                (asked.server_delay, asked.response) = (wait, size);
            }
            (End::Server, _) => self.exchanges.push(PlannedExchange {
                server_delay: wait,
                response: size,
                ..PlannedExchange::default()
            }),
        }
        self.sender = Some(end);
        Ok(())
    }
}

/// Returns the number of bytes in word `at` of a line.
fn bytes(words: &[&str], at: usize) -> Result<u64, String> {
    whole(words, at, row::MOST_BYTES)
}

/// Returns the time in word `at` of a line, in microseconds.
fn time(words: &[&str], at: usize) -> Result<Span, String> {
    micros(words, at, 1)
}

/// Returns the time in word `at` of a line, at most `factor` times the longest time of a trace.
fn micros(words: &[&str], at: usize, factor: u64) -> Result<Span, String> {
    whole(words, at, factor * row::LATEST.div_span(Span::us(1))).map(Span::us)
}

fn whole(words: &[&str], at: usize, most: u64) -> Result<u64, String> {
    let line = || words.join(" ");
    let word = words.get(at).ok_or_else(|| format!("`{}` ends too early; a number is missing", line()))?;
    word.parse()
        .ok()
        .filter(|n| *n <= most)
        .ok_or_else(|| format!("`{word}` in `{}` is not a whole number from 0 to {most}", line()))
}
