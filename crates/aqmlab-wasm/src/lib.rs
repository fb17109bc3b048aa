//! The simulator as a WebAssembly module. The module imports nothing: it needs no clock, file, thread or
//! environment, so it runs in a browser, in Node or in any other host.
//!
//! [`run_first_arm`] runs a scenario whole. A [`Session`] runs one in parts, for a picture that moves. The module
//! [`memory`] has the functions through which a host calls both.

pub mod memory;
mod picture;
mod session;

use std::io;

use aqmlab_recording::Recording;
use aqmlab_scenario::{Files, Limits, parse_within};
use aqmlab_sim::{Control, run};
use serde_json::{Map, Value, json};

pub use session::Session;

/// A host without files.
pub(crate) struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a WebAssembly module has no files"))
    }
}

/// Runs the first arm of the scenario `text` with its first seed. Returns a JSON object with the arm's name, the
/// seed, the number of events and the digest of each table of the recording, or an object with the message
/// `error`.
pub fn run_first_arm(text: &str) -> String {
    first_arm(text).unwrap_or_else(|message| json!({ "error": message })).to_string()
}

fn first_arm(text: &str) -> Result<Value, String> {
    let experiment = parse_within(text, "scenario.toml", Limits::default(), &NoFiles)
        .map_err(|error| error.to_string())?;
    let (plan, seed) = (&experiment.arms[0], experiment.seeds[0]);
    let recording = run(plan, seed, &Control::default()).map_err(|error| error.to_string())?;
    Ok(identity(&recording, &plan.arm, seed))
}

/// Returns what identifies a recording: arm, seed, number of events, and the digest of each table.
pub(crate) fn identity(recording: &Recording, arm: &str, seed: u64) -> Value {
    let written = recording.tables.iter().map(|table| (table.name, table.digest()));
    let streamed = recording.streamed.iter().map(|table| (table.name, table.digest));
    let tables: Map<String, Value> =
        written.chain(streamed).map(|(name, digest)| (name.to_owned(), json!(digest.to_string()))).collect();
    json!({ "arm": arm, "seed": seed, "events": recording.manifest.events, "tables": tables })
}
