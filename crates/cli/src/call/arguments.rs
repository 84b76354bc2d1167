//! Arguments of `thalweg call`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_dynamic::texts::MessageFormat;

use crate::balancing::BalancingArgs;
use crate::call_arguments::{EachCallArgs, MetadataArgs};
use crate::choice::choice;
use crate::descriptor_files::DescriptorFiles;
use crate::seconds;
use crate::tls::ClientTlsArgs;

/// Message formats.
const FORMATS: [(&str, &str); 3] =
    [("json", "ProtoJSON"), ("text", "Protobuf text format"), ("binary", "Wire format")];

const EXAMPLES: &str = "\
Examples:
  thalweg call localhost:50051 list
  thalweg call localhost:50051 describe helloworld.HelloRequest
  thalweg call localhost:50051 helloworld.Greeter/SayHello -d '{\"name\": \"Ada\"}'
  thalweg call localhost:50051 shop.Orders/Get -d @order.json --proto shop.proto
  thalweg call localhost:50051 chat.Chat/Talk -d @-
  thalweg call list --proto shop.proto

Exit codes:
  0    OK
  1    the call could not be made
  2    invalid arguments
  64+  64 plus the gRPC status code (77: INTERNAL)
  130  interrupted";

/// Call a gRPC method with JSON, or list and describe services
///
/// Descriptors come from server reflection, --proto or --protoset.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// [TARGET] list [SERVICE] | describe [SYMBOL] | package.Service/Method
    ///
    /// Without a target, list and describe read --proto or --protoset. HOST:PORT,HOST:PORT are several servers.
    #[arg(value_name = "TARGET list|describe|METHOD", required = true, num_args = 1..=3)]
    pub(super) words: Vec<String>,

    /// Request as JSON, @FILE, or @- for stdin [default: empty message; nothing for streams]
    ///
    /// Methods that take a stream get all messages, one after the other.
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(super) data: Option<String>,

    #[command(flatten)]
    pub(super) with: MetadataArgs,

    /// Replace ${NAME} in metadata by environment variables
    ///
    /// Tokens then do not appear on the command line.
    #[arg(long, visible_alias = "expand-headers")]
    pub(super) expand_metadata: bool,

    /// Deadline of the call, sent to the server [default: none]
    #[arg(long, visible_aliases = ["deadline", "max-time"], value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) timeout: Option<Duration>,

    /// Time limit to connect and to read reflection
    #[arg(
        help_heading = "Connection",
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = seconds::parse
    )]
    pub(super) connect_timeout: Duration,

    /// Send a PING after this much silence, at least 10s [default: never]
    ///
    /// The connection is closed if the PING is not answered within the same time, at most 20s.
    #[arg(
        help_heading = "Connection",
        long,
        value_name = "DURATION",
        value_parser = seconds::parse
    )]
    pub(super) keepalive_time: Option<Duration>,

    /// Prefix of the user-agent header
    #[arg(help_heading = "Connection", long, value_name = "TEXT")]
    pub(super) user_agent: Option<String>,

    #[command(flatten)]
    pub(super) each: EachCallArgs,

    #[command(flatten)]
    pub(super) balancing: BalancingArgs,

    /// Format of --data
    ///
    /// text: Protobuf text format, messages separated by byte 0x1E. binary: the bytes of one message, or each message
    /// of a stream after its length as a varint.
    #[arg(
        help_heading = "Formats",
        short = 'I',
        long = "input",
        value_name = "FORMAT",
        default_value = "json",
        value_parser = choice::<MessageFormat, _>(FORMATS)
    )]
    pub(super) input: MessageFormat,

    /// Format of responses
    #[arg(
        help_heading = "Formats",
        short = 'O',
        long = "format",
        value_name = "FORMAT",
        default_value = "json",
        value_parser = choice::<MessageFormat, _>(FORMATS)
    )]
    pub(super) output: MessageFormat,

    /// Print fields with default values too
    #[arg(help_heading = "Formats", long)]
    pub(super) emit_defaults: bool,

    /// Print field names as in the .proto file (user_id, not userId)
    #[arg(help_heading = "Formats", long)]
    pub(super) schema_names: bool,

    /// Ignore unknown JSON fields
    #[arg(help_heading = "Formats", long)]
    pub(super) allow_unknown_fields: bool,

    /// Print each response on one line [default for streams]
    #[arg(help_heading = "Formats", long, conflicts_with = "pretty")]
    pub(super) compact: bool,

    /// Print each response on several lines
    #[arg(help_heading = "Formats", long)]
    pub(super) pretty: bool,

    /// Print errors as JSON of google.rpc.Status on stderr
    #[arg(help_heading = "Formats", long)]
    pub(super) format_error: bool,

    /// Print method, metadata and the time of each phase on stderr
    #[arg(short = 'v', long, overrides_with = "verbose")]
    pub(super) verbose: bool,

    /// Write the exchange to a file for `thalweg inspect`
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,

    /// With describe: print a request with all fields of a message
    #[arg(long, visible_alias = "msg-template")]
    pub(super) template: bool,

    // Options under a heading of their own follow those without one.
    #[command(flatten)]
    pub(super) files: DescriptorFiles,

    #[command(flatten)]
    pub(super) tls: ClientTlsArgs,
}
