//! A call that its client gives up, in one program: `cargo run -p thalweg-examples --example cancellation`. It prints:
//!
//! ```text
//! the handler has begun
//! the handler was dropped where it waited
//! its task went on to the end
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

struct Thoughtful {
    /// Stands for what takes long.
    done: Arc<Notify>,
    /// What a server would write into its log.
    noticed: UnboundedSender<&'static str>,
}

/// Notices that it is dropped: what must be undone when a handler does not come to its end goes there.
struct Unfinished(UnboundedSender<&'static str>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = self.0.send("the handler was dropped where it waited");
    }
}

impl Greeter for Thoughtful {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let (done, noticed) = (Arc::clone(&self.done), self.noticed.clone());
        // A task is not dropped with the handler: this is for what must come to its end once it has begun.
        let task = tokio::spawn(async move {
            done.notified().await;
            let _ = noticed.send("its task went on to the end");
        });
        let _unfinished = Unfinished(self.noticed.clone());
        let _ = self.noticed.send("the handler has begun");
        // What a handler awaits itself ends with it, calls to other servers too.
        task.await.map_err(|error| Status::internal(error.to_string()))?;
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (noticed, mut notices) = mpsc::unbounded_channel();
    let done = Arc::new(Notify::new());
    let service = GreeterServer::new(Thoughtful { done: Arc::clone(&done), noticed });
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let greeter = GreeterClient::new(channel);

    // To cancel a call is to drop its future: here by `select!`, elsewhere by a `timeout`, or by aborting its task.
    tokio::select! {
        reply = greeter.say_hello(HelloRequest { name: "world".to_owned() }) => println!("{reply:?}"),
        begun = notices.recv() => println!("{}", begun.ok_or("the server has gone")?),
    }
    println!("{}", notices.recv().await.ok_or("the server has gone")?);
    done.notify_one();
    println!("{}", notices.recv().await.ok_or("the server has gone")?);
    Ok(())
}
