//! Test utilities: headers as tables, seeded random data.

use std::ops::Range;

use http::{HeaderMap, HeaderName};
use thalweg_engine::{Code, Status};

/// Builds headers from a table.
pub(crate) fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    headers
}

/// Returns headers as sorted text.
pub(crate) fn header_lines(headers: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    let mut lines: Vec<String> = headers.iter().map(line).collect();
    lines.sort();
    lines.join("\n")
}

/// Returns the code and the message of a failure.
pub(crate) fn failure<T>(outcome: Result<T, Status>) -> (Code, String) {
    let status = outcome.err().expect("a failure");
    (status.code(), status.message().to_owned())
}

/// `SplitMix64`, sufficient for choosing test data.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: Range<usize>) -> Vec<u8> {
        let len = len.start + self.below(len.len());
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Returns a sequence of `words`, which finds more than random bytes.
    pub(crate) fn words(&mut self, words: &[&str], count: Range<usize>) -> String {
        let count = count.start + self.below(count.len());
        (0..count).map(|_| words[self.below(words.len())]).collect()
    }
}
