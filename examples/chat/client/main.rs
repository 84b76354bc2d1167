//! The chat client for a terminal: `cargo run --release --example chat-client`.

mod app;
mod connection;
mod editor;
mod events;
mod options;
mod plain;
mod proto;
mod requests;
mod screen;
mod terminal;
mod text;
mod transfers;
mod worker;

use std::env;
use std::error::Error;
use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;

use clap::Parser as _;

use app::App;
use options::Options;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chat-client: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all commands succeeded.
#[tokio::main]
async fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let is_terminal = stdin().is_terminal() && stdout().is_terminal();
    if !options.plain && !is_terminal {
        return Err("this is not a terminal; --plain is for pipes".into());
    }
    let app = App::new(options.target.clone(), options.name.clone().unwrap_or_default());
    let worker = worker::start(options)?;
    if options.plain {
        Ok(plain::run(app, worker, env::var("CHAT_PASSWORD").ok(), options.register).await?)
    } else {
        terminal::run(app, worker).await?;
        Ok(true)
    }
}
