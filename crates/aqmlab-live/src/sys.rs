//! System calls that have no safe wrapper elsewhere: namespaces, real-time scheduling, TUN devices,
//! socket options. This is the only file of the crate that contains `unsafe`; each block states why
//! it is sound.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::io::{self, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use aqmlab_units::Span;
use libc::{IFF_NO_PI, IFF_TUN, IFF_VNET_HDR, IFNAMSIZ, c_char, c_short, c_uint};
use rustix::ioctl::{Getter, IntegerSetter, Opcode, Setter, ioctl, opcode};
use rustix::mm::{Advice, madvise};
use rustix::process::Pid;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a new user namespace.
///
/// # Errors
/// The operating system's error: `EINVAL` if the process has another thread.
pub fn unshare_user() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// Moves the calling thread into a new network namespace.
///
/// # Errors
/// Any error from the operating system.
pub fn unshare_net() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the call is unsafe because of `FILES`: with that flag, this thread would no longer share the
    // file descriptor table with the threads that own the descriptors. No set of flags here contains it.
    unsafe { unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Reads a clock that every kernel has, in nanoseconds. The C library reads it without a system call if the
/// kernel's vDSO permits; rustix would panic if the vDSO lacks other functions, as in User Mode Linux from
/// Linux 7.3 on.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a `timespec`, which lives during the call.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(answer, 0, "the clock exists");
    // Clocks that start at boot are never negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets the calling thread run whenever it is ready, before all ordinary threads. Threads that it starts do
/// not inherit this.
///
/// # Errors
/// The operating system's error: `EPERM` if the process lacks the permission.
pub fn set_fifo(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads a `sched_param`, which lives during the call; 0 means the calling thread.
    let answer = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel to let the calling thread, an ordinary one, run for no longer than `slice` at a time; in
/// return, the thread runs sooner after it wakes, with the same share of the processor. The request needs no
/// privilege. Kernels before Linux 6.12 give all ordinary threads the same slice, and ignore the request.
///
/// # Errors
/// Any error from the operating system.
pub fn set_slice(slice: Duration) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        // All threads of this process have this nice value, which never changes.
        sched_nice: rustix::process::getpriority_process(None).unwrap_or(0),
        sched_priority: 0,
        sched_runtime: u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a `sched_attr`, which lives during the call; 0 means the
    // calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel kill a program when the thread that started it ends: otherwise, a program that
/// hangs would keep alive the namespaces in which it was started.
pub fn end_with_this_thread(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid().as_raw_nonzero().get();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The thread may have ended before that call.
        // SAFETY: getppid(2) has no conditions.
        if unsafe { libc::getppid() } == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec, `ask` makes two system calls and creates an error from a
    // constant `ErrorKind`: it takes no lock and allocates no memory.
    unsafe { command.pre_exec(ask) }
}

/// Puts the processes that the calling thread starts from now on into a new PID namespace. The thread
/// can then start no thread.
///
/// # Errors
/// Any error from the operating system.
pub fn unshare_pids() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)
}

/// The first process of a PID namespace. When it is dropped, or this process ends, all processes of the
/// namespace end.
#[derive(Debug)]
pub struct FirstProcess {
    /// Its number, until it has been waited for.
    pid: Option<libc::pid_t>,
    /// The process ends when this end of the pipe is closed, which the kernel does at the latest when this
    /// process ends.
    _alive: PipeWriter,
}

/// Starts the first process of the PID namespace for which the calling thread has called [`unshare_pids`]. It waits for
/// processes whose parents have ended, and does nothing else.
///
/// # Errors
/// Any error from the operating system.
pub fn first_process() -> io::Result<FirstProcess> {
    let (end, alive) = io::pipe()?;
    // SAFETY: the new process calls only `wait_for_the_end`, which makes system calls and neither allocates
    // memory nor takes a lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => wait_for_the_end(end.as_raw_fd()),
        pid => Ok(FirstProcess { pid: Some(pid), _alive: alive }),
    }
}

/// The work of the first process: it ends when the other end of the pipe is closed.
fn wait_for_the_end(pipe: c_int) -> ! {
    const LOOK_EVERY_MS: c_int = 200;
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: these system calls access no memory but `all` and `watched`, which live during the calls, and all
    // descriptors of this process are its own copies.
    unsafe {
        // Handlers of the process that forked would run here, at Ctrl-C or when a program signals every process that it
        // sees. Only SIGKILL ends this process.
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::dup2(pipe, 0);
        libc::syscall(libc::SYS_close_range, 1, c_uint::MAX, 0);
        let mut watched = libc::pollfd { fd: 0, events: 0, revents: 0 };
        loop {
            while libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {}
            if libc::poll(&raw mut watched, 1, LOOK_EVERY_MS) > 0 {
                libc::_exit(0);
            }
        }
    }
}

