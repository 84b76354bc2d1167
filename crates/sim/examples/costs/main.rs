//! Calls and messages between the library's client and server, with the same instructions in every run:
//!
//! ```text
//! cargo build --release -p thalweg-sim --example costs
//! valgrind --tool=callgrind --toggle-collect='*server_turn*' target/release/examples/costs unary-64 1000
//! ```
//!
//! Each side has its own runtime, and they alternate: a side runs until it has nothing left to do, then the other does.
//! So the number of calls per read or write depends on the case and not on timing. The work within [`client_turn`] and
//! [`server_turn`] is one side's cost. Clocks are paused: otherwise a slow machine could look like a slow handler to
//! the server and change its behaviour. `cargo xtask test --only costs` compares the counts with the recorded ones.
//!
//! With `--features metrics`, both sides report each call to OpenTelemetry's SDK; with `--features traces`, they pass
//! it the spans of each call. The difference is the cost.
#![forbid(unsafe_code)]

#[cfg(feature = "metrics")]
mod metrics;
mod pipe;
mod service;
#[cfg(feature = "traces")]
mod traces;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg::channel::EndpointList;
use thalweg::channel::policy::PolicyConfig;
use thalweg::outbound::Requests;
use thalweg::server::ServerBuilder;
use thalweg::web::Web;
use thalweg::{CallOptions, Channel, Protocol, Request, Server, Status};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::pipe::Pipe;
use crate::service::{
    BIDI, BIDI_IN_PLACE, BIDI_ORDINARY, CLIENT_STREAMING, CLIENT_STREAMING_IN_PLACE, Payload, Repeat,
    SERVER_STREAMING, SERVER_STREAMING_IN_PLACE, SERVER_STREAMING_ORDINARY, Script, UNARY, Yielding,
};

struct Case {
    name: &'static str,
    kind: Kind,
    /// Length of each message's only field in bytes; 0 for empty messages.
    body_bytes: usize,
}

enum Kind {
    /// Calls from this many tasks, each with one call at a time.
    Unary {
        in_flight: usize,
    },
    /// The same over this many servers in turn.
    UnaryRoundRobin {
        in_flight: usize,
        servers: u16,
    },
    /// The same, all with the same timeout.
    UnaryWithin {
        in_flight: usize,
    },
    /// The same, each with its own deadline.
    UnaryUntil {
        in_flight: usize,
    },
    /// The same on a port that serves gRPC and the web protocols.
    UnaryWithWeb {
        in_flight: usize,
    },
    /// The same with Connect, on a port that serves both.
    Connect {
        in_flight: usize,
    },
    ClientStreaming(MessagePassing),
    ServerStreaming(MessagePassing),
    Bidi(MessagePassing),
}

/// How messages of streams are passed to and from the library.
enum MessagePassing {
    /// Each is newly created and passed by value.
    Owned,
    /// Each is sent and received in place.
    InPlace,
    /// Passed by value, in a stream that yields after every 32 messages like `tokio_stream::iter`.
    Ordinary,
}

