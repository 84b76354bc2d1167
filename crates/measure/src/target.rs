//! Targets of servers on a command line.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Prefixes of targets with a host and a port.
const HOST_PREFIXES: [&str; 7] =
    ["dns:///", "dns:", "http://", "https://", "grpc://", "grpcs://", "passthrough:///"];
/// Schemes of targets, which must not be mistaken for a host before `:`.
const SCHEMES: [&str; 5] = ["dns", "unix", "unix-abstract", "ipv4", "ipv6"];

/// Default port of the library.
const PORT_DEFAULT: u16 = 443;

/// Returns the servers of a list such as `a:1,b:2`: several `HOST:PORT`, joined by commas. Any other target is one.
pub fn servers(target: &str) -> Vec<&str> {
    if has_scheme(target) { vec![target] } else { target.split(',').collect() }
}

fn has_scheme(target: &str) -> bool {
    let is_scheme = target.split_once(':').is_some_and(|(scheme, _)| SCHEMES.contains(&scheme));
    is_scheme || !divided(target).0.is_empty()
}

/// Converts a target to the library's syntax. Removes `grpc://`, gRPC's `passthrough:///`, and the slash at the end of
/// a URL. Replaces `grpcs://` by `https://`. A list of [servers] stays one.
///
/// # Errors
///
/// Returns an error for a URL with a path and for an unknown scheme. Returns an error for a name without a port, except
/// with `https://`, whose default port is 443.
pub fn parse(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("the target is empty; use HOST:PORT".to_owned());
    }
    if text.starts_with("unix") && text.contains(",unix") {
        let hint = "a list may have only HOST:PORT";
        return Err(format!("`{text}` lists several UNIX sockets, which is not supported; {hint}"));
    }
    if let servers @ [_, _, ..] = &servers(text)[..] {
        for server in servers {
            if server.is_empty() {
                return Err(format!("`{text}` has a comma without a server"));
            }
            if server.contains(' ') {
                return Err(format!("`{text}` has a space; use HOST:PORT,HOST:PORT"));
            }
            if has_scheme(server) {
                return Err(format!("`{text}` is a list, and may have only HOST:PORT, not `{server}`"));
            }
            parse(server)?;
        }
        return Ok(text.to_owned());
    }
    let (prefix, host) = divided(text);
    if !prefix.is_empty() && host.contains(',') {
        return Err(format!("`{text}` lists several servers; use HOST:PORT,HOST:PORT without `{prefix}`"));
    }
    let host = if prefix.ends_with("://") { host.strip_suffix('/').unwrap_or(host) } else { host };
    if let Some((scheme, rest)) = text.split_once(':').filter(|_| prefix.is_empty()) {
        let is_scheme = rest.starts_with("//") || rest.starts_with('/');
        if is_scheme && !SCHEMES.contains(&scheme) {
            return Err(unknown_scheme(text, scheme));
        }
    }
    // The library parses `dns://AUTHORITY/NAME`.
    let may_have_path = prefix.is_empty() || host.starts_with("//");
    if let Some((server, path)) = host.split_once('/').filter(|_| !may_have_path) {
        return Err(format!(
            "`{text}` has the path `/{path}`, but a target is only a server; use {prefix}{server}"
        ));
    }
    if host.is_empty() && !prefix.is_empty() {
        return Err(format!("`{text}` has no host; use {prefix}HOST:PORT"));
    }
    let is_secure = matches!(prefix, "https://" | "grpcs://");
    let is_host = !is_secure && (!prefix.is_empty() || !(host.contains(':') || host.contains('/')));
    if is_host && !has_port(host) {
        return Err(format!("`{text}` has no port; use the server's, such as {prefix}{host}:50051"));
    }
    Ok(match prefix {
        "grpc://" | "passthrough:///" => host.to_owned(),
        _ if is_secure => format!("https://{host}"),
        _ => format!("{prefix}{host}"),
    })
}

fn unknown_scheme(text: &str, scheme: &str) -> String {
    let instead = match scheme {
        "xds" => "use the server itself as HOST:PORT",
        _ => "use HOST:PORT, http://, https://, dns:, unix:, unix-abstract:, ipv4: or ipv6:",
    };
    format!("`{text}` has the scheme `{scheme}`, which is not supported; {instead}")
}

