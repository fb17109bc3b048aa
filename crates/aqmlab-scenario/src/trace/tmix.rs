//! Connections in the two formats of Tmix, which ns-2 reads: the original one and the alternate
//! one.
//!
//! The start, the exchanges and the round-trip time of a connection are used. The one-way delays between
//! client and network and between network and server add up to half of the round-trip time. Windows, segment
//! sizes, loss rates and the numbers of connections are ignored because the scenario defines its own.
//!
//! Source: M. C. Weigle, P. Adurthi, F. Hernández-Campos, K. Jeffay and F. D. Smith, "Tmix: a tool
//! for generating realistic TCP application workloads in ns-2", Computer Communication Review
//! 36(3), 2006; the ns manual, chapter Tmix.

use aqmlab_traffic::PlannedExchange;
use aqmlab_units::Span;

use super::connections::Connections;

/// The extension of Tmix files.
pub(super) const ENDING: &str = ".cvec";

const WANTED: &str =
    "write connections in the original format of Tmix (`SEQ ..`) or in the alternate one (`S ..`)";

/// Returns the connections of `content`, a file called `file`.
///
/// # Errors
/// Returns a sentence without a full stop that names the file and the line.
pub(super) fn read(file: &str, content: &[u8]) -> Result<Connections, String> {
    let Ok(text) = std::str::from_utf8(content) else {
        return Err(format!("trace `{file}`: it is not UTF-8 text; {WANTED}"));
    };
    let mut reader = Reader::default();
    let mut read = Connections::default();
    for (number, line) in (1..).zip(text.lines()) {
        let at_line = |message: String| format!("trace `{file}`, line {number}: {message}");
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() && !line.starts_with('#') {
            reader.line(number, &words, &mut read).map_err(at_line)?;
        }
    }
    reader.end(&mut read).map_err(|(line, message)| format!("trace `{file}`, line {line}: {message}"))?;
    if read.list.is_empty() {
        return Err(format!("the trace `{file}` has no connections; {WANTED}"));
    }
    // If all delays are zero, the file is treated as giving none, and the scenario defines them.
    if read.delays.iter().flatten().all(|delay| delay.is_zero()) {
        read.delays.clear();
    }
    Ok(read)
}

/// The state of the reader: the connection that is being read, if there is one.
#[derive(Default)]
struct Reader {
    connection: Option<Connection>,
}

struct Connection {
    /// The line of the connection's header.
    line: u64,
    is_original: bool,
    start: Span,
    rtt: Span,
    /// The client's request that has not been answered yet.
    asked: Option<PlannedExchange>,
    exchanges: Vec<PlannedExchange>,
    /// In the original format, the time before the next transmission, if written.
    waits: Option<Span>,
    is_closed: bool,
}

/// The end that sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sends {
    Initiator,
    Acceptor,
}

impl Reader {
    fn line(&mut self, number: u64, words: &[&str], read: &mut Connections) -> Result<(), String> {
        match words[0] {
            "C" | "CONC" => Err(
                "the two ends of a concurrent connection send without waiting for each other, but they must \
                 take turns; leave the connection out"
                    .into(),
            ),
            "S" | "SEQ" => {
                self.end(read)
                    .map_err(|(line, message)| format!("the connection in line {line}: {message}"))?;
                let (start, _epochs) = (micros(words, 1)?, whole(words, 2)?);
                if let Some(before) = read.list.last().filter(|before| start < before.start) {
                    return Err(format!(
                        "the connection starts at `{start}`, but the one listed before it starts at `{}`; list \
                         connections in the order of their starts",
                        before.start
                    ));
                }
                self.connection = Some(Connection {
                    line: number,
                    is_original: words[0] == "SEQ",
                    start,
                    rtt: Span::ZERO,
                    asked: None,
                    exchanges: Vec::new(),
                    waits: None,
                    is_closed: false,
                });
                Ok(())
            }
            _ => match &mut self.connection {
                Some(connection) => connection.line(words),
                None => Err(format!("`{}` belongs to no connection; {WANTED}", words.join(" "))),
            },
        }
    }

