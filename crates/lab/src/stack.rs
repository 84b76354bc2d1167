//! Compared stacks by name, and pairs of a client and a server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Name of our own stack.
pub const OURS: &str = "thalweg";
/// Variant of our server whose messages borrow from the received bytes.
pub(crate) const VIEWS: &str = "views";
/// Stack name for a server that the lab did not start.
const TARGET: &str = "target";
/// Stack name for the bare socket.
pub const SOCKET: &str = "socket";
/// Client name for the bare client.
const BARE: &str = "bare";

/// A gRPC stack, `NAME` or `NAME:VARIANT`: `thalweg`, `grpc-go`, `grpc-cpp:cq`. Serialized as this string.
///
/// A variant belongs to a stack's server or client. It applies to the side that knows it; the other side uses its
/// default.
///
/// ```
/// use thalweg_lab::stack::Stack;
///
/// let stack: Stack = "grpc-cpp:cq".parse().unwrap();
/// assert_eq!(stack.to_string(), "grpc-cpp:cq");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Stack {
    name: String,
    variant: Option<String>,
}

/// A non-default setting, or a default that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// `client`, `server` or `both`.
    pub side: String,
    /// A description with the option's own name.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// A short reason; may be empty.
    pub why: String,
}

impl Setting {
    /// Parses a line of the `settings` command: four tab-separated fields, and optionally a fifth with the variant.
    pub(crate) fn in_line(line: &str) -> Option<(Self, Option<String>)> {
        let mut fields = line.split('\t').map(str::to_owned);
        let setting =
            Self { side: fields.next()?, name: fields.next()?, value: fields.next()?, why: fields.next()? };
        let is_side = ["client", "server", "both"].contains(&setting.side.as_str());
        let variant = fields.next();
        (is_side && fields.next().is_none()).then_some((setting, variant))
    }
}

/// A client and a server that talk to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// Stack of the client.
    pub client: Stack,
    /// Stack of the server.
    pub server: Stack,
}

/// Pairing of clients and servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each stack's client with its own server.
    Own,
    /// This stack's client with every server.
    Client(Stack),
    /// Every client with this stack's server.
    Server(Stack),
    /// Each stack's client with its own server, our client with its server, and its client with ours.
    Ends,
    /// Every client with every server.
    Matrix,
}

/// Error for a text that is not a stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid stack `{0}`; use NAME or NAME:VARIANT in lower-case letters, digits and dashes")]
pub struct NotAStack(String);

impl Stack {
    /// Returns our stack.
    pub fn ours() -> Self {
        Self { name: OURS.to_owned(), variant: None }
    }

    /// Returns the stack for a server that the lab did not start.
    pub(crate) fn target() -> Self {
        Self { name: TARGET.to_owned(), variant: None }
    }

    /// Returns the bare socket as a server.
    pub(crate) fn socket() -> Self {
        Self { name: SOCKET.to_owned(), variant: None }
    }

    /// Returns the bare client, which sends prepared bytes to any server.
    pub(crate) fn bare() -> Self {
        Self { name: BARE.to_owned(), variant: None }
    }

    /// Returns the name without the variant, which is also its folder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the variant; `None` for the defaults.
    pub(crate) fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// Returns whether it is our stack, in any variant.
    pub fn is_ours(&self) -> bool {
        self.name == OURS
    }
}

impl Pair {
    /// Pairs a stack's client with its own server.
    pub(crate) fn own(stack: Stack) -> Self {
        Self { client: stack.clone(), server: stack }
    }

    /// Pairs our client with our server.
    pub(crate) fn ours() -> Self {
        Self::own(Stack::ours())
    }
}

impl Pairing {
    /// Returns the stack that all others are paired with.
    pub fn partner(&self) -> Option<&Stack> {
        match self {
            Self::Client(stack) | Self::Server(stack) => Some(stack),
            Self::Own | Self::Ends | Self::Matrix => None,
        }
    }

