//! Makes calls over a UNIX domain socket.
//!
//! Run it with `cargo run -p thalweg-examples --example uds`. It prints:
//!
//! ```text
//! Hello Ada!
//! Hello Grace!
//! the socket was removed
//! ```

use std::error::Error;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Request, Response, Server, Status};
use tokio::sync::oneshot;

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
    let path = std::env::temp_dir().join(format!("greeter-{}.sock", std::process::id()));
    // The same text is an address to listen on and a target to call. A server can also listen on TCP at the same time.
    let target = format!("unix:{}", path.display());
    let server = Server::builder().add_service(GreeterServer::new(MyGreeter));
    let server = server.bind(&[target.parse()?, "127.0.0.1:0".parse()?]).await?;
    let by_tcp = server.local_addresses()[1].to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(async { stopped.await.unwrap_or_default() }));

    for (target, name) in [(target, "Ada"), (by_tcp, "Grace")] {
        let greeter = GreeterClient::connect(target).await?;
        let response = greeter.say_hello(HelloRequest { name: name.to_owned() }).await?;
        println!("{}", response.into_inner().message);
    }
    // A server that stops removes its socket. A killed server leaves it, and the next server replaces it.
    drop(stop);
    serving.await??;
    if !path.exists() {
        println!("the socket was removed");
    }
    Ok(())
}
