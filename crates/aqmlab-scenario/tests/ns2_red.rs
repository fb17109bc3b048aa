//! RED's settings under ns-2's and ns-3's names give the parameters that ns-2.35 computes from them
//! (`vectors/ns2-red-parameters`).

use std::fs;
use std::path::PathBuf;

use aqmlab_scenario::parse;
use aqmlab_units::Bytes;
use aqmlab_units::text::Size;

/// Returns the effective parameters of a RED queue with these settings at a link.
fn resolved(rate: &str, delay: &str, settings: &str) -> aqmlab_qdisc::Effective {
    let text = format!(
        "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
         queue = {{ kind = \"red\"{settings} }}\n[[traffic]]\nkind = \"cbr\"\nrate = \"1Mbit\"\n"
    );
    let mut experiment = parse(&text, "test").unwrap_or_else(|e| panic!("{settings}: {e}"));
    experiment.arms.remove(0).links.remove(0).queue
}

/// Returns a threshold in packets of the queue's mean size.
fn in_packets(size: Size, mean: f64) -> f64 {
    match size {
        Size::Packets(n) => n.as_f64(),
        Size::Bytes(n) => n.as_f64() / mean,
        other => panic!("`{other}` is not resolved"),
    }
}

/// A link of ns-2 with its settings, and the parameters that ns-2 computed.
struct Row {
    rate: String,
    delay: String,
    settings: Vec<(String, String)>,
    weight: f64,
    min_th: f64,
    max_th: f64,
}

fn recorded() -> Vec<Row> {
    let file = "../../vectors/ns2-red-parameters/parameters.csv";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).expect("the recording is there");
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let words: Vec<&str> = cells[2].split_whitespace().collect();
        let number = |i: usize| cells[i].parse().expect("a number");
        Row {
            rate: cells[0].replace("Mb", "Mbit"),
            delay: cells[1].into(),
            settings: words.chunks(2).map(|pair| (pair[0].into(), pair[1].into())).collect(),
            weight: number(3),
            min_th: number(4),
            max_th: number(5),
        }
    });
    rows.collect()
}

/// Compares each recorded row with a scenario that writes `written` in addition to the row's own settings.
fn compare(rows: &[Row], written: &str) {
    for row in rows {
        let own: String = row.settings.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
        let case = format!("{} {}{own}{written}", row.rate, row.delay);
        let queue = resolved(&row.rate, &row.delay, &format!("{own}{written}"));
        let Ok(Size::Bytes(mean)) = queue.size("mean_packet") else { panic!("{case}") };
        let weight = queue.number("w_q").expect("it is resolved");
        assert!((weight / row.weight - 1.0).abs() < 1e-9, "{case}: {weight} instead of {}", row.weight);
        for (name, theirs) in [("min_th", row.min_th), ("max_th", row.max_th)] {
            let ours = in_packets(queue.size(name).expect("it is resolved"), mean.as_f64());
            // Thresholds here are whole bytes.
            let most = 3.0 / mean.as_f64();
            assert!((ours - theirs).abs() <= most, "{case}: {name} {ours} instead of {theirs}");
        }
    }
}

#[test]
fn the_preset_with_the_settings_of_ns2_computes_what_ns2_computes() {
    let rows = recorded();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    compare(&rows, ", preset = \"ns2\", limit_ = 1000");
}

/// Without the preset, a request for an automatic value brings ns-2's rule for it.
#[test]
fn an_automatic_value_follows_the_rule_of_ns2_without_its_preset() {
    let has = |row: &Row, name: &str| row.settings.iter().any(|(n, _)| n == name);
    let mut rows = recorded();
    rows.retain(|row| has(row, "q_weight_") && !has(row, "mean_pktsize_"));
    assert!(rows.len() >= 9, "{} rows", rows.len());
    compare(&rows, ", thresh_ = 0, maxthresh_ = 0, mean_pktsize_ = 500");
}

/// In ns-3, a weight of 0, -1 or -2 is automatic as in ns-2, and a bare threshold is in packets.
#[test]
fn the_names_of_ns3_give_the_same_parameters() {
    let ns2 = resolved(
        "45Mbit",
        "100ms",
        ", q_weight_ = -2, thresh_ = 5, maxthresh_ = 15, linterm_ = 50, wait_ = true",
    );
    let ns3 = resolved("45Mbit", "100ms", ", QW = -2, MinTh = 5, MaxTh = 15.0, LInterm = 50, Wait = true");
    for name in ["w_q", "min_th", "max_th", "max_p", "uniformisation"] {
        assert_eq!(ns3.get(name), ns2.get(name), "{name}");
    }
    assert_eq!(ns3.size("min_th"), Ok(Size::Packets(aqmlab_units::Packets::new(5))));
    let mean = resolved("45Mbit", "100ms", ", MeanPktSize = 700, MaxSize = \"50p\"");
    assert_eq!(mean.size("mean_packet"), Ok(Size::Bytes(Bytes::new(700))));
}
