//! What a script's shell lines and option lines say about the host: parameters of TCP and of the wire.

use std::path::Path;

use aqmlab_params::{Kind, Limit, Origin, Settings, Value};
use aqmlab_transport::{Accounting, Congestion, Profile, WireSettings, profile_settings};
use aqmlab_units::Span;

use crate::script::{Failure, Ns};

/// Bytes of the headers of TCP with IPv4, and with IPv6.
const HEADERS: u32 = 40;
const HEADERS_IPV6: u32 = 60;
/// The first sequence numbers of both sides; scripts count from 0, and both numbers wrap around during a script.
pub(crate) const OUR_FIRST: u32 = u32::MAX - 999;
pub(crate) const THEIR_FIRST: u32 = u32::MAX - 499;

/// The host under test.
#[derive(Clone, Debug)]
pub(crate) struct HostSettings {
    parameters: Settings,
    pub wire: WireSettings,
    /// Bytes of the headers of a packet.
    pub headers: u32,
    /// The largest segment that reaches the other side, once a router has reported it.
    pub path_mss: Option<u16>,
    /// How late or early a segment may leave.
    pub tolerance: Ns,
    /// The tick of time stamps; their values are compared only if the script gives it.
    pub stamp_tick: Option<Ns>,
    /// Bytes of a part of an injected segment.
    pub injected_mss: u32,
    /// Each SYN is answered with a cookie.
    cookies: bool,
    /// ECN is requested by sides that open a connection.
    asks_for_ecn: bool,
    /// That is without AccECN.
    asks_classically: bool,
    /// Bytes that a socket can hold before they are acknowledged.
    pub send_buffer: u64,
    /// Settings that were not read, with their lines.
    pub unread: Vec<(usize, String)>,
}

impl HostSettings {
    /// Creates the settings of a host with one of our profiles.
    pub fn new(profile: &str) -> Result<HostSettings, String> {
        let parameters =
            profile_settings(profile).ok_or_else(|| format!("there is no profile `{profile}`"))?;
        let wire = match profile {
            "linux" => WireSettings {
                receive_buffer: 131_072,
                largest_window: 6_291_456,
                accounting: Accounting::Pages,
                refuses_excess: true,
                ..WireSettings::RFC
            },
            _ => WireSettings::RFC,
        };
        let mut host = HostSettings {
            parameters,
            wire,
            headers: HEADERS,
            path_mss: None,
            tolerance: 4_000_000,
            stamp_tick: None,
            injected_mss: u32::MAX,
            cookies: false,
            asks_for_ecn: true,
            asks_classically: false,
            send_buffer: 4 << 20,
            unread: Vec::new(),
        };
        host.set(Profile::initial_sequence().is(OUR_FIRST.into()));
        if profile == "linux" {
            host.set(Profile::delay_fin_ack().is(true));
            host.set(Profile::pacing_credit().is(true));
            host.set(Profile::syn_linear_timeouts().is(4));
            host.set(Profile::ecn_option().is("each"));
            host.set(Profile::ecn_option_if_heard().is(true));
        }
        Ok(host)
    }

