//! Settings of a class's hosts: a TCP profile translated into settings of a kernel's stack.
//!
//! The simulator has a parameter for each decision of an endpoint; a kernel has settings for some of them and
//! decides the rest itself. [`SETTABLE`] lists the parameters that a kernel can set. The profile `linux`
//! describes the kernel's own decisions. If the plan differs from one of them, a remark in the result says
//! so.

use aqmlab_params::{Origin, Settings};
use aqmlab_qdisc::Dscp;
use aqmlab_scenario::{Carries, ClassPlan, DatagramFlow, IpVersion};
use aqmlab_transport::{
    EcnFallback, EcnFeedback, EcnOption, IdleRestart, Increase, Profile, Recovery, RttArithmetic,
    profile_settings,
};
use aqmlab_units::Bytes;

use super::namespace::Sysctl;
use super::netlink::Metrics;
use crate::error::LiveError;

/// Settings of a class's hosts and their sockets.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Size of the largest packet, in bytes.
    pub mtu: u32,
    /// Settings of the hosts' namespaces, in addition to those that every host has.
    pub sysctls: Vec<Sysctl>,
    /// The routes' attributes, which Linux calls metrics.
    pub metrics: Metrics,
    /// Settings of connections; `None` for datagrams.
    pub tcp: Option<TcpSockets>,
    /// A sentence for each setting of the plan that the kernel lacks.
    pub remarks: Vec<String>,
}

/// Socket options of the connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpSockets {
    /// Name of the congestion control.
    pub congestion: String,
    /// Maximum size of a segment's payload and TCP options together, if the MTU alone does not determine it.
    pub max_segment: Option<u32>,
    /// Largest receive window, if it is limited. The route also sets it, but since Linux 6.6, connections
    /// forget that value.
    pub receive_window: Option<u32>,
    /// Whether partial segments are sent without waiting for acknowledgments.
    pub no_delay: bool,
    /// DSCP of the connections' packets.
    pub dscp: Dscp,
}

/// Sizes of the packets of a class of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams {
    /// Number of bytes of the IP and UDP headers.
    pub header: u32,
    /// Size of the largest packet, in bytes.
    pub most: u32,
}

impl Datagrams {
    /// Returns the number of payload bytes in a packet of `size`, which is limited so that the
    /// packet is neither smaller than its headers nor larger than the MTU.
    pub fn payload(&self, size: Bytes) -> usize {
        (size.get().clamp(self.header.into(), self.most.into()) - u64::from(self.header)) as usize
    }
}

/// Length of the IPv4 and TCP headers without options.
const TCP_IPV4: u32 = 40;
/// Length of TCP's Timestamps option, padding included (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;
/// Smallest MTU of a link that carries IPv6 (RFC 8200, section 5); Linux does not run IPv6 over
/// other links.
const LEAST_MTU_IPV6: u32 = 1280;
/// Size of the packets that every link with IPv4 carries (RFC 791, section 3.1); Linux does not run
/// IPv4 over other links.
const LEAST_MTU_IPV4: u32 = 68;
/// The largest IPv4 packet.
const MOST_MTU: u64 = 65_535;
/// Maximum packet size, as a multiple of the mean, if sizes are exponentially distributed; one packet in nine
/// million would be larger, and is truncated to this size.
const MOST_MEANS: u64 = 16;

/// Parameters for which a kernel has settings, by their names in the profile's table.
const SETTABLE: &[&str] = &[
    Profile::mss().name(),
    Profile::header().name(),
    Profile::max_window().name(),
    Profile::receive_window().name(),
    Profile::initial_window_rule().name(),
    Profile::initial_window().name(),
    Profile::congestion().name(),
    Profile::dupthresh().name(),
    Profile::recovery().name(),
    Profile::rack().name(),
    Profile::tail_loss_probe().name(),
    Profile::frto().name(),
    Profile::timestamps().name(),
    Profile::sack_delay().name(),
    Profile::sack_delay_slack().name(),
    Profile::sack_delay_most().name(),
    Profile::min_rto().name(),
    Profile::max_rto().name(),
    Profile::nagle().name(),
    Profile::idle_restart().name(),
    Profile::ecn().name(),
    Profile::ecn_feedback().name(),
    Profile::ecn_fallback().name(),
    Profile::syn_retries().name(),
    Profile::data_retries().name(),
];

