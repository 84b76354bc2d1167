//! One call, from request to status.

use std::fmt::Write;
use std::fs::File;
use std::io::{Cursor, Read, stdin};
use std::process::ExitCode;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, CallPeer, Code};
use thalweg_dynamic::{
    Catalogue, MethodName, Outcome, Received, RequestSource, ResolvedMethod, details, look_up, metadata,
    status_json,
};
use thalweg_inspect::exchange::{Exchange, SCHEMA};
use thalweg_inspect::transcript::Status;
use thalweg_measure::code::code_name;
use thalweg_protobuf::printable;

use super::arguments::CallArgs;
use super::catalogue;
use super::connecting::Connecting;
use super::printer::Printer;
use super::saved::{self, Messages};
use super::timeline::Timeline;
use crate::failure::Failure;
use crate::format::json;
use crate::output::OutputFile;
use crate::status;
use crate::terminal::{self, Syntax};

/// Connects, calls the method and prints responses as they arrive.
pub(super) async fn run(
    files: Option<Catalogue>,
    connecting: Connecting,
    name: &MethodName,
    args: &CallArgs,
) -> Result<ExitCode, Failure> {
    let started = saved::now();
    let (target, timeline) = (connecting.target.clone(), connecting.timeline.clone());
    // With files, errors in the request are reported before connecting.
    let (channel, mut catalogue, called) = if let Some(mut files) = files {
        let called = look_up(&mut files, name).await?;
        (connecting.connect().await?, files, called)
    } else {
        let channel = connecting.connect().await?;
        let mut server = catalogue::of_server(&channel, args);
        let called = look_up(&mut server, name).await?;
        timeline.ended("reflection", "");
        (channel, server, called)
    };
    let source = RequestSource {
        format: args.input,
        ignore_unknown: args.allow_unknown_fields,
        input: args.data.as_deref().map(input).transpose()?,
    };
    let metadata = metadata::map(&args.with.metadata);
    if args.verbose {
        say_request(&called, &target, &metadata);
    }
    let request_metadata = metadata::pairs(&metadata);
    let (sent, received) = (Messages::new(args.save.is_some()), Messages::new(args.save.is_some()));
    let mut printer = Printer::new(&called, args);
    let (requests, clock) = (sent.clone(), timeline.clone());
    let each_sent = move |wire: Option<&Bytes>| match wire {
        Some(wire) => requests.push(&clock, wire),
        None => clock.ended("send", requests.described()),
    };
    let each_received = async |it: Received| {
        match it {
            Received::Headers => timeline.ended("head", ""),
            Received::Message(wire) => {
                received.push(&timeline, &wire);
                if received.count() == 1 {
                    timeline.ended("first message", "");
                }
                printer.print(&wire, &mut catalogue).await?;
            }
            Received::End => timeline.ended("last message", received.described()),
        }
        Ok::<(), Failure>(())
    };
    let peer = CallPeer::new();
    let options = options(args).peer(&peer);
    let outcome = called.call(&channel, metadata, source, &options, each_sent, each_received).await?;
    timeline.ended("end", code_name(outcome.status.code() as i32));
    if args.verbose {
        say_outcome(&outcome, &timeline);
    }
    let (has_several_servers, attempts) = (channel.snapshot().endpoints.len() > 1, peer.attempts());
    // With --format-error, stderr is JSON.
    if let Some(server) =
        peer.address().filter(|_| (has_several_servers || attempts > 1) && !args.format_error)
    {
        let attempt = if attempts > 1 { format!(", attempt {attempts}") } else { String::new() };
        terminal::say(&format!("server: {}{attempt}", printable::line(&server)));
    }
    let Outcome { headers, trailers, status } = outcome;
    if let Some(path) = &args.save {
        let exchange = Exchange {
            schema: SCHEMA.to_owned(),
            started,
            target,
            method: name.to_string(),
            request_type: called.request_type.clone(),
            response_type: called.response_type.clone(),
            request_metadata,
            requests: sent.saved(),
            response_metadata: metadata::pairs(&headers),
            responses: received.saved(),
            trailers: metadata::pairs(&trailers),
            status: Status {
                code: status.code() as i32,
                name: code_name(status.code() as i32).to_owned(),
                message: status.message().to_owned(),
                details: BASE64_STANDARD.encode(status.details()),
            },
            phases: saved::phases(&timeline),
            descriptor_set: BASE64_STANDARD.encode(catalogue.descriptor_set()),
        };
        OutputFile::additional(path)?.write(Syntax::Json, &json(&exchange))?;
    }
    args.files.write(&catalogue)?;
    match status.code() {
        Code::Ok => Ok(ExitCode::SUCCESS),
        code if args.format_error => {
            terminal::say(&Syntax::Json.escaped(&status_json(&status, &mut catalogue).await));
            Ok(ExitCode::from(status::exit_code(code)))
        }
        code => Err(Failure {
            message: status::described(&status, details(&status, &mut catalogue).await),
            code: status::exit_code(code),
        }),
    }
}

/// Opens the input that `--data` names.
fn input(data: &str) -> Result<Box<dyn Read + Send>, Failure> {
    Ok(match (data, data.strip_prefix('@')) {
        ("@" | "@-", _) => Box::new(stdin()),
        (text, None) => Box::new(Cursor::new(text.to_owned())),
        (_, Some(path)) => Box::new(
            File::open(path).map_err(|error| Failure::failed(format!("failed to read {path}: {error}")))?,
        ),
    })
}

fn options(args: &CallArgs) -> CallOptions {
    let mut options = CallOptions::default();
    options.timeout = args.timeout;
    options.max_decoding_message_size = args.each.message_max();
    options.send_compressed = args.each.compress;
    if options.send_compressed.is_some() {
        // A user who asks for compression expects it for small messages too.
        options.compression_threshold = 0;
    }
    options
}

fn say_request(called: &ResolvedMethod, target: &str, metadata: &MetadataMap) {
    let stream = |is_stream: bool| if is_stream { "stream " } else { "" };
    terminal::say(&format!(
        "> {}({}{}) returns ({}{}) at {target}",
        called.path.trim_start_matches('/'),
        stream(called.is_client_streaming),
        called.request_type,
        stream(called.is_server_streaming),
        called.response_type,
    ));
    for (name, value) in metadata::pairs(metadata) {
        terminal::say(&format!("> {name}: {}", printable::line(&value)));
    }
}

fn say_outcome(outcome: &Outcome, timeline: &Timeline) {
    let mut text = String::new();
    for (name, value) in metadata::pairs(&outcome.headers) {
        let _ = writeln!(text, "< {name}: {}", printable::line(&value));
    }
    for (name, value) in metadata::pairs(&outcome.trailers) {
        let _ = writeln!(text, "< trailer {name}: {}", printable::line(&value));
    }
    for line in timeline.lines() {
        let _ = writeln!(text, "* {line}");
    }
    terminal::say(text.trim_end());
}
