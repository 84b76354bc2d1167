//! `thalweg lab`.

mod calls;
mod channels;
mod codec;
mod common;
mod connections;
mod json;
mod progress;
mod published;
mod sizes;
mod stacks;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use channels::ChannelsArgs;
use codec::CodecArgs;
use connections::ConnectionsArgs;
use json::JsonArgs;
use published::PublishedArgs;
use sizes::SizesArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg lab --quick
  thalweg lab sizes --against tonic,grpc-cpp,socket --quick
  thalweg lab channels --target 127.0.0.1:50051 --call shop.Orders/Get
  thalweg lab connections --quick
  thalweg lab json --against axum,spring --quick
  thalweg lab json --proto shop.proto --type shop.Order --data orders.jsonl
  thalweg lab codec --proto shop.proto --type shop.Order --data orders.jsonl
  thalweg lab published --quick";

/// Measure Thalweg and other gRPC stacks on this machine, and write a report
///
/// The default study is `sizes`. Servers are started as needed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    study: Option<StudyCommand>,

    #[command(flatten)]
    sizes: SizesArgs,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
    Sizes(Box<SizesArgs>),
    Channels(Box<ChannelsArgs>),
    Connections(Box<ConnectionsArgs>),
    Codec(Box<CodecArgs>),
    Json(Box<JsonArgs>),
    Published(Box<PublishedArgs>),
}

pub(crate) fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.study {
        None => calls::run(&args.sizes),
        Some(StudyCommand::Sizes(sizes)) => calls::run(&*sizes),
        Some(StudyCommand::Channels(channels)) => calls::run(&*channels),
        Some(StudyCommand::Connections(connections)) => calls::run(&*connections),
        Some(StudyCommand::Codec(args)) => codec::run(&args),
        Some(StudyCommand::Json(args)) => json::run(&args),
        Some(StudyCommand::Published(args)) => published::run(&args),
    }
}
