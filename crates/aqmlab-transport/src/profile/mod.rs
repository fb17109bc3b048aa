//! Effective parameters of an endpoint, and the named bundles of parameters.

mod bundles;
mod table;
mod words;

use alloc::format;

use aqmlab_params::{Default, Origin, ParamError, Settings, Value};
use aqmlab_units::Span;
use aqmlab_units::text::Size;

use crate::bits::Bits;
use crate::sack::MAX_BLOCKS;

pub use bundles::{ProfileInfo, ProfileValue};
pub use table::{LEFT_OUT_BY_DEFAULT, PARAMS};
pub use words::{
    AckCounting, Congestion, CubicGrowth, DelayedAckTimer, EcnAtOne, EcnFallback, FastRetransmitGuard, Fin,
    HandshakeAck, IdleRestart, Increase, InitialSsthresh, InitialWindowRule, NagleRule, PartialAck,
    PromptAck, Recovery, RecoveryExit, RecoveryWindow, ReductionBase, RttArithmetic, SackMemory, SackPipe,
    SlowStartExit, SynLossWindow, TimeoutSsthresh,
};

/// All settings of an endpoint, resolved. All flows of a class share one profile, which is passed
/// to each call, so that an endpoint stores no settings. [`PARAMS`] explains the parameters with
/// the same names as these fields.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the table explains each of them")]
pub struct Profile {
    pub mss: u32,
    pub header: u32,
    pub initial_sequence: u32,
    /// segments
    pub max_window: u32,
    /// bytes
    pub receive_window: u32,
    /// segments
    pub initial_window: f64,
    pub syn_loss_window: SynLossWindow,
    pub initial_ssthresh: InitialSsthresh,
    /// `None` stands for a control that only kernels have; its name is in the settings, and no
    /// [`Endpoint`](crate::Endpoint) can be created with such a profile.
    pub congestion: Option<Congestion>,
    pub increase: Increase,
    /// segments; `u32::MAX` means no limit
    pub abc_limit: u32,
    pub cubic_growth: CubicGrowth,
    /// segments per second cubed
    pub cubic_c: f64,
    pub cubic_beta: f64,
    pub cubic_fast_convergence: bool,
    pub cubic_reno_friendly: bool,
    pub dctcp_gain: f64,
    pub slow_start_exit: SlowStartExit,
    pub reduction_base: ReductionBase,
    pub dupthresh: u32,
    pub recovery: Recovery,
    pub sack_pipe: SackPipe,
    pub rack: bool,
    pub tail_loss_probe: bool,
    pub prr: bool,
    pub count_duplicates: bool,
    pub frto: bool,
    pub timestamps: bool,
    pub dsack: bool,
    pub dsack_undo: bool,
    pub eifel: bool,
    pub sack_blocks: u32,
    pub sack_memory: SackMemory,
    /// bytes
    pub sack_overhead: u32,
    pub limited_transmit: bool,
    pub fast_retransmit_guard: FastRetransmitGuard,
    pub fast_retransmit_restarts_timer: bool,
    pub partial_ack: PartialAck,
    pub recovery_window: RecoveryWindow,
    pub recovery_exit: RecoveryExit,
    /// segments per ACK; `u32::MAX` means no limit
    pub recovery_burst: u32,
    /// segments per ACK; `u32::MAX` means no limit
    pub max_burst: u32,
    pub pacing: bool,
    pub pacing_gain: f64,
    pub pacing_gain_slow_start: f64,
    /// segments
    pub pacing_burst: u32,
    /// segments
    pub burst: u32,
    pub burst_time: Span,
    pub send_jitter: Span,
    pub timeout_ssthresh: TimeoutSsthresh,
    pub rtt_arithmetic: RttArithmetic,
    pub timer_uses_sample: bool,
    pub ack_ends_backoff: bool,
    pub granularity: Span,
    pub timer_tick: Span,
    pub tick_phase: Span,
    pub min_rto: Span,
    pub initial_rto: Span,
    pub syn_fallback_rto: Span,
    pub max_rto: Span,
    pub ack_every: u32,
    pub ack_counting: AckCounting,
    pub delayed_ack: Span,
    pub delayed_ack_timer: DelayedAckTimer,
    pub delayed_ack_adapts: bool,
    pub sack_delay: Span,
    pub sack_delay_slack: Span,
    pub sack_delay_most: u32,
    pub delay_repeated_ack: bool,
    pub quick_acks: u32,
    pub quick_acks_again: u32,
    pub quick_acks_growing: u32,
    pub handshake_ack: HandshakeAck,
    /// Whether the application's answer carries an acknowledgment that is due immediately.
    pub prompt_ack: PromptAck,
    pub nagle: bool,
    pub nagle_rule: NagleRule,
    pub hold_last_byte: bool,
    pub fin: Fin,
    pub idle_restart: IdleRestart,
    pub ecn: bool,
    pub ecn_at_one: EcnAtOne,
    pub ecn_fallback: EcnFallback,
    pub echo_outside_window: bool,
    pub ect_on_retransmission: bool,
    pub ect_on_fin: bool,
    pub ect_on_syn: bool,
    pub ect_on_syn_ack: bool,
    pub cwr_on_retransmission: bool,
    pub cwr_without_data: bool,
    pub syn_retries: u32,
    pub answer_repeated_syn: bool,
    pub keep_syn_backoff: bool,
    pub syn_ack_timer: bool,
    pub data_retries: u32,
    pub time_wait: Span,
    /// The number of segments after which an acknowledgment is sent immediately; if `ack_rules` is
    /// true, a number that is too large to be reached.
    pub(crate) ack_at: u32,
    /// Whether delayed acknowledgments follow more rules than `ack_every` and `delayed_ack`.
    pub(crate) ack_rules: bool,
    /// The flags [`REMEMBERS`] and [`BY_SEGMENTS`]. If either is set, an acknowledgment of new data
    /// does more than open Reno's window.
    pub(crate) more_than_reno: Bits,
    /// Whether the congestion control is called for each acknowledgment.
    pub(crate) hears: bool,
    /// Whether each change of CE is acknowledged immediately (RFC 8257, 3.2).
    pub(crate) exact_echo: bool,
    /// The alpha with which AIMD(alpha, `cubic_beta`) has the same mean window as Reno (RFC 9438, 4.3).
    pub(crate) cubic_alpha: f64,
    /// The minimum time by which a retransmission timeout exceeds the smoothed round-trip time.
    pub(crate) least_variance: Span,
}

