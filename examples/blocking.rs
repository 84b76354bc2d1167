//! Makes calls from synchronous code.
//!
//! Run it with `cargo run -p thalweg-examples --example blocking`. It prints:
//!
//! ```text
//! Hello Ada!
//! Hello Grace!
//! ```

use std::error::Error;
use std::sync::mpsc;
use std::thread;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, Request, Response, Server, Status};
use tokio::runtime::{Builder, Runtime};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

/// A client with blocking functions.
struct BlockingGreeter {
    greeter: GreeterClient,
    runtime: Runtime,
}

impl BlockingGreeter {
    fn connect(target: String) -> Result<Self, Box<dyn Error>> {
        // This runtime runs only while a function blocks on it. The connections have a thread of their own, which also
        // serves them between calls.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let channel = runtime.block_on(Channel::builder(target).threads(1).connect())?;
        Ok(Self { greeter: GreeterClient::new(channel), runtime })
    }

    fn say_hello(&self, name: &str) -> Result<String, Status> {
        let response = self.greeter.say_hello(HelloRequest { name: name.to_owned() });
        Ok(self.runtime.block_on(response)?.into_inner().message)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let greeter = BlockingGreeter::connect(server()?)?;
    for name in ["Ada", "Grace"] {
        println!("{}", greeter.say_hello(name)?);
    }
    Ok(())
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        Ok(Response::new(HelloReply { message: format!("Hello {name}!") }))
    }
}

/// Starts the server on a thread of its own and returns its address.
fn server() -> Result<String, Box<dyn Error>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
            let address = "127.0.0.1:0".parse().expect("an address");
            let server = server.bind(&[address]).await.expect("a free port");
            tell.send(server.local_addresses()[0].to_string()).expect("somebody listens");
            server.serve().await.expect("it serves");
        });
    });
    Ok(told.recv()?)
}
