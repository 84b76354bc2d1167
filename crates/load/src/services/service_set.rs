//! Adds all services to a server. Method handlers are compiled where their service is added: here they are optimized
//! for speed, in the command for size.

use std::time::Duration;

use thalweg::Encoding;
use thalweg::server::ServerBuilder;

use super::echo_proto::echo_server::EchoServer;
use super::echo_proto::echo_shapes_server::EchoShapesServer;
use super::proto::benchmark_service_server::BenchmarkServiceServer;
use super::proto::test_service_server::TestServiceServer;
use super::{
    BenchmarkWorker, EchoOwnServer, EchoViewsServer, EchoWorker, InteropServer, OwnedBenchmarkWorker,
};
use crate::record::MessageOwnership;

/// Services of a server and their settings.
#[derive(Debug)]
pub struct ServiceSet {
    /// Ownership of the stream messages of `BenchmarkService`.
    pub message_ownership: MessageOwnership,
    /// Work of `BenchmarkService` per message.
    pub work: Duration,
    /// Whether `Echo` uses views.
    pub views: bool,
    /// Echo of user-provided messages.
    pub own: Option<EchoOwnServer>,
    /// Maximum message size; larger ones are rejected.
    pub message_bytes_max: usize,
}

impl ServiceSet {
    /// Adds all services.
    #[must_use]
    pub fn add_to(self, server: ServerBuilder) -> ServerBuilder {
        let max = self.message_bytes_max;
        let benchmark = BenchmarkWorker::working(self.work);
        let server = match self.message_ownership {
            MessageOwnership::InPlace => {
                server.add_service(BenchmarkServiceServer::new(benchmark).max_decoding_message_size(max))
            }
            MessageOwnership::Owned => {
                let benchmark = BenchmarkServiceServer::new(OwnedBenchmarkWorker(benchmark));
                server.add_service(benchmark.max_decoding_message_size(max))
            }
        };
        let server = server.add_service(TestServiceServer::new(InteropServer).max_decoding_message_size(max));
        // The following services compress for clients that accept it.
        let shapes = EchoShapesServer::new(EchoWorker).send_compressed(Encoding::Gzip);
        let server = server.add_service(shapes.max_decoding_message_size(max));
        let server = if self.views {
            let echo = EchoViewsServer::default().send_compressed(Encoding::Gzip);
            server.add_service(echo.max_decoding_message_size(max))
        } else {
            let echo = EchoServer::new(EchoWorker).send_compressed(Encoding::Gzip);
            server.add_service(echo.max_decoding_message_size(max))
        };
        match self.own {
            Some(own) => {
                let own = own.send_compressed(Encoding::Gzip);
                server.add_service(own.max_decoding_message_size(max))
            }
            None => server,
        }
    }
}
