//! Description of the machine of a live run: kernel, processors, clock, and other load during the
//! run.
//!
//! Everything is read from `/proc` and `/sys`, below a root directory, so that tests can supply
//! other machines. Values that a machine does not report are `None` here and `null` in the
//! manifest.

use std::fs;
use std::path::PathBuf;

use aqmlab_recording::live::MachineFacts;
use aqmlab_units::Span;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_getres};

/// Processor time since boot, summed over all processors, in ticks of `/proc/stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessorTime {
    /// Total time, including idle time.
    pub total: u64,
    /// Time taken by other guests of the same hypervisor while this guest was ready to run.
    pub stolen: u64,
}

impl ProcessorTime {
    /// Reads the first line of `/proc/stat`, which contains the times user, nice, system, idle,
    /// iowait, irq, softirq and steal (proc(5)). Guest time is already part of user time.
    fn of_stat(stat: &str) -> Option<Self> {
        const STEAL: usize = 7;
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let stolen = *ticks.get(STEAL)?;
        Some(ProcessorTime { total: ticks[..=STEAL].iter().sum(), stolen })
    }

    /// Returns the share of the time since `before` that was stolen, in percent; `None` if no tick has
    /// passed.
    pub fn stolen_percent_since(self, before: ProcessorTime) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|ticks| *ticks > 0)?;
        Some(100.0 * self.stolen.saturating_sub(before.stolen) as f64 / total as f64)
    }
}

