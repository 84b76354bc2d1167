//! Parses the positional arguments of `call`.

use thalweg_dynamic::MethodName;
use thalweg_measure::target;

use crate::failure::Failure;

/// An operation on a server or on files.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallCommand {
    /// Lists the services, or the methods of one.
    List { service: Option<String> },
    /// Describes a symbol, or all services.
    Describe { symbol: Option<String> },
    /// Calls a method.
    Method(MethodName),
}

/// Returns the target, if there is one, and the operation.
pub(super) fn parse(words: &[String]) -> Result<(Option<String>, CallCommand), Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = |word: &str| word.trim_start_matches('.').to_owned();
    let command = |words: &[&str]| match words {
        ["list"] => Some(CallCommand::List { service: None }),
        ["list", service] => Some(CallCommand::List { service: Some(name(service)) }),
        ["describe"] => Some(CallCommand::Describe { symbol: None }),
        ["describe", symbol] => Some(CallCommand::Describe { symbol: Some(name(symbol)) }),
        [method] => method.parse().ok().map(CallCommand::Method),
        _ => None,
    };
    let at = |target: &str| target::parse(target).map(Some).map_err(Failure::bad_arguments);
    match words[..] {
        // `list` and `describe` cannot be targets, which have a port.
        ["list" | "describe", ..] => match command(&words) {
            Some(command) => Ok((None, command)),
            None => Err(Failure::bad_arguments(format!("{} takes one name", words[0]))),
        },
        [target, ref rest @ ..] if !rest.is_empty() => match command(rest) {
            Some(command) => Ok((at(target)?, command)),
            None if rest.len() > 1 && !matches!(rest[0], "list" | "describe") => {
                Err(Failure::bad_arguments(format!("unexpected `{}`; give the request with -d", rest[1])))
            }
            None => Err(Failure::bad_arguments(format!(
                "expected list, describe or a method, found `{}`; use package.Service/Method",
                rest[0]
            ))),
        },
        [only] => match command(&[only]) {
            Some(command) if only.contains('/') => Ok((None, command)),
            _ => Err(Failure::bad_arguments(format!(
                "missing command for {only}; add list, describe or package.Service/Method"
            ))),
        },
        _ => Err(Failure::bad_arguments("expected a target, and list, describe or package.Service/Method")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<(Option<String>, CallCommand), String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|failure| failure.message)
    }

    #[test]
    fn words_parse_to_target_and_command() {
        let list = |service: Option<&str>| CallCommand::List { service: service.map(str::to_owned) };
        let describe = |symbol: Option<&str>| CallCommand::Describe { symbol: symbol.map(str::to_owned) };
        let method = || CallCommand::Method("a.B/C".parse().unwrap());
        let at = || Some("host:1".to_owned());
        assert_eq!(parsed("host:1 list"), Ok((at(), list(None))));
        assert_eq!(parsed("host:1 list a.B"), Ok((at(), list(Some("a.B")))));
        assert_eq!(parsed("host:1 describe .a.B"), Ok((at(), describe(Some("a.B")))));
        assert_eq!(parsed("list"), Ok((None, list(None))));
        assert_eq!(parsed("describe a.B"), Ok((None, describe(Some("a.B")))));
        assert_eq!(parsed("host:1 a.B/C"), Ok((at(), method())));
        assert_eq!(parsed("host:1 a.B.C"), Ok((at(), method())));
        assert_eq!(parsed("grpc://host:1/ a.B/C"), Ok((at(), method())));
    }

    #[test]
    fn missing_words_are_reported() {
        let check = |words: &str, expected: &str| {
            let error = parsed(words).unwrap_err();
            assert!(error.contains(expected), "{words}: {error}");
        };
        check("host:1", "missing command for host:1");
        check("host list", "has no port");
        check("host:1 hello", "expected list, describe or a method");
        check("host:1 a.B/C more", "unexpected `more`");
        check("list a b", "list takes one name");
    }
}
