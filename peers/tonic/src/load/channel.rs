//! Opens one channel per connection, because a tonic channel is one connection.

use std::io;
use std::os::unix::net::{SocketAddr, UnixStream as StdUnixStream};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::Settings;
use crate::proto::benchmark_service_client::BenchmarkServiceClient;
use crate::stack_settings::{
    CONNECTION_WINDOW, FRAME_SIZE_MAX, MESSAGE_SIZE_MAX, STREAM_WINDOW, TCP_NODELAY,
};

pub type Client = BenchmarkServiceClient<Channel>;

pub async fn connect(settings: &Settings) -> Result<Vec<Client>, String> {
    let connecting = async {
        let mut clients = Vec::new();
        for _ in 0..settings.connections {
            let client = BenchmarkServiceClient::new(channel(settings).await?);
            clients.push(
                client
                    .max_decoding_message_size(MESSAGE_SIZE_MAX)
                    .max_encoding_message_size(MESSAGE_SIZE_MAX),
            );
        }
        Ok(clients)
    };
    let connected = tokio::time::timeout(settings.timeout, connecting).await;
    let connected = connected.unwrap_or_else(|_| Err(format!("nothing came within {:?}", settings.timeout)));
    connected.map_err(|error| format!("failed to connect to {}: {error}", settings.target))
}

async fn channel(settings: &Settings) -> Result<Channel, String> {
    let unix = settings.target.unix().transpose().map_err(|error| error.to_string())?;
    let scheme = if settings.authority.is_some() { "https" } else { "http" };
    // The authority of a Unix socket is arbitrary.
    let uri = if unix.is_some() {
        "http://localhost".to_owned()
    } else {
        format!("{scheme}://{}", settings.target)
    };
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(|error| causes(&error))?
        .tcp_nodelay(TCP_NODELAY)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_SIZE_MAX);
    if let Some(authority) = &settings.authority {
        let tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)).domain_name("localhost");
        endpoint = endpoint.tls_config(tls).map_err(|error| causes(&error))?;
    }
    let connected = match unix {
        None => endpoint.connect().await,
        Some(address) => {
            let connector = move |_| std::future::ready(unix_stream(&address).map(TokioIo::new));
            endpoint.connect_with_connector(tower::service_fn(connector)).await
        }
    };
    connected.map_err(|error| causes(&error))
}

/// Connecting a Unix socket never blocks.
fn unix_stream(address: &SocketAddr) -> io::Result<UnixStream> {
    let stream = StdUnixStream::connect_addr(address)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// tonic's errors describe the cause only in their sources, some of them twice.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}
