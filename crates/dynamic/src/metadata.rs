//! Parses and formats metadata.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thalweg::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BinaryMetadataKey, BinaryMetadataValue, KeyAndValueRef, MetadataMap,
};

/// A metadata entry.
#[derive(Clone, Debug)]
pub enum Entry {
    /// ASCII value.
    Text(AsciiMetadataKey, AsciiMetadataValue),
    /// Binary value; the name ends in `-bin`.
    Binary(BinaryMetadataKey, BinaryMetadataValue),
}

/// Parses `name: value` or `name=value`. Values of `-bin` names are Base64.
///
/// # Errors
///
/// Returns an error for an invalid name or value.
pub fn parse(text: &str) -> Result<Entry, String> {
    let split = text.split_once(':').or_else(|| text.split_once('='));
    let (name, value) = split.ok_or_else(|| format!("invalid metadata `{text}`; use 'name: value'"))?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let no_name =
        |name: &str| format!("invalid metadata key `{name}`; use letters, digits, `_`, `-` and `.`");
    if name.ends_with("-bin") {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let bytes = GeneralPurpose::new(&STANDARD, config)
            .decode(value)
            .map_err(|error| format!("{name}: invalid Base64: {error}"))?;
        let key = name.parse().map_err(|_| no_name(&name))?;
        return Ok(Entry::Binary(key, BinaryMetadataValue::from_bytes(&bytes)));
    }
    let key = name.parse().map_err(|_| no_name(&name))?;
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let value = Some(value).filter(|_| is_plain).and_then(|value| value.parse().ok());
    let value = value.ok_or_else(|| {
        format!("{name}: the value must be visible ASCII; use a name that ends in -bin for bytes")
    })?;
    Ok(Entry::Text(key, value))
}

/// Returns the entries as a map. Entries of the same name keep their order.
pub fn map(entries: &[Entry]) -> MetadataMap {
    let mut map = MetadataMap::new();
    for entry in entries {
        match entry {
            Entry::Text(key, value) => {
                map.append(key.clone(), value.clone());
            }
            Entry::Binary(key, value) => {
                map.append_bin(key.clone(), value.clone());
            }
        }
    }
    map
}

/// Returns names and values in wire format: `-bin` values in Base64.
pub fn pairs(metadata: &MetadataMap) -> Vec<(String, String)> {
    let pair = |entry: KeyAndValueRef<'_>| match entry {
        KeyAndValueRef::Ascii(key, value) => {
            (key.to_string(), String::from_utf8_lossy(value.as_encoded_bytes()).into_owned())
        }
        KeyAndValueRef::Binary(key, value) => {
            (key.to_string(), String::from_utf8_lossy(value.as_encoded_bytes()).into_owned())
        }
    };
    metadata.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_parsed_and_formatted() {
        let entries = ["A: b", "a:c", "x-bin: aGVsbG8=", "y-bin: aGVsbG8"].map(|text| parse(text).unwrap());
        let map = map(&entries);
        assert_eq!(map.get_bin("x-bin").unwrap().to_bytes().unwrap(), "hello");
        let shown = pairs(&map);
        assert_eq!(shown[..2], [("a".to_owned(), "b".to_owned()), ("a".to_owned(), "c".to_owned())]);
        assert_eq!(shown.len(), 4);
        for (text, expected) in [
            ("a", "use 'name: value'"),
            ("a b: c", "invalid metadata key"),
            ("a: \u{e9}", "visible ASCII"),
            ("a-bin: !", "invalid Base64"),
        ] {
            assert!(parse(text).unwrap_err().contains(expected), "{text}");
        }
    }
}
