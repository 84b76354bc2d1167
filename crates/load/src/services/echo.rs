//! `thalweg.lab.v1.Echo` and `EchoShapes`: each response is the request.

use nix::time::{ClockId, clock_gettime};
use thalweg::metadata::MetadataMap;
use thalweg::{Request, Response, Status};

use super::echo_proto::echo_server::Echo;
use super::echo_proto::echo_shapes_server::EchoShapes;
use super::echo_proto::{Person, Strings};
use super::shapes_proto::{LogRecord, Order, Samples, SeveralData, Visit};

/// Header that requests the server's timestamps of a call, and carries them in the response: see `peers/README.md`.
pub(crate) const TIMESTAMPS_KEY: &str = "lab-times";

/// Server of the gRPC and JSON API comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct EchoWorker;

impl Echo for EchoWorker {
    async fn echo_strings(&self, request: Request<Strings>) -> Result<Response<Strings>, Status> {
        Ok(echoed(request))
    }

    async fn echo_person(&self, request: Request<Person>) -> Result<Response<Person>, Status> {
        Ok(echoed(request))
    }
}

impl EchoShapes for EchoWorker {
    async fn echo_several_data(
        &self,
        request: Request<SeveralData>,
    ) -> Result<Response<SeveralData>, Status> {
        Ok(echoed(request))
    }

    async fn echo_order(&self, request: Request<Order>) -> Result<Response<Order>, Status> {
        Ok(echoed(request))
    }

    async fn echo_log_record(&self, request: Request<LogRecord>) -> Result<Response<LogRecord>, Status> {
        Ok(echoed(request))
    }

    async fn echo_visit(&self, request: Request<Visit>) -> Result<Response<Visit>, Status> {
        Ok(echoed(request))
    }

    async fn echo_samples(&self, request: Request<Samples>) -> Result<Response<Samples>, Status> {
        Ok(echoed(request))
    }
}

/// Echoes a message. The library decodes and encodes it, so only the handler's own timestamps are available here.
pub(super) fn echoed<M>(request: Request<M>) -> Response<M> {
    let times = handler_timestamps(request.metadata());
    let mut response = Response::new(request.into_inner());
    set_timestamps(&mut response, times);
    response
}

/// Returns when the handler received the request and returns the response, if the request asks for it.
pub(super) fn handler_timestamps(metadata: &MetadataMap) -> Option<[i64; 2]> {
    metadata.get(TIMESTAMPS_KEY)?;
    let decoded = monotonic_ns();
    // The work of a handler would be here.
    let handled = monotonic_ns();
    Some([decoded, handled])
}

pub(super) fn set_timestamps<M>(response: &mut Response<M>, times: Option<[i64; 2]>) {
    let Some([decoded, handled]) = times else { return };
    let times = format!("decoded={decoded} handled={handled}");
    response
        .metadata_mut()
        .insert(TIMESTAMPS_KEY, times.parse().expect("words and digits are printable ASCII"));
}

/// Returns the time in ns of CLOCK_MONOTONIC, which all processes of a machine share.
pub(crate) fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}
