//! `peer serve`.

mod listener;
mod service;

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::service::Routes;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Identity, Server, ServerTlsConfig};

use crate::address::Address;
use crate::proto::benchmark_service_server::BenchmarkServiceServer;
use crate::stack_settings::{
    CONNECTION_WINDOW, FRAME_SIZE_MAX, MESSAGE_SIZE_MAX, STREAM_WINDOW, TCP_NODELAY,
};
use crate::{Failure, runtime};
use listener::Listener;
use service::Benchmark;

const AXUM: &str = "axum";
/// The variants of the server, the default first.
pub const VARIANTS: [&str; 2] = ["plain", AXUM];

#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen on: HOST:PORT, unix:PATH or unix-abstract:NAME; may be repeated
    #[arg(long, value_name = "ADDR", required = true)]
    listen: Vec<Address>,

    /// Variant: plain, or axum (the service is behind an axum router, as in an application)
    #[arg(long, value_name = "NAME", default_value = VARIANTS[0])]
    variant: String,

    /// Serve TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Number of worker threads [default: one per CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// CPU time that each unary call takes, to simulate a handler that computes
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    work: Duration,
}

pub fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    if !VARIANTS.contains(&&*args.variant) {
        let known = VARIANTS.join(" and ");
        return Err(Failure::Misuse(format!("--variant {}: tonic's server has {known}", args.variant)));
    }
    let runtime = runtime(args.threads)?;
    let identity = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => {
            let (cert, key) = (read(cert)?, read(key)?);
            Some(Identity::from_pem(cert, key))
        }
        _ => None,
    };
    let served = runtime.block_on(serve(&args, identity));
    // Calls can last as long as their clients like; they are aborted here.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS).map_err(Failure::Failed)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Misuse(format!("failed to read {}: {error}", path.display())))
}

async fn serve(args: &ServeArgs, identity: Option<Identity>) -> Result<(), String> {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return Err("signals cannot be waited for".to_owned());
    };
    let mut listeners = Vec::new();
    for address in &args.listen {
        let bound = Listener::bind(address).await;
        listeners.push(bound.map_err(|error| format!("failed to listen on {address}: {error}"))?);
    }
    announce(&listeners).map_err(|error| format!("failed to write to stdout: {error}"))?;

    let mut serving = JoinSet::new();
    // Kept until the end, because dropping one removes its file.
    let mut files = Vec::new();
    for listener in listeners {
        match listener {
            Listener::Tcp { listener, .. } => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(TCP_NODELAY));
                serving.spawn(router(args, identity.clone())?.serve_with_incoming(incoming));
            }
            Listener::Unix { listener, file, .. } => {
                files.push(file);
                let incoming = UnixListenerStream::new(listener);
                serving.spawn(router(args, identity.clone())?.serve_with_incoming(incoming));
            }
        }
    }
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        Some(ended) = serving.join_next() => Err(match ended {
            Ok(Err(error)) => format!("serving ended: {error}"),
            Ok(Ok(())) => "serving ended".to_owned(),
            Err(error) => format!("serving ended: {error}"),
        }),
    }
}

/// Prints a line per listener and flushes, because scripts wait for them.
fn announce(listeners: &[Listener]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for listener in listeners {
        writeln!(stdout, "listening on {}", listener.address())?;
    }
    stdout.flush()
}

fn router(args: &ServeArgs, identity: Option<Identity>) -> Result<Router, String> {
    let service = BenchmarkServiceServer::new(Benchmark { work: args.work })
        .max_decoding_message_size(MESSAGE_SIZE_MAX)
        .max_encoding_message_size(MESSAGE_SIZE_MAX);
    let mut server = Server::builder();
    if let Some(identity) = identity {
        let tls = ServerTlsConfig::new().identity(identity);
        server = server.tls_config(tls).map_err(|error| format!("TLS: {error}"))?;
    }
    let mut server = server
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_SIZE_MAX);
    Ok(match &*args.variant {
        AXUM => server.add_routes(Routes::from(Routes::new(service).into_axum_router())),
        _ => server.add_service(service),
    })
}
