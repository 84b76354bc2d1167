//! Opening a tunnel through a SOCKS5 proxy (RFC 1928, RFC 1929).

use tokio::net::TcpStream;
use tokio_socks::tcp::Socks5Stream;

use super::url::Credentials;

/// Asks the proxy for a connection to `server`, which is `host:port`. The proxy looks up names.
pub(super) async fn connect(
    stream: TcpStream,
    credentials: Option<&Credentials>,
    server: &str,
) -> Result<TcpStream, tokio_socks::Error> {
    let connected = match credentials {
        None => Socks5Stream::connect_with_socket(stream, server).await,
        Some(Credentials { user, password }) => {
            Socks5Stream::connect_with_password_and_socket(stream, server, user, password).await
        }
    };
    connected.map(Socks5Stream::into_inner)
}
