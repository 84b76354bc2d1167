//! Serves and calls a service whose messages are JSON, using serde.
//!
//! Run it with `cargo run -p thalweg-examples --example json`. It prints:
//!
//! ```text
//! tea: 4.5
//! tea: 4.5
//! coffee: 6.25
//! no quote for milk
//! ```
//!
//! The build script sets `.codec_path("crate::Json")`, so each message is wrapped in the type [`Json`] below. The calls
//! have the content type `application/grpc+json`.

use std::error::Error;
use std::io;
use std::pin::Pin;

use quotes::quotes_client::QuotesClient;
use quotes::quotes_server::{Quotes, QuotesServer};
use quotes::{Query, Quote};
use serde::{Serialize, de::DeserializeOwned};
use thalweg::{Channel, DecodeError, Message, Request, Response, Server, Status, Stream, Streaming};
use tokio_stream::StreamExt as _;

mod quotes {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("quotes");
}

/// A message that is JSON on the wire.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Message for Json<T> {
    const CONTENT_SUBTYPE: &'static str = "json";

    fn encoded_len(&self) -> usize {
        let mut counter = ByteCounter(0);
        serde_json::to_writer(&mut counter, &self.0).expect("what serde derives can be written");
        counter.0
    }

    fn encode(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(out, &self.0).expect("it was written once, to be counted");
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(wire).map(Json).map_err(DecodeError::new)
    }
}

/// Counts the bytes written.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Market;

impl Market {
    fn quote(Json(query): Json<Query>) -> Result<Json<Quote>, Status> {
        match query.name.as_str() {
            "tea" => Ok(Json(Quote { name: query.name, price: 4.5 })),
            "coffee" => Ok(Json(Quote { name: query.name, price: 6.25 })),
            name => Err(Status::not_found(format!("no quote for {name}"))),
        }
    }
}

impl Quotes for Market {
    async fn find(&self, request: Request<Json<Query>>) -> Result<Response<Json<Quote>>, Status> {
        Self::quote(request.into_inner()).map(Response::new)
    }

    type FollowStream = Pin<Box<dyn Stream<Item = Result<Json<Quote>, Status>> + Send>>;

    async fn follow(
        &self,
        request: Request<Streaming<Json<Query>>>,
    ) -> Result<Response<Self::FollowStream>, Status> {
        Ok(Response::new(Box::pin(request.into_inner().map(|query| Self::quote(query?)))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server =
        Server::builder().add_service(QuotesServer::new(Market)).bind(&["127.0.0.1:0".parse()?]).await?;
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());

    let quotes = QuotesClient::new(Channel::builder(address).connect().await?);
    let query = |name: &str| Json(Query { name: name.to_owned() });
    let Json(quote) = quotes.find(query("tea")).await?.into_inner();
    println!("{}: {}", quote.name, quote.price);

    let queries = tokio_stream::iter([query("tea"), query("coffee"), query("milk")]);
    let mut quotes = quotes.follow(queries).await?.into_inner();
    loop {
        match quotes.message().await {
            Ok(Some(Json(quote))) => println!("{}: {}", quote.name, quote.price),
            Ok(None) => return Ok(()),
            Err(status) => {
                println!("{}", status.message());
                return Ok(());
            }
        }
    }
}
