//! `thalweg serve`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg::server::{BindError, BoundServer, Server, ServerBuilder, Service};
use thalweg::web::Web;
use thalweg::{Keepalive, KeepalivePolicy, ListenAddress};
use thalweg_load::bare::EchoServer as BareEchoServer;
use thalweg_load::record::Variant;
use thalweg_load::services::echo_proto::echo_server::EchoServer;
use thalweg_load::services::echo_proto::echo_shapes_server::EchoShapesServer;
use thalweg_load::services::proto::benchmark_service_server::BenchmarkServiceServer;
use thalweg_load::services::proto::test_service_server::TestServiceServer;
use thalweg_load::services::{BenchmarkWorker, EchoOwnServer, EchoWorker, InteropServer, ServiceSet, proto};
use thalweg_measure::descriptors;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::size::ByteSize;
use thalweg_messages::own::descriptors;
use thalweg_services::health::HealthReporter;
use thalweg_services::reflection::Reflection;

use crate::failure::Failure;
use crate::runtime::{self, RuntimeArgs};
use crate::signals;
use crate::terminal::{self, Syntax};
use crate::tls::ServerTlsArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg serve
  thalweg serve --listen 127.0.0.1:50051 --listen unix:/tmp/thalweg.sock
  thalweg serve --listen 0.0.0.0:50051 --threads 4 --cpus 0-3
  thalweg serve --cert certs/server.pem --key certs/server.key
  thalweg serve --json 127.0.0.1:8080
  thalweg serve --work 20us";

/// Run a gRPC server for tests: benchmark, interop, health and reflection services
///
/// It serves BenchmarkService and TestService of grpc.testing, health and reflection, until SIGTERM or SIGINT.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address: HOST:PORT, unix:PATH or unix-abstract:NAME; repeatable
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051")]
    listen: Vec<String>,

    /// Also listen on HOST:PORT, and serve JSON, Connect and gRPC-Web on all addresses
    #[arg(long, value_name = "ADDR")]
    json: Option<String>,

    /// JSON study: .proto file of a message type to echo
    ///
    /// It is served as thalweg.lab.v1.EchoOwn/Echo.
    #[arg(help_heading = "For studies", long, value_name = "FILE", requires = "type_name")]
    proto: Option<PathBuf>,

    /// JSON study: message type, such as shop.Order
    #[arg(
        help_heading = "For studies",
        long = "type",
        id = "type_name",
        value_name = "NAME",
        requires = "proto"
    )]
    type_name: Option<String>,

    /// JSON study: read requests as views of the received bytes
    #[arg(help_heading = "For studies", long)]
    views: bool,

    /// Connections study: only echo bytes, on one epoll thread
    #[arg(help_heading = "For studies", long, conflicts_with_all = ["json", "proto", "views", "cert"])]
    bare_echo: bool,

    /// owned, in-place (streams reuse the buffers of messages) or no-busy-poll
    #[arg(help_heading = "For studies", long, value_name = "NAME", default_value_t)]
    variant: Variant,

    /// Largest message to accept
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    max_message_size: ByteSize,

    /// Concurrent streams per connection [default: 256]
    #[arg(help_heading = "Connections", long, value_name = "N")]
    max_concurrent_streams: Option<u32>,

    /// CPU time of each BenchmarkService message
    #[arg(
        help_heading = "For studies",
        long,
        value_name = "DURATION",
        default_value = "0s",
        value_parser = humantime::parse_duration
    )]
    work: Duration,

    /// Time for calls to finish at shutdown
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    grace: Duration,

    #[command(flatten)]
    runtime: RuntimeArgs,

    // Options under a heading of their own follow those without one.
    #[command(flatten)]
    connections: ConnectionArgs,

    #[command(flatten)]
    tls: ServerTlsArgs,
}

/// Limits of connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
struct ConnectionArgs {
    /// Maximum number of connections [default: unlimited]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,

    /// Maximum number of connections per IP address [default: unlimited]
    #[arg(long, value_name = "N")]
    max_connections_per_address: Option<usize>,

    /// Close connections gracefully after this time without calls [default: never]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    max_connection_idle: Option<Duration>,

    /// Close connections gracefully after this age [default: never]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    max_connection_age: Option<Duration>,

    /// Time for calls to finish after --max-connection-age [default: unlimited]
    #[arg(
        long,
        value_name = "DURATION",
        requires = "max_connection_age",
        value_parser = humantime::parse_duration
    )]
    max_connection_age_grace: Option<Duration>,

    /// Send a PING after this much silence [default: 2h]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    keepalive_time: Option<Duration>,

    /// Close connections whose PING is not answered in this time [default: 20s]
    #[arg(
        long,
        value_name = "DURATION",
        requires = "keepalive_time",
        value_parser = humantime::parse_duration
    )]
    keepalive_timeout: Option<Duration>,

    /// Minimum interval between client PINGs
    ///
    /// Clients that send more than two too early get GOAWAY (too_many_pings).
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        value_parser = humantime::parse_duration
    )]
    keepalive_min_time: Duration,

    /// Also allow PINGs at --keepalive-min-time on connections without calls [default: one every 2h]
    #[arg(long)]
    keepalive_permit_without_calls: bool,

    /// Memory budget of all connections [default: a quarter of RAM]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<ByteSize>,
}