/// The congestion control keeps state beyond the window and its threshold.
const REMEMBERS: u8 = 1;
/// A sender tracks each outstanding segment, with or without SACK.
const BY_SEGMENTS: u8 = 1 << 1;

/// The value of a limit that is not set: more than can ever be reached.
const NO_LIMIT: u32 = u32::MAX;

/// Returns the profiles that [`profile_settings`] knows.
pub fn profiles() -> &'static [ProfileInfo] {
    bundles::PROFILES
}

/// Returns the table's defaults, overridden by the values of the profile `name`; `None` if there is
/// no such profile.
///
/// The table's defaults are the profile `rfc`.
pub fn profile_settings(name: &str) -> Option<Settings> {
    let info = profiles().iter().find(|p| p.name == name)?;
    let mut settings = Settings::defaults(PARAMS);
    for bundled in info.values {
        let value = bundled.value.value().expect("a bundle contains values, not rules");
        settings.set(bundled.name, value, Origin::Profile(info.name.into()));
    }
    Some(settings)
}

impl Profile {
    /// Resolves settings for the parameters in [`PARAMS`]: fills in the automatic values in `settings`, then
    /// reads all values.
    ///
    /// # Errors
    /// If a value is missing or of the wrong kind, or if two values contradict each other.
    pub fn resolve(settings: &mut Settings) -> Result<Profile, ParamError> {
        for param in PARAMS {
            if let Default::Auto(rule) = param.default
                && settings.is_auto(param.name)
            {
                settings.set(param.name, automatic(param.name, settings)?, Origin::Derived(rule.into()));
            }
        }
        Profile::read(settings)
    }

