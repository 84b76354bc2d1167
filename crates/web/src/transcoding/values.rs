//! The messages of a stream in the body of a request: JSON values behind each other, or an array of them.

use bytes::{Buf, Bytes, BytesMut};
use thalweg_engine::{Code, Status};
use thiserror::Error;

use crate::compression::too_large;

/// Cuts a body into its values, in whatever pieces it arrives: each on a line of its own (NDJSON), or behind each other
/// with space between or none, or the elements of one array.
///
/// What a value is is left to who reads it: only its end is looked for. It holds the bytes that have arrived of one
/// value, and those that are pushed and not taken yet: push, then take until there is nothing. After an error it gives
/// nothing else.
#[derive(Debug)]
pub struct Values {
    size_max: usize,
    place: Place,
    /// The front of a value, of pieces before.
    held: BytesMut,
    /// The latest piece, what is left of it.
    piece: Bytes,
    /// Of `piece`, what has been looked at.
    seen: usize,
    scan: Scan,
    failure: Option<ValuesError>,
}

/// What is no row of values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A value that is larger than a message may be.
    #[error("a value of more than {size_max} bytes")]
    TooLarge {
        /// Bytes that have arrived of it.
        size: usize,
        /// The bound.
        size_max: usize,
    },
    /// An array with something else between its elements.
    #[error("expected `,` or `]` behind an element of the array, found {0:?}")]
    NoComma(char),
    /// An array with a comma and nothing before or behind it.
    #[error("expected an element of the array, found {0:?}")]
    NoElement(char),
    /// Something behind the array.
    #[error("expected nothing behind the array, found {0:?}")]
    Behind(char),
    /// A body that ends in an array.
    #[error("the array has no end")]
    Unfinished,
}

/// What is expected next, outside of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The first byte says whether it is an array.
    Start,
    /// Values, each with or without something between.
    Row,
    /// An element, or the end of an array that has none.
    FirstElement,
    Element,
    BehindElement,
    BehindArray,
}

