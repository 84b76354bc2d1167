//! What is compared: stacks by their names, and pairs of a client and a server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Our own stack's name.
pub const OURS: &str = "thalweg";
/// The variant of our server whose messages stay in the bytes that came.
pub(crate) const VIEWS: &str = "views";
/// What names a server that the lab did not start, where stacks are named.
const TARGET: &str = "target";
/// What names the bare socket where stacks are named.
pub const SOCKET: &str = "socket";
/// What names the bare client where clients are named.
const BARE: &str = "bare";

/// A gRPC stack, `NAME` or `NAME:VARIANT`: `thalweg`, `grpc-go`, `grpc-cpp:cq`. Its string in JSON.
///
/// A variant is one of a stack's kinds of server or client; it goes to the side that knows it, and the other side is
/// the default one.
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

/// What a side of a stack is told, or its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// `client`, `server` or `both`.
    pub side: String,
    /// In plain words, with the option's own name.
    pub name: String,
    /// With its unit.
    pub value: String,
    /// A short sentence, or nothing.
    pub why: String,
}

impl Setting {
    /// Reads a line of the command `settings`: four fields with tabs between, and a fifth with the variant that it is
    /// of.
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
    /// Whose driver.
    pub client: Stack,
    /// Whose server.
    pub server: Stack,
}

/// Which clients meet which servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each stack's client its own server.
    Own,
    /// This stack's client every server.
    Client(Stack),
    /// Every client this stack's server.
    Server(Stack),
    /// Each stack's client its own server, and with one end of each replaced by ours: our client at its server, its
    /// client at ours.
    Ends,
    /// Every client every server.
    Matrix,
}

/// A text that names no stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no stack: write NAME or NAME:VARIANT in lower-case letters, digits and dashes")]
pub struct NotAStack(String);

impl Stack {
    /// Ours.
    pub fn ours() -> Self {
        Self { name: OURS.to_owned(), variant: None }
    }

    /// A server that is somebody else's, whatever stack it is made with.
    pub(crate) fn target() -> Self {
        Self { name: TARGET.to_owned(), variant: None }
    }

    /// The bare socket, as a server.
    pub(crate) fn socket() -> Self {
        Self { name: SOCKET.to_owned(), variant: None }
    }

    /// The client that sends prepared bytes, to whatever server.
    pub(crate) fn bare() -> Self {
        Self { name: BARE.to_owned(), variant: None }
    }

    /// Which stack it is, without the variant: the name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which kind of its server or client; `None` for the default ones.
    pub(crate) fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// It is this very stack, in whatever variant.
    pub fn is_ours(&self) -> bool {
        self.name == OURS
    }
}

impl Pair {
    /// Client and server of the same stack.
    pub(crate) fn own(stack: Stack) -> Self {
        Self { client: stack.clone(), server: stack }
    }

    /// Our client and our server.
    pub(crate) fn ours() -> Self {
        Self::own(Stack::ours())
    }
}

impl Pairing {
    /// The stack that everything is paired with.
    pub fn partner(&self) -> Option<&Stack> {
        match self {
            Self::Client(stack) | Self::Server(stack) => Some(stack),
            Self::Own | Self::Ends | Self::Matrix => None,
        }
    }

    /// The pairs of these stacks, in their order.
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
    /// `grpc-go` where both ends are one stack's, `thalweg → grpc-go` for our client at grpc-go's server.
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
    fn names_are_read_and_shown() {
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
    fn what_is_no_name_is_refused() {
        // A name is a folder's: nothing that could lead elsewhere.
        for text in ["", ":", "a:", ":b", "a:b:c", "../x", "a/b", "A", "a b", "-a", "a:-b"] {
            assert_eq!(text.parse::<Stack>(), Err(NotAStack(text.to_owned())));
        }
    }

    #[test]
    fn stacks_are_paired_as_asked() {
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
    fn a_pair_of_one_stack_has_its_name() {
        let (ours, theirs) = (Stack::ours(), "grpc-cpp:cq".parse::<Stack>().unwrap());
        assert_eq!(Pair::own(theirs.clone()).to_string(), "grpc-cpp:cq");
        assert_eq!(Pair { client: ours, server: theirs }.to_string(), "thalweg → grpc-cpp:cq");
    }
}
