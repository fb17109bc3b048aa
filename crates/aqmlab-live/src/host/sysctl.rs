//! Settings of a network namespace under `/proc/sys/net`, which shows those of the calling thread's namespace.

use std::fs;
use std::io;

use serde_json::Value;

use super::refusal;
use crate::error::LiveError;

/// A setting and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sysctl {
    /// Below `/proc/sys/net`: `"ipv4/tcp_sack"`.
    pub name: &'static str,
    /// What it is set to.
    pub value: String,
    /// What a run without it lacks, if that is worth telling: a kernel that does not know the setting mostly does not do
    /// what it switches off either.
    pub without: Option<&'static str>,
}

impl Sysctl {
    /// One that a kernel may lack.
    pub fn new(name: &'static str, value: impl ToString) -> Self {
        Sysctl { name, value: value.to_string(), without: None }
    }

    /// One whose lack is told.
    pub fn wanted(name: &'static str, value: impl ToString, without: &'static str) -> Self {
        Sysctl { without: Some(without), ..Sysctl::new(name, value) }
    }

    /// The name as sysctl(8) has it.
    pub fn dotted(&self) -> String {
        format!("net.{}", self.name.replace('/', "."))
    }
}

/// What a namespace has been set to, as the kernel shows it, and what it could not be set to.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// By name.
    pub values: serde_json::Map<String, Value>,
    /// Sentences.
    pub remarks: Vec<String>,
}

/// Sets the namespace of the calling thread.
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
                format!("this kernel does not take `{} = {}`: {without}", setting.dotted(), setting.value)
            })),
            Err(error) => return Err(refusal::sysctl(&path, error)),
        }
    }
    Ok(applied)
}

/// The kernel does not have the setting, or not this value of it.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}