impl ConnectionArgs {
    fn apply(&self, mut server: ServerBuilder) -> ServerBuilder {
        if let Some(connections) = self.max_connections {
            server = server.max_connections(connections);
        }
        if let Some(connections) = self.max_connections_per_address {
            server = server.max_connections_per_address(connections);
        }
        if let Some(idle) = self.max_connection_idle {
            server = server.max_connection_idle(idle);
        }
        if let Some(age) = self.max_connection_age {
            server = server.max_connection_age(age);
        }
        if let Some(grace) = self.max_connection_age_grace {
            server = server.max_connection_age_grace(grace);
        }
        if let Some(size) = self.max_memory {
            server = server.max_memory(usize::try_from(size.0).unwrap_or(usize::MAX));
        }
        if let Some(interval) = self.keepalive_time {
            // Clients without calls get PINGs too, as from grpc-go.
            let mut keepalive = Keepalive::every(interval).without_calls(true);
            if let Some(timeout) = self.keepalive_timeout {
                keepalive = keepalive.timeout(timeout);
            }
            server = server.keepalive(keepalive);
        }
        let policy = KeepalivePolicy::every(self.keepalive_min_time);
        server.keepalive_policy(policy.without_calls(self.keepalive_permit_without_calls))
    }
}

/// Serves bytes on the first address only.
fn bare_echo(args: &ServeArgs) -> Result<ExitCode, Failure> {
    args.runtime.threads(|_| 1)?;
    let interrupt = Interrupt::on_signals().map_err(|error| signals::handler_failure(&error))?;
    let address = &args.listen[0];
    let server = BareEchoServer::bind(address)
        .map_err(|error| Failure::failed(format!("failed to listen on {address}: {error}")))?;
    let address = server.local_address().map_err(Failure::failed)?;
    terminal::print(Syntax::Text, &format!("listening on {address}\n"))?;
    server.serve(&interrupt).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    // If this fails, the server accepts fewer connections and rejects the others.
    let _ = descriptors::raise();
    if args.bare_echo {
        return bare_echo(args);
    }
    let json = args.json.as_ref().filter(|json| !args.listen.contains(json));
    let addresses: Vec<ListenAddress> = args
        .listen
        .iter()
        .chain(json)
        .map(|address| address.parse())
        .collect::<Result<_, _>>()
        .map_err(Failure::bad_arguments)?;
    let threads = args.runtime.threads(|processors| processors)?;
    runtime::runtime(1)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let server = bind(args, &addresses, threads).await?;
        announce(&server, args)?;
        server.serve_until(interrupt).await.map_err(Failure::failed)?;
        Ok(ExitCode::SUCCESS)
    })
}

impl ServeArgs {
    /// Returns the echo service of the user's message type, and its descriptors.
    fn own(&self) -> Result<Option<(EchoOwnServer, Vec<u8>)>, Failure> {
        let (Some(proto), Some(name)) = (&self.proto, &self.type_name) else { return Ok(None) };
        let set = descriptors(proto, name, |file| EchoOwnServer::sources(file, name));
        let set = set.map_err(Failure::bad_arguments)?;
        let server = EchoOwnServer::new(&set, name);
        let server =
            server.ok_or_else(|| Failure::failed(format!("missing {name} in its own descriptors")))?;
        Ok(Some((server, set)))
    }
}

async fn bind(args: &ServeArgs, addresses: &[ListenAddress], threads: usize) -> Result<BoundServer, Failure> {
    let health = HealthReporter::new();
    health.set_serving::<BenchmarkServiceServer<BenchmarkWorker>>();
    health.set_serving::<TestServiceServer<InteropServer>>();
    health.set_serving::<EchoServer<EchoWorker>>();
    health.set_serving::<EchoShapesServer<EchoWorker>>();
    let mut reflection = Reflection::builder()
        .descriptors(proto::DESCRIPTORS)
        .descriptors(<EchoServer<EchoWorker> as Service>::FILE_DESCRIPTOR_SET)
        .descriptors(<EchoShapesServer<EchoWorker> as Service>::FILE_DESCRIPTOR_SET);
    // The same descriptors document the services on the web pages.
    let mut web = Web::new().descriptors(proto::DESCRIPTORS).openapi(true).docs(true);
    let mut own = None;
    if let Some((server, set)) = args.own()? {
        own = Some(server);
        web = web.descriptors(set.clone());
        reflection = reflection.descriptors(set);
    }
    let services = ServiceSet {
        message_ownership: args.variant.message_ownership(),
        work: args.work,
        views: args.views,
        own,
        message_bytes_max: usize::try_from(args.max_message_size.0).unwrap_or(usize::MAX),
    };
    let server = services.add_to(Server::builder());
    let mut server = server.add_service(health.service()).shutdown_grace(args.grace);
    if let Some(duration) = args.runtime.busy_poll.or(args.variant.busy_poll()) {
        server = server.busy_poll(duration);
    }
    if let Some(streams) = args.max_concurrent_streams {
        server = server.max_concurrent_streams(streams);
    }
    server = args.connections.apply(server);
    server = server.add_service(reflection.build().map_err(Failure::failed)?);
    if args.json.is_some() {
        server = server.web(web);
    }
    if let Some(tls) = args.tls.config()? {
        server = server.tls(tls);
    }
    if threads > 1 {
        // A single thread serves on the current one, without a hand-over.
        server = server.threads(threads);
    }
    server.bind(addresses).await.map_err(|error| match error {
        BindError::Tls(_) => Failure::setting(error),
        _ => Failure::failed(error),
    })
}

/// Prints a line per listener and flushes, because scripts may wait for it.
fn announce(server: &BoundServer, args: &ServeArgs) -> Result<(), Failure> {
    let mut text = String::new();
    let (listening, further) = server.local_addresses().split_at(args.listen.len());
    for address in listening {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(text, "listening on {address}");
    }
    if let Some(json) = &args.json {
        // A separate JSON address, or one that `--listen` names too.
        let at = args.listen.iter().position(|address| address == json);
        for address in further.iter().chain(at.and_then(|at| listening.get(at))) {
            let _ = writeln!(text, "json on {address}");
        }
    }
    terminal::print(Syntax::Text, &text)
}