const CASES: &[Case] = &[
    Case { name: "unary-1", kind: Kind::Unary { in_flight: 1 }, body_bytes: 0 },
    Case { name: "unary-64", kind: Kind::Unary { in_flight: 64 }, body_bytes: 0 },
    Case {
        name: "unary-192-round-robin",
        kind: Kind::UnaryRoundRobin { in_flight: 192, servers: 3 },
        body_bytes: 0,
    },
    Case { name: "unary-64-timeout", kind: Kind::UnaryWithin { in_flight: 64 }, body_bytes: 0 },
    Case { name: "unary-64-deadline", kind: Kind::UnaryUntil { in_flight: 64 }, body_bytes: 0 },
    Case { name: "unary-64-web", kind: Kind::UnaryWithWeb { in_flight: 64 }, body_bytes: 0 },
    Case { name: "unary-64-1KiB", kind: Kind::Unary { in_flight: 64 }, body_bytes: 1 << 10 },
    Case { name: "connect-unary-64", kind: Kind::Connect { in_flight: 64 }, body_bytes: 64 },
    Case { name: "client-stream", kind: Kind::ClientStreaming(MessagePassing::Owned), body_bytes: 0 },
    Case { name: "server-stream", kind: Kind::ServerStreaming(MessagePassing::Owned), body_bytes: 0 },
    Case { name: "bidi-stream", kind: Kind::Bidi(MessagePassing::Owned), body_bytes: 0 },
    Case {
        name: "client-stream-1KiB",
        kind: Kind::ClientStreaming(MessagePassing::Owned),
        body_bytes: 1 << 10,
    },
    Case {
        name: "server-stream-1KiB",
        kind: Kind::ServerStreaming(MessagePassing::Owned),
        body_bytes: 1 << 10,
    },
    Case { name: "bidi-stream-1KiB", kind: Kind::Bidi(MessagePassing::Owned), body_bytes: 1 << 10 },
    Case {
        name: "client-stream-ordinary",
        kind: Kind::ClientStreaming(MessagePassing::Ordinary),
        body_bytes: 0,
    },
    Case {
        name: "server-stream-ordinary",
        kind: Kind::ServerStreaming(MessagePassing::Ordinary),
        body_bytes: 0,
    },
    Case { name: "bidi-stream-ordinary", kind: Kind::Bidi(MessagePassing::Ordinary), body_bytes: 0 },
    Case {
        name: "client-stream-in-place",
        kind: Kind::ClientStreaming(MessagePassing::InPlace),
        body_bytes: 0,
    },
    Case {
        name: "server-stream-in-place",
        kind: Kind::ServerStreaming(MessagePassing::InPlace),
        body_bytes: 0,
    },
    Case { name: "bidi-stream-in-place", kind: Kind::Bidi(MessagePassing::InPlace), body_bytes: 0 },
    Case {
        name: "client-stream-in-place-1KiB",
        kind: Kind::ClientStreaming(MessagePassing::InPlace),
        body_bytes: 1 << 10,
    },
    Case {
        name: "server-stream-in-place-1KiB",
        kind: Kind::ServerStreaming(MessagePassing::InPlace),
        body_bytes: 1 << 10,
    },
    Case {
        name: "bidi-stream-in-place-1KiB",
        kind: Kind::Bidi(MessagePassing::InPlace),
        body_bytes: 1 << 10,
    },
    Case {
        name: "client-stream-64KiB",
        kind: Kind::ClientStreaming(MessagePassing::Owned),
        body_bytes: 64 << 10,
    },
    Case {
        name: "server-stream-64KiB",
        kind: Kind::ServerStreaming(MessagePassing::Owned),
        body_bytes: 64 << 10,
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().and_then(|name| CASES.iter().find(|case| case.name == name));
    let count = arguments.next().and_then(|count| count.parse().ok());
    let (Some(case), Some(count)) = (case, count) else {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        eprintln!("usage: costs CASE COUNT, where CASE is one of {}", names.join(", "));
        return ExitCode::from(2);
    };
    match run(case, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(status) => {
            eprintln!("costs: a call failed: {status}");
            ExitCode::FAILURE
        }
    }
}

/// Makes `count` calls, or sends `count` messages of one stream.
fn run(case: &'static Case, count: usize) -> Result<(), Status> {
    let servers = if let Kind::UnaryRoundRobin { servers, .. } = case.kind { servers } else { 1 };
    let (client_ends, server_ends) = Pipe::pairs(servers.into());
    let (client_end, server_end) = (client_ends[0].clone(), server_ends[0].clone());
    let (client, server) = (runtime(), runtime());
    for server_end in server_ends {
        server.spawn(server_builder(case).serve_connection(server_end));
    }
    let work = client.spawn(work(client_ends, case, count));
    while !work.is_finished() {
        let before = client_end.moved_bytes();
        client_turn(&client, &client_end);
        server_turn(&server, &server_end);
        assert!(client_end.moved_bytes() > before || work.is_finished(), "both sides wait for each other");
    }
    client.block_on(work).expect("the work does not panic")
}

fn server_builder(case: &Case) -> ServerBuilder {
    let mut builder = Server::builder().add_service(Script);
    if let Kind::UnaryWithWeb { .. } | Kind::Connect { .. } = case.kind {
        builder = builder.web(Web::new());
    }
    #[cfg(feature = "metrics")]
    let builder = builder.metrics(metrics::metrics());
    #[cfg(feature = "traces")]
    let builder = builder.traces(traces::traces());
    builder
}

fn runtime() -> Runtime {
    // An interval that is never reached: the runtime polls for events only when all tasks have run.
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).event_interval(1 << 20).build().expect("a runtime without I/O")
}

#[inline(never)]
fn client_turn(runtime: &Runtime, end: &Pipe) {
    runtime.block_on(settle(end));
}

#[inline(never)]
fn server_turn(runtime: &Runtime, end: &Pipe) {
    runtime.block_on(settle(end));
}

/// Runs the side's tasks until they move no more bytes.
async fn settle(end: &Pipe) {
    loop {
        let before = end.moved_bytes();
        tokio::task::yield_now().await;
        if end.moved_bytes() == before {
            return;
        }
    }
}

