//! TLS without HTTP/2: the streams that drivers read and write, for tests and simulations.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncRead, AsyncWrite};

use super::buffers::BufferMemory;
use super::client::ClientTlsConfig;
use super::server::ServerTlsConfig;

/// Runs the handshake with the server `host` over `io`. `memory` tracks the memory of the stream's buffers, in bytes.
///
/// # Errors
/// The reason, as a channel reports it.
pub async fn client_stream<IO>(
    config: ClientTlsConfig,
    host: &str,
    io: IO,
    memory: &Arc<AtomicUsize>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<IO>, String>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let tls = config.prepare(host).map_err(|error| error.to_string())?;
    tls.connect(io, BufferMemory::from(Arc::clone(memory))).await.map_err(|error| error.to_string())
}

/// Runs the handshake with a client over `io`.
///
/// # Errors
/// The reason, as a server reports it.
pub async fn server_stream<IO>(
    config: ServerTlsConfig,
    io: IO,
    memory: &Arc<AtomicUsize>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<IO>, String>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let tls = config.prepare().map_err(|error| error.to_string())?;
    let accepted = tls.accept(io, BufferMemory::from(Arc::clone(memory))).await;
    accepted.map(|(stream, _)| stream).map_err(|error| error.to_string())
}
