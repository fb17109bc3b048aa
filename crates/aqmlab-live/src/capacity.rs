//! Packets per second that this machine can carry, measured just before a run and compared with the number
//! that the hosts of the run's plan send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use aqmlab_scenario::{Carries, Plan, Tcp};
use aqmlab_units::{Bytes, Instant, Span};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::data_plane::{Clock, Device};
use crate::error::LiveError;
use crate::frame::offload;
use crate::host::{Attached, Hosts};
use crate::threads::spawn;
use crate::traffic::{Generator, RunEnd};

/// A network of two hosts whose packets are forwarded immediately, in both directions.
const PLAN: &str = r#"
title = "capacity"
duration = "200ms"
topology = { kind = "dumbbell", rate = "10Gbit", delay = "0s", queue = { kind = "droptail", limit = "1000p" } }
[[traffic]]
name = "tcp"
kind = "bulk"
count = 2
tcp = { profile = "linux" }
"#;

/// Maximum share of the time during which the router may be busy: a busier thread falls behind at the
/// slightest disturbance, and the kernel stops a real-time thread that exceeds 95 %.
pub const MOST_DUTY: f64 = 0.7;

/// Capacity of this machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Capacity {
    /// Number of packets carried during the measurement.
    pub packets: u64,
    /// Processor time per packet: for reading it, for writing it, and for the work that the
    /// receiving host's kernel does during the write.
    pub per_packet: Span,
    /// Processor time for falling asleep and waking up again.
    pub per_wake: Span,
    /// Time that a packet in a busy router waits for others, so that they are written together.
    pub gather: Span,
    /// Whether the capacity was measured with offloads.
    pub offload: bool,
}

impl Capacity {
    /// Returns the number of packets per second that the router carries with this share of a processor.
    ///
    /// When packets come one by one, the router wakes for each departure and for every second
    /// arrival; the other arrivals are responses to packets that it has just written, and need no
    /// wake-up. (For example, at 250 Mbit/s, on a machine with 4.3 us per packet and 9.6 us per
    /// wake-up, this adds up to 18.7 us per packet.) At higher rates, packets that leave within
    /// `gather` of each other are written together: the router then wakes 2.25 times per interval
    /// of length `gather`, on average, and its own work for each packet becomes significant. With
    /// offloads, a packet costs more in a run than in the measurement, because a run's
    /// super-segments are shorter.
    ///
    /// On a machine with 3 us per packet, 17 us per wake-up and a `gather` of 100 us, the router took 54, 67,
    /// 70 and 76 % of a processor at 37, 50, 62 and 87 thousand packets per second. With offloads and 0.45 us
    /// per packet, it took 38, 49, 61, 65 and 70 % at 36, 55, 99, 142 and 185 thousand packets per second.
    fn rate_at(&self, share: f64) -> f64 {
        let (per_packet, per_wake) = (self.per_packet.as_secs_f64(), self.per_wake.as_secs_f64());
        let one_by_one = share / (per_packet + 1.5 * per_wake);
        let in_run = per_packet * if self.offload { 4.0 } else { 1.5 };
        let gathered = (share - 2.25 * per_wake / self.gather.as_secs_f64()) / in_run;
        one_by_one.max(gathered)
    }

    /// Returns the number of packets per second that the router carries with a whole processor.
    pub fn packets_per_s(&self) -> f64 {
        self.rate_at(1.0)
    }

    /// Returns the maximum number of packets per second that the hosts of a plan may send.
    pub fn limit(&self) -> f64 {
        self.rate_at(MOST_DUTY)
    }

    /// Checks that the plan stays within [`Capacity::limit`].
    ///
    /// # Errors
    /// If it does not; the error states the plan's rate and the limit.
    pub fn check(&self, plan: &Plan) -> Result<(), LiveError> {
        let (demand, limit) = (demand(plan), self.limit());
        if demand <= limit {
            return Ok(());
        }
        Err(LiveError::Machine {
            what: format!(
                "the scenario sends up to {demand:.0} packets per second, but the machine carries only {limit:.0} ({:.1} us per packet, {:.0} % \
                 of a processor)",
                MOST_DUTY / limit * 1e6,
                100.0 * MOST_DUTY
            ),
            remedy: match self.offload {
                false => "lower the rate, choose larger segments, set `live.offload`, or run it anyway with `--force`",
                true => "lower the rate, choose larger segments, or run it anyway with `--force`",
            }
            .into(),
        })
    }
}

