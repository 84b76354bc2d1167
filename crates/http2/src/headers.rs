//! Received headers: validation of requests, responses and trailers (RFC 9113 §8).

use crate::fields::{Field, FieldList};
use crate::violation::Violation;

/// Received, validated headers of a request or a response, or trailers.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    pub(crate) id: u64,
    pub(crate) fields: FieldList,
    pub(crate) summary: Summary,
    /// The prefix that a request shares with others.
    pub(crate) shared_prefix: Option<SharedPrefix>,
}

/// A shared prefix of fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedPrefix {
    pub(crate) id: u64,
    pub(crate) field_count: usize,
}

impl Headers {
    /// Returns the id of these headers. Equal ids within a connection mean identical headers, so derived data can be
    /// cached by id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the id of the prefix that this request shares with others, if known, and the regular fields after it.
    /// Equal ids within a connection mean equal prefixes. It equals the [`id`](Self::id) of other headers only if they
    /// consist of just the prefix.
    pub fn shared_prefix(&self) -> Option<(u64, impl Iterator<Item = Field<'_>>)> {
        self.shared_prefix.map(|prefix| (prefix.id, self.fields.iter_from(prefix.field_count)))
    }

    /// Returns the size of the list in bytes as RFC 9113 §10.5.1 counts it: name, value and 32 per field.
    pub fn size(&self) -> usize {
        self.fields.size()
    }

    /// Returns `:method` of a request.
    pub fn method(&self) -> Option<&[u8]> {
        self.fields.get(b":method")
    }

    /// Returns `:scheme` of a request.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.fields.get(b":scheme")
    }

    /// Returns `:authority` of a request.
    pub fn authority(&self) -> Option<&[u8]> {
        self.fields.get(b":authority")
    }

    /// Returns `:path` of a request.
    pub fn path(&self) -> Option<&[u8]> {
        self.fields.get(b":path")
    }

    /// Returns `:status` of a response, 100 to 999.
    pub fn status(&self) -> Option<u16> {
        self.summary.status
    }

    /// Returns `content-length`, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.summary.content_length
    }

    /// Iterates over the regular fields in order, without pseudo-headers.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().skip_while(|field| field.name.starts_with(b":"))
    }

    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.get(name)
    }
}

/// The role of a header block in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadersKind {
    Request,
    Response,
    Trailers,
}

/// The result of validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) status: Option<u16>,
    pub(crate) content_length: Option<u64>,
    /// The request asks for a tunnel (RFC 9113 §8.5).
    pub(crate) connect: bool,
}

/// Checks a list of fields against RFC 9113 §8.2 and §8.3.
///
/// Accepts white space at the ends of a value, though §8.2.1 forbids it: gRPC's percent-encoding leaves spaces
/// unchanged, so a `grpc-message` can legitimately start with one.
pub(crate) fn validate(kind: HeadersKind, fields: &FieldList) -> Result<Summary, Violation> {
    let mut pseudo = PseudoHeaders::default();
    let mut content_length = None;
    let mut regular = false;
    for field in fields.iter() {
        if !field.value.iter().all(|&byte| is_value_byte(byte)) {
            return Err(Violation::FieldValueInvalid);
        }
        if let Some(name) = field.name.strip_prefix(b":") {
            if regular {
                return Err(Violation::PseudoHeaderMisplaced);
            }
            pseudo.add(kind, name, field.value)?;
        } else {
            regular = true;
            check_regular(field, &mut content_length)?;
        }
    }
    let (status, connect) = pseudo.finish(kind)?;
    Ok(Summary { status, content_length, connect })
}

/// Like [`validate`], for a list whose first fields are known to be a valid request with this summary. The last of them
/// is a regular field.
pub(crate) fn validate_after_prefix(
    mut summary: Summary,
    field_count: usize,
    fields: &FieldList,
) -> Result<Summary, Violation> {
    for field in fields.iter_from(field_count) {
        if !field.value.iter().all(|&byte| is_value_byte(byte)) {
            return Err(Violation::FieldValueInvalid);
        }
        if field.name.starts_with(b":") {
            return Err(Violation::PseudoHeaderMisplaced);
        }
        check_regular(field, &mut summary.content_length)?;
    }
    Ok(summary)
}

#[derive(Default)]
struct PseudoHeaders<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
}