/// Parameters that share a kernel's setting with another parameter: [`Translation::variants`]
/// handles them.
const SET_WITH_OTHERS: &[&str] = &[
    Profile::ecn_option().name(),
    Profile::granularity().name(),
    Profile::ack_every().name(),
    Profile::sack_blocks().name(),
    Profile::abc_limit().name(),
];

/// Parameters for which the kernel's behaviour does not matter, because nothing that is measured depends on
/// them.
const WITHOUT_EFFECT: &[&str] = &[
    Profile::initial_sequence().name(),
    Profile::time_wait().name(),
    Profile::tick_phase().name(),
    Profile::tick_phases().name(),
    Profile::sack_overhead().name(),
    Profile::syn_fallback_rto().name(),
];

/// The value of `abc_limit` in a profile that sets no limit.
const NO_ABC_LIMIT: u32 = u32::MAX;
/// The profile's default for the maximum window, in segments, which no window ever reaches.
const ANY_WINDOW: u32 = 1 << 20;
/// The profile's default receive window in bytes; no receive window can be larger (RFC 7323, 2.3).
const ANY_RECEIVE_WINDOW: u32 = 1 << 30;

impl Stack {
    /// Returns the settings into which a class's profile is translated.
    ///
    /// # Errors
    /// If the class's packets cannot be carried.
    pub fn of(class: &ClassPlan, ip: IpVersion) -> Result<Self, LiveError> {
        match class.traffic.carries() {
            Carries::Programs(tcp) => {
                let mut stack = Stack::of_connections(class, &tcp.profile, &tcp.settings, ip);
                stack.sysctls.extend(stack.tcp.as_ref().map(for_programs).into_iter().flatten());
                Ok(stack)
            }
            Carries::Stream(tcp) | Carries::Sessions(tcp) => {
                Ok(Stack::of_connections(class, &tcp.profile, &tcp.settings, ip))
            }
            Carries::Datagrams(DatagramFlow { largest: Some(size), .. }) => {
                Stack::of_datagrams(class, size, ip)
            }
            Carries::Datagrams(DatagramFlow { largest: None, mean_size: mean, .. }) => {
                let mut stack =
                    Stack::of_datagrams(class, (mean * MOST_MEANS).min(Bytes::new(MOST_MTU)), ip)?;
                stack.remarks.push(format!(
                    "class `{}`: exponential sizes are limited to those that packets can have, {} to {} bytes",
                    class.name,
                    udp_header(ip),
                    stack.mtu
                ));
                Ok(stack)
            }
        }
    }

    fn of_datagrams(class: &ClassPlan, most: Bytes, ip: IpVersion) -> Result<Self, LiveError> {
        let (header, least) = (udp_header(ip), least_mtu(ip));
        if most.get() > MOST_MTU {
            return Err(LiveError::Unsupported(format!(
                "class `{}` sends packets of {most}, but no packet may exceed {MOST_MTU} bytes",
                class.name
            )));
        }
        if most.get() < u64::from(header) {
            return Err(LiveError::Unsupported(format!(
                "class `{}` sends packets of {most}, but IP and UDP headers alone take {header} bytes",
                class.name
            )));
        }
        let mtu = (most.get() as u32).max(least);
        let metrics = Metrics::default();
        Ok(Stack { mtu, sysctls: Vec::new(), metrics, tcp: None, remarks: Vec::new() })
    }

