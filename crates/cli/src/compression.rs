//! How requests are compressed, on the command line.

use clap::ValueEnum;
use thalweg::Encoding;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Compression {
    Gzip,
    Deflate,
}

impl From<Compression> for Encoding {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::Gzip => Self::Gzip,
            Compression::Deflate => Self::Deflate,
        }
    }
}