impl FirstProcess {
    /// Kills all processes of the namespace. The kernel has finished when [`FirstProcess::wait`] returns, for which
    /// the caller must first have waited for those that are its children.
    pub fn kill(&self) {
        if let Some(pid) = self.pid {
            // SAFETY: the call accesses no memory. The process is a child that has not been waited for, so its
            // number belongs to no other process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    /// Waits until all processes of the namespace, which have been killed, have ended.
    pub fn wait(mut self) {
        if let Some(pid) = self.pid.take() {
            // SAFETY: as in `kill`.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}

impl Drop for FirstProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The state of a child process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildState {
    /// It is running.
    Running,
    /// A signal has stopped it.
    Stopped,
    /// It has ended, and this was its last answer.
    Ended(Ended),
}

/// How a process ended, and what it used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Processor time in user mode.
    pub user: Span,
    /// Processor time in the kernel.
    pub system: Span,
    /// Largest resident memory.
    pub most_resident_bytes: u64,
}

/// Returns the state of a child; with `wait`, waits until it has ended.
///
/// # Errors
/// The operating system's error: `ECHILD` if there is no such child.
pub fn look_at_child(pid: Pid, wait: bool) -> io::Result<ChildState> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    let options = if wait { 0 } else { libc::WNOHANG | libc::WUNTRACED };
    // SAFETY: the call writes an `int` and a `rusage`, which live during the call.
    let answer =
        unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, options, usage.as_mut_ptr()) };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(ChildState::Running),
        _ if libc::WIFSTOPPED(status) => Ok(ChildState::Stopped),
        _ => {
            // SAFETY: any bytes are a valid `rusage`, and these were zero before the call.
            let usage = unsafe { usage.assume_init() };
            let span = |time: libc::timeval| Span::us(time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64);
            Ok(ChildState::Ended(Ended {
                code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
                user: span(usage.ru_utime),
                system: span(usage.ru_stime),
                // The kernel counts in KiB.
                most_resident_bytes: usage.ru_maxrss as u64 * 1024,
            }))
        }
    }
}

/// Makes the program the foreground job of the terminal that is its standard input.
pub fn in_foreground(command: &mut Command) -> &mut Command {
    let take = || {
        // SAFETY: between fork and exec, these are system calls without conditions. A process in the
        // background may do this only while it ignores SIGTTOU.
        let answer = unsafe {
            libc::signal(libc::SIGTTOU, libc::SIG_IGN);
            let answer = libc::tcsetpgrp(0, libc::getpgrp());
            libc::signal(libc::SIGTTOU, libc::SIG_DFL);
            answer
        };
        checked(answer)
    };
    // SAFETY: `take` makes system calls: it takes no lock and allocates no memory.
    unsafe { command.pre_exec(take) }
}

