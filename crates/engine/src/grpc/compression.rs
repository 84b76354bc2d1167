//! Compression in header fields, `grpc-encoding` and `grpc-accept-encoding`, and its errors as statuses.

use std::fmt;
use std::sync::LazyLock;

pub use thalweg_core::compression::Encoding;
use thalweg_http2::fields::{FieldList, Indexing};

use crate::status::{Code, Status};

/// Appends `grpc-encoding` to the headers of a request or response. Identity is omitted.
pub(crate) fn emit(encoding: Encoding, fields: &mut FieldList) {
    if encoding.compresses() {
        fields.push(b"grpc-encoding", encoding.name().as_bytes(), Indexing::Insert);
    }
}

/// A set of encodings accepted by one side of a call. It always contains identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodingSet(u8);

impl EncodingSet {
    /// No compression.
    pub const IDENTITY: EncodingSet = EncodingSet(bit(Encoding::Identity));

    /// All encodings that this library supports.
    pub const ALL: EncodingSet = EncodingSet((1 << Encoding::ALL.len()) - 1);

    /// Returns the set with `encoding` added.
    pub fn with(self, encoding: Encoding) -> EncodingSet {
        EncodingSet(self.0 | bit(encoding))
    }

    /// Returns whether the set contains `encoding`.
    pub fn contains(self, encoding: Encoding) -> bool {
        self.0 & bit(encoding) != 0
    }

    /// Parses `grpc-accept-encoding`: comma-separated names. Unknown ones are ignored.
    pub fn parse(value: &[u8]) -> EncodingSet {
        let known = |name: &[u8]| Encoding::from_name(name.trim_ascii());
        value.split(|byte| *byte == b',').filter_map(known).fold(EncodingSet::IDENTITY, EncodingSet::with)
    }

    /// Returns the value of `grpc-accept-encoding`.
    pub fn value(self) -> &'static str {
        static VALUES: LazyLock<[String; EncodingSet::COUNT]> = LazyLock::new(|| {
            std::array::from_fn(|index| {
                let set = EncodingSet((index << 1 | 1) as u8);
                let members = Encoding::ALL.iter().filter(|encoding| set.contains(**encoding));
                members.map(|encoding| encoding.name()).collect::<Vec<_>>().join(",")
            })
        });
        &VALUES[self.index()]
    }

    /// Number of possible sets.
    pub(crate) const COUNT: usize = 1 << (Encoding::ALL.len() - 1);

    /// Returns a unique number of the set, below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        usize::from(self.0 >> 1)
    }

    /// Parses `grpc-encoding`, for a side that accepts this set.
    ///
    /// # Errors
    ///
    /// An encoding outside the set. The call must end with UNIMPLEMENTED; a server names the set in
    /// `grpc-accept-encoding` of its response.
    pub fn choose(self, grpc_encoding: &[u8]) -> Result<Encoding, UnsupportedEncoding> {
        let known = Encoding::from_name(grpc_encoding).filter(|encoding| self.contains(*encoding));
        known.ok_or_else(|| UnsupportedEncoding {
            name: String::from_utf8_lossy(grpc_encoding).into_owned(),
            accepted: self,
        })
    }
}

const fn bit(encoding: Encoding) -> u8 {
    1 << encoding as u8
}

impl Default for EncodingSet {
    fn default() -> EncodingSet {
        EncodingSet::ALL
    }
}

impl fmt::Debug for EncodingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = Encoding::ALL.iter().filter(|encoding| self.contains(**encoding));
        f.debug_set().entries(members).finish()
    }
}

/// The peer uses an encoding that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grpc-encoding {name:?} is not supported; accepted are {}", .accepted.value())]
pub struct UnsupportedEncoding {
    /// The peer's `grpc-encoding`.
    pub name: String,
    /// The accepted encodings.
    pub accepted: EncodingSet,
}

impl From<UnsupportedEncoding> for Status {
    fn from(error: UnsupportedEncoding) -> Status {
        Status::local(Code::Unimplemented, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_encodings() {
        let gzip = EncodingSet::IDENTITY.with(Encoding::Gzip);
        let check =
            |value: &str, expected: EncodingSet| assert_eq!(EncodingSet::parse(value.as_bytes()), expected);
        check("", EncodingSet::IDENTITY);
        check("gzip", gzip);
        check("identity, lz4 , gzip ,snappy", gzip);
        check("identity, deflate , gzip ,snappy", gzip.with(Encoding::Deflate));
        check("lz4,gzipped", EncodingSet::IDENTITY);
        for bits in 0..EncodingSet::COUNT {
            let set = EncodingSet((bits << 1 | 1) as u8);
            assert_eq!(set.index(), bits);
            check(set.value(), set);
        }
        assert_eq!(EncodingSet::ALL.index(), EncodingSet::COUNT - 1);
    }

    #[test]
    fn chosen_encodings() {
        let check = |accepted: EncodingSet, value: &str, expected: Result<Encoding, &str>| {
            let chosen = accepted.choose(value.as_bytes()).map_err(Status::from);
            assert_eq!(chosen.as_ref().map_err(Status::message).copied(), expected);
        };
        for encoding in Encoding::ALL {
            check(EncodingSet::ALL, encoding.name(), Ok(*encoding));
        }
        check(
            EncodingSet::IDENTITY,
            "gzip",
            Err("grpc-encoding \"gzip\" is not supported; accepted are identity"),
        );
        check(
            EncodingSet::IDENTITY.with(Encoding::Gzip).with(Encoding::Deflate),
            "snappy",
            Err("grpc-encoding \"snappy\" is not supported; accepted are identity,gzip,deflate"),
        );
    }
}