    fn of_connections(class: &ClassPlan, tcp: &Profile, settings: &Settings, ip: IpVersion) -> Self {
        let timestamps = tcp.header >= TCP_IPV4 + TIMESTAMPS;
        let options = if timestamps { TIMESTAMPS } else { 0 };
        let header = tcp_header(ip) + options;
        let mtu = (tcp.mss + header).max(least_mtu(ip));
        let mut remarks = kernels_own(class, settings);
        if tcp.header != header {
            remarks.push(format!(
                "class `{}`: segments have headers of {header} bytes, not of {} as `header` states",
                class.name, tcp.header
            ));
        }
        let translation = Translation { class, tcp, remarks: &mut remarks };
        let (sysctls, metrics) = translation.settings(timestamps);
        let tcp = TcpSockets {
            congestion: settings.get("congestion").map(ToString::to_string).unwrap_or_default(),
            max_segment: (tcp.mss + header < mtu).then_some(tcp.mss + options),
            receive_window: metrics.receive_window,
            no_delay: !tcp.nagle,
            dscp: class.dscp,
        };
        Stack { mtu, sysctls, metrics, tcp: Some(tcp), remarks }
    }

    /// Returns the sizes of the packets of a class of datagrams.
    pub fn datagrams(&self, ip: IpVersion) -> Datagrams {
        Datagrams { header: udp_header(ip), most: self.mtu }
    }
}

/// Returns the settings that apply to the sockets of programs, which are not opened by this process.
fn for_programs(tcp: &TcpSockets) -> [Sysctl; 3] {
    [
        Sysctl::new("ipv4/tcp_congestion_control", &tcp.congestion),
        // Any program may listen on any port, and send echoes.
        Sysctl::new("ipv4/ip_unprivileged_port_start", 0),
        Sysctl::new("ipv4/ping_group_range", "0 0"),
    ]
}

/// A profile that is being converted to settings.
struct Translation<'a> {
    class: &'a ClassPlan,
    tcp: &'a Profile,
    remarks: &'a mut Vec<String>,
}

