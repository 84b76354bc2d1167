//! Quoted text in JSON.

/// Appends `text` in quotes, with escapes where needed. Returns false if it is not UTF-8; the caller must then discard
/// the output.
#[inline]
pub(crate) fn string(text: &[u8], json: &mut Vec<u8>) -> bool {
    json.push(b'"');
    let is_text = if is_plain(text) {
        json.extend_from_slice(text);
        true
    } else {
        escaped(text, json)
    };
    json.push(b'"');
    is_text
}

/// Whether `text` is ASCII without characters to escape, as most text is.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    // The compiler vectorises this loop.
    let (blocks, rest) = text.as_chunks::<32>();
    for block in blocks {
        let found = block.iter().fold(0, |found, &byte| found | u8::from(must_change(byte)) | byte & 0x80);
        if found != 0 {
            return false;
        }
    }
    let (words, rest_of_words) = rest.as_chunks::<8>();
    let is_word_plain = |word: u64| (special(word) | word & 0x8080_8080_8080_8080) == 0;
    if !words.iter().all(|word| is_word_plain(u64::from_le_bytes(*word))) {
        return false;
    }
    match text.last_chunk::<8>() {
        // The last word overlaps bytes already tested.
        Some(word) => is_word_plain(u64::from_le_bytes(*word)),
        None => rest_of_words.iter().all(|&byte| !must_change(byte) && byte.is_ascii()),
    }
}

#[inline]
fn must_change(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[inline(never)]
fn escaped(text: &[u8], json: &mut Vec<u8>) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut rest = text;
    while let Some(position) = rest.iter().position(|&byte| must_change(byte)) {
        json.extend_from_slice(&rest[..position]);
        escape(rest[position], json);
        rest = &rest[position + 1..];
    }
    json.extend_from_slice(rest);
    true
}

fn escape(byte: u8, json: &mut Vec<u8>) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x8 => b'b',
        0xc => b'f',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |nibble: u8| DIGITS[usize::from(nibble & 0xf)];
            json.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte)]);
            return;
        }
    };
    json.extend_from_slice(&[b'\\', letter]);
}

/// Returns the number of bytes before the first that must be escaped or, with `ASCII`, is not ASCII.
#[inline]
pub(crate) fn plain_len<const ASCII: bool>(chunk: &[u8; 16]) -> usize {
    let chunk = u128::from_le_bytes(*chunk);
    let found = |word: u64| special(word) | if ASCII { word & HIGH_BITS } else { 0 };
    match found(chunk as u64) {
        // 64 zero bits precede byte 8.
        0 => 8 + (found((chunk >> 64) as u64).trailing_zeros() / 8) as usize,
        found => (found.trailing_zeros() / 8) as usize,
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Finds the first byte of `word`, from the low end, that must be escaped: its high bit is the lowest bit set. Higher
/// bits are meaningless, because a borrow propagates.
#[inline]
pub(crate) fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    // x - 1 borrows from a byte's high bit only if x is 0; likewise x - 0x20 if x is below 0x20.
    let below = quote.wrapping_sub(ONES) & !quote
        | backslash.wrapping_sub(ONES) & !backslash
        | word.wrapping_sub(ONES * 0x20) & !word;
    below & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_escaped() {
        let written = |text: &str| {
            let mut json = Vec::new();
            assert!(string(text.as_bytes(), &mut json));
            String::from_utf8(json).unwrap()
        };
        assert_eq!(written(""), r#""""#);
        assert_eq!(
            written("a\"b\\c/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀"),
            "\"a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é😀\""
        );
    }

    #[test]
    fn non_utf8_bytes_are_rejected() {
        for bytes in
            [&b"\xff"[..], b"0123456789\xc3", b"\xed\xa0\x80", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x80"]
        {
            assert!(!string(bytes, &mut Vec::new()));
        }
    }
}
