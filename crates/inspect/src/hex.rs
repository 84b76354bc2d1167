//! Parses bytes in hex: digit pairs and dumps of xxd, hexdump, od, tcpdump and Wireshark.

/// Parses a dump with offsets, or digit pairs with common separators.
pub(crate) fn read(text: &str) -> Result<Vec<u8>, String> {
    match dump(text) {
        Some(bytes) => Ok(bytes),
        None => pairs(text),
    }
}

/// Parses a dump whose lines start with the offset of their first byte. Returns `None` unless each offset is the number
/// of bytes before it.
pub(crate) fn dump(text: &str) -> Option<Vec<u8>> {
    let lines: Vec<(usize, &str)> =
        text.lines().filter(|line| !line.trim().is_empty()).map(offset).collect::<Option<_>>()?;
    // A single offset could be two bytes of plain hex.
    if let [(_, rest)] = lines[..]
        && !rest.starts_with([':', '\t'])
        && !rest.starts_with("  ")
    {
        return None;
    }
    let mut bytes = Vec::new();
    // hexdump and Wireshark may leave a wider gap in the middle of a line.
    let mut gap_max = 1;
    for (index, &(offset, rest)) in lines.iter().enumerate() {
        if offset != bytes.len() {
            return None;
        }
        let line = DumpLine::of(rest);
        match lines.get(index + 1) {
            Some((next, _)) => {
                let count = next.checked_sub(offset)?;
                gap_max = gap_max.max(line.take(count, usize::MAX, &mut bytes)?);
            }
            // The last line ends before its text column.
            None => {
                let _ = line.take(usize::MAX, gap_max, &mut bytes);
            }
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// Splits a line into its leading offset and the rest.
fn offset(line: &str) -> Option<(usize, &str)> {
    /// With fewer digits, a plain byte or two would match.
    const DIGITS_MIN: usize = 4;
    let line = line.trim_start();
    let digits = line.strip_prefix("0x").unwrap_or(line);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let is_separated = rest.is_empty() || rest.starts_with([' ', '\t', ':']);
    if digits.len() < DIGITS_MIN || !is_separated {
        return None;
    }
    Some((usize::from_str_radix(digits, 16).ok()?, rest))
}

/// A line of a dump without its offset.
struct DumpLine<'a>(&'a str);

impl<'a> DumpLine<'a> {
    fn of(rest: &'a str) -> Self {
        let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
        // hexdump encloses its text column in bars.
        match rest.strip_suffix('|').and_then(|rest| rest.split_once('|')) {
            Some((bytes, _)) => Self(bytes.trim_end()),
            None => Self(rest),
        }
    }

    /// Adds up to `count` bytes, until a gap is wider than `gap_max` or digits end. Returns the widest gap, or `None`
    /// if there are fewer bytes.
    fn take(&self, count: usize, gap_max: usize, bytes: &mut Vec<u8>) -> Option<usize> {
        let mut rest = self.0;
        let mut widest = 0;
        let mut taken = 0;
        while taken < count {
            let trimmed = rest.trim_start();
            let gap = rest.len() - trimmed.len();
            let digit = |at: usize| Some(char::from(*trimmed.as_bytes().get(at)?).to_digit(16)? as u8);
            let (Some(high), Some(low)) = (digit(0), digit(1)) else { break };
            // A digit pair is followed by a space or the next pair of its group.
            let is_complete =
                trimmed.as_bytes().get(2).is_none_or(|byte| byte.is_ascii_hexdigit() || *byte == b' ');
            if gap > gap_max || !is_complete {
                break;
            }
            widest = widest.max(gap);
            bytes.push(16 * high + low);
            rest = &trimmed[2..];
            taken += 1;
        }
        (taken == count).then_some(widest)
    }
}

fn pairs(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for group in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '-' | '_')) {
        let group = group.strip_prefix("0x").or_else(|| group.strip_prefix("\\x")).unwrap_or(group);
        let group = group.replace("\\x", "");
        if let Some(c) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("expected a hex digit, found `{c}`"));
        }
        let (pairs, rest) = group.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(format!(
                "expected two hex digits per byte, `{}` has {}",
                shortened(&group),
                group.len()
            ));
        }
        // Only hex digits are left.
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        bytes.extend(pairs.iter().map(|[high, low]| 16 * value(*high) + value(*low)));
    }
    Ok(bytes)
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 20;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_accepts_common_separators() {
        for text in ["0a0dff", "0A 0D FF", "0x0a, 0x0d, 0xff", "0a:0d:ff", " 0a0d\n ff ", "\\x0a\\x0d\\xff"] {
            assert_eq!(read(text), Ok(vec![10, 13, 255]), "{text:?}");
        }
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("0a0"), Err("expected two hex digits per byte, `0a0` has 3".to_owned()));
        assert_eq!(read("0a 0g"), Err("expected a hex digit, found `g`".to_owned()));
        // Four digits that are not an offset.
        assert_eq!(read("0a0d ff"), Ok(vec![10, 13, 255]));
        assert_eq!(read("0000 0000"), Ok(vec![0; 4]));
    }

    /// Dumps of `\n\rpolar penguin ab\x10\x14`, twenty bytes, by each tool.
    #[test]
    fn dumps_are_parsed_without_offsets_and_text() {
        let bytes = b"\n\rpolar penguin ab\x10\x14";
        for (tool, dump) in [
            (
                "xxd",
                "00000000: 0a0d 706f 6c61 7220 7065 6e67 7569 6e20  ..polar penguin \n\
                 00000010: 6162 1014                                ab..\n",
            ),
            (
                "xxd -g1",
                "00000000: 0a 0d 70 6f 6c 61 72 20 70 65 6e 67 75 69 6e 20  ..polar penguin \n\
                 00000010: 61 62 10 14                                      ab..\n",
            ),
            (
                "hexdump -C",
                "00000000  0a 0d 70 6f 6c 61 72 20  70 65 6e 67 75 69 6e 20  |..polar penguin |\n\
                 00000010  61 62 10 14                                       |ab..|\n\
                 00000014\n",
            ),
            (
                "od -A x -t x1",
                "000000 0a 0d 70 6f 6c 61 72 20 70 65 6e 67 75 69 6e 20\n000010 61 62 10 14\n000014\n",
            ),
            (
                "Wireshark",
                "0000   0a 0d 70 6f 6c 61 72 20 70 65 6e 67 75 69 6e 20   ..polar penguin \n\
                 0010   61 62 10 14                                       ab..\n",
            ),
            (
                "Wireshark, with a gap and eight bytes a line",
                "0000  0a 0d 70 6f  6c 61 72 20   ..po lar \n0008  70 65 6e 67  75 69 6e 20   peng uin \n\
                 0010  61 62 10 14                ab..\n",
            ),
            (
                "tcpdump -x",
                "\t0x0000:  0a0d 706f 6c61 7220 7065 6e67 7569 6e20  ..polar.penguin.\n\
                 \t0x0010:  6162 1014                                ab..\n",
            ),
        ] {
            assert_eq!(read(dump).as_deref(), Ok(&bytes[..]), "{tool}");
            assert_eq!(super::dump(dump).as_deref(), Some(&bytes[..]), "{tool}");
        }
        // The text column of the last line may look like hex.
        assert_eq!(
            dump("00000000: 3030 3131                                0011\n").as_deref(),
            Some(&b"0011"[..])
        );
        assert_eq!(dump("00000000: 0a05\n"), Some(vec![10, 5]));
    }

    #[test]
    fn lines_with_inconsistent_offsets_are_not_a_dump() {
        for text in [
            "",
            "0a05 6865",
            "00000000\n",
            "00000001: 0a0d\n",
            "00000000: 0a0d\n00000010: 0a0d\n",
            "00000000: 0a0d 0e\n00000002: 0a0d\n0000000a",
            "deadbeef cafe",
        ] {
            assert_eq!(dump(text), None, "{text:?}");
        }
    }
}
