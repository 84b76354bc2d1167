//! Information on a connection over a UNIX domain socket.

use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::net::unix::{SocketAddr, UCred};

use super::connected::Connected;

/// The peer of a connection over a UNIX domain socket.
#[derive(Clone, Debug)]
pub struct UdsConnectInfo {
    /// The client's address; clients seldom have a path.
    pub peer_addr: Option<Arc<SocketAddr>>,
    /// The client's process.
    pub peer_cred: Option<UCred>,
}

impl Connected for UnixStream {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        UdsConnectInfo { peer_addr: self.peer_addr().ok().map(Arc::new), peer_cred: self.peer_cred().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn peer_is_known() {
        let (one, _other) = UnixStream::pair().unwrap();
        let info = one.connect_info();
        assert_eq!(info.peer_cred.unwrap().pid(), i32::try_from(std::process::id()).ok());
        assert!(info.peer_addr.unwrap().is_unnamed());
    }
}
