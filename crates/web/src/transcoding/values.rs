//! The messages of a stream in a request body: consecutive JSON values, or an array of them.

use bytes::{Buf, Bytes, BytesMut};
use thalweg_engine::{Code, Status};
use thiserror::Error;

use crate::compression::too_large;

/// Splits a body into JSON values: lines (NDJSON), consecutive values with or without spaces between, or the elements
/// of one array. The body may arrive in pieces of any size.
///
/// It finds only the ends of values and leaves their validation to the reader. It buffers one incomplete value and the
/// pushed bytes that are not taken yet: after a push, take until nothing is left. Errors are permanent.
#[derive(Debug)]
pub struct Values {
    size_max: usize,
    position: Position,
    /// Start of a value, from earlier pieces.
    buffered: BytesMut,
    /// Rest of the latest piece.
    piece: Bytes,
    /// Scanned bytes of `piece`.
    scanned: usize,
    scan: Scan,
    failure: Option<ValuesError>,
}

/// Reasons why a body is not a sequence of values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A value larger than the limit of messages.
    #[error("a value of more than {size_max} bytes")]
    TooLarge {
        /// Received bytes of the value.
        size: usize,
        /// The limit in bytes.
        size_max: usize,
    },
    /// An array without a comma between its elements.
    #[error("expected `,` or `]` after an element of the array, found {0:?}")]
    MissingComma(char),
    /// An array with a comma, but no element before or after it.
    #[error("expected an element of the array, found {0:?}")]
    MissingElement(char),
    /// Data after the array.
    #[error("expected nothing after the array, found {0:?}")]
    TrailingData(char),
    /// A body that ends inside an array.
    #[error("unterminated array")]
    Unfinished,
}

/// Next element outside of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// The first byte shows whether it is an array.
    Start,
    /// Consecutive values.
    Sequence,
    /// An element, or the end of an empty array.
    FirstElement,
    Element,
    AfterElement,
    AfterArray,
}

/// State within a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    /// Before the value.
    Outside,
    /// A number, `true` or similar: it ends before a byte that cannot be part of it.
    Word,
    /// Inside `depth` brackets; the reader checks their kinds.
    Brackets { depth: usize },
    /// Inside a string and `depth` brackets.
    String { depth: usize, is_escaped: bool },
}

impl From<ValuesError> for Status {
    fn from(error: ValuesError) -> Status {
        match error {
            ValuesError::TooLarge { size, size_max } => too_large(size, size_max),
            error => Status::new(Code::InvalidArgument, format!("body: {error}")),
        }
    }
}

impl Values {
    /// Values have at most `size_max` bytes. With `takes_array`, a body that starts with `[` is an array of values;
    /// without, it starts with a value that is an array.
    pub fn new(size_max: usize, takes_array: bool) -> Values {
        Values {
            size_max,
            position: if takes_array { Position::Start } else { Position::Sequence },
            buffered: BytesMut::new(),
            piece: Bytes::new(),
            scanned: 0,
            scan: Scan::Outside,
            failure: None,
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, piece: Bytes) {
        if self.failure.is_some() {
            return;
        }
        if self.piece.is_empty() {
            self.piece = piece;
        } else {
            self.piece = [&self.piece[..], &piece].concat().into();
        }
    }

    /// Returns the next complete value.
    ///
    /// # Errors
    /// See [`ValuesError`]. A value that is too large fails as soon as it exceeds the limit.
    pub fn take(&mut self) -> Result<Option<Bytes>, ValuesError> {
        self.guarded(Self::try_take)
    }

    /// Returns whether all received bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of received bytes that were not taken.
    pub fn len(&self) -> usize {
        self.buffered.len() + self.piece.len()
    }

    /// Ends the body. Returns the last value, if only the end shows that it is complete. An incomplete value is
    /// returned unchanged.
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn finish(&mut self) -> Result<Option<Bytes>, ValuesError> {
        self.guarded(|values| {
            if let Some(value) = values.try_take()? {
                return Ok(Some(value));
            }
            if values.scan != Scan::Outside {
                return Ok(Some(values.take_value()));
            }
            match values.position {
                Position::Start | Position::Sequence | Position::AfterArray => Ok(None),
                Position::FirstElement | Position::Element | Position::AfterElement => {
                    Err(ValuesError::Unfinished)
                }
            }
        })
    }

    fn guarded(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<Option<Bytes>, ValuesError>,
    ) -> Result<Option<Bytes>, ValuesError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let taken = take(self);
        if let Err(failure) = &taken {
            self.failure = Some(failure.clone());
            (self.buffered, self.piece) = (BytesMut::new(), Bytes::new());
        }
        taken
    }

