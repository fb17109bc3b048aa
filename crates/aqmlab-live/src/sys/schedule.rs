//! How the kernel chooses when a thread runs.

use std::io;

/// The calling thread runs whenever it wants to, before all threads that are not real-time ones. Threads that it starts
/// do not.
///
/// # Errors
/// What the system said: `EPERM` without the right to.
pub fn set_fifo(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads a `sched_param`, which lives during the call; 0 is the calling thread.
    let answer = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