/// Returns the maximum number of packets per second that the hosts of a plan send, acknowledgments
/// included.
///
/// Connections send no faster than the first and last links on the paths of their data allow. Other
/// sources send at their own rates. Sources with pauses count as if they never paused, because all
/// of them may be on at the same time.
pub fn demand(plan: &Plan) -> f64 {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let (mut others, mut acks_per_segment) = (0.0, 0.0f64);
    for class in &plan.classes {
        match class.traffic.carries() {
            Carries::Datagrams(of) => {
                let rate = of.rate.or(of.mean_rate).map_or(0.0, |rate| rate.packets_per_s(of.mean_size));
                others += class.count as f64 * rate;
            }
            Carries::Stream(Tcp { profile: tcp, .. })
            | Carries::Sessions(Tcp { profile: tcp, .. })
            | Carries::Programs(Tcp { profile: tcp, .. }) => {
                acks_per_segment = acks_per_segment.max(1.0 / f64::from(tcp.ack_every));
                let segment = Bytes::new(u64::from(tcp.mss + tcp.header));
                let most = |&link: &usize| (link, plan.links[link].rate.packets_per_s(segment));
                for way in class.ways_of_data() {
                    first.extend(way.first().map(most));
                    last.extend(way.last().map(most));
                }
            }
        }
    }
    others + f64::min(over_links(first), over_links(last)) * (1.0 + acks_per_segment)
}

/// Returns the sum of the links' rates, with each link counted once, at its highest rate.
fn over_links(mut rates: Vec<(usize, f64)>) -> f64 {
    rates.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    rates.dedup_by_key(|(link, _)| *link);
    rates.iter().map(|(_, rate)| rate).sum()
}

/// Measures the capacity, in at most a fifth of a second, with connections between the two hosts of
/// [`plan`].
///
/// # Errors
/// If the machine refuses a necessary operation.
pub fn measure(plan: &Plan, hosts: &Hosts, tuns: &mut [Attached]) -> Result<Capacity, LiveError> {
    let clock = Clock::start();
    let run_end = RunEnd::new(Instant::ZERO + plan.stop.at);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let generator = spawn(scope, "the traffic", || drive(plan, hosts, clock, &run_end, &ended))?;
        let count = if plan.live.offload { offload::packets_in } else { |_: &[u8]| 1 };
        let carried = carry(tuns, &ended, ENOUGH, count);
        generator.join().expect("the generator does not panic")?;
        let carried = carried?;
        if carried.packets == 0 {
            return Err(LiveError::Machine {
                what: "no packet came through its TUN devices in 200 ms".into(),
                remedy: "see `aqmlab doctor`".into(),
            });
        }
        let per_packet = carried.processor_time.div(carried.packets);
        let (gather, offload) = (Span::ZERO, plan.live.offload);
        Ok(Capacity { packets: carried.packets, per_packet, per_wake: wake()?, gather, offload })
    })
}

/// Measures the processor time that a short sleep takes, as the mean over a few hundred sleeps.
fn wake() -> Result<Span, LiveError> {
    const SLEEPS: u64 = 300;
    const A_MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
    let io = |error: rustix::io::Errno| LiveError::io("wait for", "nothing")(error.into());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io)?;
    let mut nothing = Vec::with_capacity(1);
    let before = Clock::thread_time();
    for _ in 0..SLEEPS {
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut nothing), Some(&A_MOMENT)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io(error)),
        }
    }
    Ok(Clock::thread_time().saturating_sub(before).div(SLEEPS))
}

/// Returns the plan of a network of two hosts, with or without offloads.
pub fn plan(offload: bool) -> Plan {
    let mut experiment =
        aqmlab_scenario::parse(PLAN, "capacity").expect("the built-in scenario is a valid plan");
    let mut plan = experiment.arms.remove(0);
    plan.live.offload = offload;
    plan
}