    fn try_take(&mut self) -> Result<Option<Bytes>, ValuesError> {
        if self.scan == Scan::Outside && !self.start_value()? {
            return Ok(None);
        }
        let is_complete = self.find_end();
        let size = self.buffered.len() + self.scanned;
        if size > self.size_max {
            return Err(ValuesError::TooLarge { size, size_max: self.size_max });
        }
        if is_complete {
            return Ok(Some(self.take_value()));
        }
        self.buffered.extend_from_slice(&self.piece);
        (self.piece, self.scanned) = (Bytes::new(), 0);
        Ok(None)
    }

    /// Skips to the next value. Returns whether there is one.
    fn start_value(&mut self) -> Result<bool, ValuesError> {
        while let Some(&byte) = self.piece.first() {
            self.position = match (self.position, byte) {
                (position, b' ' | b'\t' | b'\n' | b'\r') => position,
                (Position::Start, b'[') => Position::FirstElement,
                (Position::Start | Position::Sequence, _) => {
                    self.position = Position::Sequence;
                    return Ok(true);
                }
                (Position::FirstElement | Position::AfterElement, b']') => Position::AfterArray,
                (Position::FirstElement | Position::Element, b',' | b']' | b'}') => {
                    return Err(ValuesError::MissingElement(char::from(byte)));
                }
                (Position::FirstElement | Position::Element, _) => {
                    self.position = Position::AfterElement;
                    return Ok(true);
                }
                (Position::AfterElement, b',') => Position::Element,
                (Position::AfterElement, _) => return Err(ValuesError::MissingComma(char::from(byte))),
                (Position::AfterArray, _) => return Err(ValuesError::TrailingData(char::from(byte))),
            };
            self.piece.advance(1);
        }
        Ok(false)
    }

    /// Scans for the end of the current value. Returns whether it is in the piece.
    fn find_end(&mut self) -> bool {
        while let Some(&byte) = self.piece.get(self.scanned) {
            match self.scan.step(byte) {
                Step::Inside => self.scanned += 1,
                Step::Last => {
                    self.scanned += 1;
                    return true;
                }
                Step::After => return true,
            }
        }
        false
    }

    /// Takes the scanned part of the value.
    fn take_value(&mut self) -> Bytes {
        let rest = self.piece.split_to(self.scanned);
        (self.scanned, self.scan) = (0, Scan::Outside);
        if self.buffered.is_empty() {
            return rest;
        }
        self.buffered.extend_from_slice(&rest);
        self.buffered.split().freeze()
    }
}

/// Position of a byte relative to a value.
enum Step {
    Inside,
    Last,
    After,
}

impl Scan {
    fn step(&mut self, byte: u8) -> Step {
        match (*self, byte) {
            (Scan::Outside, b'{' | b'[') => *self = Scan::Brackets { depth: 1 },
            (Scan::Outside, b'"') => *self = Scan::String { depth: 0, is_escaped: false },
            (Scan::Outside, _) => *self = Scan::Word,
            (Scan::Word, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'{' | b'}' | b'[' | b']' | b'"') => {
                return Step::After;
            }
            (Scan::Brackets { depth: 1 }, b'}' | b']') => return Step::Last,
            (Scan::Brackets { depth }, b'}' | b']') => *self = Scan::Brackets { depth: depth - 1 },
            (Scan::Brackets { depth }, b'{' | b'[') => *self = Scan::Brackets { depth: depth + 1 },
            (Scan::Brackets { depth }, b'"') => *self = Scan::String { depth, is_escaped: false },
            (Scan::String { depth, is_escaped: true }, _) => {
                *self = Scan::String { depth, is_escaped: false };
            }
            (Scan::String { depth, .. }, b'\\') => *self = Scan::String { depth, is_escaped: true },
            (Scan::String { depth: 0, .. }, b'"') => return Step::Last,
            (Scan::String { depth, .. }, b'"') => *self = Scan::Brackets { depth },
            (Scan::Word | Scan::Brackets { .. } | Scan::String { .. }, _) => {}
        }
        Step::Inside
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Values, ValuesError};
    use crate::testing::Seeded;

    /// Returns the values of a body that arrives in pieces with these cuts.
    fn read(values: &mut Values, body: &[u8], cuts: &[usize]) -> Result<Vec<String>, ValuesError> {
        let mut found = Vec::new();
        let text = |value: Bytes| String::from_utf8_lossy(&value).into_owned();
        let mut from = 0;
        for to in cuts.iter().copied().chain([body.len()]) {
            values.push(Bytes::copy_from_slice(&body[from..to]));
            from = to;
            while let Some(value) = values.take()? {
                found.push(text(value));
            }
        }
        while let Some(value) = values.finish()? {
            found.push(text(value));
        }
        Ok(found)
    }

