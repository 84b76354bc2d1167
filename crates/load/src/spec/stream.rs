//! Settings of streams.

use std::time::Duration;

use thalweg_dynamic::MethodName;

use super::error::SpecError;
use crate::call::CallKind;
use crate::schedule::Schedule;

/// Settings of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamSpec {
    /// Messages to send.
    pub messages: Option<u64>,
    /// Messages per second.
    pub message_rate: Option<Schedule>,
    /// Time after which it ends.
    pub lasts: Option<Duration>,
    /// Responses after which it is cancelled.
    pub responses: Option<u64>,
    /// Maximum messages that await their responses.
    pub outstanding: Option<u64>,
    /// Whether the stream ends with the run.
    pub lasts_to_end: bool,
}

impl StreamSpec {
    pub(super) fn check(&self, kind: CallKind, method: &MethodName) -> Result<(), SpecError> {
        let sends = matches!(kind, CallKind::ClientStream | CallKind::BidiStream);
        let receives = matches!(kind, CallKind::ServerStream | CallKind::BidiStream);
        let asked = [
            (self.message_rate.is_some(), sends, "--message-rate", "sends a stream"),
            (self.messages.is_some(), sends, "--messages", "sends a stream"),
            (self.lasts.is_some(), sends || receives, "--stream-for", "is a stream"),
            (self.responses.is_some(), receives, "--responses", "responds with a stream"),
            (self.outstanding.is_some(), sends && receives, "--outstanding", "streams in both directions"),
        ];
        match asked.iter().find(|(is_asked, fits, ..)| *is_asked && !fits) {
            Some((_, _, flag, what)) => Err(SpecError::invalid(format!(
                "{flag} needs a method that {what}, but {method} is {}",
                kind.name()
            ))),
            None => Ok(()),
        }
    }
}
