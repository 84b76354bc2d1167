//! The target of a server as people write it on a command line.

/// The prefixes behind which a host and a port stand.
const HOST_PREFIXES: [&str; 6] = ["dns:///", "dns:", "http://", "https://", "grpc://", "grpcs://"];

/// A target that the library understands: `grpc://` goes, `grpcs://` becomes `https://`, and a slash behind a URL goes.
/// A name without a port would mean port 443: that is said where `https://` is.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let prefix = HOST_PREFIXES.into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or_default();
    let host = &text[prefix.len()..];
    let host = if prefix.ends_with("://") { host.strip_suffix('/').unwrap_or(host) } else { host };
    let is_secure = matches!(prefix, "https://" | "grpcs://");
    let is_host = !is_secure && (!prefix.is_empty() || !(host.contains(':') || host.contains('/')));
    if is_host && !has_port(host) {
        return Err(format!("`{text}` has no port: write {prefix}{host}:50051, with the server's"));
    }
    Ok(match prefix {
        "grpc://" => host.to_owned(),
        _ if is_secure => format!("https://{host}"),
        _ => format!("{prefix}{host}"),
    })
}

/// `host:1`, `[::1]:1`; of an IPv6 address without brackets the library says what is wrong.
fn has_port(host: &str) -> bool {
    match host.rsplit_once(']') {
        Some((_, rest)) => rest.starts_with(':'),
        None => host.contains(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).as_deref(), Ok(expected));
    }

    #[test]
    fn urls_and_targets_are_understood() {
        check("localhost:1", "localhost:1");
        check("grpc://localhost:1/", "localhost:1");
        check("http://localhost:1/", "http://localhost:1");
        check("https://localhost/", "https://localhost");
        check("grpcs://localhost:1/", "https://localhost:1");
        check("dns:///localhost:1", "dns:///localhost:1");
        check("[::1]:1", "[::1]:1");
        for other in ["unix:/a/b", "unix-abstract:a", "ipv4:1.2.3.4", "::1:80", "unix:///a"] {
            check(other, other);
        }
    }

    #[test]
    fn a_port_must_be_said() {
        for text in ["localhost", "grpc://localhost", "dns:///a.example", "http://a/", "dns:[::1]"] {
            assert!(parse(text).unwrap_err().contains("has no port"), "{text}");
        }
    }
}