/// Ends [`carry`] when dropped, which happens as soon as the traffic has ended, either normally or by a
/// panic.
#[derive(Debug)]
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Packets that [`carry`] has carried, and the time that this took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapacityTrial {
    /// Packets.
    pub packets: u64,
    /// Processor time that the packets took.
    pub processor_time: Span,
    /// Longest time between two polls of the devices: 5 ms if nothing arrives, and more on a busy machine.
    pub longest_gap: Span,
}

fn drive(
    plan: &Plan,
    hosts: &Hosts,
    clock: Clock,
    run_end: &RunEnd,
    ended: &AtomicBool,
) -> Result<(), LiveError> {
    let _ending = Ending(ended);
    Generator::new(plan, 1, hosts, clock, run_end).and_then(Generator::run).map(|_| ())
}

/// Number of packets beyond which the mean becomes no more accurate. (Without this limit, the loop
/// would never end where work takes no processor time, as in a kernel in virtual time.)
const ENOUGH: u64 = 10_000;

/// Carries packets from one device to the other without delay, until the traffic has ended or at
/// least `enough` packets have passed. `count` returns the number of packets in the data of one read.
///
/// # Errors
/// Any error from the operating system.
pub fn carry(
    tuns: &mut [Attached],
    ended: &AtomicBool,
    enough: u64,
    count: fn(&[u8]) -> u64,
) -> Result<CapacityTrial, LiveError> {
    const A_WHILE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    let io =
        |operation| move |error: rustix::io::Errno| LiveError::io(operation, "a TUN device")(error.into());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io("watch"))?;
    for (number, tun) in tuns.iter().enumerate() {
        epoll::add(&epoll, tun.fd(), EventData::new_u64(number as u64), EventFlags::IN)
            .map_err(io("watch"))?;
    }
    let mut frame = vec![0; offload::HEADER + offload::LONGEST];
    let (mut packets, before) = (0, Clock::thread_time());
    let clock = Clock::start();
    let (mut looked, mut longest_gap) = (clock.now(), Span::ZERO);
    while !ended.load(Ordering::Acquire) && packets < enough {
        let mut events = Vec::with_capacity(2);
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&A_WHILE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io("watch")(error)),
        }
        let now = clock.now();
        longest_gap = longest_gap.max(now.saturating_since(looked));
        looked = now;
        for event in &events {
            let from = event.data.u64() as usize;
            packets +=
                pass_on(tuns, from, &mut frame, count).map_err(LiveError::io("read from", "a TUN device"))?;
        }
    }
    Ok(CapacityTrial { packets, processor_time: Clock::thread_time().saturating_sub(before), longest_gap })
}

