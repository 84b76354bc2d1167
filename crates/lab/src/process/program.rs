//! Programs of stacks and their variants.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::record::Variant;
use crate::stack::{OURS, Stack};

/// A program that follows the contract of `peers/README.md`: ours, or a peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub(crate) path: PathBuf,
    /// Leading arguments: the contract may be a subcommand.
    pub(crate) words: &'static [&'static str],
    /// The version it reports: `gRPC C++ 1.51.1`.
    pub version: String,
    /// Whether it has a server; it always has a client.
    pub serves: bool,
    /// Server variants, the default first. Empty if there is only one.
    pub(crate) server_variants: Vec<String>,
    /// Client variants, the default first.
    pub client_variants: Vec<String>,
    /// Protocols of its JSON address: `http1`, `h2`, `connect` and `grpc-web`. Empty if it has no such address.
    pub json: Vec<String>,
}

/// Error for a variant that no participating side has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown variant `{}` of {} here: its server has {server}; its client has {client}",
    .stack.variant().unwrap_or_default(),
    .stack.name()
)]
pub struct UnknownVariant {
    stack: Stack,
    server: String,
    client: String,
}

impl Program {
    /// Returns this program.
    pub fn ours(path: PathBuf) -> Self {
        let variants = Variant::ALL.map(|variant| variant.to_string()).to_vec();
        Self {
            path,
            words: &["peer"],
            version: format!("{OURS} {}", env!("CARGO_PKG_VERSION")),
            serves: true,
            server_variants: variants.clone(),
            client_variants: variants,
            json: ["http1", "h2", "connect", "grpc-web"].map(str::to_owned).to_vec(),
        }
    }

    /// Returns the program of a stack.
    pub(super) fn of<'p>(programs: &'p BTreeMap<String, Self>, stack: &Stack) -> Result<&'p Self, String> {
        programs.get(stack.name()).ok_or_else(|| format!("no program of the stack {stack}"))
    }

    /// Returns the command line for a command of the contract, such as `serve`.
    pub(crate) fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(self.words).arg(word);
        command
    }

    /// Checks that a participating side knows the stack's variant, if one is named.
    pub fn check_variant(&self, stack: &Stack, serves: bool, drives: bool) -> Result<(), UnknownVariant> {
        let is_known = |variants: &[String]| known_variant(stack, variants).is_some();
        if stack.variant().is_none()
            || (serves && is_known(&self.server_variants))
            || (drives && is_known(&self.client_variants))
        {
            return Ok(());
        }
        let listed = |variants: &[String]| match variants {
            [] => "no variants".to_owned(),
            variants => variants.join(", "),
        };
        Err(UnknownVariant {
            stack: stack.clone(),
            server: listed(&self.server_variants),
            client: listed(&self.client_variants),
        })
    }

    /// Returns the stack's variant if the server knows it.
    pub(super) fn server_variant<'s>(&self, stack: &'s Stack) -> Option<&'s str> {
        known_variant(stack, &self.server_variants)
    }

    /// Returns the stack's variant if the client knows it.
    pub(super) fn client_variant<'s>(&self, stack: &'s Stack) -> Option<&'s str> {
        known_variant(stack, &self.client_variants)
    }
}

/// Returns the stack's variant if it is among the known ones.
fn known_variant<'s>(stack: &'s Stack, known: &[String]) -> Option<&'s str> {
    stack.variant().filter(|&variant| known.iter().any(|known| known == variant))
}
