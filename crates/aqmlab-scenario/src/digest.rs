//! The digest of a plan.

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::plan::Plan;

impl Plan {
    /// Returns the SHA-256, in hexadecimal, of everything that determines the result of a run
    /// except the seed: the canonical JSON (sorted keys, no spaces) of the plan without title, arm
    /// name and origins.
    pub fn digest(&self) -> String {
        let mut plan =
            serde_json::to_value(self).expect("a plan's keys are strings, and JSON can express its values");
        if let Some(plan) = plan.as_object_mut() {
            plan.retain(|key, _| !matches!(key.as_str(), "title" | "arm" | "origins"));
        }
        let mut text = Vec::new();
        write_canonical(&plan, &mut text);
        Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Writes JSON without spaces and with sorted keys, whichever map `serde_json` was built with.
fn write_canonical(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push(b'{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key).expect("writing text to memory does not fail");
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Json::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        other => serde_json::to_writer(out, other).expect("writing a value to memory does not fail"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let mut text = Vec::new();
        write_canonical(&json!({ "b": [1, { "z": null, "a": "x\"y" }], "a": 0.1 }), &mut text);
        assert_eq!(text, br#"{"a":0.1,"b":[1,{"a":"x\"y","z":null}]}"#);
    }
}
