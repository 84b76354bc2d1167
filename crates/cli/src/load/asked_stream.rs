//! How a stream is to go, as it was asked for.

use std::time::Duration;

use thalweg_dynamic::MethodName;
use thalweg_load::{CallKind, Schedule};

use crate::failure::Failure;

/// How a stream is to go.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedStream {
    pub(super) messages: Option<u64>,
    pub(super) message_rate: Option<Schedule>,
    pub(super) lasts: Option<Duration>,
    pub(super) responses: Option<u64>,
    pub(super) outstanding: Option<u64>,
    /// Until the run ends.
    pub(super) lasts_to_end: bool,
}

impl AskedStream {
    pub(super) fn check(&self, kind: CallKind, method: &MethodName) -> Result<(), Failure> {
        let sends = matches!(kind, CallKind::ClientStream | CallKind::BidiStream);
        let receives = matches!(kind, CallKind::ServerStream | CallKind::BidiStream);
        let asked = [
            (self.message_rate.is_some(), sends, "--message-rate", "sends a stream"),
            (self.messages.is_some(), sends, "--messages", "sends a stream"),
            (self.lasts.is_some(), sends || receives, "--stream-for", "is a stream"),
            (self.responses.is_some(), receives, "--responses", "answers with a stream"),
            (self.outstanding.is_some(), sends && receives, "--outstanding", "streams in both directions"),
        ];
        match asked.iter().find(|(is_asked, fits, ..)| *is_asked && !fits) {
            Some((_, _, flag, what)) => Err(Failure::bad_arguments(format!(
                "{flag} needs a method that {what}, but {method} is {}",
                kind.name()
            ))),
            None => Ok(()),
        }
    }
}
