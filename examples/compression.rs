//! Compresses messages and shows the bytes sent and received.
//!
//! Run it with `cargo run -p thalweg-examples --example compression`. It prints:
//!
//! ```text
//! uncompressed: 64 KiB sent, 64 KiB received
//! compressed responses: 64 KiB sent, 0 KiB received
//! both compressed: 0 KiB sent, 0 KiB received
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Encoding, EncodingSet, Request, Response, Server, Status};
use tokio::net::TcpStream;
use tokio_util::io::{InspectReader, InspectWriter};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Responses are compressed for clients that accept it. Compressed requests are always accepted.
    let service = GreeterServer::new(MyGreeter).send_compressed(Encoding::Gzip);
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let counters = ByteCounters::default();
    let channel = counters.channel(&server.local_addresses()[0].to_string())?;
    tokio::spawn(server.serve());

    let greeter = GreeterClient::new(channel);
    // By default a client accepts all encodings that the library supports.
    let uncompressed = greeter.clone().accept_compressed(EncodingSet::IDENTITY);
    // A client compresses only on request, because it cannot know in advance which encodings the server accepts.
    let both_compressed = greeter.clone().send_compressed(Encoding::Gzip);
    for (name, greeter) in [
        ("uncompressed", uncompressed),
        ("compressed responses", greeter),
        ("both compressed", both_compressed),
    ] {
        counters.reset();
        greeter.say_hello(HelloRequest { name: "Ada ".repeat(16 * 1024) }).await?;
        println!("{name}: {counters}");
    }
    Ok(())
}

/// Counts the bytes of a channel's connections, only to show the effect of compression.
#[derive(Clone, Default)]
struct ByteCounters {
    sent: Arc<AtomicUsize>,
    received: Arc<AtomicUsize>,
}

impl ByteCounters {
    fn channel(&self, address: &str) -> Result<Channel, Box<dyn Error>> {
        let (counters, to) = (self.clone(), address.to_owned());
        // One lane, so that no further connection opens during the measurement.
        let builder = Channel::builder(address).lanes(1);
        let builder = builder.connector(move || {
            let (ByteCounters { sent, received }, to) = (counters.clone(), to.clone());
            async move {
                let stream = TcpStream::connect(to).await?;
                let stream = InspectWriter::new(stream, move |bytes: &[u8]| add(&sent, bytes));
                Ok(InspectReader::new(stream, move |bytes: &[u8]| add(&received, bytes)))
            }
        });
        Ok(builder.connect_lazy()?)
    }

    fn reset(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.received.store(0, Ordering::Relaxed);
    }
}

fn add(count: &AtomicUsize, bytes: &[u8]) {
    count.fetch_add(bytes.len(), Ordering::Relaxed);
}

impl std::fmt::Display for ByteCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kib = |count: &AtomicUsize| count.load(Ordering::Relaxed) / 1024;
        write!(f, "{} KiB sent, {} KiB received", kib(&self.sent), kib(&self.received))
    }
}