    fn read(s: &Settings) -> Result<Profile, ParamError> {
        let profile = Profile {
            mss: bytes(s, "mss")?,
            header: bytes(s, "header")?,
            initial_sequence: count(s, "initial_sequence")?,
            max_window: count(s, "max_window")?,
            receive_window: bytes(s, "receive_window")?,
            initial_window: s.integer("initial_window")? as f64,
            syn_loss_window: SynLossWindow::read(s, "syn_loss_window")?,
            initial_ssthresh: InitialSsthresh::read(s, "initial_ssthresh")?,
            congestion: congestion(s)?,
            increase: Increase::read(s, "increase")?,
            abc_limit: limit(s, "abc_limit")?,
            cubic_growth: CubicGrowth::read(s, "cubic_growth")?,
            cubic_c: s.number("cubic_c")?,
            cubic_beta: s.number("cubic_beta")?,
            cubic_fast_convergence: s.flag("cubic_fast_convergence")?,
            cubic_reno_friendly: s.flag("cubic_reno_friendly")?,
            dctcp_gain: s.number("dctcp_gain")?,
            slow_start_exit: SlowStartExit::read(s, "slow_start_exit")?,
            reduction_base: ReductionBase::read(s, "reduction_base")?,
            dupthresh: count(s, "dupthresh")?,
            recovery: Recovery::read(s, "recovery")?,
            sack_pipe: SackPipe::read(s, "sack_pipe")?,
            rack: s.flag("rack")?,
            tail_loss_probe: s.flag("tail_loss_probe")?,
            prr: s.flag("prr")?,
            count_duplicates: s.flag("count_duplicates")?,
            frto: s.flag("frto")?,
            timestamps: s.flag("timestamps")?,
            dsack: s.flag("dsack")?,
            dsack_undo: s.flag("dsack_undo")?,
            eifel: s.flag("eifel")?,
            sack_blocks: count(s, "sack_blocks")?,
            sack_memory: SackMemory::read(s, "sack_memory")?,
            sack_overhead: bytes(s, "sack_overhead")?,
            limited_transmit: s.flag("limited_transmit")?,
            fast_retransmit_guard: FastRetransmitGuard::read(s, "fast_retransmit_guard")?,
            fast_retransmit_restarts_timer: s.flag("fast_retransmit_restarts_timer")?,
            partial_ack: PartialAck::read(s, "partial_ack")?,
            recovery_window: RecoveryWindow::read(s, "recovery_window")?,
            recovery_exit: RecoveryExit::read(s, "recovery_exit")?,
            recovery_burst: limit(s, "recovery_burst")?,
            max_burst: limit(s, "max_burst")?,
            pacing: s.flag("pacing")?,
            pacing_gain: s.number("pacing_gain")?,
            pacing_gain_slow_start: s.number("pacing_gain_slow_start")?,
            pacing_burst: count(s, "pacing_burst")?,
            burst: count(s, "burst")?,
            burst_time: s.span("burst_time")?,
            send_jitter: s.span("send_jitter")?,
            timeout_ssthresh: TimeoutSsthresh::read(s, "timeout_ssthresh")?,
            rtt_arithmetic: RttArithmetic::read(s, "rtt_arithmetic")?,
            timer_uses_sample: s.flag("timer_uses_sample")?,
            ack_ends_backoff: s.flag("ack_ends_backoff")?,
            granularity: s.span("granularity")?,
            timer_tick: s.span("timer_tick")?,
            tick_phase: s.span("tick_phase")?,
            min_rto: s.span("min_rto")?,
            initial_rto: s.span("initial_rto")?,
            syn_fallback_rto: s.span("syn_fallback_rto")?,
            max_rto: s.span("max_rto")?,
            ack_every: count(s, "ack_every")?,
            ack_counting: AckCounting::read(s, "ack_counting")?,
            delayed_ack: s.span("delayed_ack")?,
            delayed_ack_timer: DelayedAckTimer::read(s, "delayed_ack_timer")?,
            delayed_ack_adapts: s.flag("delayed_ack_adapts")?,
            sack_delay: s.span("sack_delay")?,
            sack_delay_slack: s.span("sack_delay_slack")?,
            sack_delay_most: count(s, "sack_delay_most")?,
            delay_repeated_ack: s.flag("delay_repeated_ack")?,
            quick_acks: count(s, "quick_acks")?,
            quick_acks_again: count(s, "quick_acks_again")?,
            quick_acks_growing: count(s, "quick_acks_growing")?,
            handshake_ack: HandshakeAck::read(s, "handshake_ack")?,
            prompt_ack: PromptAck::read(s, "prompt_ack")?,
            nagle: s.flag("nagle")?,
            nagle_rule: NagleRule::read(s, "nagle_rule")?,
            hold_last_byte: s.flag("hold_last_byte")?,
            fin: Fin::read(s, "fin")?,
            idle_restart: IdleRestart::read(s, "idle_restart")?,
            ecn: s.flag("ecn")?,
            ecn_at_one: EcnAtOne::read(s, "ecn_at_one")?,
            ecn_fallback: EcnFallback::read(s, "ecn_fallback")?,
            echo_outside_window: s.flag("echo_outside_window")?,
            ect_on_retransmission: s.flag("ect_on_retransmission")?,
            ect_on_fin: s.flag("ect_on_fin")?,
            ect_on_syn: s.flag("ect_on_syn")?,
            ect_on_syn_ack: s.flag("ect_on_syn_ack")?,
            cwr_on_retransmission: s.flag("cwr_on_retransmission")?,
            cwr_without_data: s.flag("cwr_without_data")?,
            syn_retries: limit(s, "syn_retries")?,
            answer_repeated_syn: s.flag("answer_repeated_syn")?,
            keep_syn_backoff: s.flag("keep_syn_backoff")?,
            syn_ack_timer: s.flag("syn_ack_timer")?,
            data_retries: limit(s, "data_retries")?,
            time_wait: s.span("time_wait")?,
            ack_at: 0,
            ack_rules: false,
            more_than_reno: Bits::none(),
            hears: false,
            exact_echo: false,
            cubic_alpha: 0.0,
            least_variance: Span::ZERO,
        };
        profile.check()?;
        Ok(profile.with_summaries())
    }

