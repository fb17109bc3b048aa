//! The valid word nearest to a wrong one, measured by the number of edits: insertions, deletions,
//! replacements, and swaps of neighbouring characters.

use strsim::osa_distance;

/// Returns the candidate nearest to `word`, if it is close enough to be the intended word. The
/// comparison ignores case, `_` and `-`.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = plain(word);
    let tolerance = (wanted.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|c| (osa_distance(&wanted, &plain(c)), c))
        .filter(|(d, _)| *d <= tolerance)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Returns all candidates, the nearest to `word` first; equally near candidates keep their order.
pub fn by_nearness<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
    let wanted = plain(word);
    let mut all: Vec<&str> = candidates.into_iter().collect();
    all.sort_by_cached_key(|candidate| osa_distance(&wanted, &plain(candidate)));
    all
}

/// Returns `"a", "b" and "c"`, for messages that list the accepted words.
pub(crate) fn listed<'c>(words: impl IntoIterator<Item = &'c str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|w| format!("\"{w}\"")).collect();
    match quoted.split_last() {
        None => "none".to_string(),
        Some((last, [])) => last.clone(),
        Some((last, head)) => format!("{} and {last}", head.join(", ")),
    }
}

/// Returns `1 value`, `3 values`.
pub(crate) fn counted(n: impl Into<u128>, noun: &str) -> String {
    let n: u128 = n.into();
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns ``there is no node "bta"; did you mean "beta"?``
pub(crate) fn no_such<'c>(
    what: &str,
    given: &str,
    known: impl IntoIterator<Item = &'c str> + Clone,
) -> String {
    match nearest(given, known.clone()) {
        Some(near) => format!("there is no {what} {given:?}; did you mean \"{near}\"?"),
        None => format!("there is no {what} {given:?}; there are {}", listed(known)),
    }
}

/// Returns the characters of a word that a comparison does not ignore, in lower case. Words longer
/// than any valid word are cut because the cost of a comparison is quadratic in their length.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_far_fetched() {
        let keys = ["min_th", "max_th", "max_p", "limit"];
        assert_eq!(nearest("minth", keys), Some("min_th"));
        assert_eq!(nearest("Min-Th", keys), Some("min_th"));
        assert_eq!(nearest("limti", keys), Some("limit"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn the_nearest_comes_first_and_none_is_left_out() {
        assert_eq!(by_nearness("rde", ["pi", "rem", "red"]), ["red", "rem", "pi"]);
        assert_eq!(by_nearness("", ["rem", "pi"]), ["pi", "rem"]);
    }

    #[test]
    fn a_swap_is_one_edit() {
        assert_eq!(nearest("abdc", ["abcd"]), Some("abcd"));
        assert_eq!(nearest("badc", ["abcd"]), None);
    }
}
