//! Environment variables in metadata.

use std::env::VarError;

use thalweg_dynamic::metadata::Entry;

use super::arguments::CallArgs;
use crate::failure::Failure;

/// Returns the arguments with `${NAME}` in metadata values replaced, if `--expand-metadata` is set.
pub(super) fn expanded(args: &CallArgs) -> Result<CallArgs, Failure> {
    let mut args = args.clone();
    if args.expand_metadata {
        for entry in args.with.metadata.iter_mut().chain(&mut args.with.reflect_metadata) {
            if let Entry::Text(name, value) = entry {
                let text = value.to_str().map_err(Failure::bad_arguments)?;
                let filled = filled(text, |variable| std::env::var(variable));
                let filled = filled.map_err(|why| Failure::bad_arguments(format!("{name}: {why}")))?;
                *value = filled.parse().map_err(|_| {
                    Failure::bad_arguments(format!(
                        "{name}: the value from the environment is not visible ASCII"
                    ))
                })?;
            }
        }
    }
    Ok(args)
}

fn filled(text: &str, variable: impl Fn(&str) -> Result<String, VarError>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(&variable(name).map_err(|why| format!("${{{name}}}: {why}"))?);
        rest = behind;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::filled;

    #[test]
    fn environment_variables_in_braces_are_expanded() {
        let variable = |name: &str| match name {
            "A" => Ok("one${B}".to_owned()),
            "B" => Ok("two".to_owned()),
            _ => Err(VarError::NotPresent),
        };
        let check = |text: &str, expected: Result<&str, &str>| {
            assert_eq!(filled(text, variable), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        };
        // Replaced values are not expanded again.
        check("Bearer ${A}, ${B}.", Ok("Bearer one${B}, two."));
        check("$A ${A", Ok("$A ${A"));
        check("${C}", Err("${C}: environment variable not found"));
    }
}
