//! What the command is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_lab::size::ByteSize;

use crate::compression::Compression;
use crate::descriptor_files::DescriptorFiles;
use crate::message_format::MessageFormat;
use crate::metadata::{self, Entry};
use crate::seconds;
use crate::tls::ClientTlsArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg call localhost:50051 list
  thalweg call localhost:50051 list helloworld.Greeter
  thalweg call localhost:50051 describe helloworld.HelloRequest
  thalweg call localhost:50051 helloworld.Greeter/SayHello -d '{\"name\": \"Ada\"}'
  thalweg call localhost:50051 shop.Orders/Get -d @order.json \\
      -m 'authorization: Bearer x' --timeout 2s -v
JSON from stdin, a message as each one ends:
  thalweg call localhost:50051 chat.Chat/Talk -d @-
No server is asked:
  thalweg call list --proto shop.proto

Exit codes: 0 for OK, 64 and the status code for any other status (77: INTERNAL), 1 for what failed before that, 2 for
arguments that make no call, 130 when interrupted.";

/// Call any method of a server with JSON, or say what the server has
///
/// Descriptors come from the server's reflection, unless --proto or --protoset gives them.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// [TARGET] and what is wanted of it: list [SERVICE], describe [SYMBOL], or package.Service/Method. Without a
    /// target the descriptors of --proto or --protoset are listed and described
    #[arg(value_name = "TARGET list|describe|METHOD", required = true, num_args = 1..=3)]
    pub(super) words: Vec<String>,

    /// The request: JSON (or what --input says), @FILE, or @- for stdin. Methods that take a stream take as
    /// many messages as there are, one behind the other [default: one empty message; of a stream none]
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(super) data: Option<String>,

    /// Metadata of the call, `name: value`; of names that end in -bin the value is Base64. May be given more than once
    #[arg(short = 'm', short_alias = 'H', long, value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(super) metadata: Vec<Entry>,

    /// Metadata of the calls of reflection, too or in place of the call's
    #[arg(long, alias = "reflect-header", value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(super) reflect_metadata: Vec<Entry>,

    /// Put the environment's variables where metadata has ${NAME}: tokens need not stand on a command line
    #[arg(long, visible_alias = "expand-headers")]
    pub(super) expand_metadata: bool,

    /// The call's deadline, which the server is told [default: none]
    #[arg(long, visible_aliases = ["deadline", "max-time"], value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) timeout: Option<Duration>,

    /// How long connecting, and each answer of reflection, may take
    #[arg(
        help_heading = "Connection",
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = seconds::parse
    )]
    pub(super) connect_timeout: Duration,

    /// Ask the server whether it is still there when nothing has come for so long, at least 10s; it is not if nothing
    /// comes for as long again, at most 20s [default: never]
    #[arg(
        help_heading = "Connection",
        long,
        value_name = "DURATION",
        value_parser = seconds::parse
    )]
    pub(super) keepalive_time: Option<Duration>,

    /// The :authority of calls, in place of the target's
    #[arg(help_heading = "Connection", long, value_name = "NAME")]
    pub(super) authority: Option<String>,

    /// Put before Thalweg's own in the user-agent
    #[arg(help_heading = "Connection", long, value_name = "TEXT")]
    pub(super) user_agent: Option<String>,

    /// Compress requests
    #[arg(help_heading = "Connection", long, value_enum, value_name = "ENCODING")]
    pub(super) compress: Option<Compression>,

    /// Largest message accepted
    #[arg(
        help_heading = "Connection",
        long,
        visible_alias = "max-msg-sz",
        value_name = "SIZE",
        default_value = "64MiB"
    )]
    pub(super) max_message_size: ByteSize,

    /// What requests are written in: json; text, Protobuf's text format, with the byte 0x1E between two messages of a
    /// stream; or binary, the bytes of one message, or of a stream each with its length before it as a varint
    #[arg(
        help_heading = "Formats",
        short = 'I',
        long = "input",
        value_enum,
        value_name = "FORMAT",
        default_value_t = MessageFormat::Json
    )]
    pub(super) input: MessageFormat,

    /// What responses are printed as: as --input has it
    #[arg(
        help_heading = "Formats",
        short = 'O',
        long = "format",
        value_enum,
        value_name = "FORMAT",
        default_value_t = MessageFormat::Json
    )]
    pub(super) output: MessageFormat,

    /// Print fields that are not set, too
    #[arg(help_heading = "Formats", long)]
    pub(super) emit_defaults: bool,

    /// Print names of fields as the schema has them, such as user_id
    #[arg(help_heading = "Formats", long)]
    pub(super) schema_names: bool,

    /// Read over members of the request that its type does not have
    #[arg(help_heading = "Formats", long)]
    pub(super) allow_unknown_fields: bool,

    /// One line for each response, also for a method that has one [default: for streams]
    #[arg(help_heading = "Formats", long, conflicts_with = "pretty")]
    pub(super) compact: bool,

    /// Several lines for each response, also for streams
    #[arg(help_heading = "Formats", long)]
    pub(super) pretty: bool,

    /// Print a status other than OK on stderr as the JSON of a google.rpc.Status
    #[arg(help_heading = "Formats", long)]
    pub(super) format_error: bool,

    /// Say on stderr what is called, the metadata of both ways, and how long each phase took
    #[arg(short = 'v', long, overrides_with = "verbose")]
    pub(super) verbose: bool,

    /// Keep the exchange in this file, with what `thalweg inspect` needs to take it apart
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,

    /// With describe of a message: print a request with all its fields
    #[arg(long, visible_alias = "msg-template")]
    pub(super) template: bool,

    // Options under a heading of their own follow those without one.
    #[command(flatten)]
    pub(super) files: DescriptorFiles,

    #[command(flatten)]
    pub(super) tls: ClientTlsArgs,
}
