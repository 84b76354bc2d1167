//! The unit tests in the server's files. Cargo builds an example either to run it or to test it, and the other tests
//! need to run it.

#![allow(dead_code, reason = "what `main` uses of it")]

#[path = "../server/accounts.rs"]
mod accounts;
#[path = "../server/certificate.rs"]
mod certificate;
#[path = "../server/chat.rs"]
mod chat;
#[path = "../server/files.rs"]
mod files;
#[path = "../server/hex.rs"]
mod hex;
#[path = "../server/names.rs"]
mod names;
#[path = "../server/options.rs"]
mod options;
#[path = "../server/partial.rs"]
mod partial;
#[path = "../server/passwords.rs"]
mod passwords;
#[path = "../server/proto.rs"]
mod proto;
#[path = "../server/rooms.rs"]
mod rooms;
#[path = "../server/sessions.rs"]
mod sessions;
#[path = "../server/store.rs"]
mod store;
#[path = "../server/uploads.rs"]
mod uploads;
