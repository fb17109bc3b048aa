//! Valid names.

/// Returns why `name` cannot be the name of a part of the network, or `None` if it can. Such names
/// become part of paths, file names and columns.
pub(crate) fn name_flaw(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.chars().count() > 64 {
        return Some("is not a name; a name has 1 to 64 characters");
    }
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | ' ');
    if !name.chars().all(fits) || name.trim() != name {
        return Some(
            "is not a name; a name consists of letters, digits, \"_\", \"-\", \"+\" and blanks between them",
        );
    }
    None
}

/// Returns whether `name` is valid for an arm, a claim or a label: free text on one line that
/// readers can distinguish from other names in tables and plots.
pub(crate) fn is_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.trim() == name
        && name.chars().count() <= 64
        && name.chars().all(is_printable)
}

/// Words that cannot name an axis, because they have a fixed meaning where names of axes are used.
pub(crate) const RESERVED: &[&str] = &["arm", "case", "class", "from", "queue", "seed", "until"];

/// Returns whether an axis can have this name. Few characters are allowed, because in a claim the name of an
/// axis stands between operators.
pub(crate) fn is_axis_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    name.chars().next().is_some_and(char::is_alphabetic)
        && name.chars().count() <= 64
        && name.chars().all(fits)
        && !RESERVED.contains(&name)
}

/// Returns whether a character is printable: neither a control character, which a terminal would
/// obey, nor a character that changes the direction of the surrounding text.
pub(crate) fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_printable_line() {
        for name in ["RED", "1/4 of the buffer", "größer", "<b>"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", " ", " RED", "a\nb", "\u{1b}[2J", "abc\u{202e}def", &"x".repeat(65)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
