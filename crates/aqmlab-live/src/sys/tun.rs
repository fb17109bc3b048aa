//! TUN devices.

use std::io;
use std::os::fd::BorrowedFd;

use libc::{IFF_NO_PI, IFF_TUN, IFNAMSIZ, c_char, c_short};
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// Makes an opened `/dev/net/tun` the other end of a new interface `name`, which carries bare IP packets.
///
/// The interface is made in the network namespace in which the file was opened, and goes with the file. It has neither
/// packet information nor the header for offloads: so the kernel hands over each packet as it would leave a
/// machine, segmented and with its checksum.
///
/// # Errors
/// What the system said: `EBUSY` if there is an interface of that name, `EPERM` without `CAP_NET_ADMIN`.
///
/// # Panics
/// If the name is longer than interfaces' names can be.
pub fn attach_tun(file: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    /// `_IOW('T', 202, int)` by its definition; the kernel reads a `struct ifreq` all the same.
    const TUNSETIFF: Opcode = opcode::write::<libc::c_int>(b'T', 202);
    assert!(name.len() < IFNAMSIZ, "the name of an interface ends in a zero within {IFNAMSIZ} bytes");
    let mut request = InterfaceRequest {
        name: [0; IFNAMSIZ],
        flags: (IFF_TUN | IFF_NO_PI) as c_short,
        rest: [0; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<c_short>()],
    };
    for (to, from) in request.name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, whose size and beginning `InterfaceRequest` has.
    unsafe { ioctl(file, Setter::<TUNSETIFF, InterfaceRequest>::new(request)) }.map_err(io::Error::from)
}

/// A `struct ifreq` with flags.
#[repr(C)]
struct InterfaceRequest {
    name: [c_char; IFNAMSIZ],
    flags: c_short,
    rest: [u8; size_of::<libc::ifreq>() - IFNAMSIZ - size_of::<c_short>()],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());
