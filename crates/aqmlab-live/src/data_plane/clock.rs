//! The event loop's clock, which can also wait: the clock of this machine, or one scripted by a
//! test. Times are readings of CLOCK_MONOTONIC, counted from an origin.

use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use aqmlab_units::{Instant, Span};
use rustix::event::{Timespec as Timeout, epoll};
use rustix::io::Errno;

use crate::sys::clock_ns;

/// Time since an origin on CLOCK_MONOTONIC, which never jumps, even when the clock is adjusted. (NTP slews it
/// by 0.05 % at most.)
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Reading of CLOCK_MONOTONIC at the origin, in nanoseconds.
    origin: u64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the origin, in nanoseconds. The difference grows
    /// while the machine is suspended.
    boot_ahead: u64,
}

impl Clock {
    /// Returns a clock whose [`Instant::ZERO`] is now.
    pub fn start() -> Self {
        let origin = clock_ns(libc::CLOCK_MONOTONIC);
        Clock { origin, boot_ahead: boot_ahead() }
    }

    /// Returns a clock whose [`Instant::ZERO`] is `span` from now, and which shows zero until then.
    pub fn starting_in(span: Span) -> Self {
        let clock = Clock::start();
        Clock { origin: clock.origin + span.as_ns(), ..clock }
    }

    /// Returns the time until the clock starts to run.
    pub fn until_start(&self) -> Span {
        Span::ns(self.origin.saturating_sub(clock_ns(libc::CLOCK_MONOTONIC)))
    }

    /// Time since the origin.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_ns(clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.origin))
    }

    /// Returns how long the machine has been suspended since the origin.
    pub fn suspended(&self) -> Span {
        Span::ns(boot_ahead().saturating_sub(self.boot_ahead))
    }

    /// Returns whether the clock stands still while this thread computes. The clock of a kernel
    /// that runs in virtual time does stand still: it jumps when all threads wait, and otherwise
    /// advances only slightly, at each reading. A clock that advances only at ticks does not count
    /// as standing still.
    pub fn stands_still() -> bool {
        let clock = Clock::start();
        let mut word = 1u64;
        for _ in 0..WORK {
            word = black_box(word.wrapping_mul(6_364_136_223_846_793_005));
        }
        (Span::ns(1)..FASTEST_WORK).contains(&clock.now().saturating_since(Instant::ZERO))
    }

    /// Processor time that the calling thread has used, user and system.
    pub fn thread_time() -> Span {
        Span::ns(clock_ns(libc::CLOCK_THREAD_CPUTIME_ID))
    }
}

/// Number of multiplications in a chain, in which each needs the result of the previous one. Each
/// takes three cycles on current processors, and no processor completes the chain within
/// [`FASTEST_WORK`].
const WORK: u32 = 2_000_000;
/// Time in which a 20 GHz processor executes two million cycles.
const FASTEST_WORK: Span = Span::us(100);

/// Returns CLOCK_BOOTTIME minus CLOCK_MONOTONIC. The thread may be interrupted between the two readings, so
/// the smallest of several differences is used.
fn boot_ahead() -> u64 {
    let ahead = || {
        let monotonic = clock_ns(libc::CLOCK_MONOTONIC);
        clock_ns(libc::CLOCK_BOOTTIME).saturating_sub(monotonic)
    };
    (0..3).map(|_| ahead()).min().unwrap_or(0)
}

/// A clock that can wait.
pub trait Poller {
    /// The time.
    fn now(&self) -> Instant;

    /// Waits until `until` or until a device is readable, whichever comes first, and sets `ready` for the
    /// readable devices. The thread does not sleep during the last `spin` before `until`. A signal may end
    /// the wait early.
    ///
    /// # Errors
    /// Any error from the operating system.
    fn wait(&mut self, until: Instant, spin: Span, ready: &mut [bool]) -> io::Result<()>;

    /// Processor time that this thread has used.
    fn thread_time(&self) -> Span;

    /// Returns how long the machine has been suspended.
    fn suspended(&self) -> Span;
}

