//! Command-line options.

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

    /// Name to log in with
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Read lines from stdin, print messages to stdout; needs --name, and the password in CHAT_PASSWORD or the first
    /// line
    #[arg(long, requires = "name")]
    pub(crate) plain: bool,

    /// With --plain: create the account first
    #[arg(long, requires = "plain")]
    pub(crate) register: bool,

    /// Folder for downloaded files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) downloads: PathBuf,

    /// Authority of the server's certificate (PEM); the server creates one at its first start
    #[arg(long, value_name = "FILE", default_value = "chat-data/ca.pem")]
    pub(crate) ca: PathBuf,

    /// Trust the platform's authorities instead of --ca
    #[arg(long, conflicts_with_all = ["ca", "plaintext"])]
    pub(crate) system_roots: bool,

    /// Connect without TLS: passwords and messages are readable on the network
    #[arg(long, conflicts_with = "ca")]
    pub(crate) plaintext: bool,
}
