//! The command line of loads on gRPC's BenchmarkService, and on `thalweg.lab.v1.Echo`.

use std::path::PathBuf;

use clap::Args;
use thalweg_lab::echo::{EchoWork, Looks, OwnEcho, Protocol, Shape};
use thalweg_lab::record::{BareWire, Handing};
use thalweg_lab::size::ByteSize;

use crate::failure::Failure;
use crate::own::echoed;
use crate::request::{self, RequestBytes};

/// What is said of a load without a method.
#[derive(Debug, Args)]
#[command(next_help_heading = "grpc.testing.BenchmarkService, without a method")]
pub(crate) struct BenchmarkArgs {
    /// Bytes of payload in a message, such as 0, 64KiB or 1.5MB
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub(super) size: ByteSize,

    /// Drive by the leanest client there is, one thread over epoll that sends prepared bytes: grpc, unary calls; echo,
    /// the messages of `thalweg serve --bare-echo`
    #[arg(long, value_name = "WIRE", conflicts_with_all = ["lanes", "echo", "total", "threads", "cacert",
          "keepalive_time"])]
    pub(super) bare: Option<BareWire>,

    /// With --bare: so many connections have calls, and the others are idle [default: all]
    #[arg(long, value_name = "N", requires = "bare")]
    pub(super) active: Option<u32>,

    /// How messages of streams are handed over: in-place, read to one place and sent from another; or owned, each made
    /// anew
    #[arg(long, value_name = "NAME", default_value = "in-place")]
    pub(super) variant: Handing,

    /// For the lab: this unary method by its path alone, with a request in hex
    #[arg(long, value_name = "SERVICE/METHOD", hide = true, conflicts_with = "echo")]
    pub(super) method: Option<String>,

    /// The request message of that method: its bytes in hex, or @FILE
    #[arg(long, value_name = "HEX", requires = "method", hide = true, value_parser = request::parse)]
    pub(super) hex: Option<RequestBytes>,

    #[command(flatten)]
    pub(super) echo: EchoArgs,
}

/// What is called in the study of gRPC against a JSON API, and how.
#[derive(Debug, Args)]
pub(crate) struct EchoArgs {
    /// Call thalweg.lab.v1.Echo in place of BenchmarkService: strings:COUNTxLETTERS, person, a message of the codec
    /// study, such as order, or own
    #[arg(long, value_name = "SHAPE", conflicts_with = "cacert")]
    pub(super) echo: Option<Shape>,

    /// With --echo own: the file that has the type of the messages
    #[arg(long, value_name = "FILE", requires_all = ["echo", "echo_type", "echo_messages"])]
    echo_proto: Option<PathBuf>,

    /// That type, such as shop.Order
    #[arg(long, value_name = "NAME", requires = "echo_proto")]
    echo_type: Option<String>,

    /// The messages: JSON one after the other (.json, .jsonl), or binary with each one's length before it
    #[arg(long, value_name = "FILE", requires = "echo_proto")]
    echo_messages: Option<PathBuf>,

    /// How it is called: grpc, or grpc-web, connect, json or msgpack over a version of HTTP, such as json-h2
    #[arg(long, value_name = "NAME", default_value = "grpc", requires = "echo")]
    pub(super) protocol: Protocol,

    /// Ask the server for the times of each call, and divide it into its stages
    #[arg(long, requires = "echo")]
    pub(super) times: bool,

    /// Encode the request once, and look at the length of answers only, so that the client costs little
    #[arg(long, requires = "echo", conflicts_with = "times")]
    pub(super) prepared: bool,

    /// Compress messages by gzip both ways
    #[arg(long, requires = "echo")]
    pub(super) gzip: bool,
}

impl EchoArgs {
    pub(super) fn own(&self) -> Result<Option<OwnEcho>, Failure> {
        match (&self.echo_proto, &self.echo_type, &self.echo_messages) {
            (Some(proto), Some(name), Some(messages)) => Ok(Some(echoed(proto, name, messages)?.0)),
            _ => Ok(None),
        }
    }

    pub(super) fn work(&self) -> Option<EchoWork> {
        let looks = match (self.times, self.prepared) {
            (true, _) => Looks::Times,
            (_, true) => Looks::Bytes,
            _ => Looks::Objects,
        };
        self.echo.map(|shape| EchoWork { shape, protocol: self.protocol, looks, gzip: self.gzip })
    }
}
