//! The functions that the module exports. A host writes a text to memory from [`allocate`], calls [`run`] or [`ask`],
//! reads the answer, and gives both back to [`release`].

#![allow(unsafe_code)] // exported names, and memory that the host has filled

use crate::Session;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Returns memory for `len` bytes, which the host fills.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(len: usize) -> *mut u8 {
    let layout = bytes(len);
    // SAFETY: `bytes` never returns a layout of size 0.
    let start = unsafe { alloc(layout) };
    if start.is_null() {
        handle_alloc_error(layout);
    }
    start
}

/// Gives back memory of [`allocate`] or [`run`].
///
/// # Safety
/// `start` and `len` are those of one earlier call, and the memory has not been given back yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(start: *mut u8, len: usize) {
    // SAFETY: the caller says that the memory was allocated with this layout.
    unsafe { dealloc(start, bytes(len)) };
}

/// Does what [`run_first_arm`](crate::run_first_arm) does with the scenario at `text`. Returns the answer's address
/// in the lower half and its length in the upper half.
///
/// # Safety
/// `text` points to `len` bytes that the host has filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(text: *const u8, len: usize) -> u64 {
    // SAFETY: the caller says that these bytes exist.
    let text = unsafe { std::slice::from_raw_parts(text, len) };
    handed(&crate::run_first_arm(&String::from_utf8_lossy(text)))
}

/// Returns a new session, for [`ask`]. It lasts as long as the instance of the module.
#[unsafe(no_mangle)]
pub extern "C" fn begin() -> *mut Session {
    Box::into_raw(Box::default())
}

/// Answers the request at `text`, see [`Session::answer`]. Returns the answer as [`run`] does.
///
/// # Safety
/// `session` comes from [`begin`], no other call is using it, and `text` points to `len` bytes that the host has
/// filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(session: *mut Session, text: *const u8, len: usize) -> u64 {
    // SAFETY: the caller says that these bytes exist.
    let text = unsafe { std::slice::from_raw_parts(text, len) };
    // SAFETY: the caller says that this is a session of its own.
    let session = unsafe { &mut *session };
    handed(&session.answer(&String::from_utf8_lossy(text)))
}

/// Hands an answer to the host.
fn handed(answer: &str) -> u64 {
    let start = allocate(answer.len());
    // SAFETY: the memory is new and has this length.
    unsafe { std::ptr::copy_nonoverlapping(answer.as_ptr(), start, answer.len()) };
    (answer.len() as u64) << 32 | start as u64
}

fn bytes(len: usize) -> Layout {
    Layout::array::<u8>(len.max(1)).expect("a host asks for no more memory than there is")
}
