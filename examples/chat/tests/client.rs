//! The unit tests in the client's files. Cargo builds an example either to run it or to test it, and the other tests
//! need to run it.

#![allow(dead_code, reason = "what `main` uses of it")]

#[path = "../client/app.rs"]
mod app;
#[path = "../client/connection.rs"]
mod connection;
#[path = "../client/editor.rs"]
mod editor;
#[path = "../client/events.rs"]
mod events;
#[path = "../client/options.rs"]
mod options;
#[path = "../client/plain.rs"]
mod plain;
#[path = "../client/proto.rs"]
mod proto;
#[path = "../client/requests.rs"]
mod requests;
#[path = "../client/screen.rs"]
mod screen;
#[path = "../client/terminal.rs"]
mod terminal;
#[path = "../client/text.rs"]
mod text;
#[path = "../client/transfers.rs"]
mod transfers;
#[path = "../client/worker.rs"]
mod worker;
