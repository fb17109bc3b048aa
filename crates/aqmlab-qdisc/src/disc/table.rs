//! Parts common to the parameter tables of several disciplines.

use aqmlab_params::{Alias, Reading, Row};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets};

use crate::registry::Preset;

pub(super) const fn ns2(name: &'static str) -> Alias {
    Alias::new("ns-2", name)
}

/// Returns a parameter's name in ns-2. A number that is given under this name without a unit is in
/// `unit`: packets, seconds or bytes.
pub(super) const fn ns2_in(unit: &'static str, name: &'static str) -> Alias {
    ns2(name).reads(Reading::In(unit))
}

pub(super) const fn ns2_switch(name: &'static str) -> Alias {
    ns2(name).reads(Reading::Switch)
}

pub(super) const fn tc(name: &'static str) -> Alias {
    Alias::new("tc", name)
}

pub(super) const fn ns3(name: &'static str) -> Alias {
    Alias::new("ns-3", name)
}

/// Returns a parameter's name in tc. A number that is given under this name without a unit is in
/// bytes.
pub(super) const fn tc_bytes(name: &'static str) -> Alias {
    tc(name).reads(Reading::In("B"))
}

/// The parameter `max_packet`, the largest packet size, relative to which a discipline scales probabilities.
pub(super) const MAX_PACKET: Row<Bytes> = Row::bytes(1, 65_535).default(Bytes::new(1500));

/// The name of `measure` in ns-2's RED, PI and related disciplines.
pub(super) const IN_BYTES: Alias = ns2("queue_in_bytes_").reads(Reading::Words("bytes", "packets"));

pub(super) const fn packets(n: u64) -> Size {
    Size::Packets(Packets::new(n))
}

/// The preset whose automatic sizes follow tc.
pub(super) const LINUX: &str = "linux";
/// The preset that follows ns-2.
pub(super) const NS2: &str = "ns2";

pub(super) const NS2_TITLE: &str = "ns-2.35 as shipped";

/// Returns the names of all `N` presets, as the keywords of the choice among them.
pub(super) const fn names<const N: usize>(presets: &[Preset]) -> [&'static str; N] {
    assert!(presets.len() == N, "`N` is the number of presets");
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = presets[i].name;
        i += 1;
    }
    names
}

/// Returns the parameter `preset`, the choice among a discipline's presets; the first is the default.
pub(super) const fn presets(words: &'static [&'static str]) -> Row<&'static str> {
    Row::one_of(words).source("ours").help("the preset whose variants apply unless other values are given")
}