    /// Returns the profile with summaries of its rules; for each segment, these summaries are
    /// tested instead of all the rules.
    fn with_summaries(self) -> Profile {
        let bytes = self.ack_counting == AckCounting::Bytes;
        let periodic = self.delayed_ack_timer == DelayedAckTimer::Periodic;
        let exact_echo = self.congestion == Some(Congestion::Dctcp);
        let exits = self.slow_start_exit != SlowStartExit::Nothing;
        let quick = self.quick_acks > 0 || self.quick_acks_again > 0;
        let timed = !self.timer_tick.is_zero() || !self.sack_delay.is_zero();
        let ack_rules = exact_echo || bytes || periodic || quick || timed || self.dsack;
        let remembers = self.congestion != Some(Congestion::Reno) || exits;
        let by_segments = tracks_segments(self.recovery, self.sack_pipe, self.count_duplicates);
        let mut more_than_reno = Bits::none();
        more_than_reno.put(REMEMBERS, remembers);
        more_than_reno.put(BY_SEGMENTS, by_segments);
        Profile {
            ack_at: if ack_rules { NO_LIMIT } else { self.ack_every },
            ack_rules,
            timestamps: self.timestamps && by_segments,
            exact_echo,
            cubic_alpha: 3.0 * (1.0 - self.cubic_beta) / (1.0 + self.cubic_beta),
            more_than_reno,
            hears: remembers && (exact_echo || exits || self.cubic_growth == CubicGrowth::Linux),
            least_variance: match self.rtt_arithmetic {
                RttArithmetic::Linux => self.min_rto,
                RttArithmetic::Rfc6298 | RttArithmetic::Ns2 => self.granularity,
            },
            ..self
        }
    }

    /// Returns how many of `bytes` newly acknowledged bytes, in this number of `segments`, count for the
    /// window. Linux counts segments: one that is not full opens the window as far as a full one.
    #[inline(always)]
    pub(crate) fn opening(&self, bytes: u32, segments: u32) -> u32 {
        match self.reduction_base {
            ReductionBase::CongestionWindow => segments.saturating_mul(self.mss),
            _ => bytes,
        }
    }

    /// Returns how much of a window, in segments, may stay unused because a burst waits.
    #[inline]
    pub(crate) fn held_back(&self, window: f64) -> u32 {
        if self.burst == 1 || !self.by_segments() { 0 } else { (self.burst - 1).min(third_of(window as u64)) }
    }

    /// Returns whether the congestion control keeps state beyond the window and its threshold.
    #[inline(always)]
    pub(crate) fn remembers(&self) -> bool {
        self.more_than_reno.any(REMEMBERS)
    }

    /// Returns whether senders list their outstanding segments, provided that the other side does
    /// not prevent it. Hosts may then use
    /// [`Endpoint::on_segment_listing`](crate::Endpoint::on_segment_listing) and
    /// [`Endpoint::poll_transmit_listing`](crate::Endpoint::poll_transmit_listing).
    pub fn lists_segments(&self) -> bool {
        self.by_segments()
    }

    /// Returns whether a sender tracks each outstanding segment, with or without SACK.
    #[inline(always)]
    pub(crate) fn by_segments(&self) -> bool {
        self.more_than_reno.any(BY_SEGMENTS)
    }

    /// Returns by how much a ticking clock delays probes and the reordering timer beyond what RFC
    /// 8985 specifies.
    pub(crate) fn patience(&self) -> Span {
        self.timer_tick.saturating_mul(2)
    }

