//! Per-call arguments of `call` and `load`.

use clap::Args;
use thalweg::Encoding;
use thalweg_dynamic::metadata::{self, Entry};
use thalweg_measure::size::ByteSize;

use crate::choice::choice_of;

/// Compressions that every gRPC server supports.
const ENCODINGS: [Encoding; 2] = [Encoding::Gzip, Encoding::Deflate];

#[derive(Clone, Debug, Args)]
pub(crate) struct EachCallArgs {
    /// Value of :authority, instead of the target
    #[arg(help_heading = "Connection", long, value_name = "NAME")]
    pub(crate) authority: Option<String>,

    /// Compress requests
    #[arg(help_heading = "Connection", long, value_name = "ENCODING", value_parser = choice_of(ENCODINGS))]
    pub(crate) compress: Option<Encoding>,

    /// Largest message to accept
    #[arg(
        help_heading = "Connection",
        long,
        visible_alias = "max-msg-sz",
        value_name = "SIZE",
        default_value = "64MiB"
    )]
    max_message_size: ByteSize,
}

/// Metadata of calls and of reflection.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetadataArgs {
    /// Metadata of each call; values of `-bin` keys in Base64; repeatable
    #[arg(short = 'm', short_alias = 'H', long, value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(crate) metadata: Vec<Entry>,

    /// Metadata of reflection calls, instead of --metadata
    #[arg(long, alias = "reflect-header", value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(crate) reflect_metadata: Vec<Entry>,
}

impl MetadataArgs {
    /// Returns the metadata of reflection calls.
    pub(crate) fn of_reflection(&self) -> &[Entry] {
        if self.reflect_metadata.is_empty() { &self.metadata } else { &self.reflect_metadata }
    }
}

impl EachCallArgs {
    /// Returns the maximum size of a received message in bytes.
    pub(crate) fn message_max(&self) -> usize {
        usize::try_from(self.max_message_size.0).unwrap_or(usize::MAX)
    }
}
