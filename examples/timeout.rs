//! Shows deadlines: set by the client, seen by the server, and a limit set by the server itself.
//!
//! Run it with `cargo run -p thalweg-examples --example timeout`. It prints:
//!
//! ```text
//! Hello Ada, you have less than a minute
//! Hello Grace, you have less than an hour
//! slow: DeadlineExceeded
//! the handler of slow was dropped
//! Hello world, take your time
//! slow: DeadlineExceeded: no call takes longer here
//! the handler of slow was dropped
//! ```

use std::error::Error;
use std::time::Duration;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::interceptor::{Call, Next, Reply};
use thalweg::{Channel, Deadline, Request, Response, Server, Status};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::timeout;

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

const MINUTE: Duration = Duration::from_secs(60);
/// Maximum duration of a call of this server.
const LIMIT: Duration = Duration::from_secs(1);

struct SlowGreeter {
    dropped: UnboundedSender<String>,
}

/// Reports that a handler was dropped.
struct DropNotice(String, UnboundedSender<String>);

impl Drop for DropNotice {
    fn drop(&mut self) {
        let _ = self.1.send(format!("the handler of {} was dropped", self.0));
    }
}

impl Greeter for SlowGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        // The client's remaining time lets a handler do less, or not start at all. To pass it on to calls to other
        // servers, use `thalweg::Parent`.
        let remaining = match Deadline::of(&request).map(Deadline::remaining) {
            None => "take your time",
            Some(remaining) if remaining <= MINUTE => "you have less than a minute",
            Some(_) => "you have less than an hour",
        };
        let name = request.into_inner().name;
        if name == "slow" {
            let _drop_notice = DropNotice(name, self.dropped.clone());
            return std::future::pending().await;
        }
        Ok(Response::new(HelloReply { message: format!("Hello {name}, {remaining}") }))
    }
}

/// The server's own limit, as an interceptor. Dropping the future of `next` drops the handler.
async fn limit_duration(call: Call, next: Next) -> Result<Reply, Status> {
    let too_late = |_| Err(Status::deadline_exceeded("no call takes longer here"));
    timeout(LIMIT, next.run(call)).await.unwrap_or_else(too_late)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dropped, mut drops) = mpsc::unbounded_channel();
    let server = Server::builder()
        .interceptor(limit_duration)
        .add_service(GreeterServer::new(SlowGreeter { dropped }));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let hello = |name: &str| Request::new(HelloRequest { name: name.to_owned() });

    // A default for all calls of a client, and an override for one call.
    let greeter = GreeterClient::new(channel.clone()).timeout(MINUTE);
    println!("{}", greeter.say_hello(hello("Ada")).await?.into_inner().message);
    let mut request = hello("Grace");
    request.set_timeout(60 * MINUTE);
    println!("{}", greeter.say_hello(request).await?.into_inner().message);

    let mut request = hello("slow");
    request.set_timeout(LIMIT / 2);
    let status = greeter.say_hello(request).await.expect_err("it is too slow");
    // The message says which phase of the call timed out.
    println!("slow: {:?}", status.code());
    println!("{}", drops.recv().await.ok_or("the server has gone")?);

    // Without a deadline, a call waits until the server ends it.
    let greeter = GreeterClient::new(channel);
    println!("{}", greeter.say_hello(hello("world")).await?.into_inner().message);
    let status = greeter.say_hello(hello("slow")).await.expect_err("it is too slow");
    println!("slow: {:?}: {}", status.code(), status.message());
    println!("{}", drops.recv().await.ok_or("the server has gone")?);
    Ok(())
}