    /// Returns the number of reported blocks that a receiver remembers.
    pub(crate) fn remembered_blocks(&self) -> usize {
        match self.sack_memory {
            SackMemory::Four => MAX_BLOCKS,
            SackMemory::SackBlocks => self.sack_blocks as usize,
        }
    }

    /// Returns the profile `name` without any further settings; `None` if there is no such profile.
    pub fn named(name: &str) -> Option<Profile> {
        let mut settings = profile_settings(name)?;
        Some(Profile::resolve(&mut settings).expect("a built-in profile is complete and consistent"))
    }

    fn check(&self) -> Result<(), ParamError> {
        let bounded = [
            ("min_rto", self.min_rto),
            ("initial_rto", self.initial_rto),
            ("syn_fallback_rto", self.syn_fallback_rto),
        ];
        if let Some((name, span)) = bounded.into_iter().find(|(_, span)| *span > self.max_rto) {
            let message = format!("{name} `{span}` exceeds max_rto `{}`", self.max_rto);
            return Err(ParamError::new(name, message));
        }
        if self.mss + self.header > LARGEST_PACKET {
            let message = format!(
                "a full segment of mss `{}B` and header `{}B` exceeds the largest packet, `{LARGEST_PACKET}B`",
                self.mss, self.header
            );
            return Err(ParamError::new("mss", message));
        }
        if self.receive_window < self.mss {
            let message = format!(
                "receive_window `{}B` is less than one segment, mss `{}B`",
                self.receive_window, self.mss
            );
            return Err(ParamError::new("receive_window", message));
        }
        self.check_acks()?;
        self.check_congestion()?;
        if self.rtt_arithmetic == RttArithmetic::Ns2 {
            self.check_tick()?;
        }
        Ok(())
    }

    fn check_acks(&self) -> Result<(), ParamError> {
        if !self.answer_repeated_syn && !self.syn_ack_timer {
            let message = "syn_ack_timer must be `true` with answer_repeated_syn `false`, because nothing else \
                           repeats a SYN-ACK";
            return Err(ParamError::new("syn_ack_timer", message));
        }
        if self.delayed_ack_timer == DelayedAckTimer::Periodic && self.delayed_ack.is_zero() {
            let message = "delayed_ack must be above zero with delayed_ack_timer `periodic`";
            return Err(ParamError::new("delayed_ack", message));
        }
        if self.ack_counting == AckCounting::Bytes && self.ack_every * self.mss > MOST_COUNTED {
            let message = format!(
                "ack_every `{}` times mss `{}B` exceeds the largest amount that ack_counting `bytes` can count, `{MOST_COUNTED}B`",
                self.ack_every, self.mss
            );
            return Err(ParamError::new("ack_every", message));
        }
        Ok(())
    }

    fn check_congestion(&self) -> Result<(), ParamError> {
        if self.congestion == Some(Congestion::Dctcp) && !self.ecn {
            let message = "congestion `dctcp` needs ecn `true` because its signal is the share of marks";
            return Err(ParamError::new("congestion", message));
        }
        if self.pacing && !self.send_jitter.is_zero() {
            let message =
                "pacing and send_jitter both determine when a segment leaves; give only one of them";
            return Err(ParamError::new("send_jitter", message));
        }
        Ok(())
    }

    fn check_tick(&self) -> Result<(), ParamError> {
        if self.granularity.is_zero() {
            let message = "granularity must be above zero with rtt_arithmetic `ns2`";
            return Err(ParamError::new("granularity", message));
        }
        if self.tick_phase >= self.granularity {
            let message = format!(
                "tick_phase `{}` must be less than one tick, granularity `{}`",
                self.tick_phase, self.granularity
            );
            return Err(ParamError::new("tick_phase", message));
        }
        Ok(())
    }
}

/// Returns a third of a window, but at least one segment; no burst waits for more room than this
/// (Linux, `net.ipv4.tcp_tso_win_divisor`).
pub(crate) fn third_of(window: u64) -> u32 {
    (window / 3).max(1) as u32
}

/// Largest number of bytes that a receiver may leave unacknowledged, because its counter has 16
/// bits.
const MOST_COUNTED: u32 = 65_535;

/// Size in bytes of the largest IPv4 packet (RFC 791, 3.1: the total length has 16 bits).
const LARGEST_PACKET: u32 = 65_535;