/// Leaves a descriptor of this process open in the program, under the same number. It must stay open here until the
/// program has started.
pub fn keep_open<'c>(command: &'c mut Command, open: BorrowedFd<'_>) -> &'c mut Command {
    let open = open.as_raw_fd();
    // SAFETY: fcntl(2) with these arguments has no conditions.
    let keep = move || match unsafe { libc::fcntl(open, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: `keep` makes one system call: it takes no lock and allocates no memory.
    unsafe { command.pre_exec(keep) }
}

/// Gives the program a view of the file system of its own, in which each first file is in the place of the second,
/// and `/proc` shows only the processes of its PID namespace. Where the machine forbids such mounts, the program sees
/// what all others see.
pub fn with_files(command: &mut Command, files: Vec<[CString; 2]>) -> &mut Command {
    let place = move || {
        let none = std::ptr::null();
        // SAFETY: the kernel reads texts that end with zero and live as long as this closure; mounts are changed only
        // in a namespace that no other process shares.
        unsafe {
            let private = libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0;
            if private {
                for [file, place] in &files {
                    libc::mount(file.as_ptr(), place.as_ptr(), none, libc::MS_BIND, none.cast());
                }
                let (proc, flags) = (c"proc".as_ptr(), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC);
                libc::mount(proc, c"/proc".as_ptr(), proc, flags, none.cast());
            }
        }
        Ok(())
    };
    // SAFETY: `place` makes system calls: it takes no lock and allocates no memory.
    unsafe { command.pre_exec(place) }
}

/// Memory that is not copied when a process is forked, so that a fork makes no later write to it slower.
#[derive(Debug)]
pub struct Unforked {
    start: *mut std::ffi::c_void,
    length: usize,
}

// SAFETY: the address is only passed to the kernel.
unsafe impl Send for Unforked {}
// SAFETY: as above.
unsafe impl Sync for Unforked {}

impl Unforked {
    /// Makes the whole pages of this memory absent from the children that are forked from now on, until the value
    /// is dropped, which must be before the memory is given back. No child may touch it.
    pub fn new(memory: &mut [u8]) -> Self {
        let page = rustix::param::page_size();
        let (begin, end) = (memory.as_mut_ptr(), memory.as_mut_ptr_range().end);
        let skipped = begin.addr().next_multiple_of(page) - begin.addr();
        let length = end.addr().saturating_sub(begin.addr() + skipped) / page * page;
        let unforked = Unforked { start: begin.wrapping_add(skipped).cast(), length };
        unforked.advise(Advice::LinuxDontFork);
        unforked
    }

    fn advise(&self, advice: Advice) {
        if self.length > 0 {
            // SAFETY: neither advice changes memory of this process. A kernel that refuses it copies as usual.
            let _ = unsafe { madvise(self.start, self.length, advice) };
        }
    }
}

impl Drop for Unforked {
    fn drop(&mut self) {
        self.advise(Advice::LinuxDoFork);
    }
}

/// Returns a copy of a descriptor that this process has inherited.
///
/// # Errors
/// The operating system's error: `EBADF` if it is not open.
pub fn copy_of(descriptor: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call has no conditions, and the new descriptor has no other owner.
    match unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) } {
        -1 => Err(io::Error::last_os_error()),
        copy => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
    }
}

