//! `--thalweg_opt`: a list of `name=value`, separated by commas. Names are those of `thalweg_build::Builder`.

use std::fmt::Write;

use thalweg_build::Builder;

/// Reason why an option is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct OptionError(String);

/// An option of the builder.
struct BuilderOption {
    name: &'static str,
    help: &'static str,
    apply: Apply,
}

/// Syntax of an option's value.
enum Apply {
    /// `name`, `name=true` or `name=false`.
    Switch(fn(Builder, bool) -> Builder),
    /// `name=VALUE`.
    Value(fn(Builder, &str) -> Builder),
    /// `name=PATH=VALUE`.
    Pair(fn(Builder, &str, &str) -> Builder),
}

use Apply::{Pair, Switch, Value};

const fn option(name: &'static str, help: &'static str, apply: Apply) -> BuilderOption {
    BuilderOption { name, help, apply }
}

const OPTIONS: &[BuilderOption] = &[
    option("build_client", "generate clients (default: true)", Switch(Builder::build_client)),
    option("build_server", "generate servers (default: true)", Switch(Builder::build_server)),
    option(
        "embed_descriptors",
        "embed descriptors in the program (default: false)",
        Switch(Builder::embed_descriptors),
    ),
    option(
        "compile_well_known_types",
        "also generate google.protobuf's types (default: false)",
        Switch(Builder::compile_well_known_types),
    ),
    option(
        "prost_path",
        "path of prost in generated code (default: ::thalweg::prost)",
        Value(|builder, value| builder.prost_path(value)),
    ),
    option(
        "codec_path",
        "wrapper type of all service messages: crate::Json",
        Value(|builder, value| builder.codec_path(value)),
    ),
    #[cfg(feature = "buffa")]
    option(
        "buffa",
        "generate buffa messages (default: false)",
        Switch(|builder, enable| if enable { builder.buffa() } else { builder }),
    ),
    #[cfg(feature = "buffa")]
    option(
        "buffa_views",
        "generate buffa messages and receive views (default: false)",
        Switch(|builder, enable| if enable { builder.buffa_views() } else { builder }),
    ),
    option(
        "extern_path",
        "PATH=RUST: a type or package from another crate",
        Pair(|builder, path, value| builder.extern_path(path, value)),
    ),
    option(
        "type_attribute",
        "PATH=ATTRIBUTE for messages, enums and oneofs",
        Pair(|builder, path, value| builder.type_attribute(path, value)),
    ),
    option(
        "message_attribute",
        "PATH=ATTRIBUTE for messages",
        Pair(|builder, path, value| builder.message_attribute(path, value)),
    ),
    option(
        "enum_attribute",
        "PATH=ATTRIBUTE for enums and oneofs",
        Pair(|builder, path, value| builder.enum_attribute(path, value)),
    ),
    option(
        "field_attribute",
        "PATH=ATTRIBUTE for fields",
        Pair(|builder, path, value| builder.field_attribute(path, value)),
    ),
    option(
        "client_mod_attribute",
        "PATH=ATTRIBUTE for clients' modules",
        Pair(|builder, path, value| builder.client_mod_attribute(path, value)),
    ),
    option(
        "client_attribute",
        "PATH=ATTRIBUTE for clients",
        Pair(|builder, path, value| builder.client_attribute(path, value)),
    ),
    option(
        "server_mod_attribute",
        "PATH=ATTRIBUTE for servers' modules",
        Pair(|builder, path, value| builder.server_mod_attribute(path, value)),
    ),
    option(
        "server_attribute",
        "PATH=ATTRIBUTE for servers",
        Pair(|builder, path, value| builder.server_attribute(path, value)),
    ),
    option(
        "trait_attribute",
        "PATH=ATTRIBUTE for traits of services",
        Pair(|builder, path, value| builder.trait_attribute(path, value)),
    ),
    option("boxed", "PATH of fields to box", Value(|builder, value| builder.boxed(value))),
    option(
        "bytes",
        "PATH of `bytes` fields that become `Bytes`",
        Value(|builder, value| builder.bytes(value)),
    ),
    option(
        "btree_map",
        "PATH of `map` fields that become `BTreeMap`",
        Value(|builder, value| builder.btree_map(value)),
    ),
    option(
        "skip_debug",
        "PATH of messages without `Debug`",
        Value(|builder, value| builder.skip_debug(value)),
    ),
    option(
        "disable_comments",
        "PATH of items without comments",
        Value(|builder, value| builder.disable_comments(value)),
    ),
];

const INCLUDE_FILE: &str = "include_file";
const INCLUDE_IMPORTS: &str = "include_imports";

/// Options of the plugin itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Output {
    /// The file with a module for each package; `None` if the option is empty.
    pub(crate) include_file: Option<String>,
    /// Whether the packages of imports are generated too.
    pub(crate) include_imports: bool,
}

