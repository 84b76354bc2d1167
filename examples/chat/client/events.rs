//! The app's commands, and the events that it receives.

use std::io;
use std::path::PathBuf;

use crate::proto::send_request::Body as SentBody;
use crate::proto::watch_response::Event as Watched;
use crate::proto::{self, Message};

/// A command to the worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    LogIn {
        name: String,
        password: String,
        register: bool,
    },
    LogOut,
    /// Messages after this number; 0: the latest and all new ones.
    Watch {
        room: String,
        after: u64,
    },
    Send(Outgoing),
    CreateRoom(String),
    Earlier {
        room: String,
        before: u64,
    },
    SendFile {
        room: String,
        path: PathBuf,
    },
    Save {
        room: String,
        number: u64,
        file: proto::File,
    },
}

/// An event from the worker.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Link(Link),
    LoggedIn(String),
    /// The reason why the login failed.
    Refused(String),
    /// The reason why the session is over.
    LoggedOut(String),
    Rooms(Vec<proto::Room>),
    Created(String),
    Watched {
        room: String,
        event: Watched,
    },
    NotWatched {
        room: String,
        why: String,
    },
    Earlier {
        room: String,
        messages: Vec<Message>,
    },
    NotSent {
        id: Id,
        why: String,
    },
    Uploaded {
        room: String,
        file: proto::File,
    },
    Progress {
        transfer: u64,
        what: String,
        done: u64,
        size: u64,
    },
    /// A longer operation has ended: a room was created, or a file was transferred.
    Done(Option<u64>),
    Notice(String),
    /// The reason why a command failed.
    Failed(String),
}

impl Event {
    pub(crate) fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::LoggedOut(_)
                | Self::NotWatched { .. }
                | Self::NotSent { .. }
                | Self::Failed(_)
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Connected,
    /// Waiting for the next try; the reason why the last one failed.
    Waiting(String),
}

/// The client's id of a message. Lets the server store a message once however often it is sent.
pub(crate) type Id = [u8; 16];

pub(crate) fn new_id() -> io::Result<Id> {
    let mut id = Id::default();
    getrandom::fill(&mut id)?;
    Ok(id)
}

/// A message that the server has not confirmed yet by sending it back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outgoing {
    pub(crate) id: Id,
    pub(crate) room: String,
    pub(crate) body: SentBody,
}
