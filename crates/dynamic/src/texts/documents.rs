//! Splits a byte stream into JSON documents.

/// Splits a byte stream into JSON documents. A document is complete at its last byte. Numbers, words and invalid text
/// have no last byte and end at white space.
///
/// Only brackets and strings are parsed. The JSON parser reports errors inside a document.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pending: Vec<u8>,
    /// Number of pending bytes already parsed.
    seen: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Documents {
    /// Adds input.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next complete document.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(&byte) = self.pending.get(self.seen) {
            let is_white = byte.is_ascii_whitespace();
            if self.seen == 0 && is_white && !self.in_string {
                // White space before a document.
                let blank = self.pending.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                self.pending.drain(..blank);
                continue;
            }
            let at_top = self.depth == 0 && !self.in_string;
            if at_top && is_white {
                return Some(self.take(self.seen));
            }
            if at_top && self.seen > 0 && matches!(byte, b'{' | b'[') {
                // A bracket directly after a word or number.
                return Some(self.take(self.seen));
            }
            self.seen += 1;
            self.scan(byte);
            if self.depth == 0 && !self.in_string && matches!(byte, b'}' | b']' | b'"') {
                return Some(self.take(self.seen));
            }
        }
        None
    }

    /// Returns the remaining bytes at the end: the last document, or a part of one.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = self.take(self.pending.len());
        (!rest.iter().all(u8::is_ascii_whitespace)).then_some(rest)
    }

    fn scan(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let behind = self.pending.split_off(count);
        (self.seen, self.depth, self.in_string, self.escaped) = (0, 0, false, false);
        std::mem::replace(&mut self.pending, behind)
    }
}

/// Splits an array into its elements. Returns other documents unchanged.
///
/// Parses only brackets, commas and strings, so that elements may have template placeholders.
pub fn elements(document: Vec<u8>) -> Vec<Vec<u8>> {
    let inside = document.trim_ascii().strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let Some(inside) = inside else { return vec![document] };
    let mut scanner = Documents::default();
    let mut elements = Vec::new();
    let mut start = 0;
    for (at, &byte) in inside.iter().enumerate() {
        if byte == b',' && scanner.depth == 0 && !scanner.in_string {
            elements.push(inside[start..at].trim_ascii().to_vec());
            start = at + 1;
        }
        scanner.scan(byte);
    }
    let last = inside[start..].trim_ascii();
    if !last.is_empty() || !elements.is_empty() {
        elements.push(last.to_vec());
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every division of the text into pieces.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        for piece in 1..=text.len().max(1) {
            let mut documents = Documents::default();
            let mut found = Vec::new();
            for bytes in text.as_bytes().chunks(piece) {
                documents.push(bytes);
                found.extend(std::iter::from_fn(|| documents.next()));
            }
            found.extend(documents.rest());
            let found: Vec<String> =
                found.into_iter().map(|document| String::from_utf8(document).unwrap()).collect();
            assert_eq!(found, expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn documents_end_at_the_closing_bracket() {
        check("", &[]);
        check(" \n ", &[]);
        check("{}", &["{}"]);
        check("{}{}", &["{}", "{}"]);
        check(" {\"a\": [1, {}]}\n\n[2] ", &["{\"a\": [1, {}]}", "[2]"]);
        check(r#"{"a": "}\"]{"} "b" 1.5e3 null {}"#, &[r#"{"a": "}\"]{"}"#, "\"b\"", "1.5e3", "null", "{}"]);
        check("1{}", &["1", "{}"]);
        check("{\"a\": ", &["{\"a\": "]);
        check("}{}", &["}", "{}"]);
        check("hello there", &["hello", "there"]);
    }

    #[test]
    fn arrays_are_split_into_their_elements() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<String> = elements(text.as_bytes().to_vec())
                .into_iter()
                .map(|element| String::from_utf8(element).unwrap())
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check(r#"[{"a": [1, 2]}, {"b": "],["}]"#, &[r#"{"a": [1, 2]}"#, r#"{"b": "],["}"#]);
        check(r#"[ {"n": {{.RequestNumber}}} ,{}]"#, &[r#"{"n": {{.RequestNumber}}}"#, "{}"]);
        check("[{}]", &["{}"]);
        check("[]", &[]);
        // Errors are left to the message parser.
        check("[{},]", &["{}", ""]);
        check("{}", &["{}"]);
        check("[{}", &["[{}"]);
    }

    #[test]
    fn document_is_returned_with_its_last_byte() {
        let mut documents = Documents::default();
        documents.push(b"{\"a\": 1");
        assert_eq!(documents.next(), None);
        documents.push(b"}");
        assert_eq!(documents.next(), Some(b"{\"a\": 1}".to_vec()));
        assert_eq!(documents.rest(), None);
    }
}
