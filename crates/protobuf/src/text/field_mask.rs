//! Paths of a `google.protobuf.FieldMask`: `a.b_c` in a message, `a.bC` in JSON.

/// Appends a path in JSON form. Returns false and appends nothing if it could not be read back.
pub(crate) fn to_camel(path: &str, text: &mut Vec<u8>) -> bool {
    let start = text.len();
    let mut after_underscore = false;
    for &byte in path.as_bytes() {
        let is_lower = byte.is_ascii_lowercase();
        let is_sound = if after_underscore { is_lower } else { !byte.is_ascii_uppercase() };
        if !is_sound {
            text.truncate(start);
            return false;
        }
        if byte != b'_' {
            text.push(if after_underscore { byte.to_ascii_uppercase() } else { byte });
        }
        after_underscore = byte == b'_';
    }
    if after_underscore {
        text.truncate(start);
    }
    !after_underscore
}

/// Appends the path for the JSON form `text`. Returns false and appends nothing if it contains an underscore.
pub(crate) fn to_snake(text: &str, path: &mut Vec<u8>) -> bool {
    if text.contains('_') {
        return false;
    }
    for &byte in text.as_bytes() {
        if byte.is_ascii_uppercase() {
            path.push(b'_');
        }
        path.push(byte.to_ascii_lowercase());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{to_camel, to_snake};

    #[test]
    fn field_mask_paths_round_trip() {
        for (path, json) in
            [("foo", "foo"), ("foo_bar", "fooBar"), ("a.b_c.d", "a.bC.d"), ("", ""), ("a1", "a1")]
        {
            let (mut camel, mut snake) = (Vec::new(), Vec::new());
            assert!(to_camel(path, &mut camel) && to_snake(json, &mut snake));
            assert_eq!((camel, snake), (json.into(), path.into()));
        }
    }

    #[test]
    fn ambiguous_field_mask_paths_are_rejected() {
        for path in ["fooBar", "foo_3_bar", "foo__bar", "foo_", "_", "foo_.a", "foo_B"] {
            assert!(!to_camel(path, &mut Vec::new()), "{path}");
        }
        assert!(!to_snake("foo_bar", &mut Vec::new()));
    }
}
