//! Client that drops its channel during a stream, which must continue; for tests against other stacks:
//!
//! ```text
//! cargo run -p thalweg-load --example dropped -- 10000
//! ```
//!
//! The server must offer gRPC's `BenchmarkService`, like the suites' programs for other stacks.

use std::error::Error;

use thalweg::Channel;
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

const MESSAGES: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: dropped PORT")?.parse()?;
    let client = BenchmarkServiceClient::new(Channel::builder(format!("127.0.0.1:{port}")).connect().await?);
    let (sender, requests) = mpsc::unbounded_channel();
    let mut responses = client.streaming_call(UnboundedReceiverStream::new(requests)).await?.into_inner();
    drop(client);
    for number in 0..MESSAGES {
        sender.send(SimpleRequest { response_size: 10, ..SimpleRequest::default() })?;
        let response = responses.message().await?;
        response.ok_or_else(|| format!("{number} of {MESSAGES} messages came"))?;
    }
    drop(sender);
    if responses.message().await?.is_some() {
        return Err("a message came after the last one".into());
    }
    println!("ok    {MESSAGES} messages after the channel was dropped");
    Ok(())
}
