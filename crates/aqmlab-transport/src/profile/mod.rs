//! Effective parameters of an endpoint, and the named bundles of parameters.

mod bundles;
mod table;
mod words;

use alloc::format;

use aqmlab_params::{Open, Origin, Param, ParamError, Settings, Value};
use aqmlab_units::Span;

use crate::bits::Bits;
use crate::sack::MAX_BLOCKS;

pub use bundles::{ProfileInfo, ProfileValue};
pub use table::Profile;
pub use words::{
    AckCounting, BurstWait, Congestion, CubicAhead, CubicGrowth, DelayedAckTimer, EcnAtOne, EcnFallback,
    EcnFeedback, EcnOption, EcnPathTest, FastRetransmitGuard, Fin, HandshakeAck, IdleRestart, Increase,
    InitialSsthresh, InitialWindowRule, NagleRule, PartialAck, PragueClassic, PragueRtt, PromptAck, PrrBase,
    Recovery, RecoveryExit, RecoveryWindow, ReductionBase, RttArithmetic, SackMemory, SackPipe,
    SlowStartExit, SynLossWindow, TickPhases, TimeoutSsthresh,
};

/// The congestion control keeps state beyond the window and its threshold.
const REMEMBERS: u8 = 1;
/// A sender tracks each outstanding segment, with or without SACK.
const BY_SEGMENTS: u8 = 1 << 1;
/// The congestion control uses rate samples.
const SAMPLES: u8 = 1 << 2;

/// Each transmission has a number of its own.
const PACKETS: u8 = 1 << 3;
/// The congestion control itself decides how marks change the window.
const ANSWERS_MARKS: u8 = 1 << 4;

/// Bytes of IP and UDP headers, which are not part of a datagram.
const BELOW_DATAGRAM: u32 = 28;

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
    let mut settings = match info.base {
        Some(base) => profile_settings(base)?,
        None => Settings::defaults(Profile::TABLE),
    };
    for ProfileValue { pair: (name, value), .. } in info.values {
        settings.set(name, value.clone(), Origin::Profile(info.name.into()));
    }
    Some(settings)
}

impl Profile {
    /// Resolves settings for the parameters in [`Profile::TABLE`]: fills in the automatic values in `settings`,
    /// then reads all values.
    ///
    /// # Errors
    /// If a value is missing or of the wrong kind, or if two values contradict each other.
    pub fn resolve(settings: &mut Settings) -> Result<Profile, ParamError> {
        fill_in(settings)?;
        let profile = Profile::read(settings)?;
        check_congestion_name(settings)?;
        profile.check()?;
        Ok(profile.with_summaries())
    }

    /// Returns the value that a parameter has by default, given the values of the others; `None` if it cannot
    /// be computed.
    pub fn default_of(param: &Param, settings: &Settings) -> Option<Value> {
        let mut others = settings.clone();
        others.set(param.name, param.default.value()?, Origin::Default(param.source));
        fill_in(&mut others).ok()?;
        others.get(param.name).cloned()
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
        let samples = self.congestion.is_some_and(Congestion::samples_rates);
        let answers_marks = self.congestion.is_some_and(Congestion::answers_marks);
        let tracks =
            samples || answers_marks || tracks_segments(self.recovery, self.sack_pipe, self.count_duplicates);
        let by_segments = tracks && !self.packet_numbers;
        let mut more_than_reno = Bits::none();
        more_than_reno.put(REMEMBERS, remembers);
        more_than_reno.put(BY_SEGMENTS, by_segments);
        more_than_reno.put(SAMPLES, samples);
        more_than_reno.put(PACKETS, self.packet_numbers);
        more_than_reno.put(ANSWERS_MARKS, answers_marks);
        Profile {
            ack_at: if ack_rules { NO_LIMIT } else { self.ack_every },
            ack_rules,
            open_by_windows: self.open_by_windows && by_segments,
            split_at_ssthresh: self.split_at_ssthresh && by_segments,
            timestamps: self.timestamps && by_segments,
            paws: self.paws && self.timestamps && by_segments,
            pacing: self.pacing || samples || answers_marks,
            count_duplicates: self.count_duplicates || samples || answers_marks,
            exact_echo,
            accurate: self.ecn_feedback == EcnFeedback::Accurate,
            cubic_alpha: 3.0 * (1.0 - self.cubic_beta) / (1.0 + self.cubic_beta),
            more_than_reno,
            hears: remembers
                && (exact_echo || answers_marks || exits || self.cubic_growth == CubicGrowth::Linux),
            least_variance: match self.rtt_arithmetic {
                RttArithmetic::Linux => self.min_rto,
                RttArithmetic::Rfc6298 | RttArithmetic::Ns2 => self.granularity,
            },
            ..self
        }
    }

