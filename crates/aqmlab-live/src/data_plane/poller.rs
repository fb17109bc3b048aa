//! Time and waiting, as the loop needs them: this machine's, or a test's.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use aqmlab_units::{Instant, Span};
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::io::Errno;

use super::clock::Clock;
use super::device::Device;

/// What tells the time, and waits.
pub trait Poller {
    /// The time.
    fn now(&self) -> Instant;

    /// Waits until `until` or until a device has something to read, whichever is first, and sets `ready` for those that
    /// have. The last `spin` before `until` are not slept away. A signal may end it early.
    ///
    /// # Errors
    /// What the system said.
    fn wait(&mut self, until: Instant, spin: Span, ready: &mut [bool]) -> io::Result<()>;

    /// Processor time that this thread has used.
    fn thread_time(&self) -> Span;

    /// How long the machine has been suspended.
    fn suspended(&self) -> Span;
}

/// This machine's clock, and its devices behind one epoll.
pub struct SystemPoller {
    clock: Clock,
    epoll: OwnedFd,
}

/// Devices that are told ready at once; more are told when next asked.
const AT_ONCE: usize = 32;

impl SystemPoller {
    /// Waits for these devices.
    ///
    /// # Errors
    /// What the system said.
    pub fn new<D: Device>(clock: Clock, devices: &[D]) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, device) in devices.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, device.fd(), data, epoll::EventFlags::IN)?;
        }
        Ok(SystemPoller { clock, epoll })
    }

    /// Asks once, waiting at most so long: is any device ready?
    fn ask(&self, at_most: Span, ready: &mut [bool]) -> io::Result<bool> {
        let ns = at_most.as_ns();
        let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        let mut room = [MaybeUninit::<epoll::Event>::uninit(); AT_ONCE];
        // Nanoseconds: epoll_pwait2.
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
        self.clock.now()
    }

    fn wait(&mut self, until: Instant, spin: Span, ready: &mut [bool]) -> io::Result<()> {
        let asleep = until.saturating_since(self.now()).saturating_sub(spin);
        if self.ask(asleep, ready)? {
            return Ok(());
        }
        while self.now() < until {
            // Not asleep, but what comes in meanwhile is not kept waiting.
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
