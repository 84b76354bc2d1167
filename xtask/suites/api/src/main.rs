//! Prints the public items of a library, a line each, from rustdoc's JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: api-listing RUSTDOC.json");
        return ExitCode::from(2);
    };
    // What every type has, or may lose without a word in the sources, is no promise.
    let listed = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .sorted(true)
        .build();
    match listed {
        Ok(listed) => {
            print!("{listed}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
