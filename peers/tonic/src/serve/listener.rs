//! Listening sockets.

use std::fs;
use std::io;
use std::os::unix;
use std::path::PathBuf;

use tokio::net::{TcpListener, UnixListener};

use crate::address::Address;

pub enum Listener {
    Tcp {
        listener: TcpListener,
        /// With the bound port.
        address: String,
    },
    Unix {
        listener: UnixListener,
        address: Address,
        file: Option<SocketFile>,
    },
}

/// The file of a Unix socket; removed on drop.
pub struct SocketFile(PathBuf);

impl Listener {
    pub async fn bind(address: &Address) -> io::Result<Self> {
        let Some(unix_address) = address.unix() else {
            let listener = TcpListener::bind(address.to_string()).await?;
            let address = listener.local_addr()?.to_string();
            return Ok(Self::Tcp { listener, address });
        };
        let unix_address = unix_address?;
        let listener = unix::net::UnixListener::bind_addr(&unix_address)?;
        let file = unix_address.as_pathname().map(|path| SocketFile(path.to_owned()));
        listener.set_nonblocking(true)?;
        Ok(Self::Unix { listener: UnixListener::from_std(listener)?, address: address.clone(), file })
    }

    pub fn address(&self) -> String {
        match self {
            Self::Tcp { address, .. } => address.clone(),
            Self::Unix { address, .. } => address.to_string(),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}
