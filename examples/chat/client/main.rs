//! The chat's client, for a terminal: `cargo run --release --example chat-client`.

mod app;
mod connection;
mod editor;
mod options;
mod proto;
mod requests;
mod screen;
mod terminal;
mod transfers;
mod worker;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser as _;

use app::App;
use options::Options;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat-client: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let app = App::new(options.target.clone(), options.name.clone().unwrap_or_default());
    let worker = worker::start(options)?;
    terminal::run(app, worker).await?;
    Ok(())
}