/// How far a value has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    /// It has not begun.
    Outside,
    /// A number, `true` and the like: it ends before what can be no part of it.
    Word,
    /// Within so many brackets; of which kind they are is the reader's business.
    Brackets { depth: usize },
    /// Within a string, and the brackets around that.
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
    /// Of at most `size_max` bytes each. With `takes_array` a body that begins with `[` is an array of them; without,
    /// it begins with a value that is an array.
    pub fn new(size_max: usize, takes_array: bool) -> Values {
        Values {
            size_max,
            place: if takes_array { Place::Start } else { Place::Row },
            held: BytesMut::new(),
            piece: Bytes::new(),
            seen: 0,
            scan: Scan::Outside,
            failure: None,
        }
    }

    /// Bytes that have arrived.
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

    /// The next value that has arrived whole, if there is one.
    ///
    /// # Errors
    /// See [`ValuesError`]: of a value that is too large as soon as it is.
    pub fn take(&mut self) -> Result<Option<Bytes>, ValuesError> {
        self.guarded(Self::try_take)
    }

    /// Whether nothing has arrived of a value that was not taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much has arrived of values that were not taken, in bytes.
    pub fn len(&self) -> usize {
        self.held.len() + self.piece.len()
    }

    /// The body has ended: the last value, of which only that can say that it is whole. What has no end of its own is
    /// given as it is.
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn finish(&mut self) -> Result<Option<Bytes>, ValuesError> {
        self.guarded(|values| {
            if let Some(value) = values.try_take()? {
                return Ok(Some(value));
            }
            if values.scan != Scan::Outside {
                return Ok(Some(values.cut()));
            }
            match values.place {
                Place::Start | Place::Row | Place::BehindArray => Ok(None),
                Place::FirstElement | Place::Element | Place::BehindElement => Err(ValuesError::Unfinished),
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
            (self.held, self.piece) = (BytesMut::new(), Bytes::new());
        }
        taken
    }

    fn try_take(&mut self) -> Result<Option<Bytes>, ValuesError> {
        if self.scan == Scan::Outside && !self.begin()? {
            return Ok(None);
        }
        let is_whole = self.find_end();
        let size = self.held.len() + self.seen;
        if size > self.size_max {
            return Err(ValuesError::TooLarge { size, size_max: self.size_max });
        }
        if is_whole {
            return Ok(Some(self.cut()));
        }
        self.held.extend_from_slice(&self.piece);
        (self.piece, self.seen) = (Bytes::new(), 0);
        Ok(None)
    }

    /// Steps over what stands before the next value; whether there is one.
    fn begin(&mut self) -> Result<bool, ValuesError> {
        while let Some(&byte) = self.piece.first() {
            self.place = match (self.place, byte) {
                (place, b' ' | b'\t' | b'\n' | b'\r') => place,
                (Place::Start, b'[') => Place::FirstElement,
                (Place::Start | Place::Row, _) => {
                    self.place = Place::Row;
                    return Ok(true);
                }
                (Place::FirstElement | Place::BehindElement, b']') => Place::BehindArray,
                (Place::FirstElement | Place::Element, b',' | b']' | b'}') => {
                    return Err(ValuesError::NoElement(char::from(byte)));
                }
                (Place::FirstElement | Place::Element, _) => {
                    self.place = Place::BehindElement;
                    return Ok(true);
                }
                (Place::BehindElement, b',') => Place::Element,
                (Place::BehindElement, _) => return Err(ValuesError::NoComma(char::from(byte))),
                (Place::BehindArray, _) => return Err(ValuesError::Behind(char::from(byte))),
            };
            self.piece.advance(1);
        }
        Ok(false)
    }

    /// Looks for the end of the value that has begun, up to where that is or the piece ends.
    fn find_end(&mut self) -> bool {
        while let Some(&byte) = self.piece.get(self.seen) {
            match self.scan.step(byte) {
                Step::Inside => self.seen += 1,
                Step::Last => {
                    self.seen += 1;
                    return true;
                }
                Step::Behind => return true,
            }
        }
        false
    }

    /// What has been looked at of the value.
    fn cut(&mut self) -> Bytes {
        let rest = self.piece.split_to(self.seen);
        (self.seen, self.scan) = (0, Scan::Outside);
        if self.held.is_empty() {
            return rest;
        }
        self.held.extend_from_slice(&rest);
        self.held.split().freeze()
    }
}

/// What a byte is to a value.
enum Step {
    Inside,
    Last,
    Behind,
}

impl Scan {
    fn step(&mut self, byte: u8) -> Step {
        match (*self, byte) {
            (Scan::Outside, b'{' | b'[') => *self = Scan::Brackets { depth: 1 },
            (Scan::Outside, b'"') => *self = Scan::String { depth: 0, is_escaped: false },
            (Scan::Outside, _) => *self = Scan::Word,
            (Scan::Word, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'{' | b'}' | b'[' | b']' | b'"') => {
                return Step::Behind;
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

    /// The values of a body that comes in pieces, which are cut at these places.
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
    fn rows_of_values() {
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
            // Who reads them finds out what is wrong with them.
            check("{]", &["{]"]);
            check("{}, {}", &["{}", ",", "{}"]);
            check("{} }x", &["{}", "}x"]);
            check("{\"a\":1", &["{\"a\":1"]);
            check("{}\"a", &["{}", "\"a"]);
        }
        check(false, "[1,2] [3]", Ok(&["[1,2]", "[3]"]));
    }

    #[test]
    fn arrays_of_values() {
        check(true, "[]", Ok(&[]));
        check(true, " [ ] ", Ok(&[]));
        check(true, "[1,2]", Ok(&["1", "2"]));
        check(true, " [{\"a\":[1,2]} ,\n\"]\" , [3]]\n", Ok(&["{\"a\":[1,2]}", "\"]\"", "[3]"]));
        check(true, "[,1]", Err("expected an element of the array, found ','"));
        check(true, "[1,]", Err("expected an element of the array, found ']'"));
        check(true, "[1,,2]", Err("expected an element of the array, found ','"));
        check(true, "[}", Err("expected an element of the array, found '}'"));
        check(true, "[1 2]", Err("expected `,` or `]` behind an element of the array, found '2'"));
        check(true, "[1}", Err("expected `,` or `]` behind an element of the array, found '}'"));
        check(true, "[1][2]", Err("expected nothing behind the array, found '['"));
        check(true, "[", Err("the array has no end"));
        check(true, "[1,", Err("the array has no end"));
        check(true, "[{}", Err("the array has no end"));
    }

    #[test]
    fn a_value_that_is_too_large_is_refused_as_soon_as_it_is() {
        let mut values = Values::new(5, true);
        assert_eq!(read(&mut values, b"  12345 \n[1,2]  \n", &[]).unwrap(), ["12345", "[1,2]"]);
        let mut values = Values::new(5, true);
        values.push(Bytes::from_static(b"[1,\"abc"));
        assert_eq!(values.take().unwrap().unwrap(), "1");
        assert_eq!(values.take(), Ok(None));
        values.push(Bytes::from_static(b"de"));
        let error = values.take().unwrap_err();
        assert_eq!(error, ValuesError::TooLarge { size: 6, size_max: 5 });
        // It stays so, and holds nothing.
        values.push(Bytes::from_static(b"1 2 3"));
        assert_eq!((values.take(), values.finish()), (Err(error.clone()), Err(error)));
        assert!(values.piece.is_empty() && values.held.is_empty());
    }

    #[test]
    fn what_comes_in_one_piece_is_no_copy() {
        let body = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}");
        let mut values = Values::new(100, true);
        values.push(body.clone());
        for at in [0, 8] {
            assert_eq!(values.take().unwrap().unwrap().as_ptr(), body[at..].as_ptr());
        }
    }

    #[test]
    fn pieces_do_not_count() {
        let words = ["{", "}", "[", "]", ",", "\"", "\\", " ", "\n", "1", "true", ":", "é"];
        let mut seeded = Seeded(7);
        for _ in 0..20_000 {
            let body = seeded.words(&words, 0..14);
            let takes_array = seeded.below(2) == 0;
            let mut cuts: Vec<usize> = (0..3).map(|_| seeded.below(body.len() + 1)).collect();
            cuts.sort_unstable();
            let whole = read(&mut Values::new(100, takes_array), body.as_bytes(), &[]);
            let cut = read(&mut Values::new(100, takes_array), body.as_bytes(), &cuts);
            // An error comes when it is found: what came before it is not in the result.
            assert_eq!(whole, cut, "{body} {cuts:?}");
        }
    }
}