    /// Returns the pairs of these stacks, in order.
    pub fn pairs(&self, stacks: &[Stack]) -> Vec<Pair> {
        let pair = |client: &Stack, server: &Stack| Pair { client: client.clone(), server: server.clone() };
        match self {
            Self::Own => stacks.iter().cloned().map(Pair::own).collect(),
            Self::Client(client) => stacks.iter().map(|server| pair(client, server)).collect(),
            Self::Server(server) => stacks.iter().map(|client| pair(client, server)).collect(),
            Self::Ends => {
                let ours = &Stack::ours();
                let ends = |stack: &Stack| {
                    let replaced =
                        [pair(ours, stack), pair(stack, ours)].into_iter().filter(|_| !stack.is_ours());
                    std::iter::once(Pair::own(stack.clone())).chain(replaced).collect::<Vec<_>>()
                };
                stacks.iter().flat_map(ends).collect()
            }
            Self::Matrix => stacks
                .iter()
                .flat_map(|client| stacks.iter().map(move |server| pair(client, server)))
                .collect(),
        }
    }
}

impl FromStr for Stack {
    type Err = NotAStack;

    fn from_str(text: &str) -> Result<Self, NotAStack> {
        let is_word = |word: &str| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !word.starts_with('-') && !word.is_empty() && word.chars().all(is_inner)
        };
        let (name, variant) = match text.split_once(':') {
            Some((name, variant)) => (name, Some(variant)),
            None => (text, None),
        };
        if !is_word(name) || !variant.is_none_or(is_word) {
            return Err(NotAStack(text.to_owned()));
        }
        Ok(Self { name: name.to_owned(), variant: variant.map(str::to_owned) })
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            None => f.pad(&self.name),
            Some(variant) => f.pad(&format!("{}:{variant}", self.name)),
        }
    }
}

impl TryFrom<String> for Stack {
    type Error = NotAStack;

    fn try_from(text: String) -> Result<Self, NotAStack> {
        text.parse()
    }
}

impl From<Stack> for String {
    fn from(stack: Stack) -> Self {
        stack.to_string()
    }
}

impl fmt::Display for Pair {
    /// Formats a pair as `grpc-go` if both ends are the same stack, or else as `thalweg → grpc-go`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.client == self.server {
            self.client.fmt(f)
        } else {
            f.pad(&format!("{} → {}", self.client, self.server))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_formatted() {
        let check = |text: &str, name: &str, variant: Option<&str>| {
            let stack: Stack = text.parse().unwrap();
            assert_eq!((stack.name(), stack.variant()), (name, variant), "{text}");
            assert_eq!(stack.to_string(), text);
        };
        check("thalweg", "thalweg", None);
        check("grpc-go", "grpc-go", None);
        check("grpc-cpp:cq", "grpc-cpp", Some("cq"));
    }

    #[test]
    fn invalid_names_are_rejected() {
        // A name is also a folder name, so it must not lead elsewhere.
        for text in ["", ":", "a:", ":b", "a:b:c", "../x", "a/b", "A", "a b", "-a", "a:-b"] {
            assert_eq!(text.parse::<Stack>(), Err(NotAStack(text.to_owned())));
        }
    }

    #[test]
    fn stacks_are_paired_by_option() {
        let check = |pairing: Pairing, expected: &[&str]| {
            let stacks = ["thalweg", "tonic"].map(|name| name.parse().unwrap());
            let pairs: Vec<String> = pairing.pairs(&stacks).iter().map(ToString::to_string).collect();
            assert_eq!(pairs, expected, "{pairing:?}");
        };
        let go = || "grpc-go".parse::<Stack>().unwrap();
        check(Pairing::Own, &["thalweg", "tonic"]);
        check(Pairing::Client(go()), &["grpc-go → thalweg", "grpc-go → tonic"]);
        check(Pairing::Server(go()), &["thalweg → grpc-go", "tonic → grpc-go"]);
        check(Pairing::Server(Stack::ours()), &["thalweg", "tonic → thalweg"]);
        check(Pairing::Ends, &["thalweg", "tonic", "thalweg → tonic", "tonic → thalweg"]);
        check(Pairing::Matrix, &["thalweg", "thalweg → tonic", "tonic → thalweg", "tonic"]);
    }

    #[test]
    fn pair_of_one_stack_is_named_after_it() {
        let (ours, theirs) = (Stack::ours(), "grpc-cpp:cq".parse::<Stack>().unwrap());
        assert_eq!(Pair::own(theirs.clone()).to_string(), "grpc-cpp:cq");
        assert_eq!(Pair { client: ours, server: theirs }.to_string(), "thalweg → grpc-cpp:cq");
    }
}
