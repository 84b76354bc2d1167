//! The chat as users run it: processes, terminals and files.

mod calls;
mod plain;
mod resumption;
mod server;
mod terminal;
mod transfers;

mod proto {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("chat.v1");
}
