//! `thalweg.lab.v1.Echo` with buffa's views, messages that refer to the received bytes. A request is decoded to a view,
//! and the response encoded from it.

use std::future::{Ready, ready};
use std::sync::Arc;

use buffa::{SizeCache, ViewEncode, ViewReborrow};
use thalweg::server::{Methods, Service};
use thalweg::{DecodeError, Encoding, Message, Request, Response, ServiceOptions, Status, View};

use super::echo::{EchoWorker, echoed};
use super::echo_proto::echo_server::EchoServer;
use views::{PersonView, StringsView};

#[allow(warnings, clippy::all, clippy::pedantic, reason = "generated code")]
mod views {
    include!(concat!(env!("OUT_DIR"), "/views/thalweg.lab.v1.rs"));
}

/// Server of the gRPC and JSON API comparison, with views instead of prost messages.
#[derive(Clone, Debug, Default)]
pub struct EchoViewsServer {
    options: ServiceOptions,
}

impl EchoViewsServer {
    /// Accepts messages of at most `limit` bytes.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.options.max_decoding_message_size = limit;
        self
    }

    /// Compresses messages for clients that accept it.
    #[must_use]
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.options.send_compressed = Some(encoding);
        self
    }
}

impl Service for EchoViewsServer {
    const NAME: &'static str = <EchoServer<EchoWorker> as Service>::NAME;
    const FILE_DESCRIPTOR_SET: &'static [u8] = <EchoServer<EchoWorker> as Service>::FILE_DESCRIPTOR_SET;

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(());
        methods.unary("EchoStrings", &service, &self.options, |_, request| {
            echo::<StringsView<'static>>(request)
        });
        methods
            .unary("EchoPerson", &service, &self.options, |_, request| echo::<PersonView<'static>>(request));
    }
}

fn echo<V: ViewReborrow>(request: Request<View<V>>) -> Ready<Result<Response<Encoded<V>>, Status>> {
    ready(Ok(echoed(request).map(Encoded)))
}

/// A view that is encoded field by field, instead of copying the received bytes, at the cost of a handler's own
/// response.
struct Encoded<V: 'static>(View<V>);

impl<V> Message for Encoded<V>
where
    V: ViewReborrow + Send + Sync + 'static,
    for<'v> V::Reborrowed<'v>: ViewEncode<'v>,
{
    fn encoded_len(&self) -> usize {
        self.0.view().compute_size(&mut SizeCache::new()) as usize
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.view().encode(out);
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        View::decode(wire).map(Self)
    }
}
