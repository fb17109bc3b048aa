//! A position in the text of a script.

use crate::script::Failure;

/// A position in the text of a script.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    pub line: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str, line: usize) -> Self {
        Cursor { text, at: 0, line }
    }

    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn is_over(&self) -> bool {
        self.at == self.text.len()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes on by `bytes`, and counts lines.
    pub fn skip(&mut self, bytes: usize) {
        self.line += self.rest()[..bytes].matches('\n').count();
        self.at += bytes;
    }

    /// Skips blanks and, with `lines`, also ends of lines and comments.
    pub fn skip_blanks(&mut self, lines: bool) {
        loop {
            let rest = self.rest();
            let blanks = |c: char| c.is_whitespace() && (lines || c != '\n');
            let length = rest.len() - rest.trim_start_matches(blanks).len();
            let comment = match () {
                () if length > 0 => length,
                () if lines && (rest.starts_with("//") || rest.starts_with('#')) => {
                    rest.find('\n').unwrap_or(rest.len())
                }
                () if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                () => return,
            };
            self.skip(comment);
        }
    }

    /// Takes `prefix` if it is next.
    pub fn take(&mut self, prefix: &str) -> bool {
        let next = self.rest().starts_with(prefix);
        if next {
            self.skip(prefix.len());
        }
        next
    }

    /// Takes characters as long as `wanted` is true.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.skip(length);
        &rest[..length]
    }

    /// Takes the text up to `end`, and `end` itself.
    pub fn take_until(&mut self, end: &str) -> Result<&'a str, Failure> {
        let (rest, line) = (self.rest(), self.line);
        let length = rest
            .find(end)
            .ok_or_else(|| Failure::syntax(line, format!("`{end}` is missing after this line")))?;
        self.skip(length + end.len());
        Ok(&rest[..length])
    }

    /// Takes the rest of the line without its comment.
    pub fn take_line(&mut self) -> &'a str {
        let line = self.take_while(|c| c != '\n');
        line.split("//").next().unwrap_or(line).trim()
    }

    pub fn error(&self, text: impl Into<String>) -> Failure {
        Failure::syntax(self.line, text)
    }
}
