//! Cancels a call from the client.
//!
//! Run it with `cargo run -p thalweg-examples --example cancellation`. It prints:
//!
//! ```text
//! the handler has started
//! the handler was dropped
//! its task ran to completion
//! ```

use std::error::Error;
use std::sync::Arc;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Request, Response, Server, Status};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedSender};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct SlowGreeter {
    /// Represents slow work.
    done: Arc<Notify>,
    /// Represents the server's log.
    log: UnboundedSender<&'static str>,
}

/// Detects that the handler was dropped. Put clean-up for unfinished handlers into such a `drop`.
struct DropNotice(UnboundedSender<&'static str>);

impl Drop for DropNotice {
    fn drop(&mut self) {
        let _ = self.0.send("the handler was dropped");
    }
}

impl Greeter for SlowGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let (done, log) = (Arc::clone(&self.done), self.log.clone());
        // A task is not dropped with the handler. Use one for work that must finish once it has started.
        let task = tokio::spawn(async move {
            done.notified().await;
            let _ = log.send("its task ran to completion");
        });
        let _drop_notice = DropNotice(self.log.clone());
        let _ = self.log.send("the handler has started");
        // Dropping the handler drops everything it awaits, including calls to other servers.
        task.await.map_err(|error| Status::internal(error.to_string()))?;
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (log, mut log_lines) = mpsc::unbounded_channel();
    let done = Arc::new(Notify::new());
    let service = GreeterServer::new(SlowGreeter { done: Arc::clone(&done), log });
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let greeter = GreeterClient::new(channel);

    // Dropping a call's future cancels the call: here in `select!`, elsewhere in a `timeout` or by aborting the task.
    tokio::select! {
        response = greeter.say_hello(HelloRequest { name: "world".to_owned() }) => println!("{response:?}"),
        started = log_lines.recv() => println!("{}", started.ok_or("the server has gone")?),
    }
    println!("{}", log_lines.recv().await.ok_or("the server has gone")?);
    done.notify_one();
    println!("{}", log_lines.recv().await.ok_or("the server has gone")?);
    Ok(())
}
