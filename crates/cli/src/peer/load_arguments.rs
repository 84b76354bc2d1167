//! The command line of `thalweg peer load`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use thalweg_load::echo::{ClientWork, EchoWork, OwnEcho, Protocol, Shape};
use thalweg_load::record::{BareWire, CallType, Variant};
use thalweg_measure::size::ByteSize;

use crate::failure::Failure;
use crate::format::Format;
use crate::load_arguments::CommonArgs;
use crate::request::{self, RequestBytes};
use crate::runtime::RuntimeArgs;
use crate::tls::ClientTlsArgs;
use crate::user_messages::read_echo_messages;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["duration", "total"]))]
pub(super) struct PeerLoadArgs {
    /// unary, client-stream, server-stream, bidi-stream or ping-pong
    #[arg(long, value_name = "TYPE", default_value = "unary")]
    pub(super) call: CallType,

    #[command(flatten)]
    pub(super) common: CommonArgs,

    /// Output format; JSON has the schema thalweg.load/3
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Write the result to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) runtime: RuntimeArgs,

    #[command(flatten)]
    pub(super) tls: ClientTlsArgs,

    /// Payload bytes of a message: 0, 64KiB, 1.5MB
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub(super) size: ByteSize,

    /// Use the bare epoll client: grpc or echo
    ///
    /// One thread sends prepared bytes: unary gRPC calls, or the messages of `thalweg serve --bare-echo`.
    #[arg(long, value_name = "WIRE", conflicts_with_all = ["lanes", "echo", "total", "threads", "cacert"])]
    pub(super) bare: Option<BareWire>,

    /// With --bare: connections that carry calls [default: all]
    #[arg(long, value_name = "N", requires = "bare")]
    pub(super) active: Option<u32>,

    /// owned, in-place (streams reuse the buffers of messages) or no-busy-poll
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(super) variant: Variant,

    /// This unary method instead, with a request in hex
    #[arg(long, value_name = "SERVICE/METHOD", conflicts_with = "echo")]
    pub(super) method: Option<String>,

    /// The request message of that method: its bytes in hex, or @FILE
    #[arg(long, value_name = "HEX", requires = "method", value_parser = request::parse)]
    pub(super) hex: Option<RequestBytes>,

    /// Call thalweg.lab.v1.Echo with this payload
    ///
    /// strings:COUNTxLETTERS, person, a message of the codec study such as order, or own.
    #[command(flatten)]
    pub(super) echo: EchoArgs,
}

/// Arguments of calls in the JSON study.
#[derive(Debug, Args)]
pub(crate) struct EchoArgs {
    /// Message to echo through thalweg.lab.v1.Echo: strings:COUNTxLETTERS, person, order (or another of `lab codec`) or
    /// own (--echo-proto)
    #[arg(long, value_name = "SHAPE", conflicts_with = "cacert")]
    pub(super) echo: Option<Shape>,

    /// With --echo own: .proto file of the message type
    #[arg(long, value_name = "FILE", requires_all = ["echo", "echo_type", "echo_messages"])]
    echo_proto: Option<PathBuf>,

    /// With --echo own: message type, such as shop.Order
    #[arg(long, value_name = "NAME", requires = "echo_proto")]
    echo_type: Option<String>,

    /// With --echo own: messages as .json, .jsonl or delimited binary
    #[arg(long, value_name = "FILE", requires = "echo_proto")]
    echo_messages: Option<PathBuf>,

    /// Protocol of --echo, such as grpc, connect-h2 or json-http1
    ///
    /// grpc, or grpc-web, connect, json or msgpack followed by -http1 or -h2.
    #[arg(long, value_name = "NAME", default_value = "grpc", requires = "echo")]
    pub(super) protocol: Protocol,

    /// Ask the server for timings and split calls into stages
    #[arg(long, requires = "echo")]
    pub(super) times: bool,

    /// Encode the request once and skip decoding of responses
    #[arg(long, requires = "echo", conflicts_with = "times")]
    pub(super) prepared: bool,

    /// Compress requests and responses with gzip
    #[arg(long, requires = "echo")]
    pub(super) gzip: bool,
}

impl EchoArgs {
    pub(super) fn own(&self) -> Result<Option<OwnEcho>, Failure> {
        match (&self.echo_proto, &self.echo_type, &self.echo_messages) {
            (Some(proto), Some(name), Some(messages)) => {
                Ok(Some(read_echo_messages(proto, name, messages)?.0))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn work(&self) -> Option<EchoWork> {
        let client_work = match (self.times, self.prepared) {
            (true, _) => ClientWork::Times,
            (_, true) => ClientWork::Bytes,
            _ => ClientWork::Objects,
        };
        self.echo.map(|shape| EchoWork { shape, protocol: self.protocol, client_work, gzip: self.gzip })
    }
}
