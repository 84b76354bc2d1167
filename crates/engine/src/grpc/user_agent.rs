//! `user-agent`: the application's name, if any, and this library.

/// Default user agent: `grpc-rust-thalweg/<version>`.
///
/// The form is that of PROTOCOL-HTTP2: `grpc-<language>-<variant>/<version>`.
pub(crate) const USER_AGENT: &str = concat!("grpc-rust-thalweg/", env!("CARGO_PKG_VERSION"));

/// Returns the user agent of an application named `name`, by convention `name/version`.
pub(crate) fn for_application(name: &str) -> Result<String, InvalidUserAgent> {
    let name = name.trim_ascii();
    match name.bytes().find(|byte| !(b' '..=b'~').contains(byte)) {
        Some(_) => Err(InvalidUserAgent(name.to_owned())),
        None if name.is_empty() => Ok(USER_AGENT.to_owned()),
        None => Ok(format!("{name} {USER_AGENT}")),
    }
}

/// The application's name is not valid in a header field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid user agent {0:?}; use printable ASCII")]
pub struct InvalidUserAgent(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agents() {
        let check = |name: &str, expected: Option<String>| {
            assert_eq!(for_application(name).ok(), expected, "{name:?}");
        };
        assert!(USER_AGENT.starts_with("grpc-rust-thalweg/"));
        check("", Some(USER_AGENT.to_owned()));
        check("shop/1.2 (test)", Some(format!("shop/1.2 (test) {USER_AGENT}")));
        check(" shop ", Some(format!("shop {USER_AGENT}")));
        check("shop\r\nx: y", None);
        check("caf\u{e9}", None);
    }
}
