//! Shows interceptors: `cargo run -p thalweg-examples --example interceptors`.
//!
//! The server has a request id, a log, metrics, a rate limit and a token check. The clients call it with and without a
//! token. It prints:
//!
//! ```text
//! call 1: SayHello: Unauthenticated
//! Unauthenticated: put a token into `authorization`
//! call 2: SayHello: Ok
//! Hello world, says Ada! (call 2)
//! call 3: SayHello: ResourceExhausted
//! ResourceExhausted: too many calls: try again later
//! /helloworld.Greeter/SayHello Ok: 1
//! /helloworld.Greeter/SayHello ResourceExhausted: 1
//! /helloworld.Greeter/SayHello Unauthenticated: 1
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use thalweg::interceptor::{Call, Interceptor, Messages, Next, Reply, head};
use thalweg::{Channel, Code, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        // Inserted by the interceptor that checks the token.
        let User(user) =
            request.extensions().get().ok_or_else(|| Status::internal("the caller is not authenticated"))?;
        let message = format!("Hello {}, says {user}!", request.get_ref().name);
        Ok(Response::new(HelloReply { message }))
    }
}

/// The authenticated user.
#[derive(Clone)]
struct User(&'static str);

/// The client's interceptor. Adds the token to each request, as tonic's interceptors do.
fn with_token(mut request: Request<()>) -> Result<Request<()>, Status> {
    let token = "Bearer ada's".parse().map_err(|_| Status::internal("the token is not ASCII"))?;
    request.metadata_mut().insert("authorization", token);
    Ok(request)
}

/// The server's interceptor. Rejects requests without a valid token and passes the user to the handler.
fn check_token(mut request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("authorization") {
        Some(token) if token == "Bearer ada's" => {
            request.extensions_mut().insert(User("Ada"));
            Ok(request)
        }
        Some(_) => Err(Status::permission_denied("unknown token")),
        None => Err(Status::unauthenticated("put a token into `authorization`")),
    }
}

/// Assigns an id to each call that has none, and returns it with the response. Outermost, so that all other
/// interceptors see it.
async fn request_id(mut call: Call, next: Next) -> Result<Reply, Status> {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let id = match call.metadata().get("x-request-id") {
        Some(id) => id.clone(),
        None => CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed).into(),
    };
    call.metadata_mut().insert("x-request-id", id.clone());
    match next.run(call).await {
        Ok(mut response) => {
            response.metadata_mut().insert("x-request-id", id);
            Ok(response)
        }
        Err(mut status) => {
            status.metadata_mut().insert("x-request-id", id);
            Err(status)
        }
    }
}

/// Calls `on_end` with the call's final status. For a streaming response, this is when the stream ends.
fn on_call_end(
    outcome: Result<Reply, Status>,
    on_end: impl FnOnce(Code) + Send + 'static,
) -> Result<Reply, Status> {
    match outcome {
        Ok(response) => Ok(response.map(|messages: Messages| {
            messages.on_end(|end| on_end(end.map_or_else(Status::code, |_| Code::Ok)))
        })),
        Err(status) => {
            on_end(status.code());
            Err(status)
        }
    }
}

async fn log(call: Call, next: Next) -> Result<Reply, Status> {
    let method = call.method().name().to_owned();
    let id = call.metadata().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or("?").to_owned();
    on_call_end(next.run(call).await, move |code| println!("call {id}: {method}: {code:?}"))
}

/// Counts calls and sums up their durations, by method and status code.
#[derive(Clone, Default)]
struct Metrics(Arc<Mutex<Counts>>);

/// Number of calls and total duration, by method and status code.
type Counts = BTreeMap<(String, i32), (u64, Duration)>;

impl Interceptor for Metrics {
    async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
        let (counts, method) = (Arc::clone(&self.0), call.method().path().to_owned());
        let started = Instant::now();
        on_call_end(next.run(call).await, move |code| {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let (calls, time) = counts.entry((method, code as i32)).or_default();
            *calls += 1;
            *time += started.elapsed();
        })
    }
}

/// A token bucket: allows `burst` calls at once and `per_second` more for each second.
struct RateLimit {
    burst: f64,
    per_second: f64,
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimit {
    fn new(burst: f64, per_second: f64) -> Self {
        Self { burst, per_second, bucket: Mutex::new((burst, Instant::now())) }
    }

    fn take(&self) -> Result<(), Status> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, updated) = &mut *bucket;
        let now = Instant::now();
        *tokens = self.burst.min(*tokens + (now - *updated).as_secs_f64() * self.per_second);
        *updated = now;
        if *tokens < 1.0 {
            return Err(Status::resource_exhausted("too many calls: try again later"));
        }
        *tokens -= 1.0;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let metrics = Metrics::default();
    // Two calls at once, then one per hour.
    let limit = RateLimit::new(2.0, 1.0 / 3600.0);
    let server = Server::builder()
        .interceptor(request_id)
        .interceptor(log)
        .interceptor(metrics.clone())
        .add_service(GreeterServer::with_interceptor(MyGreeter, check_token))
        .interceptor(head(move |request| limit.take().map(|()| request)))
        .bind(&["127.0.0.1:0".parse()?])
        .await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());

    let without_token = GreeterClient::new(channel.clone());
    let with_ada_token = GreeterClient::with_interceptor(channel, with_token);
    let hello = || HelloRequest { name: "world".into() };
    let status = without_token.say_hello(hello()).await.expect_err("it has no token");
    println!("{:?}: {}", status.code(), status.message());
    let response = with_ada_token.say_hello(hello()).await?;
    println!(
        "{} (call {})",
        response.get_ref().message,
        response.metadata().get("x-request-id").map_or("?", |id| { id.to_str().unwrap_or("?") })
    );
    let status = with_ada_token.say_hello(hello()).await.expect_err("the third call is one too many");
    println!("{:?}: {}", status.code(), status.message());

    for ((method, code), (calls, _)) in &*metrics.0.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{method} {:?}: {calls}", Code::from_i32(*code));
    }
    Ok(())
}