/// A machine, as its `/proc` and `/sys` describe it.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// Returns this machine.
    pub fn this() -> Self {
        Machine::below("/")
    }

    /// Returns a machine whose `/proc` and `/sys` are below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Machine { root: root.into() }
    }

    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Returns the kernel's release, such as `6.18.5`.
    pub fn kernel(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// The first two numbers of the kernel's release.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel()?;
        let mut numbers = release.split(['.', '-']).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// Memory that programs may still allocate, in bytes.
    pub fn available_memory(&self) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Returns the kernel's clock source, such as `tsc`.
    pub fn clocksource(&self) -> Option<String> {
        self.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    }

    /// Returns the frequency governor of the first processor, such as `performance`. A guest has no governor
    /// if its host controls the frequency.
    pub fn governor(&self) -> Option<String> {
        self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    }

    /// Mean number, over the last minute, of threads that were ready to run or waiting for a disk.
    pub fn load(&self) -> Option<f64> {
        self.text("proc/loadavg")?.split_whitespace().next()?.parse().ok()
    }

    /// Processor time so far.
    pub fn processor_time(&self) -> Option<ProcessorTime> {
        ProcessorTime::of_stat(&self.text("proc/stat")?)
    }

    /// Names of the congestion controls that are loaded.
    pub fn congestion_controls(&self) -> Vec<String> {
        let names = self.text("proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        names.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the share of a processor's time that real-time threads may use, in percent; the
    /// kernel suspends threads that exceed it. `None` if there is no such limit.
    pub fn real_time_share_percent(&self) -> Option<f64> {
        let runtime: i64 = self.number("proc/sys/kernel/sched_rt_runtime_us")?;
        let period: i64 = self.number("proc/sys/kernel/sched_rt_period_us")?;
        (runtime >= 0 && period > 0).then(|| 100.0 * runtime as f64 / period as f64)
    }

    /// Returns whether the kernel runs on a hypervisor, which may take processors away without notice.
    pub fn is_guest(&self) -> Option<bool> {
        let flags = self.text("proc/cpuinfo")?;
        let flags = flags.lines().find(|line| line.starts_with("flags"))?;
        Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
    }

    /// Returns the facts about the machine that a manifest records. `before` is the processor time at the
    /// beginning of the run.
    pub fn facts(&self, before: Option<ProcessorTime>) -> MachineFacts {
        let stolen = before.zip(self.processor_time()).and_then(|(then, now)| now.stolen_percent_since(then));
        MachineFacts {
            kernel: self.kernel(),
            architecture: std::env::consts::ARCH,
            processors: processors(),
            is_guest: self.is_guest(),
            clocksource: self.clocksource(),
            tick_ns: tick().as_ns(),
            governor: self.governor(),
            load: self.load(),
            stolen_percent: stolen,
            real_time_share_percent: self.real_time_share_percent(),
            congestion_controls: self.congestion_controls(),
        }
    }
}

/// Returns the number of processors that this process may use.
pub fn processors() -> Option<usize> {
    std::thread::available_parallelism().ok().map(Into::into)
}

/// Returns the kernel's tick, 1/HZ, which is by definition the resolution of its coarse clocks.
pub fn tick() -> Span {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    Span::ns(resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64)
}

/// The highest real-time priority that the process may assign; `None` means any.
pub fn real_time_priority_limit() -> Option<u64> {
    getrlimit(Resource::Rtprio).current
}

/// The number of files that a process may have open; `None` means unlimited.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a machine with the files given as pairs of path and text.
    fn machine(name: &str, texts: &[(&str, &str)]) -> Machine {
        let root = std::env::temp_dir().join(format!("aqmlab-machine-{}-{name}", std::process::id()));
        for (path, text) in texts {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Machine::below(root)
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let facts = Machine::below("/nowhere").facts(None);
        assert_eq!((facts.kernel, facts.clocksource, facts.governor), (None, None, None));
        assert_eq!((facts.load, facts.stolen_percent, facts.is_guest), (None, None, None));
        assert!(facts.congestion_controls.is_empty());
    }

    #[test]
    fn what_is_there_is_read() {
        let machine = machine(
            "whole",
            &[
                ("proc/sys/kernel/osrelease", "5.10.0-28-amd64\n"),
                ("proc/stat", "cpu  100 0 50 800 10 0 5 35 7 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
                ("proc/loadavg", "7.25 3.00 1.00 2/500 12345\n"),
                ("proc/meminfo", "MemTotal:       8000 kB\nMemFree:  1 kB\nMemAvailable:   2048 kB\n"),
                ("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor sse\n"),
                ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
                ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
                ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n"),
                ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ],
        );
        assert_eq!(machine.kernel_version(), Some((5, 10)));
        // Guest time, in the last two columns, is already counted in the first two.
        assert_eq!(machine.processor_time(), Some(ProcessorTime { total: 1000, stolen: 35 }));
        assert_eq!(machine.load(), Some(7.25));
        assert_eq!(machine.available_memory(), Some(2 << 20));
        assert_eq!(machine.is_guest(), Some(true));
        assert_eq!(machine.real_time_share_percent(), Some(95.0));
        assert_eq!(machine.congestion_controls(), ["reno", "cubic"]);
        let facts = machine.facts(Some(ProcessorTime { total: 800, stolen: 25 }));
        assert_eq!((facts.stolen_percent, facts.governor), (Some(5.0), None));
        fs::remove_dir_all(machine.root).unwrap();
    }

    #[test]
    fn a_real_time_limit_of_minus_one_is_none() {
        let machine = machine(
            "unlimited",
            &[
                ("proc/sys/kernel/sched_rt_runtime_us", "-1"),
                ("proc/sys/kernel/sched_rt_period_us", "1000000"),
            ],
        );
        assert_eq!(machine.real_time_share_percent(), None);
        fs::remove_dir_all(machine.root).unwrap();
    }

    #[test]
    fn stolen_time_needs_time_to_have_passed() {
        let at = |total, stolen| ProcessorTime { total, stolen };
        assert_eq!(at(100, 5).stolen_percent_since(at(100, 5)), None);
        assert_eq!(at(90, 5).stolen_percent_since(at(100, 5)), None);
        assert_eq!(at(200, 30).stolen_percent_since(at(100, 5)), Some(25.0));
        assert_eq!(ProcessorTime::of_stat("cpu 1 2 3"), None, "too old to report it");
        assert_eq!(ProcessorTime::of_stat(""), None);
    }

    #[test]
    fn the_tick_is_one_that_kernels_have() {
        let hz = 1_000_000_000 / tick().as_ns();
        assert!((24..=1200).contains(&hz), "{hz}");
    }
}
