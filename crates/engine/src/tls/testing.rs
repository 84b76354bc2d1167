//! TLS without HTTP/2 over it: the streams that drivers read and write, for tests and simulations.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncRead, AsyncWrite};

use super::buffers::Held;
use super::client::ClientTlsConfig;
use super::server::ServerTlsConfig;

/// Shakes hands with the server `host` behind `io`. `held` is told how many bytes of memory the stream's buffers take.
///
/// # Errors
/// Why there is no connection, as a channel says it.
pub async fn client_stream<IO>(
    config: ClientTlsConfig,
    host: &str,
    io: IO,
    held: &Arc<AtomicUsize>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<IO>, String>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let tls = config.prepare(host).map_err(|error| error.to_string())?;
    tls.connect(io, Held::from(Arc::clone(held))).await.map_err(|error| error.to_string())
}

/// Shakes hands with a client behind `io`.
///
/// # Errors
/// Why there is no connection, as a server says it.
pub async fn server_stream<IO>(
    config: ServerTlsConfig,
    io: IO,
    held: &Arc<AtomicUsize>,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<IO>, String>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let tls = config.prepare().map_err(|error| error.to_string())?;
    let accepted = tls.accept(io, Held::from(Arc::clone(held))).await;
    accepted.map(|(stream, _)| stream).map_err(|error| error.to_string())
}
