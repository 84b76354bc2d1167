//! Information on the connection of a call, which a server adds to the extensions of its requests.

mod connected;
#[cfg(unix)]
mod unix;

#[cfg(feature = "tls-connect-info")]
pub use self::connected::TlsConnectInfo;
pub use self::connected::{Connected, TcpConnectInfo};
#[cfg(unix)]
pub use self::unix::UdsConnectInfo;