    fn set(&mut self, (name, value): (&'static str, Value)) {
        self.parameters.set(name, value, Origin::Given);
    }

    /// Returns the parameters of an endpoint, perhaps with a congestion control of its own.
    pub fn profile(&self, active: bool, congestion: Option<&'static str>) -> Result<Profile, String> {
        let mut parameters = self.parameters.clone();
        if let Some(word) = congestion {
            let (name, value) = Profile::congestion().is(word);
            parameters.set(name, value, Origin::Given);
        }
        if active && (self.asks_classically || !self.asks_for_ecn) {
            for (name, value) in [
                Profile::ecn().is(self.asks_for_ecn),
                Profile::ecn_feedback().is("classic"),
                Profile::ect_on_ack().is(false),
                Profile::ect_on_retransmission().is(false),
            ] {
                parameters.set(name, value, Origin::Given);
            }
        }
        Profile::resolve(&mut parameters).map_err(|error| error.to_string())
    }

    /// Returns the segment sizes that a SYN cookie can express (RFC 4987, appendix A; Linux), if each SYN is answered
    /// with one; the size that the other side has announced is rounded down.
    pub fn cookie_sizes(&self) -> Option<[u16; 4]> {
        let sizes = if self.headers == HEADERS { [536, 1300, 1440, 1460] } else { [1220, 1420, 1440, 8940] };
        self.cookies.then_some(sizes)
    }

    /// Reads an option line, `--name=value`.
    pub fn read_option(&mut self, line: usize, name: &str, value: &str) -> Result<(), Failure> {
        let wrong = || Failure::syntax(line, format!("`{value}` is not a value of `--{name}`"));
        match name {
            // The size of the parts of an injected segment that exceeds a packet.
            "mss" => self.injected_mss = value.parse().map_err(|_| wrong())?,
            "tolerance_usecs" => self.tolerance = value.parse::<Ns>().map_err(|_| wrong())? * 1000,
            "tcp_ts_tick_usecs" => self.stamp_tick = Some(value.parse::<Ns>().map_err(|_| wrong())? * 1000),
            "ip_version" if value == "ipv6" => self.headers = HEADERS_IPV6,
            "aqmlab_profile" => {
                let tolerance = self.tolerance;
                *self = HostSettings::new(value).map_err(|text| Failure::syntax(line, text))?;
                self.tolerance = tolerance;
            }
            "aqmlab_set" => {
                let (name, text) = value.split_once('=').ok_or_else(wrong)?;
                self.set_parameter(line, name.trim(), text.trim())?;
            }
            "ip_version" => {}
            _ => self.unread.push((line, format!("--{name}={value}"))),
        }
        Ok(())
    }

    /// Sets one of our parameters by its name: a flag, a count or a word.
    fn set_parameter(&mut self, line: usize, name: &str, text: &str) -> Result<(), Failure> {
        let param = Profile::TABLE.iter().find(|param| param.name == name);
        let param =
            param.ok_or_else(|| Failure::syntax(line, format!("`{name}` is not a parameter of TCP")))?;
        let value = match text {
            "true" | "false" => Value::Flag(text == "true"),
            _ if text.ends_with("ms") => {
                let ms = text.trim_end_matches("ms").parse();
                Value::Span(Span::ms(
                    ms.map_err(|_| Failure::syntax(line, format!("`{text}` is not a time")))?,
                ))
            }
            _ => match (text.parse(), param.kind) {
                (Ok(count), _) => Value::Integer(count),
                (_, Kind::Choice(words) | Kind::Open(words)) => {
                    let word = words.iter().find(|word| **word == text);
                    Value::Choice(word.ok_or_else(|| {
                        Failure::syntax(
                            line,
                            format!("`{text}` is not a value of `{name}`; write one of {words:?}"),
                        )
                    })?)
                }
                _ => return Err(Failure::syntax(line, format!("`{text}` is not a value of `{name}`"))),
            },
        };
        self.set((param.name, value));
        Ok(())
    }

    /// Reads shell lines; files are read from `folder`.
    pub fn read_commands(&mut self, line: usize, text: &str, folder: Option<&Path>) -> Result<(), Failure> {
        let joined = text.replace("\\\n", " ");
        joined.lines().try_for_each(|command| self.read_command(line, command, folder))
    }

    fn read_command(&mut self, line: usize, command: &str, folder: Option<&Path>) -> Result<(), Failure> {
        let command = command.split(" #").next().unwrap_or_default().trim();
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            [] | ["#!/bin/bash" | "#", ..] => Ok(()),
            ["./defaults.sh"] => self.read_defaults(line, folder),
            ["sysctl", ..] | ["./set_sysctls.py", ..] => {
                let assigned = command.split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
                self.read_sysctls(line, assigned)
            }
            ["ip", "link", "set", "dev", _, "mtu", bytes, ..] => {
                let mtu = bytes
                    .parse::<u32>()
                    .ok()
                    .and_then(|mtu| u16::try_from(mtu.checked_sub(self.headers)?).ok());
                self.wire.mss = mtu
                    .ok_or_else(|| Failure::syntax(line, format!("`{bytes}` is not the size of a packet")))?;
                Ok(())
            }
            ["tc", "qdisc", _, "dev", _, "root", "fq", ..] => {
                self.set(Profile::pacing().is(true));
                Ok(())
            }
            ["tc", ..] if command.contains("limit 0") => {
                Err(Failure::unsupported(line, "a queue that drops the host's own segments"))
            }
            // Segments leave one by one, and what they add up to is compared.
            ["ethtool", ..] => Ok(()),
            [name, ..] if name.starts_with("/tmp/sysctl_restore") => Ok(()),
            _ => {
                self.unread.push((line, command.to_owned()));
                Ok(())
            }
        }
    }

    /// Reads the values that the kernel's scripts share.
    fn read_defaults(&mut self, line: usize, folder: Option<&Path>) -> Result<(), Failure> {
        let path = folder.map(|folder| folder.join("defaults.sh"));
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let Some(text) = text else {
            return Err(Failure::syntax(line, "`defaults.sh` is not in the folder of the script"));
        };
        self.set(Profile::congestion().is("cubic"));
        for command in text.lines().map(str::trim).filter(|command| command.starts_with("sysctl")) {
            self.read_command(line, command, None)?;
        }
        Ok(())
    }

