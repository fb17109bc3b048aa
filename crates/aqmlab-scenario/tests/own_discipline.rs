//! A scenario can name a discipline that is not built in, if it is read with the catalogue of a registry.

use aqmlab_qdisc::Registry;
use aqmlab_qdisc::contract::TestPacket;
use aqmlab_qdisc::registry::catalogue;
use aqmlab_random::Stream;
use aqmlab_scenario::{Limits, Plan, parse, parse_with, schema, schema_of};
use aqmlab_storage::Folder;

#[allow(dead_code, reason = "its `main` checks the contract")]
#[path = "../../aqmlab-qdisc/examples/own_discipline.rs"]
mod own_discipline;

fn scenario(queue: &str) -> String {
    format!(
        r#"duration = "2s"
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "5ms"
access_rate = "20Mbit"
queue = {queue}
[[traffic]]
name = "ftp"
kind = "bulk"
count = 2
rtt = "30ms"
"#
    )
}

#[test]
fn a_discipline_of_ones_own_is_named_in_a_scenario_and_built() {
    let mut registry = Registry::<TestPacket>::builtin();
    registry.register(own_discipline::slope()).unwrap();
    let known = registry.catalogue();
    let read = |text: &str| parse_with(text, "own.toml", Limits::default(), &Folder::of("own.toml"), &known);
    let inside = r#"{ kind = "policer", rate = "2Mbit", burst = "10kB", queue = "slope" }"#;
    for queue in [r#""slope""#, inside] {
        let plan = read(&scenario(queue)).unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        assert!(registry.build(&plan.links[0].queue, Stream::new(1, "slope")).is_ok(), "{queue}");
        let version = known.find("slope").map(|info| info.version);
        assert_eq!(plan.parts().get("qdisc.slope").copied(), version, "{queue}");
        let unknown = parse(&scenario(queue), "own.toml").unwrap_err().to_string();
        assert!(unknown.contains("there is no discipline") && unknown.contains("slope"), "{unknown}");
    }
    let misspelt = read(&scenario(r#""slopee""#)).unwrap_err().to_string();
    assert!(misspelt.contains("did you mean \"slope\"?"), "{misspelt}");
}

#[test]
fn the_schemas_list_the_disciplines_of_a_catalogue() {
    let mut registry = Registry::<TestPacket>::builtin();
    registry.register(own_discipline::slope()).unwrap();
    let lists = |schema: serde_json::Value, of: &str| schema["$defs"][of].to_string().contains("\"slope\"");
    for (known, listed) in [(&registry.catalogue(), true), (catalogue(), false)] {
        assert_eq!(lists(schema(known), "queue"), listed);
        assert_eq!(lists(schema_of::<Plan>(known), "Queue"), listed);
        assert_eq!(lists(schema_of::<Plan>(known), "InnerQueue"), listed);
    }
}
