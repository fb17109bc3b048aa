//! Network namespaces, which are kept alive by descriptors, and their settings. `/proc/sys/net` shows the
//! settings of the calling thread's namespace.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::thread::{CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space};
use serde_json::Value;

use super::refusal::{self, Policy};
use crate::error::LiveError;
use crate::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn current() -> Result<Self, LiveError> {
        let path = "/proc/thread-self/ns/net";
        File::open(path).map(Namespace).map_err(LiveError::io("open", path))
    }

    /// Creates a namespace and moves the calling thread into it.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn new() -> Result<Self, LiveError> {
        sys::unshare_net().map_err(LiveError::io("make", "a network namespace"))?;
        Namespace::current()
    }

    /// Returns another handle to the same namespace.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn again(&self) -> Result<Self, LiveError> {
        self.0.try_clone().map(Namespace).map_err(LiveError::io("open", "a network namespace"))
    }

    /// Returns its descriptor.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Moves the calling thread into this namespace. Descriptors that the thread opens from then on belong to
    /// this namespace; those already open stay where they are.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn enter(&self) -> Result<(), LiveError> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| LiveError::io("enter", "a network namespace")(error.into()))
    }
}

/// Moves the process from its initial network namespace into a new, empty one. If the process lacks the
/// privilege, it also enters a user namespace in which it is root. A thread that `before` starts stays in the initial
/// network namespace, with the privileges that the process then has.
///
/// # Errors
/// If the machine refuses a necessary operation. The error names a remedy.
pub fn leave_host_namespace<T>(before: impl FnOnce() -> Result<T, LiveError>) -> Result<T, LiveError> {
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN)) {
        become_root_of_a_namespace().map_err(|error| refusal::namespaces(&error, Policy::of_machine()))?;
    }
    let begun = before()?;
    sys::unshare_net().map_err(|error| refusal::network_namespaces(&error, Policy::of_machine()))?;
    Ok(begun)
}

/// Moves the process into a new user namespace. See user_namespaces(7): ordinary users may map
/// only their own user and group, and must first give up the right to set groups.
fn become_root_of_a_namespace() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare_user()?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// A setting and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sysctl {
    /// Name below `/proc/sys/net`, such as `"ipv4/tcp_sack"`.
    pub name: &'static str,
    /// The value to set.
    pub value: String,
    /// The consequence if the kernel lacks the setting; `None` if it is not worth reporting, because a kernel
    /// that does not know the setting usually lacks the feature, too.
    pub without: Option<&'static str>,
}

impl Sysctl {
    /// Returns a setting whose absence causes no remark.
    pub fn new(name: &'static str, value: impl ToString) -> Self {
        Sysctl { name, value: value.to_string(), without: None }
    }

    /// Returns a setting whose absence causes a remark.
    pub fn wanted(name: &'static str, value: impl ToString, without: &'static str) -> Self {
        Sysctl { without: Some(without), ..Sysctl::new(name, value) }
    }

    /// The name in sysctl(8).
    pub fn dotted(&self) -> String {
        format!("net.{}", self.name.replace('/', "."))
    }
}

/// Settings of a namespace, as the kernel shows them after they have been set, and remarks about those that
/// could not be set.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Values by name.
    pub values: serde_json::Map<String, Value>,
    /// The remarks, each a sentence.
    pub remarks: Vec<String>,
}

/// Applies settings to the namespace of the calling thread.
///
/// # Errors
/// If `/proc/sys` cannot be written.
pub fn apply(settings: &[Sysctl]) -> Result<Applied, LiveError> {
    let mut applied = Applied::default();
    for setting in settings {
        let path = format!("/proc/sys/net/{}", setting.name);
        match fs::write(&path, &setting.value) {
            Ok(()) => {
                let value = fs::read_to_string(&path).map_err(LiveError::io("read", &path))?;
                applied.values.insert(setting.dotted(), value.trim().replace('\t', " ").into());
            }
            Err(error) if is_unknown(&error) => applied.remarks.extend(setting.without.map(|without| {
                format!("this kernel does not accept `{} = {}`: {without}", setting.dotted(), setting.value)
            })),
            Err(error) => return Err(refusal::sysctl(&path, error)),
        }
    }
    Ok(applied)
}

/// Returns whether the error means that the kernel lacks the setting, or does not accept this value for it.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}
