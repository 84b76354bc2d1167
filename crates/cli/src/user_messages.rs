//! User-supplied messages on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_lab::process::OwnFiles;
use thalweg_load::echo::OwnEcho;
use thalweg_messages::OwnMessages;

use crate::failure::Failure;

/// Arguments for user-supplied messages.
#[derive(Debug, Args)]
pub(crate) struct UserMessagesArgs {
    /// .proto file of your own message type
    ///
    /// Only codecs that learn types at run time take part.
    #[arg(long, value_name = "FILE", requires_all = ["type_name", "data"], conflicts_with = "from")]
    pub(crate) proto: Option<PathBuf>,

    /// Your message type, such as shop.Order
    #[arg(long = "type", id = "type_name", value_name = "NAME", requires = "proto")]
    pub(crate) type_name: Option<String>,

    /// Your messages as .json, .jsonl or delimited binary
    #[arg(long, value_name = "FILE", requires = "proto")]
    pub(crate) data: Option<PathBuf>,
}

impl UserMessagesArgs {
    /// Returns the files, if they are given.
    pub(crate) fn files(&self) -> Option<OwnFiles> {
        let (proto, type_name, data) = (self.proto.as_ref()?, self.type_name.as_ref()?, self.data.as_ref()?);
        Some(OwnFiles { proto: proto.clone(), type_name: type_name.clone(), data: data.clone() })
    }
}

/// Reads messages to echo. Returns them and their number.
pub(crate) fn read_echo_messages(
    proto: &Path,
    type_name: &str,
    data: &Path,
) -> Result<(OwnEcho, usize), Failure> {
    let own = OwnMessages::read(proto, type_name, data).map_err(Failure::bad_arguments)?;
    let echo =
        OwnEcho::new(&own).map_err(|error| Failure::bad_arguments(format!("{}: {error}", data.display())))?;
    Ok((echo, own.wires.len()))
}