/// Passes a few packets or super-segments from one device to the other; returns the number of packets.
fn pass_on(
    tuns: &mut [Attached],
    from: usize,
    frame: &mut [u8],
    count: fn(&[u8]) -> u64,
) -> std::io::Result<u64> {
    const PER_PASS: usize = 8;
    let mut packets = 0;
    for _ in 0..PER_PASS {
        let Some(length) = tuns[from].read(frame)? else { break };
        // A packet that the other host does not accept is lost, as on a link that is too slow.
        let _ = tuns[1 - from].write(&frame[..length]);
        packets += count(&frame[..length]);
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        aqmlab_scenario::parse(text, "test").unwrap().arms.remove(0)
    }

    const DUMBBELL: &str = r#"
title = "t"
duration = "10s"
topology = { kind = "dumbbell", rate = "12Mbit", delay = "1ms", queue = { kind = "droptail", limit = "100p" } }
[[traffic]]
name = "ftp"
kind = "bulk"
count = 7
tcp = { profile = "rfc", mss = "1460B", ack_every = 2 }
"#;

    #[test]
    fn all_connections_together_fill_the_link_and_acknowledge_every_second_segment() {
        // 12 Mbit/s is 1000 packets of 1500 bytes per second.
        assert!((demand(&plan(DUMBBELL)) - 1500.0).abs() < 1e-6, "{}", demand(&plan(DUMBBELL)));
    }

    #[test]
    fn classes_that_share_a_link_share_its_rate() {
        let second = DUMBBELL.split("[[traffic]]").nth(1).unwrap().replace("\"ftp\"", "\"more\"");
        let demand = demand(&plan(&format!("{DUMBBELL}\n[[traffic]]{second}")));
        assert!((demand - 1500.0).abs() < 1e-6, "{demand}");
    }

    #[test]
    fn sources_that_do_not_listen_send_at_their_rate() {
        let text = format!(
            "{DUMBBELL}\n[[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\ncount = 3\nrate = \"8Mbit\"\nsize = \"1000B\"\n"
        );
        assert!((demand(&plan(&text)) - 4500.0).abs() < 1e-6, "{}", demand(&plan(&text)));
    }

    #[test]
    fn sources_that_pause_count_as_if_they_were_on() {
        let text = format!(
            "{DUMBBELL}\n[[traffic]]\nname = \"voice\"\nkind = \"on_off_udp\"\ncount = 3\nrate = \"8Mbit\"\nsize = \"1000B\"\n\
             on = \"100ms\"\noff = \"300ms\"\n"
        );
        assert!((demand(&plan(&text)) - 4500.0).abs() < 1e-6, "{}", demand(&plan(&text)));
    }

    /// A trace's only file.
    struct Rows(&'static str);

    impl aqmlab_scenario::Files for Rows {
        fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
            Ok(format!("start_s,request_bytes,response_bytes\n{}", self.0).into())
        }
    }

    /// Returns a plan with a trace of connections, over links that have twice the rate in the reverse
    /// direction.
    fn traced(rows: &'static str) -> Plan {
        let text = DUMBBELL
            .replace("delay =", "reverse_rate = \"24Mbit\", delay =")
            .replace("kind = \"bulk\"\ncount = 7", "kind = \"trace\"\nfile = \"rows.csv\"");
        aqmlab_scenario::parse_within(&text, "test", Default::default(), &Rows(rows))
            .unwrap_or_else(|e| panic!("{e}"))
            .arms
            .remove(0)
    }

    #[test]
    fn answers_are_data_of_the_way_back() {
        for (rows, expected) in
            [("0.1,300,0\n", 1500.0), ("0.1,0,300\n", 3000.0), ("0.1,300,0\n0.2,1,300\n", 4500.0)]
        {
            let demand = demand(&traced(rows));
            assert!((demand - expected).abs() < 1e-6, "{rows}: {demand}");
        }
        // 1500 bytes at 12 and at 24 Mbit/s.
        let time_scales = |rows| crate::faithfulness::TimeScales::of(&traced(rows), Span::ms(2)).packet_time;
        assert_eq!((time_scales("0.1,300,0\n"), time_scales("0.1,1,300\n")), (Span::ms(1), Span::us(500)));
    }

    #[test]
    fn a_panic_ends_the_traffic_too() {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let generator = scope.spawn(|| {
                let _ending = Ending(&ended);
                std::panic::resume_unwind(Box::new("a defect"));
            });
            assert!(generator.join().is_err());
        });
        assert!(ended.load(Ordering::Acquire));
    }

    #[test]
    fn a_rate_above_the_limit_is_refused_with_both_figures() {
        let capacity = |per_packet| Capacity {
            packets: 1000,
            per_packet: Span::us(per_packet),
            per_wake: Span::us(100),
            gather: Span::us(150),
            offload: false,
        };
        let slow = capacity(350);
        let refusal = slow.check(&plan(DUMBBELL)).unwrap_err().to_string();
        assert!(refusal.contains("1500 packets") && refusal.contains("carries only 1400"), "{refusal}");
        assert!(refusal.contains("--force"), "{refusal}");
        let quick = capacity(310);
        assert!(quick.check(&plan(DUMBBELL)).is_ok());
    }

    /// A share of 0.7 - 2.25 * 17 / 100 of a processor is left for packets that take 1.8 us each.
    #[test]
    fn packets_that_are_written_together_wake_the_router_less_often() {
        let capacity = Capacity {
            packets: 1000,
            per_packet: Span::ns(450),
            per_wake: Span::us(17),
            gather: Span::us(100),
            offload: true,
        };
        assert!((capacity.limit() - 176_388.9).abs() < 1.0, "{}", capacity.limit());
        let never = Capacity { gather: Span::ZERO, ..capacity };
        assert!((never.limit() - 0.7 / 25.95e-6).abs() < 1.0, "{}", never.limit());
    }
}
