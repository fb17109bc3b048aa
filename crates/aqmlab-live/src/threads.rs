//! Threads of a run. If a thread cannot be started, the machine lacks resources, and the error says so.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::error::LiveError;
use crate::host::no_thread;

/// Starts a thread that does `work`; `what` is its name in messages, such as `"the router"`.
///
/// # Errors
/// If the system cannot provide a thread.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    what: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, LiveError> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| no_thread(what, &error))
}
