//! The grammar of scripts: times and events.

use crate::cursor::Cursor;
use crate::packet::{parse_packet, parse_path_mtu};
use crate::script::{Action, Call, Event, Failure, Ns, Script, When};

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, Failure> {
    let mut cursor = Cursor::new(text, 1);
    let mut script = Script { options: Vec::new(), events: Vec::new() };
    loop {
        cursor.skip_blanks(true);
        if cursor.is_over() {
            return Ok(script);
        }
        let line = cursor.line;
        if cursor.take("--") {
            let text = cursor.take_line();
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            script.options.push((line, name.trim().to_owned(), value.trim().to_owned()));
            continue;
        }
        let event = parse_event(&mut cursor)?;
        script.events.push(event);
    }
}

fn parse_event(cursor: &mut Cursor<'_>) -> Result<Event, Failure> {
    let line = cursor.line;
    let (mut when, mut until) = (When::After(0), None);
    if !cursor.rest().starts_with(['`', '%']) {
        (when, until) = parse_time(cursor)?;
    }
    cursor.skip_blanks(false);
    let at = cursor.line;
    let action = if cursor.take("<") {
        let text = cursor.take_line();
        match parse_path_mtu(text) {
            Some(bytes) => Action::PathMtu(bytes),
            None => Action::Inject(parse_packet(text, at)?),
        }
    } else if cursor.take(">") {
        Action::Expect(parse_packet(cursor.take_line(), at)?)
    } else if cursor.take("`") {
        Action::Command(cursor.take_until("`")?.to_owned())
    } else if cursor.take("%{") {
        Action::Assert(cursor.take_until("}%")?.to_owned())
    } else {
        Action::Call(parse_call(cursor)?)
    };
    Ok(Event { line, when, until, action })
}

/// Reads a time, a range `A~B`, or the start and the end of a blocking call, `A...B`.
fn parse_time(cursor: &mut Cursor<'_>) -> Result<(When, Option<Ns>), Failure> {
    if cursor.take("*") {
        return Ok((When::Any, None));
    }
    let (from, relative) = parse_instant(cursor)?;
    let when = if relative { When::After(from) } else { When::At(from) };
    let mut ahead = cursor.clone();
    ahead.skip_blanks(false);
    if ahead.take("~") {
        ahead.skip_blanks(false);
        let (to, _) = parse_instant(&mut ahead)?;
        *cursor = ahead;
        return Ok((When::Within { from, to, relative }, None));
    }
    if ahead.take("...") {
        ahead.skip_blanks(false);
        let (to, _) = parse_instant(&mut ahead)?;
        *cursor = ahead;
        return Ok((when, Some(to)));
    }
    Ok((when, None))
}

/// Reads seconds; returns them in nanoseconds, and whether they follow a `+`.
fn parse_instant(cursor: &mut Cursor<'_>) -> Result<(Ns, bool), Failure> {
    let relative = cursor.take("+");
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let mut ahead = cursor.clone();
    let mut fraction = "";
    if ahead.take(".") && ahead.peek() != Some('.') {
        fraction = ahead.take_while(|c| c.is_ascii_digit());
        *cursor = ahead;
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(cursor.error(format!(
            "a time in seconds, `+` with seconds, or `*` is missing before `{}`",
            cursor.rest().lines().next().unwrap_or_default()
        )));
    }
    let wrong = || cursor.error(format!("`{whole}.{fraction}` is not a time"));
    let seconds: Ns = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let digits = format!("{fraction:0<9}");
    let ns: Ns = digits.get(..9).and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
    let total =
        seconds.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(ns)).ok_or_else(wrong)?;
    Ok((total, relative))
}

fn parse_call(cursor: &mut Cursor<'_>) -> Result<Call, Failure> {
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
    cursor.skip_blanks(false);
    if name.is_empty() || !cursor.take("(") {
        let text = cursor.rest().lines().next().unwrap_or_default();
        return Err(cursor.error(format!(
            "an event is missing before `{text}`: `<`, `>`, a call, a command in backticks, or `%{{`"
        )));
    }
    let args = parse_args(cursor)?;
    cursor.skip_blanks(false);
    let result = if cursor.take("=") { cursor.take_line().to_owned() } else { String::new() };
    Ok(Call { name, args, result })
}

/// Reads arguments up to the closing parenthesis, separated by commas outside of brackets.
fn parse_args(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Failure> {
    let (line, mut depth, mut args, mut arg) = (cursor.line, 0, Vec::new(), String::new());
    while let Some(next) = cursor.peek() {
        cursor.skip(next.len_utf8());
        match next {
            ')' if depth == 0 => {
                if !(args.is_empty() && arg.trim().is_empty()) {
                    args.push(arg.trim().to_owned());
                }
                return Ok(args);
            }
            ',' if depth == 0 => args.push(std::mem::take(&mut arg).trim().to_owned()),
            _ => {
                depth += i32::from(matches!(next, '(' | '[' | '{'));
                depth -= i32::from(matches!(next, ')' | ']' | '}'));
                arg.push(next);
            }
        }
    }
    Err(Failure::syntax(line, "`)` is missing after the arguments that begin here"))
}