/// This machine's clock, and one epoll instance for all devices.
pub struct SystemPoller {
    clock: Clock,
    epoll: OwnedFd,
    /// Whether the clock stands still while threads compute ([`Clock::stands_still`]).
    stands_still: bool,
    /// If the clock stands still: the time since the last wait. Reading it again would cost a system call.
    held: Option<Instant>,
}

/// Maximum number of devices that one call reports as ready; the next call reports the others.
const AT_ONCE: usize = 32;

impl SystemPoller {
    /// Returns a poller that waits for these devices, with a clock that may stand still while threads compute.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn new<'a>(
        clock: Clock,
        stands_still: bool,
        devices: impl Iterator<Item = BorrowedFd<'a>>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, device) in devices.enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, device, data, epoll::EventFlags::IN)?;
        }
        Ok(SystemPoller { clock, epoll, stands_still, held: None })
    }

    /// Polls the devices once, waiting for at most `at_most`; returns whether any is ready.
    fn ask(&self, at_most: Span, ready: &mut [bool]) -> io::Result<bool> {
        let ns = at_most.as_ns();
        let timeout = Timeout { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        let mut room = [MaybeUninit::<epoll::Event>::uninit(); AT_ONCE];
        // This wait has nanosecond resolution (epoll_pwait2).
        let events = match epoll::wait(&self.epoll, &mut room[..], Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for event in &*events {
            let data = event.data;
            ready[data.u64() as usize] = true;
        }
        Ok(!events.is_empty())
    }
}

impl Poller for SystemPoller {
    #[inline]
    fn now(&self) -> Instant {
        self.held.unwrap_or_else(|| self.clock.now())
    }

    fn wait(&mut self, until: Instant, spin: Span, ready: &mut [bool]) -> io::Result<()> {
        let asleep = until.saturating_since(self.now()).saturating_sub(spin);
        let found = self.ask(asleep, ready)?;
        if self.stands_still {
            self.held = Some(self.clock.now());
        }
        if found {
            return Ok(());
        }
        while self.now() < until {
            // The thread does not sleep; the wait ends if a frame arrives in the meantime.
            if self.ask(Span::ZERO, ready)? || spin.is_zero() {
                break;
            }
        }
        Ok(())
    }

    fn thread_time(&self) -> Span {
        Clock::thread_time()
    }

    fn suspended(&self) -> Span {
        self.clock.suspended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_zero_and_never_goes_back() {
        let clock = Clock::start();
        let mut last = Instant::ZERO;
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last > Instant::ZERO);
        assert!(clock.suspended() < Span::ms(1), "no thread sleeps here: {}", clock.suspended());
    }

    /// The machines that run the tests have clocks that never stop.
    #[test]
    fn it_runs_while_the_thread_computes() {
        assert!(!Clock::stands_still());
    }

    #[test]
    fn a_clock_that_stands_still_is_read_only_after_a_wait() {
        let mut poller = SystemPoller::new(Clock::start(), true, std::iter::empty()).unwrap();
        let first = poller.now() + Span::ms(1);
        poller.wait(first, Span::ZERO, &mut []).unwrap();
        let held = poller.now();
        assert!(held >= first);
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(poller.now(), held);
        poller.wait(held, Span::ZERO, &mut []).unwrap();
        assert!(poller.now() >= held + Span::ms(2));
    }

    #[test]
    fn it_can_begin_later() {
        let hour = Span::s(3600);
        let clock = Clock::starting_in(hour);
        assert!(clock.until_start() > Span::ZERO && clock.until_start() <= hour);
        assert_eq!(clock.now(), Instant::ZERO);
        let clock = Clock::starting_in(Span::ms(5));
        std::thread::sleep(std::time::Duration::from_millis(6));
        assert!(clock.until_start().is_zero());
        assert!((Span::us(1)..hour).contains(&clock.now().saturating_since(Instant::ZERO)));
    }

    #[test]
    fn work_takes_processor_time_and_waiting_does_not() {
        let (clock, used) = (Clock::start(), Clock::thread_time());
        while clock.now() < Instant::ZERO + Span::ms(2) {}
        let worked = Clock::thread_time().saturating_sub(used);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let waited = Clock::thread_time().saturating_sub(used).saturating_sub(worked);
        assert!(worked > Span::ZERO);
        assert!(waited < Span::ms(10), "{waited}");
    }
}
