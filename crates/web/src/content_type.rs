//! Parsing of content types.

/// Returns the subtype of an `application/…` content type, without parameters.
///
/// A `charset` other than UTF-8 is not supported and returns `None`.
pub(crate) fn application(content_type: &[u8]) -> Option<&str> {
    // Fast path for the most common value.
    if content_type == b"application/json" {
        return Some("json");
    }
    let content_type = str::from_utf8(content_type).ok()?;
    let mut parts = content_type.split(';').map(str::trim_ascii);
    let (kind, subtype) = parts.next()?.split_once('/')?;
    let is_readable = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if name.trim_ascii().eq_ignore_ascii_case("charset") => {
            value.trim_ascii().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    };
    (kind.eq_ignore_ascii_case("application") && is_token(subtype) && parts.all(is_readable))
        .then_some(subtype)
}

/// Returns the rest of `text` after `prefix`, ignoring case.
pub(crate) fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (front, rest) = text.split_at_checked(prefix.len())?;
    front.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// A token (RFC 9110 §5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_token_char = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_char)
}

/// Returns the items of a header such as `accept`, each with its quality in thousandths. Items that are not UTF-8 are
/// skipped.
pub(crate) fn list_items<'a>(values: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = (&'a str, u16)> {
    values.flat_map(|value| value.split(|byte| *byte == b',')).filter_map(|item| {
        let mut parts = str::from_utf8(item).ok()?.split(';').map(str::trim_ascii);
        Some((parts.next()?, quality(parts)))
    })
}

/// Returns an item's quality in thousandths (RFC 9110 §12.4.2). A missing or invalid one is 1.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let stated = parameters.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let value = stated.and_then(|quality| quality.parse::<f32>().ok()).unwrap_or(1.0);
    // The product fits `u16`.
    if (0.0..=1.0).contains(&value) { (value * 1000.0) as u16 } else { 1000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_subtype_is_parsed() {
        let check = |content_type: &[u8], expected| assert_eq!(application(content_type), expected);
        check(b"application/proto", Some("proto"));
        check(b"APPLICATION/Json ; charset=UTF-8", Some("Json"));
        check(b"application/json;charset=\"utf-8\";x", Some("json"));
        check(b"application/json; charset=latin1", None);
        check(b"text/json", None);
        check(b"application/", None);
        check(b"application", None);
        check(b"application/a b", None);
        check(b"application/\xff", None);
        check(b"", None);
    }
}
