//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// A chat client for a terminal.
#[derive(Debug, Parser)]
#[command(name = "chat-client")]
#[allow(clippy::struct_excessive_bools, reason = "a flag each")]
pub(crate) struct Options {
    /// The server: HOST:PORT, unix:PATH or another gRPC target
    #[arg(default_value = "localhost:50051")]
    pub(crate) target: String,

    /// The name to log in with
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Lines in, lines out, for pipes: logs in with --name and with the password in CHAT_PASSWORD, or in the first line
    #[arg(long, requires = "name")]
    pub(crate) plain: bool,

    /// With --plain: make the account first
    #[arg(long, requires = "plain")]
    pub(crate) register: bool,

    /// Where files are saved
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) downloads: PathBuf,

    /// The authority that issued the server's certificate (PEM); the server makes one at its first start
    #[arg(long, value_name = "FILE", default_value = "chat-data/ca.pem")]
    pub(crate) ca: PathBuf,

    /// Trust the platform's authorities, in place of --ca
    #[arg(long, conflicts_with_all = ["ca", "plaintext"])]
    pub(crate) system_roots: bool,

    /// No TLS: passwords and messages can be read on the way
    #[arg(long, conflicts_with = "ca")]
    pub(crate) plaintext: bool,
}
