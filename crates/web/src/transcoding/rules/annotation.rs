//! `google.api.HttpRule`, read from the options of a method.

use thalweg_protobuf::wire::{Reader, WireError, WireType};

/// The number of the extension `google.api.http` of `google.protobuf.MethodOptions`.
const HTTP: u32 = 72_295_728;

/// Groups in one another, in fields that are not ours.
const SKIP_DEPTH_MAX: usize = 32;

/// A rule as it is written; nothing of it is checked but that texts are UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HttpRule {
    pub(super) pattern: Option<Pattern>,
    pub(super) body: String,
    pub(super) response_body: String,
    pub(super) additional_bindings: Vec<HttpRule>,
}

/// The oneof of that name: which method of HTTP, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) kind: String,
    pub(super) path: String,
}

impl HttpRule {
    /// The rule in a `google.protobuf.MethodOptions`, if it has one.
    pub(super) fn of_options(options: &[u8]) -> Result<Option<HttpRule>, WireError> {
        // Parts of a message in several records are one message.
        let (mut rule, mut is_there) = (Vec::new(), false);
        records(options, |number, value| {
            if number == HTTP {
                rule.extend_from_slice(value);
                is_there = true;
            }
            Ok(())
        })?;
        if is_there { HttpRule::read(&rule, 0).map(Some) } else { Ok(None) }
    }

    /// Of a rule in a rule in a rule nothing is read: it would be wrong anyway.
    fn read(bytes: &[u8], depth: usize) -> Result<HttpRule, WireError> {
        let mut rule = HttpRule::default();
        records(bytes, |number, value| {
            let kind = match number {
                2 => "GET",
                3 => "PUT",
                4 => "POST",
                5 => "DELETE",
                6 => "PATCH",
                7 => {
                    rule.body = text(value);
                    return Ok(());
                }
                8 => {
                    rule.pattern = Some(Pattern::read(value)?);
                    return Ok(());
                }
                11 => {
                    let nested =
                        if depth < 2 { HttpRule::read(value, depth + 1)? } else { HttpRule::default() };
                    rule.additional_bindings.push(nested);
                    return Ok(());
                }
                12 => {
                    rule.response_body = text(value);
                    return Ok(());
                }
                _ => return Ok(()),
            };
            rule.pattern = Some(Pattern { kind: kind.to_owned(), path: text(value) });
            Ok(())
        })?;
        Ok(rule)
    }
}

impl Pattern {
    /// A `google.api.CustomHttpPattern`.
    fn read(bytes: &[u8]) -> Result<Pattern, WireError> {
        let mut pattern = Pattern { kind: String::new(), path: String::new() };
        records(bytes, |number, value| {
            match number {
                1 => pattern.kind = text(value),
                2 => pattern.path = text(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(pattern)
    }
}

/// What is not UTF-8 is no path or name either, and told as such.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls `found` with the number and value of each record that has a length.
fn records(
    bytes: &[u8],
    mut found: impl FnMut(u32, &[u8]) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        if tag.wire_type == WireType::Len {
            found(tag.number, reader.len_prefixed()?)?;
        } else {
            reader.skip(tag, SKIP_DEPTH_MAX)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::wire::{Tag, put_tag, put_varint};

    use super::{HTTP, HttpRule, Pattern, WireType};

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
    fn a_rule_in_parts_is_one_rule_beside_other_options() {
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
    fn what_is_not_there_or_broken_is_told() {
        assert_eq!(HttpRule::of_options(b"\x88\x02\x01"), Ok(None));
        assert_eq!(HttpRule::of_options(b""), Ok(None));
        assert!(HttpRule::of_options(&record(HTTP, b"\x12\x7f")).is_err());
        assert!(HttpRule::of_options(b"\x12").is_err());
        // A rule in a rule, as deep as anybody likes.
        let deep = (0..10_000).fold(record(2, b"/a"), |inner, _| record(11, &inner));
        assert!(HttpRule::of_options(&record(HTTP, &deep)).is_ok());
    }
}
