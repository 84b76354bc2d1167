//! A plugin for protoc and buf that generates the code of `thalweg-build` in builds without cargo.
//!
//! It reads a `CodeGeneratorRequest` from stdin and writes a `CodeGeneratorResponse` to stdout. Options come from
//! `--thalweg_opt`; `docs/codegen.md` lists them.

mod generate;
mod messages;
mod options;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use prost::Message;

use messages::{Request, Response};

const USAGE: &str = "\
A plugin for protoc and buf that generates Rust clients and servers for Thalweg. protoc starts it:

  protoc --thalweg_out=src/proto --thalweg_opt=build_server=false -I proto proto/shop.proto

Options:
";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("--version") => {
            println!("protoc-gen-thalweg {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("--help" | "-h") => {
            print!("{USAGE}{}", options::list());
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!(
                "error: unexpected argument `{other}`; protoc runs this program, see `protoc-gen-thalweg --help`"
            );
            return ExitCode::from(2);
        }
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Fails if stdin is no valid request; errors in options and files are in the response.
fn run() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let request = Request::decode(&*input)
        .map_err(|error| io::Error::other(format!("invalid CodeGeneratorRequest on stdin: {error}")))?;
    let response = generate::files(&request)
        .map_or_else(|error| Response::failure(error.to_string()), Response::success);
    io::stdout().lock().write_all(&response.encode_to_vec())
}
