//! A call, from its request to its status.

use std::fmt::Write;
use std::future::pending;
use std::pin::pin;
use std::process::ExitCode;

use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Code, Method, Raw, Request, Status, Streaming};
use thalweg_dynamic::{Called, Catalogue, MethodName, look_up, metadata};
use thalweg_inspect::exchange::{Exchange, SCHEMA};
use thalweg_inspect::transcript;
use thalweg_measure::code::code_name;
use thalweg_protobuf::printable;

use super::arguments::CallArgs;
use super::catalogue;
use super::connecting::Connecting;
use super::printer::Printer;
use super::requests::{Fault, RequestSource};
use super::saved::{self, Sent};
use super::timeline::Timeline;
use crate::failure::Failure;
use crate::format::json;
use crate::output::OutputFile;
use crate::status;
use crate::terminal::{self, Syntax};

/// How a call went.
struct Outcome {
    head: MetadataMap,
    trailers: MetadataMap,
    status: Status,
}

/// Connects, calls the method, and prints what comes back as it comes.
pub(super) async fn run(
    files: Option<Catalogue>,
    connecting: Connecting,
    name: &MethodName,
    args: &CallArgs,
) -> Result<ExitCode, Failure> {
    let started = saved::now();
    let (target, timeline) = (connecting.target.clone(), connecting.timeline.clone());
    // With files, what is wrong with the request is said before anything is connected to.
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
    let (sent, received) = (Sent::new(args.save.is_some()), Sent::new(args.save.is_some()));
    let source = RequestSource::new(&called, args)?;
    let mut said = metadata::map(&args.metadata);
    if args.verbose {
        say_request(&called, &target, &said);
    }
    let (mut requests, faults) = source.begin(sent.clone(), timeline.clone())?;
    let mut fault = pin!(async {
        match faults.await {
            Ok(fault) => fault,
            Err(_) => pending().await,
        }
    });
    if !called.is_client_streaming {
        // A server may answer to the headers alone, before a wrong request is found.
        tokio::select! {
            biased;
            Fault { why, .. } = &mut fault => return Err(why),
            () = requests.first_is_read() => {}
        }
    }
    let mut request = Request::new(requests);
    std::mem::swap(request.metadata_mut(), &mut said);
    let request_metadata = metadata::pairs(request.metadata());

    let mut printer =
        Printer::new(called.schema.clone(), &called.response_type, called.is_server_streaming, args);
    let exchanged = exchange(&channel, &called, request, args, &timeline, &received, async |wire: Bytes| {
        printer.print(&wire, &mut catalogue).await
    });
    let outcome = tokio::select! {
        biased;
        Fault { why, .. } = &mut fault => return Err(why),
        outcome = exchanged => outcome?,
    };
    timeline.ended("end", code_name(outcome.status.code() as i32));
    if args.verbose {
        say_outcome(&outcome, &timeline);
    }
    if let Some(path) = &args.save {
        let status = &outcome.status;
        let exchange = Exchange {
            schema: SCHEMA.to_owned(),
            started,
            target,
            method: name.to_string(),
            request_type: called.request_type.clone(),
            response_type: called.response_type.clone(),
            request_metadata,
            requests: sent.saved(),
            response_metadata: metadata::pairs(&outcome.head),
            responses: received.saved(),
            trailers: metadata::pairs(&outcome.trailers),
            status: transcript::Status {
                code: status.code() as i32,
                name: code_name(status.code() as i32).to_owned(),
                message: status.message().to_owned(),
                details: base64(status.details()),
            },
            phases: saved::phases(&timeline),
            descriptor_set: base64(&catalogue.descriptor_set()),
        };
        OutputFile::beside(path)?.write(Syntax::Json, &json(&exchange))?;
    }
    args.files.write(&catalogue)?;
    match outcome.status.code() {
        Code::Ok => Ok(ExitCode::SUCCESS),
        code if args.format_error => {
            let json = status::json(&outcome.status, &mut catalogue).await;
            terminal::say(&Syntax::Json.escaped(&json));
            Ok(ExitCode::from(status::exit_code(code)))
        }
        code => Err(Failure {
            message: status::described(&outcome.status, &mut catalogue).await,
            code: status::exit_code(code),
        }),
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}

/// Makes the call, with `each` response as it comes.
///
/// All four types of call are the same on the wire, but for how many messages go each way.
async fn exchange(
    channel: &Channel,
    called: &Called,
    request: Request<super::requests::Requests>,
    args: &CallArgs,
    timeline: &Timeline,
    received: &Sent,
    mut each: impl AsyncFnMut(Bytes) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let method = Method::from_path(&called.path).map_err(Failure::bad_arguments)?;
    let mut options = CallOptions::default();
    options.timeout = args.timeout;
    options.max_decoding_message_size = args.each.message_max();
    options.send_compressed = args.each.compress;
    if options.send_compressed.is_some() {
        // Who asks for it wants to see it, whatever it gains.
        options.compression_threshold = 0;
    }
    let response = channel.bidi_streaming::<_, Raw>(&method, request, &options).await;
    let (head, mut messages): (MetadataMap, Streaming<Raw>) = match response {
        Ok(response) => {
            let (head, messages, _) = response.into_parts();
            timeline.ended("head", "");
            (head, messages)
        }
        Err(status) => return Ok(failed(MetadataMap::new(), status)),
    };
    loop {
        match messages.message().await {
            Ok(Some(Raw(wire))) => {
                received.push(timeline, &wire);
                if received.count() == 1 {
                    timeline.ended("first message", "");
                }
                each(wire).await?;
            }
            Ok(None) => break,
            Err(status) => return Ok(failed(head, status)),
        }
    }
    timeline.ended("last message", received.described());
    let trailers = match messages.trailers().await {
        Ok(trailers) => trailers.unwrap_or_default(),
        Err(status) => return Ok(failed(head, status)),
    };
    let status = match received.count() {
        1 => Status::ok(""),
        _ if called.is_server_streaming => Status::ok(""),
        // As grpc-go has it of a call that ends with OK and without its response.
        count => Status::internal(format!("the method has one response, and the server sent {count}")),
    };
    Ok(Outcome { head, trailers, status })
}

/// The status of a call that did not end with OK has its trailers.
fn failed(head: MetadataMap, status: Status) -> Outcome {
    Outcome { head, trailers: status.metadata().clone(), status }
}

fn say_request(called: &Called, target: &str, metadata: &MetadataMap) {
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
    for (name, value) in metadata::pairs(&outcome.head) {
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
