//! A program of a stack, and its variants.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::record::Variant;
use crate::stack::{OURS, Stack};

/// A program that keeps the contract of `peers/README.md`: ours, or a peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub(crate) path: PathBuf,
    /// Its first words: the contract may be a command of several.
    pub(crate) words: &'static [&'static str],
    /// What it calls itself: `gRPC C++ 1.51.1`.
    pub version: String,
    /// It has a server; a client it has in any case.
    pub serves: bool,
    /// Kinds of server it has, the default first. Empty where there is no choice.
    pub(crate) server_variants: Vec<String>,
    /// Kinds of client it has, the default first.
    pub client_variants: Vec<String>,
    /// What its JSON address speaks, `http1`, `h2`, `connect` and `grpc-web`; empty where it has none.
    pub json: Vec<String>,
}

/// A variant that no side which takes part has.
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
    /// This very program.
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

    /// That of the stack.
    pub(super) fn of<'p>(programs: &'p BTreeMap<String, Self>, stack: &Stack) -> Result<&'p Self, String> {
        programs.get(stack.name()).ok_or_else(|| format!("there is no program of the stack {stack}"))
    }

    /// The program with a command of the contract, such as `serve`.
    pub(crate) fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(self.words).arg(word);
        command
    }

    /// Whether the stack's variant, if it names one, is known to a side that takes part.
    pub fn check_variant(&self, stack: &Stack, serves: bool, drives: bool) -> Result<(), UnknownVariant> {
        let is_known = |variants: &[String]| known_variant(stack, variants).is_some();
        if stack.variant().is_none()
            || (serves && is_known(&self.server_variants))
            || (drives && is_known(&self.client_variants))
        {
            return Ok(());
        }
        let listed = |variants: &[String]| match variants {
            [] => "no choice".to_owned(),
            variants => variants.join(", "),
        };
        Err(UnknownVariant {
            stack: stack.clone(),
            server: listed(&self.server_variants),
            client: listed(&self.client_variants),
        })
    }

    /// The stack's variant, if it is one of the server's.
    pub(super) fn server_variant<'s>(&self, stack: &'s Stack) -> Option<&'s str> {
        known_variant(stack, &self.server_variants)
    }

    /// The stack's variant, if it is one of the client's.
    pub(super) fn client_variant<'s>(&self, stack: &'s Stack) -> Option<&'s str> {
        known_variant(stack, &self.client_variants)
    }
}

/// A variant goes to the side that knows it.
fn known_variant<'s>(stack: &'s Stack, known: &[String]) -> Option<&'s str> {
    stack.variant().filter(|&variant| known.iter().any(|known| known == variant))
}
