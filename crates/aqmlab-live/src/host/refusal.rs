//! Reasons why a machine refuses what a live run needs, and what to do about each.

use std::fs;
use std::io;

use crate::error::LiveError;

/// Conditions that explain why a user namespace is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// `kernel.apparmor_restrict_unprivileged_userns` (Ubuntu 23.10 and later)
    pub apparmor_restricts: bool,
    /// `kernel.unprivileged_userns_clone` (Debian's patch); true if there is no such switch
    pub unprivileged_allowed: bool,
    /// `user.max_user_namespaces`
    pub any_allowed: bool,
    /// Whether the process has more than one thread. Such a process cannot create a user namespace.
    pub several_threads: bool,
}

impl Policy {
    /// Returns this machine's policy.
    pub fn of_machine() -> Self {
        let is = |name: &str, value: &str| {
            fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|text| text.trim() == value)
        };
        Policy {
            apparmor_restricts: is("kernel/apparmor_restrict_unprivileged_userns", "1"),
            unprivileged_allowed: !is("kernel/unprivileged_userns_clone", "0"),
            any_allowed: !is("user/max_user_namespaces", "0"),
            several_threads: fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1),
        }
    }
}

fn machine(what: impl Into<String>, remedy: impl Into<String>) -> LiveError {
    LiveError::Machine { what: what.into(), remedy: remedy.into() }
}

/// Returns the error for a root process that could not get its own network namespace, because `unshare`
/// failed.
pub fn network_namespaces(error: &io::Error, policy: Policy) -> LiveError {
    if error.raw_os_error() == Some(libc::EINVAL) {
        return without("network", "CONFIG_NET_NS", error);
    }
    namespaces(error, policy)
}

/// Returns the error for a process that could not get its own user namespace: either `unshare` failed, or the
/// user could not be mapped into the new namespace.
pub fn namespaces(error: &io::Error, policy: Policy) -> LiveError {
    let what = format!("it refuses user namespaces ({error})");
    if error.raw_os_error() == Some(libc::EINVAL) && !policy.several_threads {
        return without("user", "CONFIG_USER_NS", error);
    }
    if error.raw_os_error() == Some(libc::EINVAL) {
        return machine(
            format!("a process with several threads cannot create a user namespace ({error})"),
            "start live runs in a separate process, as the command line does",
        );
    }
    if !policy.any_allowed || error.raw_os_error() == Some(libc::ENOSPC) {
        return machine(what, "allow some: `sysctl user.max_user_namespaces=1000`, or run as root");
    }
    if !policy.unprivileged_allowed {
        return machine(what, "allow them: `sysctl kernel.unprivileged_userns_clone=1`, or run as root");
    }
    if policy.apparmor_restricts {
        return machine(
            format!("AppArmor denies user namespaces to ordinary programs ({error})"),
            "run as root, or allow them: use `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or a profile with `userns,` \
             for this Python",
        );
    }
    machine(
        what,
        "in a container, start it with `--cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt seccomp=unconfined`; \
         otherwise run as root",
    )
}

/// Returns the error for a kernel that was built without this kind of namespace.
fn without(kind: &str, option: &str, error: &io::Error) -> LiveError {
    let what = format!("its kernel has no {kind} namespaces ({error})");
    let root = if kind == "user" { ", or run as root" } else { "" };
    machine(what, format!("boot a kernel built with `{option}`{root}"))
}

/// Returns the error for a thread that cannot be started.
pub fn thread(what: &str, error: &io::Error) -> LiveError {
    machine(
        format!("it cannot start a thread for {what} ({error})"),
        "allow more: use `ulimit -u`, or add `YOU - nproc 4096` to /etc/security/limits.conf; in a container, use a larger `--pids-limit`",
    )
}

/// Returns the error for a machine without tc.
pub fn no_tc() -> LiveError {
    machine("there is no `tc`, which kernel queues need", "install iproute2")
}

/// Returns the error for a `/dev/net/tun` that cannot be opened.
pub fn tun_file(error: &io::Error) -> LiveError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => machine(
            format!("it does not permit opening /dev/net/tun ({error})"),
            "allow it: `chmod 666 /dev/net/tun`; in a container, start it with `--device /dev/net/tun`",
        ),
        _ => machine(
            format!("there is no usable /dev/net/tun ({error})"),
            "load the module: `modprobe tun`; in a container, start it with `--device /dev/net/tun`",
        ),
    }
}

/// Returns the error for a TUN interface that cannot be created.
pub fn tun_interface(error: &io::Error) -> LiveError {
    match error.raw_os_error() {
        Some(libc::EBUSY) => machine(
            format!("the TUN interface is still in use ({error})"),
            "wait until the previous run has ended",
        ),
        Some(libc::EPERM | libc::EACCES) => machine(
            format!("it does not permit creating a TUN interface ({error})"),
            "run as root; in a container, start it with `--cap-add NET_ADMIN`",
        ),
        _ => machine(format!("no TUN interface can be created ({error})"), "load the module: `modprobe tun`"),
    }
}

