//! What is wrong with a scenario, and where.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// One thing that is wrong, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Line, the first is 1; 0 where the file could not be read at all.
    pub line: usize,
    /// Column in characters, the first is 1; 0 where the file could not be read at all.
    pub column: usize,
    /// What it is about: `topology.queue`; may be empty.
    pub path: String,
    /// The offending value and what would be right: a sentence without a full stop.
    pub message: String,
}

/// A scenario that cannot be run: everything found wrong with it, in the order of the file. Prints one line
/// each, `file:line:column: path: message`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The file as the person named it.
    pub file: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if problem.line > 0 {
                write!(f, ":{}:{}", problem.line, problem.column)?;
            }
            f.write_str(": ")?;
            if !problem.path.is_empty() {
                write!(f, "{}: ", problem.path)?;
            }
            f.write_str(&problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// Collects problems and warnings while a scenario is read, so that one look at the file finds them all.
#[derive(Debug)]
pub(crate) struct Report<'t> {
    text: &'t str,
    problems: Vec<(Range<usize>, String, String)>,
    known: Known,
    /// First keys of the paths of problems.
    concerned: BTreeSet<String>,
    warnings: Vec<String>,
}

/// Place and words of problems: the same words at the same place are the same mistake, met again in another arm, hop
/// or case.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known(BTreeSet<(usize, usize, String)>);

impl Known {
    /// Whether it is new.
    fn insert(&mut self, span: &Range<usize>, message: &str) -> bool {
        self.0.insert((span.start, span.end, message.to_string()))
    }

    pub(crate) fn has(&self, span: &Range<usize>, message: &str) -> bool {
        self.0.contains(&(span.start, span.end, message.to_string()))
    }
}

impl<'t> Report<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Report {
            text,
            problems: Vec::new(),
            known: Known::default(),
            concerned: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Something is wrong at `span`, which is about `path`.
    pub(crate) fn error(&mut self, span: &Range<usize>, path: &str, message: impl Into<String>) {
        let message = message.into();
        if self.known.insert(span, &message) {
            self.concerned.insert(path.split('.').next().unwrap_or_default().to_string());
            self.problems.push((span.clone(), path.to_string(), message));
        }
    }

    /// Something is allowed but suspicious.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    pub(crate) fn has_warning(&self, message: &str) -> bool {
        self.warnings.iter().any(|known| known == message)
    }

    /// What the file says at `span`, shortened if long.
    pub(crate) fn quote(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().take(60).collect();
        if short.len() < text.len() { format!("{short}...") } else { short }
    }

    /// What the file says at `span`, all of it.
    pub(crate) fn written(&self, span: &Range<usize>) -> &'t str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Line and column of the first character of the text whose quotes begin at `span`.
    pub(crate) fn begin_of_text(&self, span: &Range<usize>) -> (usize, usize) {
        let written = self.written(span);
        let quotes = ["\"\"\"\r\n", "\"\"\"\n", "\"\"\"", "'''\r\n", "'''\n", "'''", "\"", "'"];
        let opening = quotes.iter().find(|q| written.starts_with(**q)).map_or(0, |q| q.len());
        Lines::of(self.text).position(span.start + opening)
    }

    /// The line in which `span` begins.
    pub(crate) fn line_of(&self, span: &Range<usize>) -> usize {
        Lines::of(self.text).position(span.start).0
    }

    /// Leaves out the problems with such words.
    pub(crate) fn forget(&mut self, words: impl Fn(&str) -> bool) {
        self.problems.retain(|(_, _, message)| !words(message));
    }

    /// Something at `span` that not every host can do.
    pub(crate) fn problem(&self, span: &Range<usize>, path: &str, message: String) -> Problem {
        let (line, column) = Lines::of(self.text).position(span.start);
        Problem { line, column, path: path.to_string(), message }
    }

    /// All that it has found so far.
    pub(crate) fn known(&self) -> Known {
        self.known.clone()
    }

    /// Takes over what another report on the same text found and this one did not: `note` is added where the place
    /// does not speak for itself. Returns the other's warnings.
    pub(crate) fn absorb(
        &mut self,
        other: Report<'_>,
        note: &str,
        speaks: impl Fn(&Range<usize>, &str) -> bool,
    ) -> Vec<String> {
        for (span, path, message) in other.problems {
            if self.known.insert(&span, &message) {
                let note = if speaks(&span, &message) { "" } else { note };
                self.concerned.extend(path.split('.').next().map(str::to_string));
                self.problems.push((span, path, format!("{message}{note}")));
            }
        }
        other.warnings
    }

    /// Whether nothing is wrong at or below the path's first key, such as `topology`.
    pub(crate) fn is_clean_of(&self, first: &str) -> bool {
        !self.concerned.contains(first)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The warnings, or everything that is wrong, in the order of the file.
    pub(crate) fn finish(mut self, file: &str) -> Result<Vec<String>, ScenarioError> {
        if self.problems.is_empty() {
            return Ok(self.warnings);
        }
        self.problems.sort_by_key(|(span, _, _)| span.start);
        let lines = Lines::of(self.text);
        let problems = self
            .problems
            .into_iter()
            .map(|(span, path, message)| {
                let (line, column) = lines.position(span.start);
                Problem { line, column, path, message }
            })
            .collect();
        Err(ScenarioError { file: file.to_string(), problems })
    }
}

/// Where the lines of a text begin.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { text, starts }
    }

    /// Line and column of a byte offset, both from 1, columns in characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset);
        (line, self.text[self.starts[line - 1]..offset].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_not_bytes() {
        assert_eq!(Lines::of("a\näöü x").position(8), (2, 4));
        assert_eq!(Lines::of("").position(5), (1, 1));
    }
}
