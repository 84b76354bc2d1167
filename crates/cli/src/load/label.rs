//! Name and tags of a run on the command line.

use std::collections::BTreeMap;

/// Tags of one `--tags`.
pub(crate) type Tags = BTreeMap<String, String>;

/// Parses one non-empty line.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    match line(text) {
        Some("") | None => Err("a name must be one non-empty line".to_owned()),
        Some(name) => Ok(name.to_owned()),
    }
}

/// Parses `KEY=VALUE` or a JSON object of strings.
pub(super) fn parse_tags(text: &str) -> Result<Tags, String> {
    if text.trim_start().starts_with('{') {
        let tags: Tags = serde_json::from_str(text).map_err(|error| {
            format!("tags must be an object of strings, such as {{\"build\": \"7\"}}: {error}")
        })?;
        return tags.iter().map(|(key, value)| tag(key, value)).collect();
    }
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("invalid tag `{text}`; use build=7 or {{\"build\": \"7\"}}"))?;
    Ok(Tags::from([tag(key, value)?]))
}

fn tag(key: &str, value: &str) -> Result<(String, String), String> {
    match (line(key), line(value)) {
        (Some(key), Some(value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!(
            "invalid tag {key:?}={value:?}: both must be one line, and the key must not be empty"
        )),
    }
}

fn line(text: &str) -> Option<&str> {
    (!text.contains(char::is_control)).then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_parsed_in_both_forms() {
        let both = Tags::from([("build".to_owned(), "7".to_owned()), ("of".to_owned(), "a=b".to_owned())]);
        assert_eq!(parse_tags(r#"{"build": "7", "of": "a=b"}"#), Ok(both));
        assert_eq!(parse_tags("of = a=b"), Ok(Tags::from([("of".to_owned(), "a=b".to_owned())])));
        assert_eq!(parse_tags("empty="), Ok(Tags::from([("empty".to_owned(), String::new())])));
        for (text, expected) in [
            ("build", "invalid tag"),
            ("=7", "the key must not be empty"),
            ("a=b\nc", "both must be one line"),
            (r#"{"build": 7}"#, "tags must be an object of strings"),
            (r#"{"build": "7""#, "tags must be an object of strings"),
        ] {
            assert!(parse_tags(text).unwrap_err().contains(expected), "{text}");
        }
    }
}