    /// Reads assignments such as `net.ipv4.tcp_sack=1` or `/proc/sys/net/ipv4/tcp_rmem="4096 540000 15728640"`.
    fn read_sysctls(&mut self, line: usize, text: &str) -> Result<(), Failure> {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('=') {
            let name = before.split_whitespace().last().unwrap_or_default();
            let name = name.rsplit(['.', '/']).next().unwrap_or_default();
            let value;
            if let Some(quoted) = after.strip_prefix('"') {
                (value, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
            } else {
                (value, rest) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
            }
            self.read_sysctl(line, name, value)?;
        }
        Ok(())
    }

    fn read_sysctl(&mut self, line: usize, name: &str, value: &str) -> Result<(), Failure> {
        let number = || {
            let hex = value.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
            let parsed = hex.unwrap_or_else(|| value.parse());
            parsed.map_err(|_| Failure::syntax(line, format!("`{value}` is not a value of `{name}`")))
        };
        let flag = || number().map(|number| number != 0);
        match name {
            "tcp_timestamps" => self.wire.timestamps = flag()?,
            "tcp_window_scaling" => self.wire.scaling = flag()?,
            "tcp_shrink_window" => self.wire.shrinks = flag()?,
            "tcp_sack" => self.set(Profile::recovery().is(if flag()? { "sack" } else { "newreno" })),
            "tcp_dsack" => self.set(Profile::dsack().is(flag()?)),
            "tcp_frto" => self.set(Profile::frto().is(flag()?)),
            "tcp_recovery" => self.set(Profile::rack().is(number()? & 1 != 0)),
            "tcp_early_retrans" => self.set(Profile::tail_loss_probe().is(number()? >= 3)),
            "tcp_reordering" => self.set(Profile::dupthresh().is(number()?)),
            "tcp_syn_retries" => self.set(Profile::syn_retries().is(Limit::At(number()?))),
            "tcp_syn_linear_timeouts" => self.set(Profile::syn_linear_timeouts().is(number()?)),
            "tcp_retries2" => self.set(Profile::data_retries().is(Limit::At(number()?))),
            "tcp_rto_max_ms" => self.set(Profile::max_rto().is(Span::ms(number()?))),
            "tcp_rto_min_us" => self.set(Profile::min_rto().is(Span::us(number()?))),
            "tcp_pacing_ss_ratio" => self.set(Profile::pacing_gain_slow_start().is(number()? as f64 / 100.0)),
            "tcp_pacing_ca_ratio" => self.set(Profile::pacing_gain().is(number()? as f64 / 100.0)),
            "tcp_slow_start_after_idle" => {
                self.set(Profile::idle_restart().is(if flag()? { "rfc2861" } else { "off" }));
                self.set(Profile::window_validation().is(true));
            }
            "tcp_ecn" => {
                let mode = number()?;
                self.set(Profile::ecn().is(mode != 0));
                let accurate = mode > 2;
                self.set(Profile::ecn_feedback().is(if accurate { "accurate" } else { "classic" }));
                self.set(Profile::ect_on_ack().is(accurate));
                self.set(Profile::ect_on_retransmission().is(accurate));
                self.set(Profile::echo_outside_window().is(accurate));
                (self.asks_for_ecn, self.asks_classically) = (mode != 2 && mode != 5, mode == 4);
            }
            "tcp_ecn_option" => self.set(Profile::ecn_option().is(match number()? {
                0 => "none",
                1 => "full",
                _ => "each",
            })),
            "tcp_ecn_fallback" => {
                self.set(Profile::ecn_fallback().is(if flag()? { "timeout" } else { "off" }));
                self.set(Profile::ecn_path_test().is(if flag()? { "handshake" } else { "off" }));
            }
            "tcp_congestion_control" => {
                let word = Congestion::WORDS.iter().find(|word| **word == value);
                let word = word
                    .ok_or_else(|| Failure::unsupported(line, format!("the congestion control `{value}`")))?;
                self.set(Profile::congestion().is(word));
            }
            "tcp_rmem" => {
                let sizes: Vec<&str> = value.split_whitespace().collect();
                let sizes: Option<Vec<u32>> = sizes.into_iter().map(size).collect();
                if let Some([_, usual, most]) = sizes.as_deref() {
                    (self.wire.receive_buffer, self.wire.largest_window) = (*usual, *most);
                }
            }
            "tcp_syncookies" => self.cookies = number()? == 2,
            _ => self.unread.push((line, format!("{name}={value}"))),
        }
        Ok(())
    }
}

/// Reads a number of bytes, which may be a product in `$((...))`.
fn size(text: &str) -> Option<u32> {
    let text = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")).unwrap_or(text);
    text.split('*')
        .map(|factor| factor.parse::<u32>().ok())
        .try_fold(1_u32, |product, f| product.checked_mul(f?))
}
