//! The plan that is entered into the manifests of tests.

use aqmlab_scenario::Plan;

/// Returns the plan of the smallest scenario.
pub fn plan() -> Plan {
    let text = "title = \"t\"\nduration = \"1s\"\n\
                topology = { kind = \"dumbbell\", rate = \"1Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                [[traffic]]\nname = \"a\"\nkind = \"bulk\"\n";
    aqmlab_scenario::parse(text, "test").expect("a scenario").arms.remove(0)
}
