//! A server with all of the services. What serves a method is compiled where its service is added to a server: here,
//! for speed, and not with the command, which is small.

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
use crate::record::Handing;

/// The services that a server is to have, and how they do their work.
#[derive(Debug)]
pub struct Offered {
    /// How streams of `BenchmarkService` hand their messages over.
    pub handing: Handing,
    /// What that computes for each message.
    pub work: Duration,
    /// `Echo` reads its messages where they lie.
    pub views: bool,
    /// The echo of somebody's own messages.
    pub own: Option<EchoOwnServer>,
    /// Messages that are larger are refused.
    pub message_bytes_max: usize,
}

impl Offered {
    /// Adds all of them.
    #[must_use]
    pub fn add_to(self, server: ServerBuilder) -> ServerBuilder {
        let max = self.message_bytes_max;
        let benchmark = BenchmarkWorker::working(self.work);
        let server = match self.handing {
            Handing::InPlace => {
                server.add_service(BenchmarkServiceServer::new(benchmark).max_decoding_message_size(max))
            }
            Handing::Owned => {
                let benchmark = BenchmarkServiceServer::new(OwnedBenchmarkWorker(benchmark));
                server.add_service(benchmark.max_decoding_message_size(max))
            }
        };
        let server = server.add_service(TestServiceServer::new(InteropServer).max_decoding_message_size(max));
        // What follows is compressed for a client that takes it so.
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
