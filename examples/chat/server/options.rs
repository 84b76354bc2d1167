//! Command-line options.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use thalweg::ListenAddress;
use thalweg::tls::Identity;

use crate::certificate;
use crate::uploads::Quota;

/// A chat server: rooms, messages and files, kept in one folder.
#[derive(Debug, Parser)]
#[command(name = "chat-server")]
pub(crate) struct Options {
    /// Address to listen on: IP:PORT or unix:PATH; may be repeated
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50051")]
    pub(crate) listen: Vec<ListenAddress>,

    /// Folder of the database, the files and the certificate; created if missing
    #[arg(long, value_name = "DIR", default_value = "chat-data")]
    pub(crate) data: PathBuf,

    /// Name or IP address for the certificate that is created at the first start, besides localhost; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cert", "plaintext"])]
    pub(crate) host: Vec<String>,

    /// Certificate with its chain (PEM), instead of a created one
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "plaintext")]
    cert: Option<PathBuf>,

    /// Private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Storage for the files of one user, in MiB; further files are rejected
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    user_files: u32,

    /// Storage for the files of all users, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 * 1024)]
    all_files: u32,

    /// Serve without TLS: passwords and messages are readable on the network
    #[arg(long)]
    pub(crate) plaintext: bool,
}

impl Options {
    pub(crate) fn quota(&self) -> Quota {
        let bytes = |mib: u32| u64::from(mib) * 1024 * 1024;
        Quota { per_user: bytes(self.user_files), total: bytes(self.all_files) }
    }

    /// Returns the server's certificate and key.
    pub(crate) fn identity(&self) -> Result<Identity, Box<dyn Error>> {
        match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Ok(Identity::from_files(certificate, key)),
            _ => certificate::identity(&self.data, &self.host),
        }
    }
}