    /// Returns how many of `bytes` newly acknowledged bytes, in this number of `segments`, count for the
    /// window.
    #[inline(always)]
    pub(crate) fn opening(&self, bytes: u32, segments: u32) -> u32 {
        if self.count_segments { segments.saturating_mul(self.mss) } else { bytes }
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

    /// Returns whether the congestion control uses rate samples.
    #[inline(always)]
    pub(crate) fn samples(&self) -> bool {
        self.more_than_reno.any(SAMPLES)
    }

    /// Returns whether each transmission has a number of its own, so that an endpoint accepts another author's
    /// [controller](crate::Endpoint::set_controller).
    #[inline(always)]
    pub fn has_packet_numbers(&self) -> bool {
        self.more_than_reno.any(PACKETS)
    }

    /// Returns the size of a full datagram in bytes, without IP and UDP headers, if packets [have
    /// numbers](Profile::has_packet_numbers).
    pub fn datagram(&self) -> u32 {
        self.datagram_with(self.mss)
    }

    /// Returns the size of the datagram with `len` bytes of payload.
    pub(crate) fn datagram_with(&self, len: u32) -> u32 {
        len + self.header.saturating_sub(BELOW_DATAGRAM)
    }

    /// Returns whether the congestion control hears of each lost segment.
    #[inline]
    pub(crate) fn follows_draft(&self) -> bool {
        self.congestion.is_some_and(Congestion::follows_draft)
    }

    /// Returns whether the congestion control itself decides how marks change the window.
    #[inline(always)]
    pub(crate) fn answers_marks(&self) -> bool {
        self.more_than_reno.any(ANSWERS_MARKS)
    }

    /// Returns whether ECN-capable segments have ECT(1), as those of scalable senders do (RFC 9331, 4.1), if the other
    /// side agrees on accurate feedback.
    pub fn sends_ect1(&self) -> bool {
        self.answers_marks() && self.accurate
    }

    /// Returns whether the congestion control makes draws, so that each endpoint needs
    /// [a seed](crate::Endpoint::set_seed).
    pub fn needs_seed(&self) -> bool {
        self.samples()
    }

    /// Returns whether senders list their outstanding segments, provided that the other side does
    /// not prevent it. Hosts may then use
    /// [`Endpoint::on_segment_by_segments`](crate::Endpoint::on_segment_by_segments) and
    /// [`Endpoint::poll_transmit_by_segments`](crate::Endpoint::poll_transmit_by_segments).
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
            (Profile::min_rto(), self.min_rto),
            (Profile::initial_rto(), self.initial_rto),
            (Profile::syn_fallback_rto(), self.syn_fallback_rto),
        ];
        if let Some((row, span)) = bounded.into_iter().find(|(_, span)| *span > self.max_rto) {
            return Err(row.error(format!("{} `{span}` exceeds max_rto `{}`", row.name(), self.max_rto)));
        }
        if self.mss + self.header > LARGEST_PACKET {
            let message = format!(
                "a full segment of mss `{}B` and header `{}B` exceeds the largest packet, `{LARGEST_PACKET}B`",
                self.mss, self.header
            );
            return Err(Profile::mss().error(message));
        }
        if self.receive_window < self.mss {
            let message = format!(
                "receive_window `{}B` is less than one segment, mss `{}B`",
                self.receive_window, self.mss
            );
            return Err(Profile::receive_window().error(message));
        }
        self.check_acks()?;
        self.check_congestion()?;
        if self.rtt_arithmetic == RttArithmetic::Ns2 {
            self.check_tick()?;
        } else if self.tick_phases == TickPhases::Random {
            let message = "tick_phases `random` needs rtt_arithmetic `ns2`, whose clock has a phase";
            return Err(Profile::tick_phases().error(message));
        }
        Ok(())
    }

    fn check_acks(&self) -> Result<(), ParamError> {
        if !self.answer_repeated_syn && !self.syn_ack_timer {
            let message = "syn_ack_timer must be `true` with answer_repeated_syn `false`, because nothing else \
                           repeats a SYN-ACK";
            return Err(Profile::syn_ack_timer().error(message));
        }
        if self.delayed_ack_timer == DelayedAckTimer::Periodic && self.delayed_ack.is_zero() {
            let message = "delayed_ack must be above zero with delayed_ack_timer `periodic`";
            return Err(Profile::delayed_ack().error(message));
        }
        if self.ack_counting == AckCounting::Bytes && self.ack_every * self.mss > MOST_COUNTED {
            let message = format!(
                "ack_every `{}` times mss `{}B` exceeds the largest amount that ack_counting `bytes` can count, `{MOST_COUNTED}B`",
                self.ack_every, self.mss
            );
            return Err(Profile::ack_every().error(message));
        }
        Ok(())
    }

    fn check_congestion(&self) -> Result<(), ParamError> {
        let Some(congestion) = self.congestion else { return Ok(()) };
        if matches!(congestion, Congestion::Dctcp | Congestion::Prague) && !self.ecn {
            let message = format!(
                "congestion `{}` needs ecn `true` because its signal is the share of marks",
                congestion.word()
            );
            return Err(Profile::congestion().error(message));
        }
        if self.packet_numbers && !self.send_jitter.is_zero() {
            let message = "send_jitter must be `0s` with packet_numbers, which has no such delay";
            return Err(Profile::send_jitter().error(message));
        }
        self.check_accurate()?;
        let paces = congestion.samples_rates() || congestion.answers_marks();
        if paces && matches!(self.recovery, Recovery::Tahoe | Recovery::Reno) {
            let message = format!(
                "recovery must be `sack` or `newreno` with congestion `{}`, which tracks each outstanding segment",
                congestion.word()
            );
            return Err(Profile::recovery().error(message));
        }
        if (self.pacing || paces) && !self.send_jitter.is_zero() {
            let message =
                "pacing and send_jitter both determine when a segment leaves; give only one of them";
            return Err(Profile::send_jitter().error(message));
        }
        Ok(())
    }

    fn check_accurate(&self) -> Result<(), ParamError> {
        let accurate = self.ecn_feedback == EcnFeedback::Accurate;
        if accurate && !self.ecn {
            return Err(Profile::ecn_feedback().error("ecn_feedback `accurate` needs ecn `true`"));
        }
        // RFC 9768, 3.1.1
        if accurate && self.recovery == Recovery::Sack && !self.dsack {
            let message = "dsack must be `true` with ecn_feedback `accurate` and recovery `sack`";
            return Err(Profile::dsack().error(message));
        }
        // draft-ietf-tcpm-generalized-ecn, 3.2.3: acknowledgments of acknowledgments look like duplicates.
        if self.ect_on_ack && !(accurate && self.recovery == Recovery::Sack) {
            let message = "ect_on_ack needs ecn_feedback `accurate`, which reports marks of acknowledgments, and \
                           recovery `sack`, which distinguishes such reports from duplicate acknowledgments";
            return Err(Profile::ect_on_ack().error(message));
        }
        Ok(())
    }

    fn check_tick(&self) -> Result<(), ParamError> {
        if self.granularity.is_zero() {
            let message = "granularity must be above zero with rtt_arithmetic `ns2`";
            return Err(Profile::granularity().error(message));
        }
        if self.tick_phase >= self.granularity {
            let message = format!(
                "tick_phase `{}` must be less than one tick, granularity `{}`",
                self.tick_phase, self.granularity
            );
            return Err(Profile::tick_phase().error(message));
        }
        if self.tick_phases == TickPhases::Random && !self.tick_phase.is_zero() {
            let message = "tick_phases `random` draws the phase that tick_phase gives; give only one of them";
            return Err(Profile::tick_phases().error(message));
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

/// Computes the automatic values from the others.
fn fill_in(settings: &mut Settings) -> Result<(), ParamError> {
    Profile::initial_window().derive_if_auto(settings, |s| {
        let mss: u32 = Profile::mss().store(s)?;
        Ok(initial_window(Profile::initial_window_rule().read(s)?, mss))
    })?;
    Profile::slow_start_exit().derive_if_auto(settings, |s| {
        Ok(if has_hystart(s)? { SlowStartExit::Hystart } else { SlowStartExit::Nothing })
    })?;
    // The guard that goes with the chosen loss recovery.
    Profile::fast_retransmit_guard().derive_if_auto(settings, |s| {
        Ok(match Profile::recovery().read(s)? {
            Recovery::Reno => FastRetransmitGuard::Rfc5681,
            Recovery::Tahoe | Recovery::NewReno | Recovery::Sack => FastRetransmitGuard::Rfc6582,
        })
    })?;
    let as_linux = |s: &Settings| Ok(Profile::reduction_base().read(s)? == ReductionBase::CongestionWindow);
    for row in [
        Profile::count_segments(),
        Profile::open_by_windows(),
        Profile::split_at_ssthresh(),
        Profile::dctcp_segments(),
        Profile::whole_segments(),
        Profile::recovery_ends_with_mark(),
        Profile::undo_to_reduction(),
        Profile::echo_opens(),
    ] {
        row.derive_if_auto(settings, as_linux)?;
    }
    Profile::probe_counts().derive_if_auto(settings, |s| Ok(!as_linux(s)?))?;
    Profile::prr_base().derive_if_auto(settings, |s| {
        Ok(if as_linux(s)? { PrrBase::CongestionWindow } else { PrrBase::Flight })
    })?;
    Profile::keep_syn_backoff()
        .derive_if_auto(settings, |s| Ok(Profile::rtt_arithmetic().read(s)? == RttArithmetic::Ns2))?;
    Profile::window_validation()
        .derive_if_auto(settings, |s| Ok(Profile::idle_restart().read(s)? == IdleRestart::Rfc2861))
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
    Ok(Profile::congestion().read(settings)? == Open::Word(Congestion::Cubic)
        && Profile::cubic_growth().read(settings)? == CubicGrowth::Linux
        && tracks_segments(
            Profile::recovery().read(settings)?,
            Profile::sack_pipe().read(settings)?,
            Profile::count_duplicates().read(settings)?,
        ))
}

/// Returns whether a sender tracks each outstanding segment.
fn tracks_segments(recovery: Recovery, pipe: SackPipe, count_duplicates: bool) -> bool {
    let knows = match recovery {
        Recovery::Sack => true,
        Recovery::NewReno => count_duplicates,
        Recovery::Tahoe | Recovery::Reno => false,
    };
    knows && pipe == SackPipe::Segments
}

/// The maximum length of a control's name in the kernel: `TCP_CA_NAME_MAX` minus the final zero
/// byte (Linux, `net/tcp.h`).
const LONGEST_CONGESTION: usize = 15;

/// Checks the name of a congestion control that is none of ours, but that a kernel may know.
fn check_congestion_name(settings: &Settings) -> Result<(), ParamError> {
    let congestion = Profile::congestion();
    let Open::Other(name) = congestion.read(settings)? else { return Ok(()) };
    if name.len() > LONGEST_CONGESTION {
        return Err(congestion.error(format!(
            "{name:?} is not a congestion control: control names in kernels have at most {LONGEST_CONGESTION} characters"
        )));
    }
    if !is_word(&name) {
        return Err(congestion.error(format!(
            "{name:?} is not a congestion control; write one of {:?}, or a name that the kernel knows, such as `vegas`",
            Congestion::WORDS
        )));
    }
    Ok(())
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}
