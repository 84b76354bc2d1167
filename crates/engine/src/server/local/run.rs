//! Starts unary handlers for in-process calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::grpc::envelope;
use crate::grpc::request::RequestHead;
use crate::measure::CallMeasure;
use crate::server::dispatch::ServerMethod;
use crate::server::exchange::{self, LocalFuture, LocalOutcome};
use crate::status::{self, Status};

/// Calls the handler of a unary method.
///
/// # Errors
/// Returns the outcome if the handler was not started.
pub(super) fn start_unary(
    method: &ServerMethod,
    head: &RequestHead,
    message: Bytes,
    measure: &CallMeasure,
) -> Result<LocalFuture, LocalOutcome> {
    if let Err(error) = envelope::permit(message.len(), method.options.max_decoding_message_size) {
        let status = Status::from(error);
        measure.refused(&status);
        return Err(Err(status));
    }
    measure.handler_started(message.len());
    let start = || method.handler.calls.start_local(head, message, &method.options);
    let started = catch_unwind(AssertUnwindSafe(start)).unwrap_or_else(|_| Err(status::panicked()));
    started.map_err(|status| exchange::received_outcome(Err(&status)))
}