/// Creates the interface `name`, which carries bare IP packets, and makes an opened `/dev/net/tun`
/// its other end.
///
/// The interface is made in the network namespace in which the file was opened, and disappears with
/// the file. Its packets are not preceded by packet information. Without `offload`, they have no
/// header for offloads either, so the kernel passes on each packet in the form that it would have
/// on a wire, segmented and with its checksum. With `offload`, each packet has the header of
/// [`crate::frame::offload`], and segmentation and checksums are left to this program, as if to a
/// network card.
///
/// # Errors
/// The operating system's error: `EBUSY` if there is an interface of that name, `EPERM` without `CAP_NET_ADMIN`.
///
/// # Panics
/// If the name is too long for an interface.
pub fn attach_tun(file: BorrowedFd<'_>, name: &str, offload: bool) -> io::Result<()> {
    /// Defined as `_IOW('T', 202, int)`, although the kernel reads a `struct ifreq`.
    const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
    /// Defined as `_IOW('T', 208, unsigned int)`; the argument is the number itself, so the kernel
    /// reads no memory.
    const TUNSETOFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
    /// The flags for checksums, segmentation over IPv4, segmentation over IPv6, and segmentation of
    /// segments with CWR (linux/if_tun.h).
    const OFFLOADS: usize = 0x01 | 0x02 | 0x04 | 0x08;
    let header = if offload { IFF_VNET_HDR } else { 0 };
    let request = InterfaceRequest {
        name: interface_name(name),
        flags: (IFF_TUN | IFF_NO_PI | header) as c_short,
        rest: [0; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<c_short>()],
    };
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`; `InterfaceRequest` has the same size and the same
    // first fields.
    unsafe { ioctl(file, Setter::<TUNSETIFF, InterfaceRequest>::new(request)) }?;
    if offload {
        // SAFETY: TUNSETOFFLOAD takes an integer, a set of these bits, and accesses no memory.
        unsafe { ioctl(file, IntegerSetter::<TUNSETOFFLOAD>::new_usize(OFFLOADS)) }?;
    }
    Ok(())
}

/// Returns the segmentation and checksum offloads that are enabled on an interface in the calling
/// thread's namespace.
///
/// # Errors
/// The operating system's error: `ENODEV` if there is no such interface, `EOPNOTSUPP` if it does not report
/// its offloads.
///
/// # Panics
/// If the name is too long for an interface.
pub fn offloads(name: &str) -> io::Result<Vec<&'static str>> {
    /// ETHTOOL_GTSO and ETHTOOL_GTXCSUM.
    const QUESTIONS: [(u32, &str); 2] = [(0x1e, "segmentation of TCP"), (0x16, "checksums")];
    let mut on = Vec::new();
    for (command, what) in QUESTIONS {
        if ethtool(name, command)? != 0 {
            on.push(what);
        }
    }
    Ok(on)
}

/// Returns the settings, by their names in ethtool(8), by which an interface joins packets that arrive.
///
/// # Errors
/// Any error from the operating system, except that it does not report such a setting.
///
/// # Panics
/// If the name is too long for an interface.
pub fn merges(name: &str) -> io::Result<Vec<&'static str>> {
    /// ETHTOOL_GGRO; ETHTOOL_GFLAGS, with ETH_FLAG_LRO.
    const QUESTIONS: [(u32, u32, &str); 2] = [(0x2b, u32::MAX, "gro"), (0x25, 1 << 15, "lro")];
    let mut on = Vec::new();
    for (command, bits, what) in QUESTIONS {
        match ethtool(name, command) {
            Ok(answer) if answer & bits != 0 => on.push(what),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(on)
}

/// Returns the driver's answer to a command of linux/ethtool.h that asks for one number.
fn ethtool(name: &str, command: u32) -> io::Result<u32> {
    /// `struct ethtool_value` of linux/ethtool.h.
    #[repr(C)]
    struct Question {
        command: u32,
        answer: u32,
    }
    /// A `struct ifreq` with a pointer.
    #[repr(C)]
    struct Request {
        name: [c_char; IFNAMSIZ],
        question: *mut Question,
        rest: [u8; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<*mut Question>()],
    }
    const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let mut question = Question { command, answer: 0 };
    let mut request = Request {
        name: interface_name(name),
        question: &raw mut question,
        rest: [0; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<*mut Question>()],
    };
    // SAFETY: SIOCETHTOOL reads a `struct ifreq` and, through its pointer, reads and writes a `struct ethtool_value`;
    // both live during the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(question.answer)
}

/// What the kernel says of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceFacts {
    /// Its number.
    pub index: c_int,
    /// The largest packet that it carries.
    pub mtu: u32,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether its frames have Ethernet headers.
    pub is_ethernet: bool,
    /// Whether it has an IPv4 address.
    pub has_address: bool,
}

/// Returns what the kernel says of an interface in the calling thread's namespace.
///
/// # Errors
/// The operating system's error: `ENODEV` if there is no such interface.
///
/// # Panics
/// If the name is too long for an interface.
pub fn interface_facts(name: &str) -> io::Result<InterfaceFacts> {
    const REST: usize = size_of::<libc::ifreq>() - IFNAMSIZ;
    /// A `struct ifreq`, with its answer as octets.
    #[repr(C)]
    struct Request {
        name: [c_char; IFNAMSIZ],
        answer: [u8; REST],
    }
    const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let ask = |request: libc::c_ulong| -> io::Result<[u8; REST]> {
        let mut asked = Request { name: interface_name(name), answer: [0; REST] };
        // SAFETY: these requests read and write a `struct ifreq`, which lives during the call.
        checked(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut asked) })?;
        Ok(asked.answer)
    };
    let number = |answer: [u8; REST]| c_int::from_ne_bytes([answer[0], answer[1], answer[2], answer[3]]);
    let word = |answer: [u8; REST]| u16::from_ne_bytes([answer[0], answer[1]]);
    Ok(InterfaceFacts {
        index: number(ask(libc::SIOCGIFINDEX as _)?),
        mtu: number(ask(libc::SIOCGIFMTU as _)?).unsigned_abs(),
        is_up: c_int::from(word(ask(libc::SIOCGIFFLAGS as _)?)) & libc::IFF_UP != 0,
        is_ethernet: word(ask(libc::SIOCGIFHWADDR as _)?) == libc::ARPHRD_ETHER,
        has_address: ask(libc::SIOCGIFADDR as _).is_ok(),
    })
}

/// Returns a socket that receives and sends the whole frames of an interface, which becomes promiscuous until the
/// socket is closed. Each frame is preceded by the header of [`crate::frame::offload`]. The socket does not receive
/// what this machine sends, never blocks, and bypasses the interface's queue discipline.
///
/// # Errors
/// The operating system's error: `EPERM` without `CAP_NET_RAW`.
pub fn packet_socket(interface: c_int) -> io::Result<OwnedFd> {
    /// linux/if_packet.h.
    const PACKET_AUXDATA: c_int = 8;
    const PACKET_VNET_HDR: c_int = 15;
    const PACKET_QDISC_BYPASS: c_int = 20;
    const PACKET_IGNORE_OUTGOING: c_int = 23;
    /// Room for the packets that arrive while this process is late.
    const BUFFER: c_int = 64 << 20;
    // Without a protocol, nothing arrives before the socket is bound.
    // SAFETY: the call has no conditions; the descriptor that it returns has no other owner.
    let socket = unsafe {
        let open =
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
        if open < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(open)
    };
    for option in [PACKET_VNET_HDR, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS] {
        set(&socket, libc::SOL_PACKET, option, 1)?;
    }
    // Without CAP_NET_ADMIN, the buffer stays as long as the machine allows.
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        let _ = set(&socket, libc::SOL_SOCKET, option, BUFFER);
    }
    // SAFETY: any bytes are a valid `sockaddr_ll` and a valid `packet_mreq`.
    let (mut address, mut request): (libc::sockaddr_ll, libc::packet_mreq) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface;
    request.mr_ifindex = interface;
    request.mr_type = libc::PACKET_MR_PROMISC as u16;
    // SAFETY: the kernel reads a `packet_mreq` and a `sockaddr_ll` of these lengths, which live during the calls.
    unsafe {
        checked(libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        ))?;
        checked(libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ))?;
    }
    Ok(socket)
}

/// A frame that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its length, with all headers; the parts may hold fewer octets.
    pub length: usize,
    /// Whether the kernel has removed a VLAN tag from it.
    pub tagged: bool,
}

/// Receives a frame from a [`packet_socket`] into three parts; returns `None` if no frame waits.
///
/// # Errors
/// Any error from the operating system, except that the interface is down, so that nothing can arrive.
pub fn receive_parts(socket: BorrowedFd<'_>, parts: [&mut [u8]; 3]) -> io::Result<Option<Received>> {
    /// `struct tpacket_auxdata` of linux/if_packet.h.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Auxiliary {
        status: u32,
        lengths: [u32; 2],
        offsets: [u16; 4],
    }
    const PACKET_AUXDATA: c_int = 8;
    const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
    /// Control messages, aligned as `struct cmsghdr`.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut vectors =
        parts.map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
    // SAFETY: any bytes are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the kernel writes at most the given numbers of bytes to the parts and to `control`, all of which live
    // during the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    if length < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(None),
            _ => Err(error),
        };
    }
    let mut tagged = false;
    // SAFETY: the kernel has set `msg_controllen`, so the macros stay within `control`; a message of this type
    // contains a `tpacket_auxdata`, which may be unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_PACKET && (*header).cmsg_type == PACKET_AUXDATA {
                let auxiliary: Auxiliary = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                tagged |= auxiliary.status & TP_STATUS_VLAN_VALID != 0;
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(Some(Received { length: length.unsigned_abs(), tagged }))
}

/// Sends a frame in three parts through a [`packet_socket`], at once or not at all.
///
/// # Errors
/// Any error from the operating system.
pub fn send_parts(socket: BorrowedFd<'_>, parts: [&[u8]; 3]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let sent = rustix::io::writev(socket, &parts.map(io::IoSlice::new))?;
    if sent == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Returns the number of frames that found no room in the buffer of a [`packet_socket`] since the last call.
///
/// # Errors
/// Any error from the operating system.
pub fn packets_dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    const PACKET_STATISTICS: c_int = 6;
    /// `struct tpacket_stats` of linux/if_packet.h.
    #[repr(C)]
    #[derive(Default)]
    struct Statistics {
        packets: u32,
        drops: u32,
    }
    let mut statistics = Statistics::default();
    let mut length = size_of::<Statistics>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `statistics`, in which any bytes are valid.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    })?;
    Ok(statistics.drops.into())
}

/// Returns the name in the form that it has at the beginning of a `struct ifreq`.
fn interface_name(name: &str) -> [c_char; IFNAMSIZ] {
    assert!(name.len() < IFNAMSIZ, "an interface's name and its final zero must fit into {IFNAMSIZ} bytes");
    let mut octets = [0; IFNAMSIZ];
    for (to, from) in octets.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    octets
}

/// A `struct ifreq` with flags.
#[repr(C)]
struct InterfaceRequest {
    name: [c_char; IFNAMSIZ],
    flags: c_short,
    rest: [u8; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<c_short>()],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// The kernel's `struct tcp_info`, with the length that it has in this kernel. Newer kernels add fields but
/// never change existing ones; fields that a kernel does not know are absent.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl TcpInfo {
    /// A length that exceeds that of the structure in any kernel so far (280 bytes in Linux 6.18).
    const MOST: usize = 512;

    /// Returns these bytes as if they were a kernel's answer.
    #[cfg(test)]
    pub fn of_bytes(answer: &[u8]) -> Self {
        let mut bytes = [0; Self::MOST];
        bytes[..answer.len()].copy_from_slice(answer);
        TcpInfo { bytes, length: answer.len() }
    }

    fn field<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes[..self.length].get(at..at + N)?.try_into().ok()
    }

    /// Returns the byte at offset `at`.
    pub fn u8(&self, at: usize) -> Option<u8> {
        self.field::<1>(at).map(|[byte]| byte)
    }

    /// Returns the two-byte field at offset `at`.
    pub fn u16(&self, at: usize) -> Option<u16> {
        self.field(at).map(u16::from_ne_bytes)
    }

    /// Returns the four-byte field at offset `at`.
    pub fn u32(&self, at: usize) -> Option<u32> {
        self.field(at).map(u32::from_ne_bytes)
    }

    /// Returns the eight-byte field at offset `at`.
    pub fn u64(&self, at: usize) -> Option<u64> {
        self.field(at).map(u64::from_ne_bytes)
    }
}

/// Returns the kernel's information on a connection.
///
/// # Errors
/// Any error from the operating system.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = TcpInfo { bytes: [0; TcpInfo::MOST], length: TcpInfo::MOST };
    let mut length = TcpInfo::MOST as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `bytes`, which has room for that many,
    // and in which any bytes are valid; it also writes the number of these bytes to `length`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    checked(answer)?;
    info.length = length as usize;
    Ok(info)
}

/// Limits the payload and TCP options of each segment of this socket to `bytes` in total.
///
/// # Errors
/// Any error from the operating system.
pub fn set_max_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as c_int)
}

/// Limits the receive window that the socket advertises to `bytes`.
///
/// # Errors
/// Any error from the operating system.
pub fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes as c_int)
}

/// Makes the socket writable only while fewer than `bytes` bytes of its data are unsent.
///
/// # Errors
/// Any error from the operating system.
pub fn set_notsent_low_water(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as c_int)
}

/// Makes the socket's error queue report when all bytes of a write have been acknowledged.
///
/// # Errors
/// Any error from the operating system.
pub fn stamp_acknowledgments(socket: impl AsFd) -> io::Result<()> {
    // Without OPT_TSONLY, the message would carry the data, which requires a capability.
    let flags = libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as c_int)
}

/// Returns the number of bytes that a connection's application has written and the other side has not
/// acknowledged; the end of the stream counts as one byte.
///
/// # Errors
/// Any error from the operating system.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    const SIOCOUTQ: u32 = libc::TIOCOUTQ as u32;
    // SAFETY: SIOCOUTQ writes one `int`.
    let bytes = unsafe { ioctl(socket.as_fd(), Getter::<SIOCOUTQ, c_int>::new()) }?;
    // A number of bytes is never negative.
    Ok(u64::from(bytes.unsigned_abs()))
}

fn set(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<c_int>()` bytes from a `c_int` that lives during the call.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    checked(answer)
}

fn checked(answer: c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of page faults that a write to each page costs while a forked child exists.
    fn faults_after_fork(memory: &mut [u8]) -> i64 {
        let faults = || {
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the call writes a `rusage`, in which any bytes are valid.
            unsafe {
                checked(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr())).expect("an answer");
                usage.assume_init().ru_minflt
            }
        };
        memory.fill(1);
        let first = first_process().expect("a child");
        let before = faults();
        memory.fill(2);
        let after = faults();
        first.kill();
        first.wait();
        after - before
    }

    #[test]
    fn a_fork_makes_no_write_to_such_memory_slower() {
        const PAGES: usize = 4096;
        let mut copied = vec![0; PAGES * rustix::param::page_size()];
        let mut kept = copied.clone();
        let unforked = Unforked::new(&mut kept);
        let (with, without) = (faults_after_fork(&mut kept), faults_after_fork(&mut copied));
        drop(unforked);
        // Huge pages make faults rare, but never absent.
        assert!(with * 8 < without, "{with} faults, {without} otherwise");
        assert!(faults_after_fork(&mut kept) > with, "and when it is dropped, the memory is as any other");
    }
}
