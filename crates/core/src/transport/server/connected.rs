//! [`Connected`]: connections that know their addresses, and the requests that came over them.

use std::net::SocketAddr;
#[cfg(feature = "tls-connect-info")]
use std::sync::Arc;

use tokio::net::TcpStream;
#[cfg(feature = "tls-connect-info")]
use tokio_rustls::rustls::pki_types::CertificateDer;

/// A connection that a server accepted, and what it knows of it.
pub trait Connected {
    /// The information, which requests have among their extensions.
    type ConnectInfo: Clone + Send + Sync + 'static;

    /// Returns the information.
    fn connect_info(&self) -> Self::ConnectInfo;
}

/// The addresses of a TCP connection.
#[derive(Clone, Debug)]
pub struct TcpConnectInfo {
    /// The server's address.
    pub local_addr: Option<SocketAddr>,
    /// The client's address.
    pub remote_addr: Option<SocketAddr>,
}

impl TcpConnectInfo {
    /// Returns the server's address.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// Returns the client's address.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote_addr
    }
}

impl Connected for TcpStream {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        TcpConnectInfo { local_addr: self.local_addr().ok(), remote_addr: self.peer_addr().ok() }
    }
}

impl Connected for tokio::io::DuplexStream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Information on a connection with TLS, and on the one below.
#[cfg(feature = "tls-connect-info")]
#[derive(Clone, Debug)]
pub struct TlsConnectInfo<T> {
    inner: T,
    certificates: Option<Arc<Vec<CertificateDer<'static>>>>,
}

#[cfg(feature = "tls-connect-info")]
impl<T> TlsConnectInfo<T> {
    /// Adds the certificates of a client to the information on the connection below.
    #[doc(hidden)]
    pub fn new(inner: T, certificates: Option<Arc<Vec<CertificateDer<'static>>>>) -> Self {
        Self { inner, certificates }
    }

    /// Returns the information on the connection below.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the information on the connection below.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Returns the client's certificates, its own first, if it presented some.
    pub fn peer_certs(&self) -> Option<Arc<Vec<CertificateDer<'static>>>> {
        self.certificates.clone()
    }
}

#[cfg(feature = "tls-connect-info")]
impl<T: Connected> Connected for tokio_rustls::server::TlsStream<T> {
    type ConnectInfo = TlsConnectInfo<T::ConnectInfo>;

    fn connect_info(&self) -> Self::ConnectInfo {
        let (inner, session) = self.get_ref();
        let certificates = session.peer_certificates().map(|certificates| Arc::new(certificates.to_vec()));
        TlsConnectInfo::new(inner.connect_info(), certificates)
    }
}

impl<T> crate::Request<T> {
    /// Returns the server's address of the call's TCP connection. A client's request has none.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        tcp(self.extensions())?.local_addr
    }

    /// Returns the client's address of the call's TCP connection. A client's request has none.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        tcp(self.extensions())?.remote_addr
    }

    /// Returns the certificates that the client presented over TCP, its own first.
    #[cfg(feature = "tls-connect-info")]
    pub fn peer_certs(&self) -> Option<Arc<Vec<CertificateDer<'static>>>> {
        self.extensions().get::<TlsConnectInfo<TcpConnectInfo>>()?.peer_certs()
    }
}

fn tcp(extensions: &http::Extensions) -> Option<&TcpConnectInfo> {
    let plain = extensions.get::<TcpConnectInfo>();
    #[cfg(feature = "tls-connect-info")]
    let plain = plain.or_else(|| Some(extensions.get::<TlsConnectInfo<TcpConnectInfo>>()?.get_ref()));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;

    #[tokio::test]
    async fn request_has_the_addresses_of_its_connection() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let info = accepted.connect_info();
        assert_eq!((info.local_addr(), info.remote_addr()), (Some(address), client.local_addr().ok()));

        let mut request = Request::new(());
        assert_eq!((request.local_addr(), request.remote_addr()), (None, None));
        #[cfg(feature = "tls-connect-info")]
        {
            let certificates = Arc::new(vec![CertificateDer::from(vec![1])]);
            let mut tls = TlsConnectInfo::new(info.clone(), Some(Arc::clone(&certificates)));
            tls.get_mut().local_addr = None;
            request.extensions_mut().insert(tls);
            assert_eq!((request.local_addr(), request.remote_addr()), (None, info.remote_addr()));
            assert_eq!(request.peer_certs(), Some(certificates));
        }
        request.extensions_mut().insert(info);
        assert_eq!((request.local_addr(), request.remote_addr()), (Some(address), client.local_addr().ok()));
    }

    #[tokio::test]
    async fn pipes_have_no_information() {
        tokio::io::duplex(1).0.connect_info();
    }
}
