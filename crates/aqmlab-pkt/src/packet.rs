//! The grammar of segments.

use crate::cursor::Cursor;
use crate::script::{Bits, Failure, Mark, Opt, Packet};

/// Reads a segment: everything after `<` or `>` in its line.
pub(crate) fn parse_packet(text: &str, line: usize) -> Result<Packet, Failure> {
    let mut cursor = Cursor::new(text, line);
    cursor.skip_blanks(false);
    let mark = parse_mark(&mut cursor)?;
    cursor.skip_blanks(false);
    let word = cursor.take_while(|c| !c.is_whitespace());
    match word {
        "icmp" => return Err(Failure::unsupported(line, "ICMP other than for a path's MTU")),
        "udp" => return Err(Failure::unsupported(line, "UDP")),
        _ => {}
    }
    let bits = Bits::parse(word).ok_or_else(|| {
        Failure::syntax(line, format!("`{word}` is not a set of flags; write letters of `SFRPUEWA.` or `-`"))
    })?;
    cursor.skip_blanks(false);
    let seq = number(&mut cursor, "a sequence number")?;
    expect(&mut cursor, ":")?;
    let end = number(&mut cursor, "the end of the segment")?;
    expect(&mut cursor, "(")?;
    let len = number(&mut cursor, "the length of the segment")?;
    expect(&mut cursor, ")")?;
    if end != seq.wrapping_add(len) {
        return Err(Failure::syntax(line, format!("{seq}:{end} is not {len} bytes long")));
    }
    let (mut ack, mut window, mut options) = (None, None, Some(Vec::new()));
    loop {
        cursor.skip_blanks(false);
        if cursor.is_over() {
            break;
        }
        if cursor.take("<") {
            options = parse_options(cursor.take_until(">")?, line)?;
            continue;
        }
        match cursor.take_while(|c| c.is_ascii_alphabetic()) {
            "ack" => ack = Some(number(&mut cursor, "an acknowledgment number")?),
            "win" => window = Some(number(&mut cursor, "a window")?),
            "urg" => return Err(Failure::unsupported(line, "urgent data")),
            _ => return Err(Failure::syntax(line, format!("cannot read `{}`", cursor.rest()))),
        }
    }
    if bits.has(Bits::URG) {
        return Err(Failure::unsupported(line, "urgent data"));
    }
    let window = window.map(u16::try_from).transpose();
    let window = window.map_err(|_| Failure::syntax(line, "a window field is at most 65535"))?;
    Ok(Packet { mark, bits, seq, len, ack, window, options })
}

/// Reads a report of a path's MTU, such as `icmp unreachable frag_needed mtu 1200 [1:1461(1460)]`; `None` for any
/// other packet.
pub(crate) fn parse_path_mtu(text: &str) -> Option<u32> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["icmp", "unreachable", "frag_needed", "mtu", bytes, ..]
        | ["icmp", "packet_too_big", "mtu", bytes, ..] => bytes.parse().ok(),
        _ => None,
    }
}

fn parse_mark(cursor: &mut Cursor<'_>) -> Result<Option<Mark>, Failure> {
    if !cursor.take("[") {
        return Ok(None);
    }
    let line = cursor.line;
    match cursor.take_until("]")?.trim() {
        "noecn" => Ok(Some(Mark::NoEcn)),
        "ect0" => Ok(Some(Mark::Ect0)),
        "ect1" => Ok(Some(Mark::Ect1)),
        "ce" => Ok(Some(Mark::Ce)),
        other => Err(Failure::syntax(
            line,
            format!("`[{other}]` is not a mark; write `noecn`, `ect0`, `ect1` or `ce`"),
        )),
    }
}

fn expect(cursor: &mut Cursor<'_>, text: &str) -> Result<(), Failure> {
    if cursor.take(text) {
        Ok(())
    } else {
        Err(cursor.error(format!("`{text}` is missing before `{}`", cursor.rest())))
    }
}

fn number(cursor: &mut Cursor<'_>, what: &str) -> Result<u32, Failure> {
    cursor.skip_blanks(false);
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    digits.parse().map_err(|_| cursor.error(format!("{what} is missing before `{}`", cursor.rest())))
}

/// Reads the options between `<` and `>`; `None` for `...`.
fn parse_options(text: &str, line: usize) -> Result<Option<Vec<Opt>>, Failure> {
    if text.trim() == "..." {
        return Ok(None);
    }
    let mut options = Vec::new();
    for part in text.split(',').map(str::trim) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let wrong = || Failure::syntax(line, format!("`{part}` is not an option"));
        match words.as_slice() {
            ["nop" | "eol" | "NOP" | "EOL"] => {}
            ["mss", value] => options.push(Opt::Mss(value.parse().map_err(|_| wrong())?)),
            ["wscale", value] => options.push(Opt::Scale(value.parse().map_err(|_| wrong())?)),
            ["sackOK"] => options.push(Opt::SackOk),
            ["TS", "val", value, "ecr", echo] => {
                let value = value.parse().map_err(|_| wrong())?;
                options.push(Opt::Stamps(value, echo.parse().map_err(|_| wrong())?));
            }
            ["sack", blocks @ ..] => {
                let block = |text: &&str| {
                    let (from, to) = text.split_once(':')?;
                    Some((from.parse().ok()?, to.parse().ok()?))
                };
                options.push(Opt::Sack(blocks.iter().map(block).collect::<Option<_>>().ok_or_else(wrong)?));
            }
            ["ECN", fields @ ..] => {
                let field = |pair: &[&str]| match pair {
                    [name @ ("e0b" | "e1b" | "ceb"), count] => {
                        Some(((*name).to_owned(), count.parse().ok()?))
                    }
                    _ => None,
                };
                let counts = fields.chunks(2).map(field).collect::<Option<_>>();
                options.push(Opt::AccEcn(counts.ok_or_else(wrong)?));
            }
            ["FO" | "FOEXP", ..] => return Err(Failure::unsupported(line, "fast open")),
            ["md5", _] => options.push(Opt::Signature),
            _ => return Err(wrong()),
        }
    }
    Ok(Some(options))
}
