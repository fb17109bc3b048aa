//! Errors in a scenario, with their places.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// One error, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Line, counted from 1; 0 if the file could not be read.
    pub line: usize,
    /// Column in characters, counted from 1; 0 if the file could not be read.
    pub column: usize,
    /// The path of the key: `topology.queue`; may be empty.
    pub path: String,
    /// A sentence without a full stop that states the offending value and the accepted ones.
    pub message: String,
}

/// A scenario that cannot be run: all its errors, in the order of the file. Each is displayed on a
/// line of its own, `file:line:column: path: message`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The file name as the user gave it.
    pub file: String,
    /// The errors, at least one.
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

/// Collects errors and warnings while a scenario is read, so that one pass over the file finds them
/// all.
#[derive(Debug)]
pub(crate) struct Report<'t> {
    text: &'t str,
    problems: Vec<(Range<usize>, String, String)>,
    known: Known,
    /// The first key of each error's path.
    concerned: BTreeSet<String>,
    warnings: Vec<String>,
}

/// Places and messages of errors. The same message at the same place is the same mistake, found
/// again in another arm, hop or case.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known(BTreeSet<(usize, usize, String)>);

impl Known {
    /// Adds an error and returns whether it is new.
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

    /// Reports an error at `span`, about `path`.
    pub(crate) fn error(&mut self, span: &Range<usize>, path: &str, message: impl Into<String>) {
        let message = message.into();
        if self.known.insert(span, &message) {
            self.concerned.insert(path.split('.').next().unwrap_or_default().to_string());
            self.problems.push((span.clone(), path.to_string(), message));
        }
    }

    /// Reports something allowed but suspicious.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    pub(crate) fn has_warning(&self, message: &str) -> bool {
        self.warnings.iter().any(|known| known == message)
    }

    /// Returns the file's text at `span`, shortened if long.
    pub(crate) fn quote(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().take(60).collect();
        if short.len() < text.len() { format!("{short}...") } else { short }
    }

    /// Returns the file's full text at `span`.
    pub(crate) fn written(&self, span: &Range<usize>) -> &'t str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Returns the line and column of the first character within the quotes that open at the
    /// beginning of `span`.
    pub(crate) fn begin_of_text(&self, span: &Range<usize>) -> (usize, usize) {
        let written = self.written(span);
        let quotes = ["\"\"\"\r\n", "\"\"\"\n", "\"\"\"", "'''\r\n", "'''\n", "'''", "\"", "'"];
        let opening = quotes.iter().find(|q| written.starts_with(**q)).map_or(0, |q| q.len());
        Lines::of(self.text).position(span.start + opening)
    }

    /// Returns the line in which `span` begins.
    pub(crate) fn line_of(&self, span: &Range<usize>) -> usize {
        Lines::of(self.text).position(span.start).0
    }

    /// Removes the errors whose message satisfies the predicate `words`.
    pub(crate) fn forget(&mut self, words: impl Fn(&str) -> bool) {
        self.problems.retain(|(_, _, message)| !words(message));
    }

    /// Returns a problem without adding it to the report: something at `span` that not every host
    /// supports.
    pub(crate) fn problem(&self, span: &Range<usize>, path: &str, message: String) -> Problem {
        let (line, column) = Lines::of(self.text).position(span.start);
        Problem { line, column, path: path.to_string(), message }
    }

    /// Returns the errors found so far.
    pub(crate) fn known(&self) -> Known {
        self.known.clone()
    }

    /// Adds those errors of another report on the same text that are missing from this one. `note`
    /// is added to the message if the place alone does not identify the case. Returns the warnings
    /// of the other report.
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

    /// Returns whether no error was found at the top-level key `first`, such as `topology`, or
    /// below it.
    pub(crate) fn is_clean_of(&self, first: &str) -> bool {
        !self.concerned.contains(first)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the warnings or, if there are errors, all errors in the order of the file.
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

/// A text, and the offset at which each of its lines begins.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { text, starts }
    }

    /// Returns the line and column of a byte offset, both counted from 1; the column is in characters.
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