pub(crate) fn apply(parameter: &str, mut builder: Builder) -> Result<(Builder, Output), OptionError> {
    let mut output = Output { include_file: Some("mod.rs".to_owned()), include_imports: false };
    for word in split_options(parameter) {
        let (name, value) =
            word.split_once('=').map_or((word, None), |(name, value)| (name.trim_end(), Some(value)));
        match name {
            INCLUDE_FILE => {
                let file = required(name, value)?;
                if file.contains(['/', '\\']) || file == ".." {
                    return Err(OptionError(format!("{name}={file}: expected a file name without folders")));
                }
                output.include_file = (!file.is_empty()).then(|| file.to_owned());
            }
            INCLUDE_IMPORTS => output.include_imports = switch(name, value)?,
            _ => {
                let option =
                    OPTIONS.iter().find(|option| option.name == name).ok_or_else(|| unknown(name))?;
                builder = match option.apply {
                    Switch(apply) => apply(builder, switch(name, value)?),
                    Value(apply) => apply(builder, required(name, value)?),
                    Pair(apply) => {
                        let (path, value) = pair(name, value)?;
                        apply(builder, path, value)
                    }
                };
            }
        }
    }
    Ok((builder, output))
}

/// Returns the help text of all options, one per line.
pub(crate) fn list() -> String {
    let own = [
        (INCLUDE_FILE, "file that declares the modules; empty for none (default: mod.rs)"),
        (INCLUDE_IMPORTS, "also generate the packages of imports (default: false)"),
    ];
    let all = own.into_iter().chain(OPTIONS.iter().map(|option| (option.name, option.help)));
    all.fold(String::new(), |mut text, (name, help)| {
        let _ = writeln!(text, "  {name:<25} {help}");
        text
    })
}

fn unknown(name: &str) -> OptionError {
    let names: Vec<&str> =
        [INCLUDE_FILE, INCLUDE_IMPORTS].into_iter().chain(OPTIONS.iter().map(|option| option.name)).collect();
    OptionError(format!("unknown option `{name}`; the options are {}", names.join(", ")))
}

fn switch(name: &str, value: Option<&str>) -> Result<bool, OptionError> {
    match value {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(OptionError(format!("{name}={other}: expected `true` or `false`"))),
    }
}

fn required<'v>(name: &str, value: Option<&'v str>) -> Result<&'v str, OptionError> {
    value.ok_or_else(|| OptionError(format!("{name}: expected `{name}=VALUE`")))
}

fn pair<'v>(name: &str, value: Option<&'v str>) -> Result<(&'v str, &'v str), OptionError> {
    value
        .and_then(|value| value.split_once('='))
        .ok_or_else(|| OptionError(format!("{name}: expected `{name}=PATH=VALUE`")))
}

/// Splits at commas, except at those within brackets and string literals: `#[derive(Eq, Hash)]` is one value.
fn split_options(parameter: &str) -> Vec<&str> {
    let mut options = Vec::new();
    let (mut start, mut depth, mut in_string, mut escaped) = (0, 0_usize, false, false);
    for (at, letter) in parameter.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                options.push(&parameter[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    options.push(&parameter[start..]);
    options.into_iter().map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_brackets_and_strings_do_not_split() {
        let check =
            |parameter, expected: &[&str]| assert_eq!(split_options(parameter), expected, "{parameter}");
        check("", &[]);
        check("build_client,,bytes=.a.B", &["build_client", "bytes=.a.B"]);
        check("a=.=#[derive(Eq, Hash)], b=c", &["a=.=#[derive(Eq, Hash)]", "b=c"]);
        check(r#"a=.=#[doc = "), \" ["],b"#, &[r#"a=.=#[doc = "), \" ["]"#, "b"]);
        check("a=),b", &["a=)", "b"]);
    }

    #[test]
    fn invalid_options_are_rejected() {
        let check = |parameter: &str, expected: &str| {
            let error = apply(parameter, thalweg_build::configure()).map(|(_, output)| output);
            let error = error.expect_err("the option is wrong").to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(
            "nonsense",
            "unknown option `nonsense`; the options are include_file, include_imports, build_client,",
        );
        check("build_client=yes", "build_client=yes: expected `true` or `false`");
        check("bytes", "bytes: expected `bytes=VALUE`");
        check("extern_path=.a", "extern_path: expected `extern_path=PATH=VALUE`");
        check("include_file=../mod.rs", "include_file=../mod.rs: expected a file name without folders");
    }

    #[test]
    fn output_options() {
        let check = |parameter: &str, include_file: Option<&str>, include_imports| {
            let (_, output) = apply(parameter, thalweg_build::configure()).expect("the options are right");
            assert_eq!(output, Output { include_file: include_file.map(str::to_owned), include_imports });
        };
        check("", Some("mod.rs"), false);
        check("include_file=,include_imports", None, true);
        check("include_file=proto.rs,include_imports=false", Some("proto.rs"), false);
    }
}
