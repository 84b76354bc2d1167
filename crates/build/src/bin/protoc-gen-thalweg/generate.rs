//! Generates files for a request, with `thalweg_build::Builder` and a temporary folder.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use prost::Message;
use prost_build::Module;

use crate::messages::{EncodedSet, File, FileName, Request};
use crate::options;

/// Reason why nothing was generated. protoc prints it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Option(#[from] options::OptionError),
    #[error("{0}")]
    Build(#[from] thalweg_build::Error),
    #[error("invalid FileDescriptorProto: {0}")]
    Descriptor(#[from] prost::DecodeError),
    #[error("failed to use a temporary folder: {0}")]
    Io(#[from] std::io::Error),
    #[error("the request has no descriptor of {0}, a file to generate")]
    NoDescriptor(String),
}

/// Returns the files of one request: one per package, and one with all of them as modules.
pub(crate) fn files(request: &Request) -> Result<Vec<File>, Error> {
    let folder = tempfile::tempdir()?;
    let builder = thalweg_build::configure().out_dir(folder.path()).emit_rerun_if_changed(false);
    let (mut builder, output) = options::apply(request.parameter.as_deref().unwrap_or_default(), builder)?;
    if let Some(name) = &output.include_file {
        builder = builder.include_file(name);
    }
    let encoded = EncodedSet { file: request.proto_file.clone() }.encode_to_vec();
    // Boxing and derives depend on imported messages: all files are compiled, then selected.
    builder.compile_encoded_fds(&encoded)?;
    let selected = selected_packages(request, output.include_imports)?;
    let mut files = Vec::new();
    for package in &selected {
        for name in file_names(package) {
            files.extend(read(folder.path(), &name)?);
        }
    }
    if let Some(name) = output.include_file
        && let Some(mut file) = read(folder.path(), &name)?
    {
        let selected: BTreeSet<String> = selected.iter().flat_map(|package| file_names(package)).collect();
        let text = String::from_utf8_lossy(file.content());
        file.content = Some(select_modules(&text, |name| selected.contains(name)).into_bytes());
        files.push(file);
    }
    Ok(files)
}

/// Returns the packages of the files to generate, or of all files. A package is generated as a whole, since its code
/// refers to its types by bare names, independent of their file.
fn selected_packages(request: &Request, include_imports: bool) -> Result<BTreeSet<String>, Error> {
    let files = request.proto_file.iter().map(|file| FileName::decode(&**file));
    let files: Vec<FileName> = files.collect::<Result<_, _>>()?;
    let to_generate: BTreeSet<&str> = request.file_to_generate.iter().map(String::as_str).collect();
    let is_missing = |name: &&&str| files.iter().all(|file| file.name() != **name);
    if let Some(missing) = to_generate.iter().find(is_missing) {
        return Err(Error::NoDescriptor((*missing).to_owned()));
    }
    let selected = files.iter().filter(|file| include_imports || to_generate.contains(file.name()));
    Ok(selected.map(|file| file.package().to_owned()).collect())
}

/// Returns the files that the builder may have written for a package.
fn file_names(package: &str) -> BTreeSet<String> {
    let by_prost = Module::from_protobuf_package_name(package).to_file_name_or("_");
    let package = if package.is_empty() { "_" } else { package };
    [by_prost, format!("{package}.rs"), format!("{package}.descriptors.bin")].into()
}

/// A package without messages and services has no file.
fn read(folder: &Path, name: &str) -> Result<Option<File>, Error> {
    match fs::read(folder.join(name)) {
        Ok(content) => Ok(Some(File { name: Some(name.to_owned()), content: Some(content) })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Drops the lines of an include file whose files are not selected, and modules that are empty without them.
fn select_modules(text: &str, is_selected: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let included = line.trim().strip_prefix("include!(\"").and_then(|rest| rest.strip_suffix("\");"));
        if included.is_some_and(|name| !is_selected(name)) {
            continue;
        }
        if line.trim() != "}" {
            lines.push(line);
            continue;
        }
        // buffa's modules start with an import, and have an attribute.
        let last = lines.iter().rposition(|line| line.trim() != "use super::*;");
        match last.filter(|last| lines[*last].ends_with('{')) {
            Some(opening) => {
                lines.truncate(opening);
                lines.pop_if(|line| line.trim().starts_with("#["));
            }
            None => lines.push(line),
        }
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::select_modules;

    #[test]
    fn modules_without_files_are_dropped() {
        let text = "// c\ninclude!(\"_.rs\");\npub mod a {\n    pub mod b {\n        include!(\"a.b.rs\");\n    }\n}\n\
                    pub mod c {\n    include!(\"c.rs\");\n    pub mod d {\n        include!(\"c.d.rs\");\n    }\n}\n";
        assert_eq!(select_modules(text, |_| true), text);
        assert_eq!(select_modules(text, |_| false), "// c\n");
        let buffa = "#[allow(a)]\npub mod a {\n    use super::*;\n    #[allow(a)]\n    pub mod b {\n\
                     \x20       use super::*;\n\
                     \x20       include!(\"a.b.rs\");\n    }\n}\n";
        assert_eq!(select_modules(buffa, |_| true), buffa);
        assert_eq!(select_modules(buffa, |_| false), "");
        let c = "// c\npub mod c {\n    include!(\"c.rs\");\n}\n";
        assert_eq!(select_modules(text, |name| name == "c.rs"), c);
    }
}
