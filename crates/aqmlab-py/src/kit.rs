//! The kit for authors of congestion controls, with a controller that is a Python object.
//!
//! The runs take place in a thread of their own; each call of the controller takes the interpreter lock. If a call
//! raises an exception, all runs end, and the exception reaches the caller with its traceback.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;

use aqmlab_kit::{Bands, Controller, KitError, Report, RoundTrips, SITUATIONS, Settings};
use aqmlab_sim::Control;
use aqmlab_units::Instant;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{PythonRunError, UsageError};
use crate::pool::TICK;

/// The window, in bytes, of a controller that has raised an exception, until its run ends.
const WINDOW_OF_FAILED: u64 = 2400;

/// Returns the situations as JSON text.
#[pyfunction]
pub(crate) fn kit_situations() -> String {
    let row = |situation: &aqmlab_kit::Situation| {
        json!({
            "name": situation.name,
            "sections": situation.sections,
            "criterion": situation.criterion,
            "measures": situation.measures,
            "scenario": situation.text,
        })
    };
    Value::from(SITUATIONS.iter().map(row).collect::<Vec<_>>()).to_string()
}

/// Judges the controllers that `factory` creates from the time in seconds and the bytes of a full datagram. `round_trips`
/// is the class of the round-trip times that they receive. Returns the report as JSON text.
#[pyfunction]
pub(crate) fn kit_judge(
    py: Python<'_>,
    factory: Py<PyAny>,
    round_trips: Py<PyAny>,
    name: &str,
    situations: Vec<String>,
    runs: u64,
) -> PyResult<String> {
    let shared = Arc::new(Shared {
        round_trips,
        control: Control::default(),
        failed: AtomicBool::default(),
        error: Mutex::default(),
    });
    let settings = Settings { situations, runs };
    let mut interrupted = None;
    let judged = py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        let (settings, factory, shared) = (&settings, &factory, &shared);
        thread::scope(|scope| {
            scope.spawn(move || sender.send(judge(name, settings, factory, shared)));
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(judged) => return Some(judged),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if interrupted.is_none() {
                    interrupted = Python::attach(|py| py.check_signals()).err();
                    shared.control.cancel.fetch_or(interrupted.is_some(), Ordering::Relaxed);
                }
            }
        })
    });
    let raised = interrupted.or_else(|| shared.error.lock().ok()?.take());
    match (raised, judged) {
        (Some(error), _) => Err(error),
        (None, Some(Ok(report))) => Ok(json!({"report": report, "table": report.to_string()}).to_string()),
        (None, Some(Err(error @ (KitError::Unknown { .. } | KitError::NoRuns)))) => {
            Err(UsageError::new_err(error.to_string()))
        }
        (None, Some(Err(error))) => Err(PythonRunError::new_err(error.to_string())),
        (None, None) => {
            Err(PythonRunError::new_err("a defect of aqmlab: the runs have ended without a result"))
        }
    }
}

fn judge(
    name: &str,
    settings: &Settings,
    factory: &Py<PyAny>,
    shared: &Arc<Shared>,
) -> Result<Report, KitError> {
    let bands = Bands::measure_under(settings, &shared.control)?;
    let new = |now: Instant, datagram: u32| {
        let object = shared.attempt(|py| factory.call1(py, (seconds(now), datagram)));
        Box::new(Foreign { object, shared: Arc::clone(shared) }) as Box<dyn Controller>
    };
    bands.judge_under(name, &new, &shared.control)
}

fn seconds(at: Instant) -> f64 {
    at.as_ns() as f64 / 1e9
}

/// What all controllers of a judgment share.
struct Shared {
    /// The class of round-trip times.
    round_trips: Py<PyAny>,
    control: Control,
    failed: AtomicBool,
    /// The first exception that a controller has raised.
    error: Mutex<Option<PyErr>>,
}

impl Shared {
    /// Calls a controller, unless one has failed. If the call raises an exception, keeps it and ends the runs.
    fn attempt<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let error = match Python::attach(call) {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
        self.failed.store(true, Ordering::Relaxed);
        self.control.cancel.store(true, Ordering::Relaxed);
        None
    }
}

/// A controller that is a Python object.
struct Foreign {
    /// `None` if its creation has failed.
    object: Option<Py<PyAny>>,
    shared: Arc<Shared>,
}

impl Foreign {
    /// Uses the object, unless a controller has failed.
    fn with<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        self.shared.attempt(|py| call(object.bind(py)))
    }
}

/// Calls a method that returns nothing.
macro_rules! tell {
    ($controller:ident.$method:ident($($argument:expr),*)) => {
        $controller.with(|object| {
            object.call_method1(intern!(object.py(), stringify!($method)), ($($argument,)*)).map(drop)
        });
    };
}

impl Controller for Foreign {
    fn on_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        tell!(self.on_sent(seconds(now), bytes, number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RoundTrips) {
        let class = &self.shared.round_trips;
        self.with(|object| {
            let rtt =
                [rtt.latest, rtt.least, rtt.smoothed, rtt.variance].map(|span| span.as_ns() as f64 / 1e9);
            let rtt = class.bind(object.py()).call1((rtt[0], rtt[1], rtt[2], rtt[3]))?;
            let name = intern!(object.py(), "on_ack");
            object.call_method1(name, (seconds(now), seconds(sent), bytes, app_limited, rtt)).map(drop)
        });
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        tell!(self.on_end_acks(seconds(now), in_flight, app_limited, largest));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        tell!(self.on_congestion_event(seconds(now), seconds(sent), persistent, lost_bytes));
    }

    fn on_ecn(&mut self, now: Instant, sent: Instant, marks: u64) {
        tell!(self.on_ecn(seconds(now), seconds(sent), marks));
    }

    fn on_spurious(&mut self, now: Instant, sent: Instant, bytes: u64) {
        tell!(self.on_spurious(seconds(now), seconds(sent), bytes));
    }

    fn window(&self) -> u64 {
        self.with(|object| {
            let value = object.call_method0(intern!(object.py(), "window"))?;
            whole(&value, "`window` must return a whole number of bytes")
        })
        .unwrap_or(WINDOW_OF_FAILED)
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.with(|object| {
            let value = object.call_method0(intern!(object.py(), "pacing_rate"))?;
            let expected = "`pacing_rate` must return a whole number of bytes per second, or None";
            if value.is_none() { Ok(None) } else { whole(&value, expected).map(Some) }
        })
        .flatten()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let object = self.with(|object| {
            let copy = object.py().import("copy")?.call_method1("deepcopy", (object,))?;
            Ok(copy.unbind())
        });
        Box::new(Foreign { object, shared: Arc::clone(&self.shared) })
    }
}

/// Returns a whole number that is not negative.
fn whole(value: &Bound<'_, PyAny>, expected: &str) -> PyResult<u64> {
    match value.extract() {
        Ok(number) => Ok(number),
        Err(_) => Err(PyTypeError::new_err(format!("{expected}; it has returned {}", value.repr()?))),
    }
}
