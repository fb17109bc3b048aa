//! Network namespaces, held by descriptors.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::refusal::{self, Policy};
use crate::error::LiveError;
use crate::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// That of the calling thread.
    ///
    /// # Errors
    /// What the system said.
    pub fn current() -> Result<Self, LiveError> {
        let path = "/proc/thread-self/ns/net";
        File::open(path).map(Namespace).map_err(LiveError::io("open", path))
    }

    /// A new one, which the calling thread has moved into.
    ///
    /// # Errors
    /// What the system said.
    pub fn new() -> Result<Self, LiveError> {
        sys::unshare_net().map_err(LiveError::io("make", "a network namespace"))?;
        Namespace::current()
    }

    /// The calling thread moves into it. What it opens from then on belongs there; what it has opened stays where it is.
    ///
    /// # Errors
    /// What the system said.
    pub fn enter(&self) -> Result<(), LiveError> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| LiveError::io("enter", "a network namespace")(error.into()))
    }
}

/// The process leaves the network namespace that it was started in, for an empty one of its own, and with it a user
/// namespace in which it is root, unless it may do without.
///
/// # Errors
/// If the machine refuses: with what a person can do about it.
pub fn leave_host_namespace() -> Result<(), LiveError> {
    match sys::unshare_net() {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            become_root_of_a_namespace().map_err(|error| refusal::namespaces(&error, Policy::of_machine()))
        }
        Err(error) => Err(refusal::namespaces(&error, Policy::of_machine())),
    }
}

/// user_namespaces(7): an ordinary user may map itself only, and must give up setting groups.
fn become_root_of_a_namespace() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare_user_and_net()?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}
