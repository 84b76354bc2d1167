//! Reads `google.api.HttpRule` from the options of a method.

use thalweg_protobuf::wire::WireError;

use crate::records::{Record, Records};

/// Number of the extension `google.api.http` of `google.protobuf.MethodOptions`.
const HTTP: u32 = 72_295_728;

/// A rule as written; only UTF-8 is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HttpRule {
    pub(super) pattern: Option<Pattern>,
    pub(super) body: String,
    pub(super) response_body: String,
    pub(super) additional_bindings: Vec<HttpRule>,
}

/// The oneof `pattern`: an HTTP method and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) kind: String,
    pub(super) path: String,
}

impl HttpRule {
    /// Returns the rule in a `google.protobuf.MethodOptions`, if there is one.
    pub(super) fn of_options(options: &[u8]) -> Result<Option<HttpRule>, WireError> {
        // A message in several records is concatenated.
        let mut rule: Option<Vec<u8>> = None;
        for record in values(options) {
            if let (HTTP, part) = record? {
                rule.get_or_insert_default().extend_from_slice(part);
            }
        }
        rule.map(|rule| HttpRule::read(&rule, 0)).transpose()
    }

    /// Reads a rule. A rule nested deeper than two levels is not read, since it is invalid anyway.
    fn read(bytes: &[u8], depth: usize) -> Result<HttpRule, WireError> {
        let mut rule = HttpRule::default();
        for record in values(bytes) {
            match record? {
                (2, path) => rule.pattern = Some(Pattern::new("GET", path)),
                (3, path) => rule.pattern = Some(Pattern::new("PUT", path)),
                (4, path) => rule.pattern = Some(Pattern::new("POST", path)),
                (5, path) => rule.pattern = Some(Pattern::new("DELETE", path)),
                (6, path) => rule.pattern = Some(Pattern::new("PATCH", path)),
                (7, body) => rule.body = text(body),
                (8, custom) => rule.pattern = Some(Pattern::read(custom)?),
                (11, nested) if depth < 2 => {
                    rule.additional_bindings.push(HttpRule::read(nested, depth + 1)?);
                }
                (11, _) => rule.additional_bindings.push(HttpRule::default()),
                (12, body) => rule.response_body = text(body),
                _ => {}
            }
        }
        Ok(rule)
    }
}

impl Pattern {
    fn new(kind: &str, path: &[u8]) -> Pattern {
        Pattern { kind: kind.to_owned(), path: text(path) }
    }

    /// Reads a `google.api.CustomHttpPattern`.
    fn read(bytes: &[u8]) -> Result<Pattern, WireError> {
        let mut pattern = Pattern::new("", b"");
        for record in values(bytes) {
            match record? {
                (1, value) => pattern.kind = text(value),
                (2, value) => pattern.path = text(value),
                _ => {}
            }
        }
        Ok(pattern)
    }
}

/// Text that is not UTF-8 is not a valid path or name either, and reported as such.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the number and value of each length-delimited record.
fn values(bytes: &[u8]) -> impl Iterator<Item = Result<(u32, &[u8]), WireError>> {
    Records::checked(bytes).filter_map(|record| match record {
        Ok((number, Record::Len(value))) => Some(Ok((number, value))),
        Ok((_, Record::Varint(_))) => None,
        Err(error) => Some(Err(error)),
    })
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint};

    use super::{HTTP, HttpRule, Pattern};

    fn record(number: u32, value: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        put_tag(&mut wire, Tag::new(number, WireType::Len));
        put_varint(&mut wire, value.len() as u64);
        [&wire, value].concat()
    }

    fn pattern(kind: &str, path: &str) -> Pattern {
        Pattern { kind: kind.into(), path: path.into() }
    }

    #[test]
    fn each_kind_of_pattern_is_read() {
        for (number, kind) in [(2, "GET"), (3, "PUT"), (4, "POST"), (5, "DELETE"), (6, "PATCH")] {
            let rule = HttpRule::of_options(&record(HTTP, &record(number, b"/a"))).unwrap().unwrap();
            assert_eq!(rule, HttpRule { pattern: Some(pattern(kind, "/a")), ..HttpRule::default() });
        }
        let custom = record(8, &[record(1, b"HEAD"), record(2, b"/b")].concat());
        let rule = HttpRule::of_options(&record(HTTP, &custom)).unwrap().unwrap();
        assert_eq!(rule.pattern, Some(pattern("HEAD", "/b")));
    }

    #[test]
    fn split_rule_is_merged_among_other_options() {
        let nested = record(11, &[record(4, b"/b"), record(7, b"*")].concat());
        let options = [
            b"\x88\x02\x01".to_vec(),
            record(HTTP, &[record(2, b"/a"), record(12, b"item")].concat()),
            record(HTTP, &nested),
            record(1000, b"other"),
        ];
        let rule = HttpRule::of_options(&options.concat()).unwrap().unwrap();
        assert_eq!((rule.pattern, &*rule.response_body), (Some(pattern("GET", "/a")), "item"));
        let additional =
            HttpRule { pattern: Some(pattern("POST", "/b")), body: "*".into(), ..HttpRule::default() };
        assert_eq!(rule.additional_bindings, [additional]);
    }

    #[test]
    fn missing_or_malformed_rule_is_reported() {
        assert_eq!(HttpRule::of_options(b"\x88\x02\x01"), Ok(None));
        assert_eq!(HttpRule::of_options(b""), Ok(None));
        assert!(HttpRule::of_options(&record(HTTP, b"\x12\x7f")).is_err());
        assert!(HttpRule::of_options(b"\x12").is_err());
        // Nested rules of arbitrary depth.
        let deep = (0..10_000).fold(record(2, b"/a"), |inner, _| record(11, &inner));
        assert!(HttpRule::of_options(&record(HTTP, &deep)).is_ok());
    }
}
