//! Compiles `.proto` files to a descriptor set, with protoc's options:
//!
//! ```sh
//! cargo run -p thalweg-protobuf --features sources --example descriptor_set -- \
//!     -I proto -o set.binpb --include_imports --include_source_info shop.proto
//! ```
//!
//! Errors go to stderr, one per line: `file:line:column: message`.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use thalweg_protobuf::sources::{Compiler, Diagnostic, Disk, Folders};

fn main() -> ExitCode {
    let mut folders =
        Folders::new(Disk { read: |path| fs::read(path), canonicalize: |path| fs::canonicalize(path) });
    let mut has_folder = false;
    let mut output = None;
    let mut files = Vec::new();
    let (mut imports, mut source_info, mut warnings) = (false, false, false);
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-I" => {
                folders.push(words.next().unwrap_or_default());
                has_folder = true;
            }
            "-o" => output = words.next(),
            "--include_imports" => imports = true,
            "--include_source_info" => source_info = true,
            "--warnings" => warnings = true,
            word if word.starts_with("-I") => {
                folders.push(&word[2..]);
                has_folder = true;
            }
            _ => files.push(word),
        }
    }
    if !has_folder {
        folders.push(".");
    }
    let mut names = Vec::new();
    for file in &files {
        match folders.name(Path::new(file)) {
            Ok(name) => names.push(name),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let compiler = Compiler::new(&folders).include_imports(imports).include_source_info(source_info);
    let compiled = match compiler.compile(&names) {
        Ok(compiled) => compiled,
        Err(error) => {
            error.diagnostics().iter().for_each(|error| print("", error));
            return ExitCode::FAILURE;
        }
    };
    if warnings {
        compiled.warnings.iter().for_each(|warning| print("warning: ", warning));
    }
    if let Some(output) = output
        && let Err(error) = fs::write(&output, compiled.set)
    {
        eprintln!("failed to write {output}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print(kind: &str, diagnostic: &Diagnostic) {
    let (file, message) = (diagnostic.file(), diagnostic.message());
    match (diagnostic.line(), diagnostic.column()) {
        (Some(line), Some(column)) => eprintln!("{file}:{line}:{column}: {kind}{message}"),
        _ => eprintln!("{file}: {kind}{message}"),
    }
}
