//! Authenticates calls with a bearer token.
//!
//! Run it with `cargo run -p thalweg-examples --example authentication`. It prints:
//!
//! ```text
//! Unauthenticated: put a token into `authorization`
//! PermissionDenied: unknown token
//! Hello world, says Ada!
//! ```
//!
//! Tokens are secrets. Outside of an example, send them over TLS only, as in `tls.rs`.

use std::collections::HashMap;
use std::error::Error;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::{Channel, InterceptedChannel, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

/// The authenticated user, passed to handlers as a request extension.
#[derive(Clone)]
struct User(String);

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let User(user) =
            request.extensions().get().ok_or_else(|| Status::internal("the caller is not authenticated"))?;
        let message = format!("Hello {}, says {user}!", request.get_ref().name);
        Ok(Response::new(HelloReply { message }))
    }
}

/// The server's interceptor. Runs before the message is decoded; rejects the request or adds the [`User`] to it.
fn authenticate(
    users: HashMap<&'static str, &'static str>,
) -> impl Fn(Request<()>) -> Result<Request<()>, Status> {
    move |mut request| {
        let value = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| value.strip_prefix("Bearer "));
        let token = token.ok_or_else(|| Status::unauthenticated("put a token into `authorization`"))?;
        let user = users.get(token).ok_or_else(|| Status::permission_denied("unknown token"))?;
        request.extensions_mut().insert(User((*user).to_owned()));
        Ok(request)
    }
}

/// Creates a client that adds the token to each request. Its type can be named, so a struct can hold it.
fn authenticated_client(
    channel: &Channel,
    token: &str,
) -> Result<GreeterClient<InterceptedChannel>, Box<dyn Error>> {
    // Parsed once, so that a token that is not ASCII fails here and not in each call.
    let value: thalweg::metadata::AsciiMetadataValue = format!("Bearer {token}").parse()?;
    Ok(GreeterClient::with_interceptor(channel.clone(), move |mut request| {
        request.metadata_mut().insert("authorization", value.clone());
        Ok(request)
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let users = HashMap::from([("c0ffee", "Ada")]);
    let service = GreeterServer::with_interceptor(MyGreeter, authenticate(users));
    let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    let hello = || HelloRequest { name: "world".to_owned() };
    let without_token = GreeterClient::new(channel.clone());
    let with_bad_token = authenticated_client(&channel, "decaf")?;
    let with_token = authenticated_client(&channel, "c0ffee")?;
    for response in [
        without_token.say_hello(hello()).await,
        with_bad_token.say_hello(hello()).await,
        with_token.say_hello(hello()).await,
    ] {
        match response {
            Ok(response) => println!("{}", response.into_inner().message),
            Err(status) => println!("{:?}: {}", status.code(), status.message()),
        }
    }
    Ok(())
}
