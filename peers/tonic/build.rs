//! Stubs by tonic's own generator, from a description in code: no .proto compiler is needed for it.

use tonic_build::manual::{Builder, Method, Service};

const METHODS: &[(&str, &str, Streams)] =
    &[("unary_call", "UnaryCall", Streams { client: false, server: false })];

struct Streams {
    client: bool,
    server: bool,
}

fn main() {
    let mut service = Service::builder().name("BenchmarkService").package("grpc.testing");
    for (name, route, streams) in METHODS {
        let mut method = Method::builder()
            .name(*name)
            .route_name(*route)
            .input_type("crate::messages::SimpleRequest")
            .output_type("crate::messages::SimpleResponse")
            .codec_path("tonic_prost::ProstCodec");
        if streams.client {
            method = method.client_streaming();
        }
        if streams.server {
            method = method.server_streaming();
        }
        service = service.method(method.build());
    }
    Builder::new().compile(&[service.build()]);
}