/// Returns the value of an automatic parameter, given the values of the others.
///
/// # Errors
/// If a value on which it depends is missing or of the wrong kind.
///
/// # Panics
/// If the parameter has no rule.
pub fn automatic(name: &str, settings: &Settings) -> Result<Value, ParamError> {
    Ok(match name {
        "initial_window" => Value::Integer(initial_window(
            InitialWindowRule::read(settings, "initial_window_rule")?,
            bytes(settings, "mss")?,
        )),
        // The guard that goes with the chosen loss recovery.
        "fast_retransmit_guard" => Value::Choice(match Recovery::read(settings, "recovery")? {
            Recovery::Reno => FastRetransmitGuard::Rfc5681.word(),
            Recovery::NewReno | Recovery::Sack => FastRetransmitGuard::Rfc6582.word(),
        }),
        "keep_syn_backoff" => {
            Value::Flag(RttArithmetic::read(settings, "rtt_arithmetic")? == RttArithmetic::Ns2)
        }
        "slow_start_exit" => Value::Choice(if has_hystart(settings)? {
            SlowStartExit::Hystart.word()
        } else {
            SlowStartExit::Nothing.word()
        }),
        _ => unreachable!("`{name}` has no rule"),
    })
}

/// Returns the initial window, in segments, that a rule gives for segments of `mss` bytes.
fn initial_window(rule: InitialWindowRule, mss: u32) -> u64 {
    match rule {
        // RFC 5681, section 3.1, which states the rule of RFC 3390 in segments.
        InitialWindowRule::Rfc5681 => match mss {
            0..=1095 => 4,
            1096..=2190 => 3,
            _ => 2,
        },
        // min(10*MSS, max(2*MSS, 14600)), in whole segments
        InitialWindowRule::Rfc6928 => u64::from(14_600 / mss).clamp(2, 10),
    }
}

/// Returns whether CUBIC grows as in Linux, which uses HyStart, and the sender measures enough
/// round trips for HyStart.
fn has_hystart(settings: &Settings) -> Result<bool, ParamError> {
    Ok(congestion(settings)? == Some(Congestion::Cubic)
        && CubicGrowth::read(settings, "cubic_growth")? == CubicGrowth::Linux
        && tracks_segments(
            Recovery::read(settings, "recovery")?,
            SackPipe::read(settings, "sack_pipe")?,
            settings.flag("count_duplicates")?,
        ))
}

/// Returns whether a sender tracks each outstanding segment.
fn tracks_segments(recovery: Recovery, pipe: SackPipe, count_duplicates: bool) -> bool {
    let knows = match recovery {
        Recovery::Sack => true,
        Recovery::NewReno => count_duplicates,
        Recovery::Reno => false,
    };
    knows && pipe == SackPipe::Segments
}

/// The maximum length of a control's name in the kernel: `TCP_CA_NAME_MAX` minus the final zero
/// byte (Linux, `net/tcp.h`).
const LONGEST_CONGESTION: usize = 15;

/// Reads the name of a congestion control: one of ours, or one that only a kernel may know.
fn congestion(s: &Settings) -> Result<Option<Congestion>, ParamError> {
    let refused = |message| Err(ParamError::new("congestion", message));
    match s.get("congestion") {
        Some(Value::Text(name)) if name.len() > LONGEST_CONGESTION => refused(format!(
            "{name:?} is not a congestion control: control names in kernels have at most {LONGEST_CONGESTION} characters"
        )),
        Some(Value::Text(name)) if !is_word(name) => refused(format!(
            "{name:?} is not a congestion control; write one of {:?}, or a name that the kernel knows, such as `bbr`",
            Congestion::WORDS
        )),
        Some(Value::Text(_)) => Ok(None),
        _ => Congestion::read(s, "congestion").map(Some),
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn count(s: &Settings, name: &'static str) -> Result<u32, ParamError> {
    narrow(name, s.integer(name)?)
}

/// Reads a count; returns [`NO_LIMIT`] if the scenario sets no limit.
fn limit(s: &Settings, name: &'static str) -> Result<u32, ParamError> {
    s.limit(name)?.map_or(Ok(NO_LIMIT), |value| narrow(name, value))
}

fn bytes(s: &Settings, name: &'static str) -> Result<u32, ParamError> {
    match s.size(name)? {
        Size::Bytes(b) => narrow(name, b.get()),
        other => Err(ParamError::new(name, format!("{name} must be in bytes, but it is `{other}`"))),
    }
}

fn narrow(name: &'static str, value: u64) -> Result<u32, ParamError> {
    u32::try_from(value)
        .map_err(|_| ParamError::new(name, format!("{name} `{value}` exceeds the maximum, {}", u32::MAX)))
}
