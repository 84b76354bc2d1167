//! Spreads calls over a list of servers, which changes while the client runs.
//!
//! Run it with `cargo run -p thalweg-examples --example load-balancing`. It prints:
//!
//! ```text
//! answered by first, second
//! answered by second, third
//! ```

use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::channel::EndpointList;
use thalweg::channel::policy::PolicyConfig;
use thalweg::{Channel, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct NamedGreeter(&'static str);

impl Greeter for NamedGreeter {
    async fn say_hello(&self, _: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        Ok(Response::new(HelloReply { message: self.0.to_owned() }))
    }
}

async fn serve(name: &'static str) -> Result<SocketAddr, Box<dyn Error>> {
    let service = GreeterServer::new(NamedGreeter(name));
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let address = server.local_addresses()[0].to_string().parse()?;
    tokio::spawn(server.serve());
    Ok(address)
}

/// Makes ten calls, and returns the names of the servers that answered.
async fn answered_by(greeter: &GreeterClient<Channel>) -> Result<String, Status> {
    // A change of the list takes effect in the background: new servers get calls as soon as they are connected.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut names = BTreeSet::new();
    for _ in 0..10 {
        names.insert(greeter.say_hello(HelloRequest::default()).await?.into_inner().message);
    }
    Ok(names.into_iter().collect::<Vec<_>>().join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (first, second, third) = (serve("first").await?, serve("second").await?, serve("third").await?);
    // For the addresses that a name has, as a headless service in Kubernetes, give the name as target, and no resolver.
    let servers = EndpointList::new([first, second]);
    let channel = Channel::builder("greeter.example")
        .resolver(servers.clone())
        .load_balancing(PolicyConfig::RoundRobin)
        .connect()
        .await?;
    let greeter = GreeterClient::new(channel);
    println!("answered by {}", answered_by(&greeter).await?);
    // The second server keeps its connection. Calls in flight on the first one would end normally.
    servers.set([second, third]);
    println!("answered by {}", answered_by(&greeter).await?);
    Ok(())
}
