//! gRPC's BenchmarkService, the default if no method is named.

use std::time::Duration;

use thalweg::{Channel, Code};
use thalweg_dynamic::{Catalogue, MethodName};
use thalweg_protobuf::Schema;

use super::error::SpecError;
use super::stream::StreamSpec;
use crate::benchmark_calls::{self, SERVICE, try_out};
use crate::call::{CallKind, Calls};
use crate::connect::StartError;
use crate::peer::window;
use crate::record::{CallType, MessageOwnership};
use crate::services::PAYLOAD_BYTES_MAX;
use crate::services::proto::DESCRIPTORS;

/// Duration of a stream if several streams follow each other.
const STREAM_FOR: Duration = Duration::from_secs(1);

/// Payloads of calls of BenchmarkService.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    /// Payload bytes of a message.
    size: usize,
}

impl Benchmark {
    /// Creates the payloads of `size` bytes per message. Returns `None` if the method is not one of BenchmarkService.
    ///
    /// # Errors
    ///
    /// Returns an error for a size with another method, and for one above 64 MiB.
    pub fn of(method: &MethodName, size: Option<u64>) -> Result<Option<Self>, SpecError> {
        if method.service() != SERVICE {
            return match size {
                None => Ok(None),
                Some(_) => Err(SpecError::invalid(format!(
                    "--size sets the payload of {SERVICE}; use --data for {method}"
                ))),
            };
        }
        let size = size.unwrap_or(0);
        if size > PAYLOAD_BYTES_MAX as u64 {
            return Err(SpecError::invalid("--size is more than 64 MiB, the largest payload"));
        }
        Ok(Some(Self { size: size as usize }))
    }

    /// Returns the descriptors of the service, so that servers need no reflection.
    pub fn catalogue() -> Catalogue {
        let schema = Schema::from_descriptor_set(DESCRIPTORS).expect("compiled with this crate");
        Catalogue::Files { schema, set: DESCRIPTORS.to_vec() }
    }

    /// Returns the calls of a method. A request stream has `messages` messages.
    pub(super) fn calls(self, kind: CallKind, messages: u64) -> Calls {
        benchmark_calls::calls(kind, self.size, MessageOwnership::InPlace, messages)
    }

    /// Returns the settings of streams of this type. If nothing else ends a stream, it lasts to the end of the run, or
    /// for 1 s if streams follow each other.
    pub fn stream(self, call: CallType, asked: StreamSpec, is_steady: bool) -> StreamSpec {
        let mut stream = asked;
        let is_endless = call != CallType::Unary
            && stream.messages.is_none()
            && stream.responses.is_none()
            && stream.lasts.is_none();
        stream.lasts_to_end = is_endless && is_steady;
        stream.lasts = stream.lasts.or((is_endless && !is_steady).then_some(STREAM_FOR));
        let is_paired = matches!(call, CallType::BidiStream | CallType::PingPong);
        stream.outstanding = stream.outstanding.or(is_paired.then(|| window(call, self.size)));
        stream
    }

    /// Makes one call, so that a missing service is an error and not a run of failures.
    ///
    /// # Errors
    ///
    /// Returns an error if the call fails.
    pub async fn try_out(self, target: &str, channel: &Channel, timeout: Duration) -> Result<(), SpecError> {
        let failed = |error: StartError| match error {
            StartError::FirstCall { status, .. } if status.code() == Code::Unimplemented => {
                SpecError::failed(format!(
                    "{target} does not offer {SERVICE}; use --call package.Service/Method"
                ))
            }
            error => error.into(),
        };
        try_out(target, channel, self.size, timeout).await.map_err(failed)
    }
}

/// Returns the method of a call type.
///
/// # Panics
///
/// Never: the names are valid.
pub fn method(call: CallType) -> MethodName {
    format!("{SERVICE}/{}", benchmark_calls::method(call)).parse().expect("a valid name")
}