/// Returns the error for a namespace's setting that cannot be written.
pub fn sysctl(path: &str, error: io::Error) -> LiveError {
    match error.raw_os_error() {
        Some(libc::EROFS | libc::EACCES | libc::EPERM) => machine(
            format!("it does not permit writing to {path} ({error})"),
            "in a container, start it with `--security-opt systempaths=unconfined`; otherwise run as root",
        ),
        _ => LiveError::Io { operation: "write", object: path.to_owned(), source: error },
    }
}

/// Returns the error for a congestion control that the kernel does not have.
pub fn congestion_control(name: &str, class: &str, available: &str) -> LiveError {
    machine(
        format!(
            "its kernel has no congestion control `{name}`, which class `{class}` requests (it has: {available})"
        ),
        format!("load it: `modprobe tcp_{name}`, or name another in `tcp.congestion`"),
    )
}

/// Returns the error for a device that does not accept packets of this size.
pub fn mtu(mtu: u32, error: &io::Error) -> LiveError {
    machine(
        format!("its TUN interfaces accept no packets of {mtu} bytes ({error})"),
        "choose a smaller `mss` or packet size",
    )
}

/// Returns the error for a plan that needs more sockets than the process may have.
pub fn descriptors(needed: u64, allowed: u64) -> LiveError {
    machine(
        format!(
            "{needed} sockets and files are needed at the same time, but the process may have only {allowed}"
        ),
        format!(
            "allow more: add `YOU - nofile {needed}` to /etc/security/limits.conf and log in again, or choose fewer flows"
        ),
    )
}

/// Returns the error for a socket that could not be opened because too many are open already.
pub fn too_few_descriptors(error: &io::Error) -> LiveError {
    machine(
        format!("the process may not open another socket ({error})"),
        "allow more: add `YOU - nofile 65536` to /etc/security/limits.conf and log in again, or choose fewer simultaneous flows",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Policy = Policy {
        apparmor_restricts: false,
        unprivileged_allowed: true,
        any_allowed: true,
        several_threads: false,
    };

    fn format_span(errno: i32, policy: Policy) -> String {
        namespaces(&io::Error::from_raw_os_error(errno), policy).to_string()
    }

    #[test]
    fn a_kernel_without_namespaces_is_no_process_with_several_threads() {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        let network = network_namespaces(&error, OPEN).to_string();
        assert!(network.contains("no network namespaces") && network.contains("CONFIG_NET_NS"), "{network}");
        let user = namespaces(&error, OPEN).to_string();
        assert!(user.contains("CONFIG_USER_NS") && user.contains("run as root"), "{user}");
        let several = namespaces(&error, Policy { several_threads: true, ..OPEN }).to_string();
        assert!(several.contains("several threads"), "{several}");
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        assert!(network_namespaces(&full, OPEN).to_string().contains("user.max_user_namespaces"));
    }

    #[test]
    fn a_thread_that_is_not_started_is_the_machine_s_lack() {
        let refusal = thread("the router", &io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(refusal.kind(), "machine");
        assert!(refusal.to_string().contains("ulimit -u"), "{refusal}");
    }

    #[test]
    fn each_refusal_names_its_own_remedy() {
        let apparmor = Policy { apparmor_restricts: true, ..OPEN };
        for errno in [libc::EPERM, libc::EACCES] {
            assert!(format_span(errno, apparmor).contains("`userns,`"), "{}", format_span(errno, apparmor));
        }
        let clone = Policy { unprivileged_allowed: false, ..OPEN };
        assert!(format_span(libc::EPERM, clone).contains("kernel.unprivileged_userns_clone=1"));
        let none = Policy { any_allowed: false, ..OPEN };
        assert!(format_span(libc::ENOSPC, none).contains("user.max_user_namespaces"));
        let several = Policy { several_threads: true, ..OPEN };
        assert!(format_span(libc::EINVAL, several).contains("separate process"));
        assert!(format_span(libc::EPERM, OPEN).contains("--cap-add"));
        let error = |errno| io::Error::from_raw_os_error(errno);
        assert!(tun_file(&error(libc::ENOENT)).to_string().contains("modprobe tun"));
        assert!(tun_file(&error(libc::EACCES)).to_string().contains("chmod 666"));
        assert!(tun_interface(&error(libc::EBUSY)).to_string().contains("in use"));
        assert!(sysctl("/proc/sys/x", error(libc::EROFS)).to_string().contains("systempaths"));
    }
}