/// The client's part of a run.
async fn work(ends: Vec<Pipe>, case: &'static Case, count: usize) -> Result<(), Status> {
    let servers =
        EndpointList::new((1..).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).take(ends.len()));
    let ends = Mutex::new(ends);
    let connect = move || {
        let end = ends.lock().unwrap_or_else(PoisonError::into_inner).pop();
        std::future::ready(end.ok_or_else(|| io::ErrorKind::NotConnected.into()))
    };
    let mut builder = Channel::builder("memory:1").connector(connect);
    if let Kind::UnaryRoundRobin { .. } = case.kind {
        builder = builder.resolver(servers).load_balancing(PolicyConfig::RoundRobin);
    }
    if let Kind::Connect { .. } = case.kind {
        builder = builder.protocol(Protocol::Connect);
    }
    #[cfg(feature = "metrics")]
    let builder = builder.metrics(metrics::metrics());
    #[cfg(feature = "traces")]
    let builder = builder.traces(traces::traces());
    let channel = builder.connect().await;
    let channel = channel.map_err(|error| Status::unavailable(error.to_string()))?;
    drive(&channel, case, count).await
}

async fn drive(channel: &Channel, case: &'static Case, count: usize) -> Result<(), Status> {
    let options = CallOptions::default();
    let message = Payload::new(case.body_bytes);
    let requests = || Request::new(Repeat::new(message.clone(), count));
    let requests_in_place = || Request::new(Requests::repeat(message.clone(), count as u64));
    let request = || Request::new(Payload { count: count as u64, ..message.clone() });
    let received = match case.kind {
        Kind::Unary { in_flight }
        | Kind::UnaryRoundRobin { in_flight, .. }
        | Kind::UnaryWithWeb { in_flight }
        | Kind::Connect { in_flight } => {
            return unary_calls(channel, &message, in_flight, count, |_| None).await;
        }
        Kind::UnaryWithin { in_flight } => {
            let timeout = |_| Some(Duration::from_secs(10));
            return unary_calls(channel, &message, in_flight, count, timeout).await;
        }
        Kind::UnaryUntil { in_flight } => {
            // Like forwarded deadlines: the remaining time differs between calls.
            let timeout = |call| Some(Duration::from_secs(20) + Duration::from_micros(call as u64));
            return unary_calls(channel, &message, in_flight, count, timeout).await;
        }
        Kind::ClientStreaming(MessagePassing::Owned) => {
            let response = channel.client_streaming(&CLIENT_STREAMING, requests(), &options).await?;
            let response: Payload = response.into_inner();
            response.count
        }
        Kind::ClientStreaming(MessagePassing::Ordinary) => {
            let requests = requests().map(Yielding::new);
            let response = channel.client_streaming(&CLIENT_STREAMING, requests, &options).await?;
            let response: Payload = response.into_inner();
            response.count
        }
        Kind::ClientStreaming(MessagePassing::InPlace) => {
            let method = &CLIENT_STREAMING_IN_PLACE;
            let response = channel.client_streaming(method, requests_in_place(), &options).await?;
            let response: Payload = response.into_inner();
            response.count
        }
        Kind::ServerStreaming(MessagePassing::Owned) => {
            let responses = channel.server_streaming(&SERVER_STREAMING, request(), &options).await?;
            service::count(responses.into_inner()).await?
        }
        Kind::ServerStreaming(MessagePassing::Ordinary) => {
            let responses = channel.server_streaming(&SERVER_STREAMING_ORDINARY, request(), &options).await?;
            service::count(responses.into_inner()).await?
        }
        Kind::ServerStreaming(MessagePassing::InPlace) => {
            let responses = channel.server_streaming(&SERVER_STREAMING_IN_PLACE, request(), &options).await?;
            service::count_in_place(responses.into_inner()).await?
        }
        Kind::Bidi(MessagePassing::Owned) => {
            service::count(channel.bidi_streaming(&BIDI, requests(), &options).await?.into_inner()).await?
        }
        Kind::Bidi(MessagePassing::Ordinary) => {
            let requests = requests().map(Yielding::new);
            service::count(channel.bidi_streaming(&BIDI_ORDINARY, requests, &options).await?.into_inner())
                .await?
        }
        Kind::Bidi(MessagePassing::InPlace) => {
            let responses = channel.bidi_streaming(&BIDI_IN_PLACE, requests_in_place(), &options).await?;
            service::count_in_place(responses.into_inner()).await?
        }
    };
    if received == count as u64 {
        Ok(())
    } else {
        Err(Status::data_loss(format!("{received} of {count} messages arrived")))
    }
}

async fn unary_calls(
    channel: &Channel,
    message: &Payload,
    in_flight: usize,
    count: usize,
    timeout: fn(usize) -> Option<Duration>,
) -> Result<(), Status> {
    let mut callers = JoinSet::new();
    for caller in 0..in_flight {
        let (channel, message) = (channel.clone(), message.clone());
        // The first callers make the remainder of the calls.
        let calls = count / in_flight + usize::from(caller < count % in_flight);
        callers.spawn(async move {
            let mut options = CallOptions::default();
            for (call, message) in Repeat::new(message, calls).enumerate() {
                options.timeout = timeout(caller + call * in_flight);
                let _: thalweg::Response<Payload> =
                    channel.unary(&UNARY, Request::new(message), &options).await?;
            }
            Ok(())
        });
    }
    callers.join_all().await.into_iter().collect()
}
