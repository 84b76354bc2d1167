//! `peer serve`.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use axum::serve::ListenerExt;
use clap::Args;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::TcpIncoming;

use crate::address::Address;
use crate::listener::Listener;
use crate::stack_settings::TCP_NODELAY;
use crate::{grpc, json};

#[derive(Args)]
pub struct ServeArgs {
    /// Address to serve gRPC on: HOST:PORT, unix:PATH or unix-abstract:NAME; may be repeated
    #[arg(long, value_name = "ADDR", required = true)]
    listen: Vec<Address>,

    /// Address to serve JSON on
    #[arg(long, value_name = "HOST:PORT", required = true)]
    json: String,

    /// Number of worker threads [default: one per CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub fn run(args: &ServeArgs) -> Result<(), String> {
    let runtime = runtime(args.threads).map_err(|error| format!("failed to start threads: {error}"))?;
    let served = runtime.block_on(serve(&args.listen, &args.json));
    // Calls can last as long as their clients like; they are aborted here.
    runtime.shutdown_background();
    served
}

/// Builds the runtime. A single thread runs everything itself, without hand-over between threads.
fn runtime(threads: Option<NonZeroUsize>) -> io::Result<Runtime> {
    let mut builder = match threads.map_or_else(default_threads, NonZeroUsize::get) {
        1 => Builder::new_current_thread(),
        threads => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_all().build()
}

/// One thread per CPU that this process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

async fn serve(addresses: &[Address], json: &str) -> Result<(), String> {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return Err("signals cannot be waited for".to_owned());
    };
    let mut listeners = Vec::new();
    for address in addresses {
        let bound = Listener::bind(address).await;
        listeners.push(bound.map_err(|error| format!("failed to listen on {address}: {error}"))?);
    }
    let json = TcpListener::bind(json).await.map_err(|error| format!("failed to listen on {json}: {error}"))?;
    announce(&listeners, &json).map_err(|error| format!("failed to write to stdout: {error}"))?;

    let mut serving = JoinSet::new();
    // Kept until the end, because dropping one removes its file.
    let mut files = Vec::new();
    for listener in listeners {
        match listener {
            Listener::Tcp { listener, .. } => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(TCP_NODELAY));
                serving.spawn(async { describe_end(grpc::router().serve_with_incoming(incoming).await) });
            }
            Listener::Unix { listener, file, .. } => {
                files.push(file);
                let incoming = UnixListenerStream::new(listener);
                serving.spawn(async { describe_end(grpc::router().serve_with_incoming(incoming).await) });
            }
        }
    }
    let json = json.tap_io(|stream| {
        // If the connection is already closed, the next read fails.
        let _ = stream.set_nodelay(TCP_NODELAY);
    });
    serving.spawn(async { describe_end(axum::serve(json, json::router()).await) });
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        Some(ended) = serving.join_next() => Err(ended.unwrap_or_else(|error| format!("serving ended: {error}"))),
    }
}

/// Describes why serving ended on its own.
fn describe_end<E: std::fmt::Display>(ended: Result<(), E>) -> String {
    match ended {
        Ok(()) => "serving ended".to_owned(),
        Err(error) => format!("serving ended: {error}"),
    }
}

/// Prints a line per listener and flushes, because scripts wait for them.
fn announce(listeners: &[Listener], json: &TcpListener) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for listener in listeners {
        writeln!(stdout, "listening on {}", listener.address())?;
    }
    writeln!(stdout, "json on {}", json.local_addr()?)?;
    stdout.flush()
}