impl Translation<'_> {
    fn settings(mut self, timestamps: bool) -> (Vec<Sysctl>, Metrics) {
        let tcp = self.tcp;
        let flag = |on: bool| u8::from(on);
        let mut sysctls = vec![
            Sysctl::wanted("ipv4/tcp_ecn", ecn_mode(tcp), "ECN follows the kernel's setting"),
            // Kernels before Linux 6.18 have no AccECN, and thus no such setting.
            Sysctl::new("ipv4/tcp_ecn_option", if tcp.ecn_option == EcnOption::Nothing { 0 } else { 2 }),
            Sysctl::new("ipv4/tcp_ecn_fallback", flag(tcp.ecn_fallback != EcnFallback::Off)),
            Sysctl::wanted(
                "ipv4/tcp_sack",
                flag(tcp.recovery == Recovery::Sack),
                "SACK follows the kernel's setting",
            ),
            // RACK can be switched off only in kernels before Linux 6.17.
            Sysctl::new("ipv4/tcp_recovery", flag(tcp.rack)),
            Sysctl::new("ipv4/tcp_early_retrans", 3 * flag(tcp.tail_loss_probe)),
            Sysctl::new("ipv4/tcp_frto", 2 * flag(tcp.frto)),
            Sysctl::new(
                "ipv4/tcp_comp_sack_nr",
                if tcp.sack_delay.is_zero() { 0 } else { tcp.sack_delay_most },
            ),
            Sysctl::new("ipv4/tcp_comp_sack_delay_ns", tcp.sack_delay.as_ns()),
            Sysctl::new("ipv4/tcp_comp_sack_slack_ns", tcp.sack_delay_slack.as_ns()),
            Sysctl::wanted("ipv4/tcp_timestamps", flag(timestamps), "timestamps follow the kernel's setting"),
            Sysctl::new("ipv4/tcp_slow_start_after_idle", flag(tcp.idle_restart != IdleRestart::Off)),
            Sysctl::new("ipv4/tcp_reordering", tcp.dupthresh.max(1)),
            Sysctl::new("ipv4/tcp_max_reordering", tcp.dupthresh.max(1)),
            Sysctl::new("ipv4/tcp_syn_retries", tcp.syn_retries.clamp(1, 127)),
            Sysctl::new("ipv4/tcp_retries2", tcp.data_retries.clamp(1, 255)),
            // With auto-tuning of receive buffers, the window grows with the buffer, even beyond
            // the route's `window` metric.
            Sysctl::new("ipv4/tcp_moderate_rcvbuf", flag(window(tcp) >= ANY_RECEIVE_WINDOW)),
            Sysctl::wanted(
                "ipv4/tcp_rmem",
                receive_buffers(tcp),
                "receive buffers follow the kernel's setting",
            ),
        ];
        sysctls.extend(self.max_rto());
        self.variants(timestamps);
        let metrics = Metrics {
            initial_window: Some(tcp.initial_window as u32),
            // Twice the sender's initial congestion window, so that the initial receive window
            // never limits the sender.
            initial_receive_window: Some((2 * tcp.initial_window as u32).max(20)),
            receive_window: Some(window(tcp)).filter(|&bytes| bytes < ANY_RECEIVE_WINDOW),
            min_rto_ms: Some((tcp.min_rto.as_ns().div_ceil(1_000_000) as u32).max(1)),
            quick_ack: tcp.ack_every == 1,
        };
        (sysctls, metrics)
    }

    /// Returns the setting of the maximum timeout, for which Linux 6.15 and later accept values
    /// from 1 to 120 s.
    fn max_rto(&mut self) -> Option<Sysctl> {
        let ms = self.tcp.max_rto.as_ns().div_ceil(1_000_000);
        if ms > 120_000 {
            self.remark(format!("`max_rto` is {}, but kernels allow at most 120s", self.tcp.max_rto));
        }
        let value = ms.clamp(1_000, 120_000);
        // Kernels without the setting use 120 s.
        (value != 120_000)
            .then(|| Sysctl::wanted("ipv4/tcp_rto_max_ms", value, "timeouts are backed off up to 120s"))
    }

    /// Adds remarks on settable parameters whose values have no equivalent in a kernel.
    fn variants(&mut self, timestamps: bool) {
        let tcp = self.tcp;
        let blocks = if timestamps { 3 } else { 4 };
        if tcp.recovery == Recovery::Sack && tcp.sack_blocks != blocks {
            self.remark(format!("`sack_blocks` is {}, but kernels send up to {blocks}", tcp.sack_blocks));
        }
        if tcp.increase == Increase::ByteCounting && tcp.abc_limit < NO_ABC_LIMIT {
            self.remark(format!("`abc_limit` is {}, but kernels have no limit", tcp.abc_limit));
        }
        match tcp.recovery {
            Recovery::Reno => self.remark("`recovery` is `reno`, but without SACK, kernels use NewReno"),
            Recovery::Tahoe => self.remark("`recovery` is `tahoe`, but without SACK, kernels use NewReno"),
            Recovery::Sack if !tcp.rack => self.remark(
                "losses are detected by the kernel's own rules for SACK: RFC 6675 before Linux 6.17, RACK (RFC 8985) since then",
            ),
            Recovery::Sack | Recovery::NewReno => {}
        }
        if tcp.ecn_fallback == EcnFallback::TimeoutOrReset {
            self.remark("`ecn_fallback` is `timeout_or_reset`, but kernels react only to timeouts");
        }
        if !matches!(tcp.idle_restart, IdleRestart::Off | IdleRestart::Rfc2861) {
            self.remark(format!(
                "`idle_restart` is `{}`, but kernels have only `rfc2861` and `off`, so `rfc2861` applies",
                tcp.idle_restart.word()
            ));
        }
        if tcp.rtt_arithmetic != RttArithmetic::Linux && tcp.granularity != tcp.min_rto {
            self.remark(format!(
                "`granularity` ({}) differs from `min_rto` ({}), but a kernel has one value for both: SRTT + max({}, 4 RTTVAR)",
                tcp.granularity, tcp.min_rto, tcp.min_rto
            ));
        }
        if tcp.ack_every > 2 {
            self.remark(format!(
                "`ack_every` is {}, but kernels acknowledge every second segment",
                tcp.ack_every
            ));
        }
    }

    fn remark(&mut self, what: impl AsRef<str>) {
        self.remarks.push(format!("class `{}`: {}", self.class.name, what.as_ref()));
    }
}