impl<'a> PseudoHeaders<'a> {
    fn add(&mut self, kind: HeadersKind, name: &[u8], value: &'a [u8]) -> Result<(), Violation> {
        let slot = match (kind, name) {
            (HeadersKind::Request, b"method") => &mut self.method,
            (HeadersKind::Request, b"scheme") => &mut self.scheme,
            (HeadersKind::Request, b"authority") => &mut self.authority,
            (HeadersKind::Request, b"path") => &mut self.path,
            (HeadersKind::Response, b"status") => &mut self.status,
            (HeadersKind::Trailers, _) => return Err(Violation::PseudoHeaderInTrailers),
            _ => return Err(Violation::PseudoHeaderUnknown),
        };
        if slot.replace(value).is_some() {
            return Err(Violation::PseudoHeaderRepeated);
        }
        Ok(())
    }

    /// Checks that all required pseudo-headers are present (RFC 9113 §8.3.1, §8.3.2). Returns the status and whether it
    /// is a CONNECT.
    fn finish(self, kind: HeadersKind) -> Result<(Option<u16>, bool), Violation> {
        match kind {
            HeadersKind::Trailers => Ok((None, false)),
            HeadersKind::Response => match self.status {
                Some(&[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']) => {
                    let digit = |byte: u8| u16::from(byte - b'0');
                    Ok((Some(digit(a) * 100 + digit(b) * 10 + digit(c)), false))
                }
                Some(_) => Err(Violation::StatusInvalid),
                None => Err(Violation::StatusMissing),
            },
            HeadersKind::Request => self.finish_request().map(|connect| (None, connect)),
        }
    }

    fn finish_request(self) -> Result<bool, Violation> {
        let method = self.method.ok_or(Violation::MethodMissing)?;
        if method.is_empty() || !method.iter().all(|&byte| is_token_byte(byte) || byte.is_ascii_uppercase()) {
            return Err(Violation::MethodInvalid);
        }
        if method == b"CONNECT" {
            return match self {
                PseudoHeaders { scheme: None, path: None, authority: Some(_), .. } => Ok(true),
                _ => Err(Violation::ConnectInvalid),
            };
        }
        self.scheme.ok_or(Violation::SchemeMissing)?;
        match self.path {
            Some([b'/', ..]) => Ok(false),
            Some(b"*") if method == b"OPTIONS" => Ok(false),
            Some(_) => Err(Violation::PathInvalid),
            None => Err(Violation::PathMissing),
        }
    }
}

fn check_regular(field: Field<'_>, content_length: &mut Option<u64>) -> Result<(), Violation> {
    if field.name.is_empty() || !field.name.iter().all(|&byte| is_token_byte(byte)) {
        return Err(Violation::FieldNameInvalid);
    }
    match field.name {
        // RFC 9113 §8.2.2
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err(Violation::FieldConnectionSpecific)
        }
        b"te" if field.value != b"trailers" => Err(Violation::TeInvalid),
        b"content-length" => {
            let length = parse_content_length(field.value).ok_or(Violation::ContentLengthInvalid)?;
            match content_length.replace(length) {
                Some(other) if other != length => Err(Violation::ContentLengthAmbiguous),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn parse_content_length(value: &[u8]) -> Option<u64> {
    // 19 digits always fit; longer bodies, of over ten exabytes, do not occur.
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0')))
}

/// A token character (RFC 9110 §5.6.2), except upper-case letters (RFC 9113 §8.2.1).
fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*'
        | b'+' | b'^' | b'`' | b'|' | b'~')
}

/// RFC 9113 §8.2.1: NUL, LF and CR could end a field when a value is forwarded.
fn is_value_byte(byte: u8) -> bool {
    !matches!(byte, 0 | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Indexing;
    use HeadersKind::{Request, Response, Trailers};

    const GET: &[(&str, &str)] =
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

    #[track_caller]
    fn check(kind: HeadersKind, fields: &[&[(&str, &str)]], expected: Result<Summary, Violation>) {
        let mut list = FieldList::new();
        for (name, value) in fields.concat() {
            list.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
        }
        assert_eq!(validate(kind, &list), expected);
    }

    fn status(status: u16) -> Summary {
        Summary { status: Some(status), ..Summary::default() }
    }

    fn content_length(length: u64) -> Summary {
        Summary { content_length: Some(length), ..Summary::default() }
    }

    #[test]
    fn requests() {
        check(Request, &[GET], Ok(Summary::default()));
        check(Request, &[GET, &[("te", "trailers"), ("x", "")]], Ok(Summary::default()));
        check(Request, &[&GET[1..]], Err(Violation::MethodMissing));
        check(Request, &[&GET[..1], &GET[2..]], Err(Violation::SchemeMissing));
        check(Request, &[&GET[..2]], Err(Violation::PathMissing));
        check(Request, &[&GET[..2], &[(":path", "")]], Err(Violation::PathInvalid));
        check(Request, &[GET, &[(":path", "/")]], Err(Violation::PseudoHeaderRepeated));
        check(Request, &[GET, &[(":status", "200")]], Err(Violation::PseudoHeaderUnknown));
        check(Request, &[GET, &[(":protocol", "x")]], Err(Violation::PseudoHeaderUnknown));
        check(Request, &[&GET[1..], &[("a", "b")], &GET[..1]], Err(Violation::PseudoHeaderMisplaced));
        check(Request, &[&GET[1..], &[(":method", "G T")]], Err(Violation::MethodInvalid));
        let options = &[(":method", "OPTIONS"), (":scheme", "http"), (":path", "*")];
        check(Request, &[options], Ok(Summary::default()));
    }

    /// RFC 9113 §8.5
    #[test]
    fn connect() {
        let connect = &[(":method", "CONNECT"), (":authority", "a:1")][..];
        check(Request, &[connect], Ok(Summary { connect: true, ..Summary::default() }));
        let expected = Err(Violation::ConnectInvalid);
        check(Request, &[connect, &GET[1..2]], expected);
        check(Request, &[&connect[..1]], expected);
    }

    #[test]
    fn responses() {
        check(Response, &[&[(":status", "200"), ("a", "b")]], Ok(status(200)));
        check(Response, &[&[(":status", "103")]], Ok(status(103)));
        check(Response, &[&[("a", "b")]], Err(Violation::StatusMissing));
        for bad in ["", "20", "2000", "099", "2x0", "+20"] {
            check(Response, &[&[(":status", bad)]], Err(Violation::StatusInvalid));
        }
        check(Response, &[GET], Err(Violation::PseudoHeaderUnknown));
    }

    #[test]
    fn trailers() {
        check(Trailers, &[&[("grpc-status", "0")]], Ok(Summary::default()));
        check(Trailers, &[&[(":status", "200")]], Err(Violation::PseudoHeaderInTrailers));
    }

    /// RFC 9113 §8.2.2
    #[test]
    fn connection_specific_fields() {
        for name in ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"] {
            check(Trailers, &[&[(name, "x")]], Err(Violation::FieldConnectionSpecific));
        }
        check(Trailers, &[&[("te", "trailers, gzip")]], Err(Violation::TeInvalid));
    }

    /// RFC 9113 §8.2.1
    #[test]
    fn characters() {
        let expected = Err(Violation::FieldNameInvalid);
        for name in ["", "Upper", "a b", "a\u{7f}", "a:b", "\u{e4}"] {
            check(Trailers, &[&[(name, "x")]], expected);
        }
        for value in ["a\0", "\r", "a\nb"] {
            check(Trailers, &[&[("x", value)]], Err(Violation::FieldValueInvalid));
        }
        check(Trailers, &[&[("grpc-message", " lost\t\u{e4} ")]], Ok(Summary::default()));
    }

    #[test]
    fn content_lengths() {
        check(Trailers, &[&[("content-length", "0")]], Ok(content_length(0)));
        check(
            Trailers,
            &[&[("content-length", "9999999999999999999")]],
            Ok(content_length(9_999_999_999_999_999_999)),
        );
        let twice = &[("content-length", "12"), ("content-length", "12")];
        check(Trailers, &[twice], Ok(content_length(12)));
        let differs = &[("content-length", "12"), ("content-length", "13")];
        check(Trailers, &[differs], Err(Violation::ContentLengthAmbiguous));
        for bad in ["", "-1", "+1", "1 ", "0x1", "10000000000000000000"] {
            check(Trailers, &[&[("content-length", bad)]], Err(Violation::ContentLengthInvalid));
        }
    }
}
