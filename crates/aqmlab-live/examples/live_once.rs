//! Runs an arm of a scenario live, with the scenario's first seed, and prints the run's report and the
//! verdict on its faithfulness: `live_once FILE [ARM] [force] [ordinary] [out=DIR]`; `live_once selftest`
//! prints the rates up to which runs on this machine are faithful.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use aqmlab_live::{Options, live, selftest};
use aqmlab_scenario::{Limits, parse_within};
use aqmlab_storage::Folder;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let cancel = AtomicBool::new(false);
    if has("selftest") {
        println!("{:#}", selftest(&mut |_| (), &cancel)?.to_json());
        return Ok(());
    }
    let file = arguments.first().ok_or("live_once FILE [ARM] [force] [ordinary]")?;
    let (text, files) = (std::fs::read_to_string(file)?, Folder::of(file));
    let experiment = parse_within(&text, file, Limits::default(), &files).map_err(|e| e.to_string())?;
    let plan = experiment.arms.iter().find(|arm| has(&arm.arm)).unwrap_or(&experiment.arms[0]);
    let options = Options { force: has("force"), realtime: !has("ordinary") };
    let run = live(plan, experiment.seeds[0], &options, &mut |_| (), &cancel)?;
    if let Some(target) = arguments.iter().find_map(|argument| argument.strip_prefix("out=")) {
        aqmlab_storage::write(&run.recording, target.as_ref())?;
    }
    let mut live = run.recording.manifest.live.clone().expect("a live run has a report");
    live.lateness.bins.clear();
    live.generator.lateness.bins.clear();
    println!("{}", serde_json::to_string_pretty(&live)?);
    println!("{}: {}", plan.arm, run.faithfulness);
    Ok(())
}
