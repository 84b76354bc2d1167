//! Requests given in hex.

use std::fs;

use thalweg_load::record::MethodCall;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestBytes(Vec<u8>);

/// Returns a call of `package.Service/Method`, with or without a leading slash.
pub(crate) fn call(method: &str, request: Option<&RequestBytes>) -> MethodCall {
    let path = format!("/{}", method.trim_start_matches('/'));
    MethodCall { path, request: request.map(|request| request.0.clone()).unwrap_or_default() }
}

/// Parses hex, such as `0a05…`, or `@FILE` for the file's content.
pub(crate) fn parse(text: &str) -> Result<RequestBytes, String> {
    if let Some(file) = text.strip_prefix('@') {
        return fs::read(file).map(RequestBytes).map_err(|error| format!("failed to read {file}: {error}"));
    }
    let not_hex = || format!("invalid hex `{text}`; use two digits for each byte, or @FILE");
    let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<u32>>>().ok_or_else(not_hex)?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(not_hex());
    }
    Ok(RequestBytes(pairs.iter().map(|[high, low]| (high * 16 + low) as u8).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_bytes_are_parsed_from_hex_and_files() {
        let check = |text: &str, expected: Option<&[u8]>| {
            assert_eq!(parse(text).ok().map(|request| request.0).as_deref(), expected, "{text}");
        };
        check("", Some(&[]));
        check("0aFf", Some(&[10, 255]));
        check("0a5", None);
        check("0x", None);
        check("@/nonexistent/request", None);
        let file = std::env::temp_dir().join(format!("thalweg-request-{}", std::process::id()));
        fs::write(&file, b"\x01\x02").unwrap();
        check(&format!("@{}", file.display()), Some(&[1, 2]));
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn method_path_has_one_leading_slash() {
        for method in ["a.B/C", "/a.B/C"] {
            assert_eq!(call(method, None), MethodCall { path: "/a.B/C".to_owned(), request: Vec::new() });
        }
    }
}