/// Resolves a result of [`parse`] that is not a Unix domain socket.
///
/// # Errors
///
/// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid target, and other errors if a name does not
/// resolve.
pub fn addresses(target: &str) -> io::Result<Vec<SocketAddr>> {
    let listed = target.strip_prefix("ipv4:").or_else(|| target.strip_prefix("ipv6:"));
    if let Some(list) = listed {
        let address = |text: &str| {
            let alone =
                || text.trim_matches(['[', ']']).parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT_DEFAULT));
            let malformed =
                |_| io::Error::new(io::ErrorKind::InvalidInput, format!("invalid address `{text}`"));
            text.parse().or_else(|_| alone()).map_err(malformed)
        };
        return list.split(',').map(address).collect();
    }
    if let servers @ [_, _, ..] = &servers(target)[..] {
        let found: Vec<_> = servers.iter().map(|server| addresses(server)).collect::<io::Result<_>>()?;
        return Ok(found.concat());
    }
    let (_, host) = divided(target);
    let host = host.trim_end_matches('/');
    if has_port(host) {
        host.to_socket_addrs().map(Iterator::collect)
    } else {
        (host.trim_matches(['[', ']']), PORT_DEFAULT).to_socket_addrs().map(Iterator::collect)
    }
}

/// Splits a target into its prefix and the rest.
fn divided(text: &str) -> (&'static str, &str) {
    let prefix = HOST_PREFIXES.into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or_default();
    (prefix, &text[prefix.len()..])
}

/// Returns whether there is a port: `host:1`, `[::1]:1`. The library reports IPv6 addresses without brackets.
fn has_port(host: &str) -> bool {
    match host.rsplit_once(']') {
        Some((_, rest)) => rest.starts_with(':'),
        None => host.contains(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for other in ["a:1,b:2", "[::1]:1,127.0.0.1:1", "ipv4:1.2.3.4:5,1.2.3.5:6", "unix:/a,b:1"] {
            check(other, other);
        }
        for other in ["unix:/a/b", "unix-abstract:a", "ipv4:1.2.3.4", "::1:80", "unix:///a"] {
            check(other, other);
        }
    }

    #[test]
    fn invalid_targets_are_rejected_with_reason() {
        for (text, expected) in [
            ("http://host/path", "has the path `/path`, but a target is only a server; use http://host"),
            ("https://host:1/a/b", "has the path `/a/b`"),
            ("grpc://host:1/a", "use grpc://host:1"),
            ("xds:///shop", "has the scheme `xds`, which is not supported; use the server itself"),
            ("xds:/shop", "has the scheme `xds`"),
            ("ftp://host:1", "has the scheme `ftp`, which is not supported; use HOST:PORT"),
            ("passthrough:///", "has no host; use passthrough:///HOST:PORT"),
            ("http://", "has no host"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (text, expected) in [
            ("a:1,b", "`b` has no port"),
            ("", "the target is empty; use HOST:PORT"),
            ("a:1,", "`a:1,` has a comma without a server"),
            ("a:1, b:2", "`a:1, b:2` has a space"),
            ("unix:/a,unix:/b", "`unix:/a,unix:/b` lists several UNIX sockets"),
            ("unix-abstract:a,unix:/b", "lists several UNIX sockets"),
            ("a:1,unix:/b", "may have only HOST:PORT, not `unix:/b`"),
            ("a:1,https://b", "may have only HOST:PORT, not `https://b`"),
            ("https://a:1,b:2", "use HOST:PORT,HOST:PORT without `https://`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        check("passthrough:///localhost:1", "localhost:1");
        check("dns://8.8.8.8/localhost:1", "dns://8.8.8.8/localhost:1");
    }

    #[test]
    fn addresses_are_resolved_for_every_kind_of_target() {
        let check = |target: &str, expected: &[&str]| {
            let found = addresses(target).unwrap();
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{target}");
        };
        for target in ["127.0.0.1:1", "dns:///127.0.0.1:1", "dns:127.0.0.1:1", "http://127.0.0.1:1/"] {
            check(target, &["127.0.0.1:1"]);
        }
        check("https://127.0.0.1", &["127.0.0.1:443"]);
        check("https://[::1]", &["[::1]:443"]);
        check("[::1]:1", &["[::1]:1"]);
        check("ipv4:1.2.3.4:5,1.2.3.5", &["1.2.3.4:5", "1.2.3.5:443"]);
        check("ipv6:[::1]:5", &["[::1]:5"]);
        check("127.0.0.1:1,[::1]:2", &["127.0.0.1:1", "[::1]:2"]);
        for malformed in ["ipv4:hello", "localhost:port"] {
            let error = addresses(malformed).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{malformed}: {error}");
        }
    }

    #[test]
    fn target_without_port_is_rejected() {
        for text in ["localhost", "grpc://localhost", "dns:///a.example", "http://a/", "dns:[::1]"] {
            assert!(parse(text).unwrap_err().contains("has no port"), "{text}");
        }
    }
}