/// Returns the maximum number of bytes in flight, which the receiver enforces: the smaller of the congestion
/// window's limit and the receive window. (The route's metric for the congestion window is useless: the
/// kernel applies it only with stored metrics of earlier connections.)
fn window(tcp: &Profile) -> u32 {
    let senders = if tcp.max_window < ANY_WINDOW { tcp.max_window.saturating_mul(tcp.mss) } else { u32::MAX };
    tcp.receive_window.min(senders)
}

/// Returns the minimum, default and maximum size of receive buffers. The default is a multiple of the receive
/// window, because a kernel counts its own overhead against the buffer. If the window of a class is
/// unlimited, the default is the kernel's usual one, and the buffers grow.
fn receive_buffers(tcp: &Profile) -> String {
    const USUAL: u64 = 131_072;
    const LARGEST: u64 = 64 << 20;
    let limited = window(tcp) < ANY_RECEIVE_WINDOW;
    let default = if limited { (4 * u64::from(window(tcp))).clamp(USUAL, LARGEST) } else { USUAL };
    format!("4096 {default} {LARGEST}")
}

/// Adds a remark for each parameter that the kernel decides, if the plan's value differs from the kernel's.
fn kernels_own(class: &ClassPlan, settings: &Settings) -> Vec<String> {
    let mut linux = profile_settings("linux").expect("there is a profile `linux`");
    for told in [Profile::congestion().name(), Profile::ecn().name(), Profile::recovery().name()] {
        let value = settings.get(told).expect("the plan has every parameter").clone();
        linux.set(told, value, Origin::Given);
    }
    Profile::resolve(&mut linux).expect("the plan's settings resolve in any profile");
    // What follows from another parameter is remarked on once, with that parameter.
    let follows = |name: &str| {
        let implied = Profile::TABLE.iter().any(|param| param.name == name && param.implied);
        implied && settings.iter().any(|of| of.name == name && matches!(of.origin, Origin::Derived(_)))
    };
    let own = |name: &str| is_kernels_own(name) && is_used(name, settings) && !follows(name);
    let differ = linux.iter().filter(|setting| own(setting.name)).filter_map(|kernel| {
        let plan = settings.get(kernel.name)?;
        (*plan != kernel.value).then(|| {
            format!(
                "class `{}`: `{}` is `{plan}`, but a kernel has no setting for it; Linux is known to use `{}`",
                class.name, kernel.name, kernel.value
            )
        })
    });
    differ.collect()
}

/// Returns whether a parameter applies to the congestion control in use.
fn is_used(name: &str, settings: &Settings) -> bool {
    let control = settings.get("congestion").expect("the plan has every parameter").to_string();
    ["cubic", "dctcp", "prague"].iter().all(|owner| !name.starts_with(owner) || control == *owner)
}

fn is_kernels_own(name: &str) -> bool {
    !SETTABLE.contains(&name) && !SET_WITH_OTHERS.contains(&name) && !WITHOUT_EFFECT.contains(&name)
}

/// Returns the value of `net.ipv4.tcp_ecn`: 3 requests AccECN, 1 the classic echo.
fn ecn_mode(tcp: &Profile) -> u8 {
    match (tcp.ecn, tcp.ecn_feedback) {
        (false, _) => 0,
        (true, EcnFeedback::Classic) => 1,
        (true, EcnFeedback::Accurate) => 3,
    }
}

const fn tcp_header(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::V4 => TCP_IPV4,
        IpVersion::V6 => TCP_IPV4 + 20,
    }
}

const fn udp_header(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::V4 => 28,
        IpVersion::V6 => 48,
    }
}