    #[track_caller]
    fn check(takes_array: bool, body: &str, expected: Result<&[&str], &str>) {
        for cut in 0..=body.len() {
            let found = read(&mut Values::new(100, takes_array), body.as_bytes(), &[cut]);
            let found = found.map_err(|error| error.to_string());
            let found = found.as_ref().map(|values| values.iter().map(String::as_str).collect::<Vec<_>>());
            let expected = expected.map(<[&str]>::to_vec);
            assert_eq!(found.map_err(String::as_str), expected, "{body} cut at {cut}");
        }
        let cuts: Vec<usize> = (1..body.len()).collect();
        assert_eq!(
            read(&mut Values::new(100, takes_array), body.as_bytes(), &cuts).is_ok(),
            expected.is_ok()
        );
    }

    #[test]
    fn consecutive_values_are_split() {
        for takes_array in [false, true] {
            let check = |body, expected| check(takes_array, body, Ok(expected));
            check("", &[]);
            check(" \r\n\t\n", &[]);
            check("{}", &["{}"]);
            check("{\"a\":1}\n{\"b\":[{}]}\n\n", &["{\"a\":1}", "{\"b\":[{}]}"]);
            check("{}{}[{}]".trim_end_matches("[{}]"), &["{}", "{}"]);
            check("1 2\n-3.5e7 true\nnull", &["1", "2", "-3.5e7", "true", "null"]);
            check("\"a\"\"b\\\"}{\"1{}\"\"", &["\"a\"", "\"b\\\"}{\"", "1", "{}", "\"\""]);
            check("{\"a\":\"}\\\\\"}{\"é\":\"[\"}", &["{\"a\":\"}\\\\\"}", "{\"é\":\"[\"}"]);
            // The reader detects invalid values.
            check("{]", &["{]"]);
            check("{}, {}", &["{}", ",", "{}"]);
            check("{} }x", &["{}", "}x"]);
            check("{\"a\":1", &["{\"a\":1"]);
            check("{}\"a", &["{}", "\"a"]);
        }
        check(false, "[1,2] [3]", Ok(&["[1,2]", "[3]"]));
    }

    #[test]
    fn array_elements_are_split() {
        check(true, "[]", Ok(&[]));
        check(true, " [ ] ", Ok(&[]));
        check(true, "[1,2]", Ok(&["1", "2"]));
        check(true, " [{\"a\":[1,2]} ,\n\"]\" , [3]]\n", Ok(&["{\"a\":[1,2]}", "\"]\"", "[3]"]));
        check(true, "[,1]", Err("expected an element of the array, found ','"));
        check(true, "[1,]", Err("expected an element of the array, found ']'"));
        check(true, "[1,,2]", Err("expected an element of the array, found ','"));
        check(true, "[}", Err("expected an element of the array, found '}'"));
        check(true, "[1 2]", Err("expected `,` or `]` after an element of the array, found '2'"));
        check(true, "[1}", Err("expected `,` or `]` after an element of the array, found '}'"));
        check(true, "[1][2]", Err("expected nothing after the array, found '['"));
        check(true, "[", Err("unterminated array"));
        check(true, "[1,", Err("unterminated array"));
        check(true, "[{}", Err("unterminated array"));
    }

    #[test]
    fn oversized_value_fails_at_the_limit() {
        let mut values = Values::new(5, true);
        assert_eq!(read(&mut values, b"  12345 \n[1,2]  \n", &[]).unwrap(), ["12345", "[1,2]"]);
        let mut values = Values::new(5, true);
        values.push(Bytes::from_static(b"[1,\"abc"));
        assert_eq!(values.take().unwrap().unwrap(), "1");
        assert_eq!(values.take(), Ok(None));
        values.push(Bytes::from_static(b"de"));
        let error = values.take().unwrap_err();
        assert_eq!(error, ValuesError::TooLarge { size: 6, size_max: 5 });
        // The failure is permanent, and nothing is buffered.
        values.push(Bytes::from_static(b"1 2 3"));
        assert_eq!((values.take(), values.finish()), (Err(error.clone()), Err(error)));
        assert!(values.piece.is_empty() && values.buffered.is_empty());
    }

    #[test]
    fn value_in_one_piece_is_not_copied() {
        let body = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}");
        let mut values = Values::new(100, true);
        values.push(body.clone());
        for at in [0, 8] {
            assert_eq!(values.take().unwrap().unwrap().as_ptr(), body[at..].as_ptr());
        }
    }

    #[test]
    fn piece_boundaries_do_not_matter() {
        let words = ["{", "}", "[", "]", ",", "\"", "\\", " ", "\n", "1", "true", ":", "é"];
        let mut seeded = Seeded(7);
        for _ in 0..20_000 {
            let body = seeded.words(&words, 0..14);
            let takes_array = seeded.below(2) == 0;
            let mut cuts: Vec<usize> = (0..3).map(|_| seeded.below(body.len() + 1)).collect();
            cuts.sort_unstable();
            let uncut = read(&mut Values::new(100, takes_array), body.as_bytes(), &[]);
            let cut = read(&mut Values::new(100, takes_array), body.as_bytes(), &cuts);
            // On an error the values before it are not in the result.
            assert_eq!(uncut, cut, "{body} {cuts:?}");
        }
    }
}
