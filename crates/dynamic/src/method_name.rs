//! Names of methods.

use std::fmt;
use std::str::FromStr;

/// Full name of a method: `package.Service/Method`, as in gRPC paths, or `package.Service.Method`.
///
/// ```
/// use thalweg_dynamic::MethodName;
///
/// let name: MethodName = "helloworld.Greeter/SayHello".parse()?;
/// assert_eq!((name.service(), name.method()), ("helloworld.Greeter", "SayHello"));
/// assert_eq!(name, "helloworld.Greeter.SayHello".parse()?);
/// # Ok::<(), thalweg_dynamic::MethodNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName {
    service: String,
    method: String,
}

/// Error for an invalid method name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid method `{0}`; use package.Service/Method")]
pub struct MethodNameError(String);

impl MethodName {
    /// Returns the service with its package.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the method without its service.
    pub fn method(&self) -> &str {
        &self.method
    }
}

impl FromStr for MethodName {
    type Err = MethodNameError;

    fn from_str(text: &str) -> Result<Self, MethodNameError> {
        let name = text.strip_prefix('/').unwrap_or(text);
        let split = name.split_once('/').or_else(|| name.rsplit_once('.'));
        let is_word = |part: &str| part.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_name = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
        match split {
            Some((service, method))
                if is_word(method)
                    && is_name(method)
                    && service.split('.').all(|part| is_word(part) && is_name(part)) =>
            {
                Ok(Self { service: service.to_owned(), method: method.to_owned() })
            }
            _ => Err(MethodNameError(text.to_owned())),
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_accept_slash_and_dot() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let name = text.parse::<MethodName>().ok();
            assert_eq!(name.as_ref().map(|name| (name.service(), name.method())), expected, "{text}");
        };
        check("a.b.C/D", Some(("a.b.C", "D")));
        check("/a.b.C/D", Some(("a.b.C", "D")));
        check("a.b.C.D", Some(("a.b.C", "D")));
        check("C/D", Some(("C", "D")));
        check("C.D", Some(("C", "D")));
        for text in
            ["", "D", "/D", "C/", "a b/C", "a.b.C/D/E", ".C/D", "a..C/D", "localhost:50051", "1.2.3.4"]
        {
            check(text, None);
        }
        assert_eq!(
            "x".parse::<MethodName>().unwrap_err().to_string(),
            "invalid method `x`; use package.Service/Method"
        );
    }
}
