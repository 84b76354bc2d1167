//! The command line.

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
    /// Where to listen: IP:PORT, or unix:PATH; may be given more than once
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50051")]
    pub(crate) listen: Vec<ListenAddress>,

    /// The folder of the database, the files and the certificate; it is made if need be
    #[arg(long, value_name = "DIR", default_value = "chat-data")]
    pub(crate) data: PathBuf,

    /// A name or an IP address for the certificate that is made at the first start, beside localhost; may be given
    /// more than once
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cert", "plaintext"])]
    pub(crate) host: Vec<String>,

    /// A certificate, with its chain, in place of the one that is made (PEM)
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "plaintext")]
    cert: Option<PathBuf>,

    /// The private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Files that each user may have here, in MiB; beyond it, none is taken from him
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    user_files: u32,

    /// Files that all users together may have here, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 * 1024)]
    all_files: u32,

    /// No TLS: passwords and messages can be read on the way
    #[arg(long)]
    pub(crate) plaintext: bool,
}

impl Options {
    pub(crate) fn quota(&self) -> Quota {
        let bytes = |mib: u32| u64::from(mib) * 1024 * 1024;
        Quota { of_user: bytes(self.user_files), of_all: bytes(self.all_files) }
    }

    /// What the server shows of itself.
    pub(crate) fn identity(&self) -> Result<Identity, Box<dyn Error>> {
        match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Ok(Identity::from_files(certificate, key)),
            _ => certificate::identity(&self.data, &self.host),
        }
    }
}
