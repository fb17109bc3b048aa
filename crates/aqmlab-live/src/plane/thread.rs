//! A data plane and the thread that it has to itself.

use std::num::NonZeroU64;

use aqmlab_scenario::Wait;
use aqmlab_units::Span;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::set_current_timer_slack;

use super::clock::Clock;
use super::control::PlaneControl;
use super::device::Device;
use super::looping::Loop;
use super::pulse::SystemPulse;
use super::report::PlaneReport;
use crate::error::LiveError;
use crate::priority;
use crate::router::{Router, RouterRecord};

/// How a plane waits and how it is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaneSettings {
    /// How it waits for the next departure.
    pub wait: Wait,
    /// For how long before a departure [`Wait::Hybrid`] does not sleep.
    pub spin: Span,
    /// Is it to ask for real-time scheduling and locked memory? It goes on without what it is not permitted.
    pub realtime: bool,
}

/// A router between devices, on this machine's clock.
pub struct Plane<D> {
    looping: Loop<D, SystemPulse>,
    realtime: bool,
}

/// What a plane leaves behind.
#[derive(Debug)]
pub struct PlaneOutcome<D> {
    /// Tables and books of the network.
    pub router: RouterRecord,
    /// How punctual it was.
    pub report: PlaneReport,
    /// The devices.
    pub devices: Vec<D>,
}

impl<D: Device> Plane<D> {
    /// A plane whose devices are the router's doors, by [`crate::Entry::number`]. Takes all the memory that it will
    /// need while the measured interval lasts.
    ///
    /// # Errors
    /// If the system cannot wait for the devices.
    pub fn new(
        router: Router,
        devices: Vec<D>,
        clock: Clock,
        settings: PlaneSettings,
    ) -> Result<Self, LiveError> {
        assert_eq!(devices.len(), router.doors().len(), "a device for each door");
        let pulse = SystemPulse::new(clock, &devices).map_err(LiveError::io("wait for", "the devices"))?;
        let spin = match settings.wait {
            Wait::Hybrid => settings.spin,
            Wait::Epoll => Span::ZERO,
        };
        Ok(Plane { looping: Loop::new(router, devices, pulse, spin), realtime: settings.realtime })
    }

    /// Runs on the calling thread, which from then on is the plane's, until [`PlaneControl::finish`].
    ///
    /// # Errors
    /// If the machine was suspended, a device fails, or a book does not balance.
    pub fn run(mut self, control: &PlaneControl) -> Result<PlaneOutcome<D>, LiveError> {
        // Whoever watches learns that it has ended, whatever ends it.
        let _gone = Gone(control);
        self.prepare_thread(control);
        let (router, devices, report) = self.looping.run(control)?;
        Ok(PlaneOutcome { router: router.finish()?, report, devices })
    }

    fn prepare_thread(&mut self, control: &PlaneControl) {
        // Without it the kernel lets timers of ordinary threads come 50 us late, to save wake-ups. It is no privilege.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let report = self.looping.report_mut();
        if self.realtime {
            let priority = priority::favour_router();
            report.realtime = priority.is_some();
            control.set_priority(priority);
            report.locked = mlockall(MlockAllFlags::CURRENT).is_ok();
        }
    }
}

struct Gone<'a>(&'a PlaneControl);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}