const fn least_mtu(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::V4 => LEAST_MTU_IPV4,
        IpVersion::V6 => LEAST_MTU_IPV6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(tcp: &str) -> ClassPlan {
        let text = format!(
            "title = \"t\"\nduration = \"1s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = {{ kind = \"droptail\", limit = \"9p\" }} }}\n\
             [[traffic]]\nname = \"c\"\n{tcp}\n"
        );
        aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms[0].classes[0].clone()
    }

    fn stack(tcp: &str) -> Stack {
        Stack::of(&class(&format!("kind = \"bulk\"\ntcp = {{ {tcp} }}")), IpVersion::V4).unwrap()
    }

    fn sysctl<'a>(stack: &'a Stack, name: &str) -> Option<&'a str> {
        stack.sysctls.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }

    #[test]
    fn each_parameter_is_told_or_the_kernels_own_or_without_effect() {
        let listed = [SETTABLE, SET_WITH_OTHERS, WITHOUT_EFFECT].concat();
        for name in &listed {
            assert_eq!(listed.iter().filter(|n| n == &name).count(), 1, "{name}");
        }
    }

    #[test]
    fn the_profile_of_kernels_needs_no_remark() {
        let stack = stack("profile = \"linux\"");
        assert_eq!(stack.mtu, 1500);
        let tcp = stack.tcp.as_ref().unwrap();
        assert_eq!((tcp.congestion.as_str(), tcp.max_segment, tcp.no_delay), ("reno", None, false));
        for (name, value) in [
            ("ipv4/tcp_ecn", "0"),
            ("ipv4/tcp_sack", "1"),
            ("ipv4/tcp_recovery", "1"),
            ("ipv4/tcp_early_retrans", "3"),
            ("ipv4/tcp_frto", "2"),
            ("ipv4/tcp_timestamps", "1"),
            ("ipv4/tcp_slow_start_after_idle", "1"),
            ("ipv4/tcp_ecn_fallback", "1"),
            ("ipv4/tcp_syn_retries", "6"),
            ("ipv4/tcp_retries2", "15"),
            ("ipv4/tcp_comp_sack_nr", "44"),
            ("ipv4/tcp_comp_sack_delay_ns", "1000000"),
            ("ipv4/tcp_comp_sack_slack_ns", "100000"),
        ] {
            assert_eq!(sysctl(&stack, name), Some(value), "{name}");
        }
        assert_eq!(sysctl(&stack, "ipv4/tcp_rto_max_ms"), None);
        assert_eq!((stack.metrics.initial_window, stack.metrics.min_rto_ms), (Some(10), Some(200)));
        assert_eq!(stack.metrics.receive_window, Some(6_291_456));
        assert!(stack.remarks.is_empty(), "{:?}", stack.remarks);
    }

    #[test]
    fn the_congestion_control_reaches_the_sockets_by_its_name() {
        for (feedback, mode) in [("classic", "1"), ("accurate", "3")] {
            let stack = stack(&format!("profile = \"linux\", ecn = true, ecn_feedback = \"{feedback}\""));
            assert_eq!(sysctl(&stack, "ipv4/tcp_ecn"), Some(mode));
        }
        for name in ["reno", "cubic", "bbr", "dctcp"] {
            let stack = stack(&format!("profile = \"linux\", congestion = \"{name}\", ecn = true"));
            assert_eq!(stack.tcp.as_ref().unwrap().congestion, name);
            let concerns = |r: &String| r.contains("cubic") || r.contains("slow_start_exit");
            assert!(!stack.remarks.iter().any(concerns), "{:?}", stack.remarks);
        }
        let own = stack("profile = \"linux\", congestion = \"cubic\", cubic_beta = 0.8");
        let remark = "class `c`: `cubic_beta` is `0.8`, but a kernel has no setting for it; Linux is known to use `0.7`";
        assert!(own.remarks.iter().any(|r| r == remark), "{:?}", own.remarks);
    }

    #[test]
    fn the_standards_profile_is_told_as_far_as_it_can_be() {
        let stack = stack(
            "profile = \"rfc\", mss = \"960B\", ecn = true, ack_every = 1, max_window = 32, nagle = false",
        );
        assert_eq!(stack.mtu, 1000, "packets as long as in the simulator");
        for name in ["tcp_timestamps", "tcp_recovery", "tcp_early_retrans", "tcp_frto", "tcp_comp_sack_nr"] {
            assert_eq!(sysctl(&stack, &format!("ipv4/{name}")), Some("0"), "{name}");
        }
        assert_eq!(
            (sysctl(&stack, "ipv4/tcp_ecn"), sysctl(&stack, "ipv4/tcp_ecn_fallback")),
            (Some("1"), Some("0"))
        );
        assert_eq!(sysctl(&stack, "ipv4/tcp_sack"), Some("0"));
        assert_eq!(sysctl(&stack, "ipv4/tcp_rto_max_ms"), Some("60000"));
        assert_eq!(stack.metrics.min_rto_ms, Some(1000));
        assert_eq!((stack.metrics.receive_window, stack.metrics.quick_ack), (Some(32 * 960), true));
        assert!(stack.tcp.as_ref().unwrap().no_delay);
        let remarks = stack.remarks.join("\n");
        for parameter in ["`increase`", "`delayed_ack`", "`recovery_exit`", "`ecn_at_one`", "`granularity`"] {
            assert!(remarks.contains(parameter), "{parameter} in\n{remarks}");
        }
        for parameter in
            ["`mss`", "`ecn`", "`sack_blocks`", "`min_rto` is", "`header`", "`initial_window`", "`dupthresh`"]
        {
            assert!(!remarks.contains(parameter), "{parameter} in\n{remarks}");
        }
    }

    #[test]
    fn small_windows_and_headers_of_other_lengths() {
        let freebsd = stack("profile = \"freebsd4\"");
        // 11 segments of 1460 bytes are less than 16 KB.
        assert_eq!(freebsd.metrics.receive_window, Some(16_060));
        assert_eq!(freebsd.metrics.min_rto_ms, Some(1000));
        let ns2 = stack("profile = \"ns2\"");
        assert_eq!((ns2.mtu, ns2.metrics.quick_ack), (1040, true));
        let odd = stack("profile = \"rfc\", header = \"60B\"");
        assert_eq!(odd.mtu, 1460 + 52);
        assert!(odd.remarks.iter().any(|remark| remark.contains("52 bytes")), "{:?}", odd.remarks);
    }

    #[test]
    fn where_the_mtu_cannot_say_the_segment_size_an_option_does() {
        let class = class("kind = \"bulk\"\ntcp = { profile = \"linux\", mss = \"500B\" }");
        let stack = Stack::of(&class, IpVersion::V6).unwrap();
        assert_eq!(stack.mtu, 1280);
        // This includes the timestamps, whose bytes the kernel subtracts again.
        assert_eq!(stack.tcp.unwrap().max_segment, Some(512));
    }

    #[test]
    fn datagrams_have_the_sizes_of_the_plan() {
        let cbr = class("kind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"1000B\"");
        let stack = Stack::of(&cbr, IpVersion::V4).unwrap();
        assert_eq!((stack.mtu, stack.datagrams(IpVersion::V4).payload(Bytes::new(1000))), (1000, 972));
        let sizes = Stack::of(&cbr, IpVersion::V6).unwrap().datagrams(IpVersion::V6);
        assert_eq!((sizes.payload(Bytes::new(1000)), sizes.payload(Bytes::new(3))), (952, 0));
        let tiny = class("kind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"28B\"");
        assert_eq!(Stack::of(&tiny, IpVersion::V4).unwrap().mtu, LEAST_MTU_IPV4);
        let refusal = Stack::of(&tiny, IpVersion::V6).unwrap_err().to_string();
        assert!(refusal.contains("48 bytes"), "{refusal}");
    }
}
