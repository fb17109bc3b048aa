//! New namespaces for the calling thread.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// The calling thread moves into a new user namespace and a new network namespace that belongs to it.
///
/// # Errors
/// What the system said: `EINVAL` if the process has another thread.
pub fn unshare_user_and_net() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
}

/// The calling thread moves into a new network namespace.
///
/// # Errors
/// What the system said.
pub fn unshare_net() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: what makes the call unsafe is `FILES`, which would give this thread another table of descriptors than
    // those that own descriptors elsewhere; no flag set contains it.
    unsafe { unshare_unsafe(flags) }.map_err(io::Error::from)
}
