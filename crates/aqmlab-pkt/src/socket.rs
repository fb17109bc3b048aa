//! Calls of the socket interface, as far as they concern a sender or a receiver.

use aqmlab_transport::{Congestion, Role};
use aqmlab_units::Span;

use crate::connection::instant;
use crate::descriptor::{Blocked, Socket};
use crate::run::Runner;
use crate::script::{Call, Failure, Ns};

/// What a call returns.
enum Outcome {
    Value(i64),
    Error(&'static str),
    /// It waits.
    Waits,
    /// Not compared.
    Unread,
}

impl Runner<'_> {
    pub fn call(&mut self, line: usize, call: &Call, until: Option<Ns>) -> Result<(), Failure> {
        let mut done = 0;
        let outcome = self.perform(line, call, &mut done)?;
        if matches!(outcome, Outcome::Waits) {
            let Some(until) = until else {
                return Err(Failure::mismatch(
                    line,
                    format!("`{}` to return {}", call.name, call.result),
                    "it waits",
                ));
            };
            self.blocked = Some(Blocked { line, call: call.clone(), from: self.now, until, done });
        } else {
            self.check_result(line, call, &outcome)?;
        }
        self.settle()
    }

    /// Lets a waiting call go on.
    pub fn retry_blocked(&mut self) -> Result<(), Failure> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        let outcome = self.perform(blocked.line, &blocked.call, &mut blocked.done)?;
        if matches!(outcome, Outcome::Waits) {
            self.blocked = Some(blocked);
            return Ok(());
        }
        // As the tool does: an eighth of the duration, because timers of hosts may be that late.
        let tolerance = self.host.tolerance.max((blocked.until - blocked.from) / 8);
        if (self.now - blocked.until).abs() > tolerance {
            let ends = |at: Ns| format!("`{}` to return at {:.6} s", blocked.call.name, at as f64 / 1e9);
            return Err(Failure::mismatch(
                blocked.line,
                ends(blocked.until),
                format!("{:.6} s", self.now as f64 / 1e9),
            ));
        }
        self.check_result(blocked.line, &blocked.call, &outcome)
    }

    fn check_result(&mut self, line: usize, call: &Call, outcome: &Outcome) -> Result<(), Failure> {
        let mut words = call.result.split_whitespace();
        let (value, error) = (words.next().unwrap_or_default(), words.next());
        let got = match outcome {
            Outcome::Unread | Outcome::Waits => return Ok(()),
            Outcome::Value(got) if number(value) == Some(*got) => return Ok(()),
            Outcome::Error(name) if value == "-1" && error == Some(name) => return Ok(()),
            Outcome::Value(got) => got.to_string(),
            Outcome::Error(name) => format!("-1 {name}"),
        };
        Err(Failure::mismatch(line, format!("`{}` to return {}", call.name, call.result), got))
    }

    fn perform(&mut self, line: usize, call: &Call, done: &mut u64) -> Result<Outcome, Failure> {
        let unsupported =
            || Err(Failure::unsupported(line, format!("the socket interface: `{}`", call.name)));
        let arg = |at: usize| call.args.get(at).map_or("", String::as_str);
        if call.name == "socket" {
            let fd =
                number(&call.result).ok_or_else(|| Failure::syntax(line, "`socket` must return a number"))?;
            let nonblocking = arg(1).contains("SOCK_NONBLOCK");
            self.sockets.insert(fd, Socket { nonblocking, ..Socket::default() });
            return Ok(Outcome::Value(fd));
        }
        let fd = number(arg(0)).filter(|fd| self.sockets.contains_key(fd));
        let Some(fd) = fd else {
            return match call.name.as_str() {
                "open" | "pipe" | "epoll_create" | "epoll_ctl" | "epoll_wait" | "poll" => unsupported(),
                _ => Err(Failure::mismatch(
                    line,
                    format!("`{}` of an open socket", call.name),
                    format!("`{}`", arg(0)),
                )),
            };
        };
        match call.name.as_str() {
            "bind" => Ok(Outcome::Value(0)),
            "listen" => {
                self.listeners += 1;
                let listener = self.listeners;
                self.socket(fd).listener = Some(listener);
                Ok(Outcome::Value(0))
            }
            "accept" => self.accept(line, call, fd),
            "connect" => self.connect(line, fd),
            "fcntl" if arg(1) == "F_SETFL" => {
                self.socket(fd).nonblocking = arg(2).contains("O_NONBLOCK");
                Ok(Outcome::Value(0))
            }
            "fcntl" => Ok(Outcome::Unread),
            "setsockopt" => self.set_option(line, call, fd),
            "getsockopt" => self.get_option(line, call),
            "ioctl" if arg(1) == "SIOCINQ" => {
                let (expected, got) =
                    (bracketed(arg(2)), self.connection.as_ref().map(|c| c.wire.readable()));
                if expected != got.map(i64::from) {
                    let got = format!("{} bytes", got.unwrap_or(0));
                    return Err(Failure::mismatch(line, format!("{} bytes to read", arg(2)), got));
                }
                Ok(Outcome::Value(0))
            }
            "write" | "send" | "sendto" | "sendmsg" => self.write(line, call, fd, done),
            "read" | "recv" | "recvfrom" => self.read(call, fd),
            "recvmsg"
                if !call.args.iter().any(|arg| arg.contains("MSG_ERRQUEUE"))
                    && !arg(1).contains("msg_control") =>
            {
                self.read(call, fd)
            }
            "shutdown" => {
                if let Some(connection) = self.connection.as_mut().filter(|_| arg(1) != "SHUT_RD") {
                    connection.push();
                    connection.wire.shutdown();
                }
                Ok(Outcome::Value(0))
            }
            "close" => {
                self.close(fd);
                Ok(Outcome::Value(0))
            }
            _ => unsupported(),
        }
    }

    fn socket(&mut self, fd: i64) -> &mut Socket {
        self.sockets.entry(fd).or_default()
    }

    fn accept(&mut self, line: usize, call: &Call, fd: i64) -> Result<Outcome, Failure> {
        let socket = self.socket(fd).clone();
        let ready = self.connection.as_mut().filter(|connection| {
            connection.established && !connection.accepted && connection.listener == socket.listener
        });
        let Some(connection) = ready else {
            return Ok(if socket.nonblocking { Outcome::Error("EAGAIN") } else { Outcome::Waits });
        };
        connection.accepted = true;
        let new =
            number(&call.result).ok_or_else(|| Failure::syntax(line, "`accept` must return a number"))?;
        self.sockets.insert(new, Socket { listener: None, connects: true, ..socket });
        Ok(Outcome::Value(new))
    }

    fn connect(&mut self, line: usize, fd: i64) -> Result<Outcome, Failure> {
        let socket = self.socket(fd).clone();
        if !socket.connects {
            self.begin(line, Role::Active, None, &socket)?;
            self.socket(fd).connects = true;
            if let Some(connection) = &mut self.connection {
                connection.wire.open(instant(self.now));
            }
            return Ok(if socket.nonblocking { Outcome::Error("EINPROGRESS") } else { Outcome::Waits });
        }
        Ok(match &self.connection {
            Some(connection) if connection.established => Outcome::Value(0),
            Some(connection) => connection.error.map_or(Outcome::Waits, Outcome::Error),
            None => Outcome::Waits,
        })
    }

    fn set_option(&mut self, line: usize, call: &Call, fd: i64) -> Result<Outcome, Failure> {
        let (name, text) = (call.args.get(2), call.args.get(3).map_or("", String::as_str));
        let (value, socket) = (bracketed(text), self.sockets.entry(fd).or_default());
        let on = value.unwrap_or(0) != 0;
        // A listener's options apply to its next connections.
        let connection = self.connection.as_mut().filter(|_| socket.connects);
        match name.map_or("", String::as_str) {
            "TCP_NODELAY" => {
                socket.nodelay = on;
                if let Some(connection) = connection {
                    connection.wire.change_profile(|profile| profile.nagle = !on);
                    connection.push();
                }
            }
            "TCP_CORK" => {
                if let Some(connection) = connection {
                    connection.corked = on;
                    if !on {
                        connection.push();
                    }
                }
            }
            "SO_RCVBUF" => {
                let bytes = u32::try_from(value.unwrap_or(0)).unwrap_or(0).saturating_mul(2);
                socket.receive_buffer = Some(bytes);
                if let Some(connection) = connection {
                    connection.wire.set_receive_buffer(bytes);
                }
            }
            "SO_SNDBUF" => {
                if let Some(connection) = connection {
                    connection.send_buffer = value.unwrap_or(0).unsigned_abs() * 2;
                }
            }
            "TCP_USER_TIMEOUT" => {
                if let Some(connection) = connection {
                    connection.wire.set_user_timeout(Span::ms(value.unwrap_or(0).unsigned_abs()));
                }
            }
            "TCP_CONGESTION" => {
                let word = text.trim_matches(['[', ']', '"']);
                let word = Congestion::WORDS.iter().find(|known| **known == word);
                socket.congestion =
                    Some(word.ok_or_else(|| {
                        Failure::unsupported(line, format!("the congestion control {text}"))
                    })?);
            }
            "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" | "TCP_FASTOPEN_NO_COOKIE" | "TCP_FASTOPEN_KEY" => {
                return Err(Failure::unsupported(line, "fast open"));
            }
            name @ ("SO_ZEROCOPY" | "SO_TIMESTAMPING" | "TCP_INQ" | "SO_LINGER" | "TCP_MD5SIG") => {
                return Err(Failure::unsupported(line, format!("the socket interface: `{name}`")));
            }
            name => self.host.unread.push((line, name.to_owned())),
        }
        Ok(Outcome::Value(0))
    }

    fn get_option(&mut self, line: usize, call: &Call) -> Result<Outcome, Failure> {
        let (name, expected) = (call.args.get(2).map_or("", String::as_str), call.args.get(3));
        let expected = expected.and_then(|text| bracketed(text));
        let got = match (name, &self.connection) {
            ("SO_SNDBUF", Some(connection)) => connection.send_buffer as i64,
            ("SO_ERROR", Some(connection)) if connection.error.is_none() => 0,
            _ => {
                self.host.unread.push((line, name.to_owned()));
                return Ok(Outcome::Unread);
            }
        };
        if expected != Some(got) {
            let expected = format!("`{name}` of {}", call.args.get(3).map_or("", String::as_str));
            return Err(Failure::mismatch(line, expected, got.to_string()));
        }
        Ok(Outcome::Value(0))
    }

    fn write(&mut self, line: usize, call: &Call, fd: i64, done: &mut u64) -> Result<Outcome, Failure> {
        let text = call.args.join(",");
        if call.result.contains("EFAULT") {
            return Err(Failure::unsupported(line, "the socket interface: invalid pointers"));
        }
        for (flag, what) in [
            ("MSG_OOB", "urgent data"),
            ("MSG_ZEROCOPY", "the socket interface: `MSG_ZEROCOPY`"),
            ("MSG_FASTOPEN", "fast open"),
        ] {
            if text.contains(flag) {
                return Err(Failure::unsupported(line, what));
            }
        }
        let bytes = match call.name.as_str() {
            "sendmsg" => vector_bytes(call.args.get(1).map_or("", String::as_str)),
            _ => call.args.get(2).and_then(|text| number(text)).map(i64::unsigned_abs),
        };
        let bytes = bytes.ok_or_else(|| Failure::syntax(line, "cannot read the number of bytes"))?;
        let (now, nonblocking) = (self.now, self.socket(fd).nonblocking);
        let Some(connection) = &mut self.connection else { return Ok(Outcome::Error("ENOTCONN")) };
        if let Some(error) = connection.error {
            return Ok(Outcome::Error(error));
        }
        let room = connection.room(*done > 0 && !nonblocking);
        let now_written = (bytes - *done).min(room);
        if now_written > 0 {
            connection.write(now, now_written, text.contains("MSG_MORE"));
            if text.contains("MSG_EOR") {
                connection.wire.end_record();
            }
            *done += now_written;
        }
        Ok(match () {
            () if *done == bytes => Outcome::Value(bytes as i64),
            () if !nonblocking => Outcome::Waits,
            () if *done > 0 => Outcome::Value(*done as i64),
            () => Outcome::Error("EAGAIN"),
        })
    }

    fn read(&mut self, call: &Call, fd: i64) -> Result<Outcome, Failure> {
        let bytes = match call.name.as_str() {
            "recvmsg" => vector_bytes(call.args.get(1).map_or("", String::as_str)).map(|bytes| bytes as i64),
            _ => call.args.get(2).and_then(|text| number(text)),
        };
        let most = u32::try_from(bytes.unwrap_or(0)).unwrap_or(u32::MAX);
        let nonblocking = self.socket(fd).nonblocking;
        let Some(connection) = &mut self.connection else { return Ok(Outcome::Error("ENOTCONN")) };
        let read = connection.wire.read(most);
        Ok(match connection.error {
            _ if read > 0 => Outcome::Value(read.into()),
            Some(error) => Outcome::Error(error),
            None if connection.at_end || most == 0 => Outcome::Value(0),
            None if nonblocking => Outcome::Error("EAGAIN"),
            None => Outcome::Waits,
        })
    }

    fn close(&mut self, fd: i64) {
        let socket = self.sockets.remove(&fd);
        if let Some(connection) = self.connection.as_mut().filter(|_| socket.is_some_and(|s| s.connects)) {
            connection.push();
            connection.wire.close();
        }
    }
}

/// Reads a number, which may be hexadecimal.
fn number(text: &str) -> Option<i64> {
    let text = text.split_whitespace().next()?;
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads a number in brackets.
fn bracketed(text: &str) -> Option<i64> {
    number(text.strip_prefix('[')?.strip_suffix(']')?.trim())
}

/// Returns the sum of the lengths in a `msg_iov`, such as `[{..., 40}, {..., 60}]`.
fn vector_bytes(text: &str) -> Option<u64> {
    let vector = text.split_once("msg_iov")?.1.split_once('[')?.1;
    let vector = vector.split(']').next()?;
    let lengths = vector.split('}').filter_map(|part| part.rsplit(',').next());
    lengths.filter(|text| !text.trim().is_empty()).map(|text| text.trim().parse::<u64>().ok()).sum()
}
