//! Assertions about the socket: comparisons of named numbers, joined by `and` and `or`.

use crate::script::Failure;

/// Checks all assertions of a block; `value` returns the number of a name.
pub(crate) fn check(
    block: &str,
    first_line: usize,
    value: &mut impl FnMut(&str) -> Option<i64>,
) -> Result<(), Failure> {
    for (number, text) in block.split('\n').enumerate() {
        let text = text.split('#').next().unwrap_or_default();
        for statement in text.split(';') {
            let statement = statement.trim().trim_end_matches('\\').trim();
            if !statement.is_empty() {
                check_statement(statement, first_line + number, value)?;
            }
        }
    }
    Ok(())
}

fn check_statement(
    text: &str,
    line: usize,
    value: &mut impl FnMut(&str) -> Option<i64>,
) -> Result<(), Failure> {
    let Some(rest) = text.strip_prefix("assert").filter(|rest| rest.starts_with([' ', '('])) else {
        return Err(Failure::unsupported(line, format!("`{text}`: only `assert` is read")));
    };
    let mut reader = Reader { tokens: tokens(rest, line)?, at: 0, line, value, seen: Vec::new() };
    let holds = reader.any()? != 0;
    // What follows a comma is the message.
    if reader.at < reader.tokens.len() && reader.tokens[reader.at] != "," {
        return Err(reader.wrong());
    }
    if holds {
        return Ok(());
    }
    let seen: Vec<String> = reader.seen.iter().map(|(name, is)| format!("{name} is {is}")).collect();
    let expression: Vec<&str> = reader.tokens[..reader.at].iter().map(String::as_str).collect();
    Err(Failure::mismatch(line, format!("`{}`", expression.join(" ")), seen.join(", ")))
}

fn tokens(text: &str, line: usize) -> Result<Vec<String>, Failure> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' | '0'..='9' => {
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            '=' | '<' | '>' | '!' if rest[1..].starts_with('=') => 2,
            '<' | '>' | '(' | ')' | '+' | '-' | '*' | '&' | '|' => 1,
            ',' => {
                tokens.push(",".to_owned());
                return Ok(tokens);
            }
            _ => return Err(Failure::syntax(line, format!("cannot read `{rest}`"))),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Reader<'a, F> {
    tokens: Vec<String>,
    at: usize,
    line: usize,
    value: &'a mut F,
    /// The names that were read, with their values.
    seen: Vec<(String, i64)>,
}

impl<F: FnMut(&str) -> Option<i64>> Reader<'_, F> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let next = self.peek() == token;
        self.at += usize::from(next);
        next
    }

    fn wrong(&self) -> Failure {
        Failure::syntax(self.line, format!("cannot read the assertion at `{}`", self.peek()))
    }

    fn any(&mut self) -> Result<i64, Failure> {
        let mut holds = self.all()?;
        while self.take("or") {
            let next = self.all()?;
            holds = i64::from(holds != 0 || next != 0);
        }
        Ok(holds)
    }

    fn all(&mut self) -> Result<i64, Failure> {
        let mut holds = self.comparison()?;
        while self.take("and") {
            let next = self.comparison()?;
            holds = i64::from(holds != 0 && next != 0);
        }
        Ok(holds)
    }

    /// `a < b < c` compares both pairs.
    fn comparison(&mut self) -> Result<i64, Failure> {
        if self.take("not") {
            return Ok(i64::from(self.comparison()? == 0));
        }
        let (mut left, mut holds, mut compared) = (self.sum()?, true, false);
        loop {
            let operator = self.peek().to_owned();
            let test: fn(&i64, &i64) -> bool = match operator.as_str() {
                "==" => i64::eq,
                "!=" => i64::ne,
                "<" => i64::lt,
                "<=" => i64::le,
                ">" => i64::gt,
                ">=" => i64::ge,
                _ => return Ok(if compared { i64::from(holds) } else { left }),
            };
            self.at += 1;
            let right = self.sum()?;
            (holds, compared) = (holds && test(&left, &right), true);
            left = right;
        }
    }

    fn sum(&mut self) -> Result<i64, Failure> {
        let mut total = self.product()?;
        loop {
            total = match self.peek() {
                "+" => total.wrapping_add(self.operand()?),
                "-" => total.wrapping_sub(self.operand()?),
                "&" => total & self.operand()?,
                "|" => total | self.operand()?,
                _ => return Ok(total),
            };
        }
    }

    /// Takes an operator, and returns what follows it.
    fn operand(&mut self) -> Result<i64, Failure> {
        self.at += 1;
        self.product()
    }

    fn product(&mut self) -> Result<i64, Failure> {
        let mut total = self.atom()?;
        while self.take("*") {
            total = total.wrapping_mul(self.atom()?);
        }
        Ok(total)
    }

    fn atom(&mut self) -> Result<i64, Failure> {
        if self.take("-") {
            return Ok(self.atom()?.wrapping_neg());
        }
        if self.take("(") {
            let inner = self.any()?;
            return if self.take(")") { Ok(inner) } else { Err(self.wrong()) };
        }
        let token = self.peek().to_owned();
        if let Ok(number) = token.parse() {
            self.at += 1;
            return Ok(number);
        }
        if !token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.wrong());
        }
        self.at += 1;
        let Some(value) = (self.value)(&token) else {
            return Err(Failure::unsupported(
                self.line,
                format!("`{token}` is not a number of our endpoints"),
            ));
        };
        if token.starts_with(|c: char| c.is_ascii_lowercase()) {
            self.seen.push((token, value));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Result<(), Failure> {
        check(text, 1, &mut |name| (name == "x").then_some(7))
    }

    #[test]
    fn comparisons_chain_and_join() {
        for text in [
            "assert x == 7, x",
            "assert 6 <= x <= 8",
            "assert (x & 4) != 0 and not x == 8",
            "assert x == 9 or x > 6",
        ] {
            assert_eq!(holds(text), Ok(()), "{text}");
        }
        assert_eq!(holds("assert x == 7\nassert 7 < x < 9, 'x=%d' % x").unwrap_err().line, 2);
    }

    #[test]
    fn unknown_names_are_not_failures_of_the_endpoint() {
        assert!(matches!(holds("assert y == 1").unwrap_err().cause, crate::script::Cause::Unsupported(_)));
    }
}
