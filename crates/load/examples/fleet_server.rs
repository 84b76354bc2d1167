//! One server of a fleet, for `cargo xtask bench fleet`. It starts within milliseconds, and can be slow, fail calls or
//! be silent.
//!
//! Prints `called` after its first call, or `silent` once it is, and `calls N` once SIGTERM has ended it.
//!
//! ```text
//! cargo run --release -p thalweg-load --example fleet_server -- 127.0.0.1:50051 --delay 20ms
//! ```

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use thalweg::server::{Methods, Service};
use thalweg::{Request, Response, Server, ServiceOptions, Status};
use thalweg_load::services::BenchmarkWorker;
use thalweg_load::services::proto::benchmark_service_server::BenchmarkServiceServer;
use thalweg_load::services::proto::{SimpleRequest, SimpleResponse};
use tokio::net::{TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// Serves UnaryCall of grpc.testing.BenchmarkService
#[derive(Debug, Parser)]
struct Args {
    address: SocketAddr,

    /// Time from a request to its response
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,

    /// Fail each Nth call with UNAVAILABLE
    #[arg(long, value_name = "N")]
    fail_every: Option<u64>,

    /// Drop the packets of new connections: they are neither accepted nor refused
    #[arg(long, conflicts_with_all = ["delay", "fail_every"])]
    silent: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if args.silent {
        return be_silent(args.address).await;
    }
    let backend =
        Arc::new(Backend { delay: args.delay, fail_every: args.fail_every, calls: AtomicU64::new(0) });
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = async move {
        terminate.recv().await;
    };
    let service = BackendServer(Arc::clone(&backend));
    Server::builder().add_service(service).serve_with_shutdown(args.address, shutdown).await?;
    print_line(&format!("calls {}", backend.calls.load(Ordering::Relaxed)));
    Ok(())
}

/// Fills the queue of connections and accepts none: the kernel then drops the packets that would open another one.
async fn be_silent(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    /// A connection over loopback takes less than 1 ms.
    const FULL_AFTER: Duration = Duration::from_millis(200);
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    let listener = socket.listen(0)?;
    let mut queued = Vec::new();
    while let Ok(connected) = timeout(FULL_AFTER, TcpStream::connect(address)).await {
        queued.push(connected?);
    }
    print_line("silent");
    signal(SignalKind::terminate())?.recv().await;
    drop((queued, listener));
    Ok(())
}

struct Backend {
    delay: Duration,
    fail_every: Option<u64>,
    /// Calls so far.
    calls: AtomicU64,
}

impl Backend {
    async fn respond(self: Arc<Self>) -> Result<Response<SimpleResponse>, Status> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number == 1 {
            print_line("called");
        }
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        match self.fail_every {
            Some(every) if number.is_multiple_of(every) => Err(Status::unavailable("this call is to fail")),
            _ => Ok(Response::new(SimpleResponse::default())),
        }
    }
}

struct BackendServer(Arc<Backend>);

impl Service for BackendServer {
    const NAME: &'static str = <BenchmarkServiceServer<BenchmarkWorker> as Service>::NAME;
    const FILE_DESCRIPTOR_SET: &'static [u8] =
        <BenchmarkServiceServer<BenchmarkWorker> as Service>::FILE_DESCRIPTOR_SET;

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary(
            "UnaryCall",
            &self.0,
            &ServiceOptions::default(),
            |backend, _: Request<SimpleRequest>| backend.respond(),
        );
    }
}

/// Prints a line at once: the reader waits for it. Without a reader it does not matter.
fn print_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}");
    let _ = stdout.flush();
}