    /// Completes the current connection. If the connection is incomplete, returns the line of its header and
    /// what it lacks.
    fn end(&mut self, read: &mut Connections) -> Result<(), (u64, String)> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        let failed = |message: &str| (connection.line, message.to_string());
        if connection.asked.is_some() {
            return Err(failed("the last request has no response; write what the acceptor sends"));
        }
        if connection.exchanges.is_empty() {
            return Err(failed("there is no exchange; write what the initiator and the acceptor send"));
        }
        // Half of a packet's one-way delay belongs to each end.
        let delay = connection.rtt.div(4);
        read.begin(connection.start, Some([delay; 2])).map_err(|message| failed(&message))?;
        connection.exchanges.iter().for_each(|exchange| read.add(*exchange));
        Ok(())
    }
}

impl Connection {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match (words[0], self.is_original) {
            ("m" | "w" | "l", _) => Ok(()),
            ("r", _) => {
                self.rtt = micros(words, 1)?;
                Ok(())
            }
            ("t", true) => match self.waits.replace(micros(words, 1)?) {
                None => Ok(()),
                Some(_) => Err("two waiting times follow each other; write their sum".into()),
            },
            (">", true) => self.sent(Sends::Initiator, whole(words, 1)?),
            ("<", true) => self.sent(Sends::Acceptor, whole(words, 1)?),
            ("I", false) => self.alternate(Sends::Initiator, words),
            ("A", false) => self.alternate(Sends::Acceptor, words),
            _ => Err(format!("`{}` is not a line of this format of Tmix; {WANTED}", words.join(" "))),
        }
    }

    fn sent(&mut self, end: Sends, size: u64) -> Result<(), String> {
        let wait = self.waits.take().unwrap_or(Span::ZERO);
        self.exchange(end, wait, size)
    }

    fn alternate(&mut self, end: Sends, words: &[&str]) -> Result<(), String> {
        let (after_sending, after_arrival, size) = (micros(words, 1)?, micros(words, 2)?, whole(words, 3)?);
        let is_first = self.exchanges.is_empty() && self.asked.is_none();
        if size == 0 {
            return self.exchange(end, Span::ZERO, 0);
        }
        if !after_sending.is_zero() {
            return Err("the ends take turns, so the sender cannot wait after its own last transmission; write 0 as the \
                        first time, and the wait after the arrival of the other end's data as the second"
                .into());
        }
        if is_first != after_arrival.is_zero() {
            return Err(if is_first {
                "the first sender would wait for an arrival that never comes; write 0 as the second \
                 time"
                    .into()
            } else {
                "the second time is 0, so the sender does not wait for the other end; write at least 1 \
                 microsecond"
                    .into()
            });
        }
        self.exchange(end, after_arrival, size)
    }

    /// Adds `size` bytes that `end` sends once the time `wait` has passed since the previous event.
    fn exchange(&mut self, end: Sends, wait: Span, size: u64) -> Result<(), String> {
        if self.is_closed {
            return Err(
                "the connection is already closed; nothing may follow a transmission without bytes".into()
            );
        }
        if size == 0 {
            self.is_closed = true;
            return Ok(());
        }
        match (end, self.asked.take()) {
            (Sends::Initiator, None) => {
                let pause = if self.exchanges.is_empty() { Span::ZERO } else { wait };
                self.asked = Some(PlannedExchange { pause, request: size, ..PlannedExchange::default() });
                Ok(())
            }
            (Sends::Acceptor, Some(asked)) => {
                self.exchanges.push(PlannedExchange { server_delay: wait, response: size, ..asked });
                Ok(())
            }
            (Sends::Initiator, Some(_)) => Err(
                "the initiator sends again before the acceptor has answered, but the ends must take turns"
                    .into(),
            ),
            (Sends::Acceptor, None) => {
                Err("the acceptor sends without a request, but the ends must take turns".into())
            }
        }
    }
}

/// Returns the whole number in word `at` of a line.
fn whole(words: &[&str], at: usize) -> Result<u64, String> {
    const MOST: u64 = 1 << 50;
    let word =
        words.get(at).ok_or_else(|| format!("`{}` ends too early; a number is missing", words.join(" ")))?;
    word.parse()
        .ok()
        .filter(|n| *n <= MOST)
        .ok_or_else(|| format!("`{word}` in `{}` is not a whole number from 0 to {MOST}", words.join(" ")))
}

fn micros(words: &[&str], at: usize) -> Result<Span, String> {
    whole(words, at).map(Span::us)
}
