//! What the app wants done, and what it is told.

use std::io;
use std::path::PathBuf;

use crate::proto::send_request::Body as SentBody;
use crate::proto::watch_response::Event as Watched;
use crate::proto::{self, Message};

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    LogIn {
        name: String,
        password: String,
        register: bool,
    },
    LogOut,
    /// What comes after a number; 0: the latest, and what comes.
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

/// What has happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Link(Link),
    LoggedIn(String),
    /// Why logging in failed.
    Refused(String),
    /// Why the session is over.
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
    /// Whatever came of what takes a while: a room that was made, a file.
    Done(Option<u64>),
    Notice(String),
    /// Why something that was asked for was not done.
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
    /// For the next try, and why the last one failed.
    Waiting(String),
}

/// What the client calls a message, so that it is stored once however often it is sent.
pub(crate) type Id = [u8; 16];

pub(crate) fn new_id() -> io::Result<Id> {
    let mut id = Id::default();
    getrandom::fill(&mut id)?;
    Ok(id)
}

/// A message that the server has not confirmed by sending it back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outgoing {
    pub(crate) id: Id,
    pub(crate) room: String,
    pub(crate) body: SentBody,
}
