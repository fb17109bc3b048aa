//! A data plane and its dedicated thread.

use std::num::NonZeroU64;

use aqmlab_scenario::Wait;
use aqmlab_units::Span;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::set_current_timer_slack;

use super::clock::{Clock, SystemPoller};
use super::control::DataPlaneControl;
use super::device::Device;
use super::event_loop::EventLoop;
use super::report::DataPlaneReport;
use super::settings::DataPlaneSettings;
use crate::error::LiveError;
use crate::priority;
use crate::router::{Router, RouterRecord};

/// A router between devices, driven by this machine's clock.
pub struct DataPlane<D> {
    event_loop: EventLoop<D, SystemPoller>,
    realtime: bool,
}

/// Outcome of a data plane's run.
#[derive(Debug)]
pub struct DataPlaneOutcome<D> {
    /// Tables and books of the network.
    pub router: RouterRecord,
    /// The data plane's punctuality on this machine.
    pub report: DataPlaneReport,
    /// The devices.
    pub devices: Vec<D>,
}

impl<D: Device> DataPlane<D> {
    /// Creates a data plane with one device for each of the router's hosts, in the order of
    /// [`crate::HostId::number`]. Allocates all memory that it will need during the measured interval.
    ///
    /// # Errors
    /// If the system cannot wait for the devices.
    pub fn new(
        router: Router,
        devices: Vec<D>,
        clock: Clock,
        settings: DataPlaneSettings,
    ) -> Result<Self, LiveError> {
        assert_eq!(devices.len(), router.hosts().len(), "there must be one device for each host");
        let fds = devices.iter().map(Device::fd).chain(router.kernel_fds());
        let poller = SystemPoller::new(clock, settings.virtual_time, fds)
            .map_err(LiveError::io("wait for", "the devices"))?;
        let spin = match settings.wait {
            Wait::Hybrid => settings.spin,
            Wait::Epoll => Span::ZERO,
        };
        Ok(DataPlane {
            event_loop: EventLoop::new(router, devices, poller, DataPlaneSettings { spin, ..settings }),
            realtime: settings.realtime,
        })
    }

    /// Runs on the calling thread, which it occupies until [`DataPlaneControl::finish`] is called.
    ///
    /// # Errors
    /// If the machine was suspended, a device fails, or the books do not balance.
    pub fn run(mut self, control: &DataPlaneControl) -> Result<DataPlaneOutcome<D>, LiveError> {
        // The watching thread is notified of the end, whatever the cause.
        let _gone = Gone(control);
        self.prepare_thread(control);
        let (router, devices, report) = self.event_loop.run(control)?;
        Ok(DataPlaneOutcome { router: router.finish()?, report, devices })
    }

    fn prepare_thread(&mut self, control: &DataPlaneControl) {
        // Without this call, the kernel may delay timers of ordinary threads by 50 us, to save wake-ups. The
        // call needs no privilege.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let report = self.event_loop.report_mut();
        if self.realtime {
            let priority = priority::favour_router();
            report.realtime = priority.is_some();
            control.set_priority(priority);
            report.locked = mlockall(MlockAllFlags::CURRENT).is_ok();
        }
        if !report.realtime {
            priority::favour_ordinary();
        }
    }
}

struct Gone<'a>(&'a DataPlaneControl);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}
