//! Client of gRPC's interoperability tests: runs one test case against the interop server of any stack, with the flags
//! of grpc-go's client.
//!
//! ```text
//! cargo run -p thalweg-load --example interop_client -- --server_port 10000 --test_case ping_pong
//! ```
//!
//! Calls are cancelled by dropping them, so they have no status to check. Instead, the cancel cases check that nothing
//! is left in flight, and that the connection serves the next call.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use thalweg::channel::ChannelBuilder;
use thalweg::metadata::{AsciiMetadataValue, BinaryMetadataValue};
use thalweg::tls::{Certificate, ClientTlsConfig};
use thalweg::{Channel, Code, Request, Status, Streaming};
use thalweg_load::services::proto::test_service_client::TestServiceClient;
use thalweg_load::services::proto::unimplemented_service_client::UnimplementedServiceClient;
use thalweg_load::services::proto::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, StreamingInputCallRequest,
    StreamingOutputCallRequest, StreamingOutputCallResponse,
};
use thalweg_load::services::zeros;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const CASES: [&str; 14] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
];
/// Time limit of a test case.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs one of gRPC's interoperability test cases
#[derive(Debug, Parser)]
struct Args {
    #[arg(long = "server_host", default_value = "localhost")]
    host: String,
    #[arg(long = "server_port", default_value_t = 10000)]
    port: u16,
    #[arg(long = "test_case", default_value = "large_unary", value_parser = PossibleValuesParser::new(CASES))]
    case: String,
    /// Connect over TLS.
    #[arg(long = "use_tls")]
    uses_tls: bool,
    /// Name in the server's certificate.
    #[arg(long = "server_host_override")]
    host_override: Option<String>,
    /// CA certificate to trust, in PEM.
    #[arg(long = "ca_file")]
    authority: Option<PathBuf>,
}

impl Args {
    fn channel(&self) -> ChannelBuilder {
        let builder = Channel::builder(format!("{}:{}", self.host, self.port));
        if !self.uses_tls {
            return builder;
        }
        let mut tls = ClientTlsConfig::new();
        if let Some(file) = &self.authority {
            tls = tls.ca_certificate(Certificate::from_file(file));
        }
        if let Some(name) = &self.host_override {
            tls = tls.domain_name(name);
        }
        builder.tls(tls)
    }
}

/// Result of a case; the error says what is wrong.
type Outcome = Result<(), String>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let case = &args.case;
    let outcome = tokio::time::timeout(PATIENCE, run(case, args.channel())).await;
    match outcome.unwrap_or_else(|_| Err(format!("not done within {PATIENCE:?}"))) {
        Ok(()) => {
            println!("{case}: done");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("{case}: {wrong}");
            ExitCode::FAILURE
        }
    }
}

async fn run(case: &str, channel: ChannelBuilder) -> Outcome {
    let channel = channel.connect().await.map_err(|error| error.to_string())?;
    let client = TestServiceClient::new(channel.clone());
    match case {
        "empty_unary" => empty_unary(&client).await,
        "large_unary" => large_unary(&client).await,
        "client_streaming" => client_streaming(&client).await,
        "server_streaming" => server_streaming(&client).await,
        "ping_pong" => ping_pong(&client).await,
        "empty_stream" => empty_stream(&client).await,
        "timeout_on_sleeping_server" => timeout_on_sleeping_server(&client).await,
        "cancel_after_begin" => cancel_after_begin(&channel, &client).await,
        "cancel_after_first_response" => cancel_after_first_response(&channel, &client).await,
        "status_code_and_message" => status_code_and_message(&client, "test status message").await,
        "special_status_message" => special_status_message(&client).await,
        "custom_metadata" => custom_metadata(&client).await,
        "unimplemented_method" => {
            check_refused(client.unimplemented_call(Empty {}).await, Code::Unimplemented)
        }
        "unimplemented_service" => {
            let client = UnimplementedServiceClient::new(channel);
            check_refused(client.unimplemented_call(Empty {}).await, Code::Unimplemented)
        }
        _ => unreachable!("clap lets no other case through"),
    }
}

async fn empty_unary(client: &TestServiceClient) -> Outcome {
    let response = client.empty_call(Empty {}).await.map_err(unexpected)?;
    check_equal("response", response.into_inner(), Empty {})
}

async fn large_unary(client: &TestServiceClient) -> Outcome {
    let request =
        SimpleRequest { response_size: 314_159, payload: Some(payload(271_828)), ..SimpleRequest::default() };
    let response = client.unary_call(request).await.map_err(unexpected)?;
    check_equal("response's payload", response.into_inner().payload, Some(payload(314_159)))
}

async fn client_streaming(client: &TestServiceClient) -> Outcome {
    let requests = [27_182, 8, 1_828, 45_904]
        .map(|size| StreamingInputCallRequest { payload: Some(payload(size)), expect_compressed: None });
    let response = client.streaming_input_call(tokio_stream::iter(requests)).await.map_err(unexpected)?;
    check_equal("sum of sizes", response.into_inner().aggregated_payload_size, 74_922)
}

async fn server_streaming(client: &TestServiceClient) -> Outcome {
    let sizes = [31_415, 9, 2_653, 58_979];
    let request = StreamingOutputCallRequest {
        response_parameters: sizes.map(parameters).to_vec(),
        ..StreamingOutputCallRequest::default()
    };
    let mut responses = client.streaming_output_call(request).await.map_err(unexpected)?.into_inner();
    for size in sizes {
        check_equal("response", next(&mut responses).await?, Some(reply(size)))?;
    }
    check_equal("end of the stream", next(&mut responses).await?, None)
}

async fn ping_pong(client: &TestServiceClient) -> Outcome {
    let exchanges = [(31_415, 27_182), (9, 8), (2_653, 1_828), (58_979, 45_904)];
    let mut requests = exchanges.map(|(response_size, size)| ping(response_size, size)).into_iter();
    let (pings, mut pongs) = duplex(client, requests.next()).await?;
    for (response_size, _) in exchanges {
        check_equal("response", next(&mut pongs).await?, Some(reply(response_size)))?;
        if let Some(request) = requests.next() {
            send(&pings, request).await?;
        }
    }
    drop(pings);
    check_equal("end of the stream", next(&mut pongs).await?, None)
}

async fn empty_stream(client: &TestServiceClient) -> Outcome {
    let requests = tokio_stream::empty::<StreamingOutputCallRequest>();
    let mut responses = client.full_duplex_call(requests).await.map_err(unexpected)?.into_inner();
    check_equal("end of the stream", next(&mut responses).await?, None)
}

async fn timeout_on_sleeping_server(client: &TestServiceClient) -> Outcome {
    let (pings, requests) = mpsc::channel(1);
    send(&pings, StreamingOutputCallRequest { payload: Some(payload(27_182)), ..Default::default() }).await?;
    let mut request = Request::new(ReceiverStream::new(requests));
    request.set_timeout(Duration::from_millis(1));
    let ended = async { client.full_duplex_call(request).await?.into_inner().message().await }.await;
    check_refused(ended, Code::DeadlineExceeded)
}

async fn cancel_after_begin(channel: &Channel, client: &TestServiceClient) -> Outcome {
    let (requests, receiver) = mpsc::channel::<StreamingInputCallRequest>(1);
    let call = client.streaming_input_call(ReceiverStream::new(receiver));
    // The server responds only at the end of the requests, so the timeout hits a call in flight.
    if tokio::time::timeout(Duration::from_millis(100), call).await.is_ok() {
        return Err("the call ended before its requests did".to_owned());
    }
    // The cancelled call drops the reader of its requests.
    tokio::time::timeout(Duration::from_secs(1), requests.closed())
        .await
        .map_err(|_| "the cancelled call still reads its requests")?;
    assert_no_calls_left(channel, client).await
}

async fn cancel_after_first_response(channel: &Channel, client: &TestServiceClient) -> Outcome {
    let (pings, mut pongs) = duplex(client, Some(ping(31_415, 27_182))).await?;
    check_equal("first response", next(&mut pongs).await?, Some(reply(31_415)))?;
    drop(pongs);
    tokio::time::timeout(Duration::from_secs(1), pings.closed())
        .await
        .map_err(|_| "the cancelled call still reads its requests")?;
    assert_no_calls_left(channel, client).await
}

async fn assert_no_calls_left(channel: &Channel, client: &TestServiceClient) -> Outcome {
    empty_unary(client).await?;
    let in_flight: usize = channel.lanes().iter().map(|lane| lane.in_flight).sum();
    check_equal("calls in flight", in_flight, 0)
}

async fn status_code_and_message(client: &TestServiceClient, message: &str) -> Outcome {
    let wanted = EchoStatus { code: Code::Unknown as i32, message: message.to_owned() };
    check_refused_with(unary_status(client, wanted.clone()).await, message)?;
    let request = StreamingOutputCallRequest { response_status: Some(wanted), ..Default::default() };
    // Some servers end the call before response headers, others after.
    let ended =
        async { client.full_duplex_call(tokio_stream::iter([request])).await?.into_inner().message().await };
    check_refused_with(ended.await, message)
}

async fn special_status_message(client: &TestServiceClient) -> Outcome {
    let message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    let wanted = EchoStatus { code: Code::Unknown as i32, message: message.to_owned() };
    check_refused_with(unary_status(client, wanted).await, message)
}

async fn unary_status(client: &TestServiceClient, status: EchoStatus) -> Result<(), Status> {
    let request = SimpleRequest { response_status: Some(status), ..SimpleRequest::default() };
    client.unary_call(request).await.map(|_| ())
}

async fn custom_metadata(client: &TestServiceClient) -> Outcome {
    const INITIAL: (&str, &str) = ("x-grpc-test-echo-initial", "test_initial_metadata_value");
    const TRAILING: (&str, &[u8]) = ("x-grpc-test-echo-trailing-bin", b"\x0a\x0b\x0a\x0b\x0a\x0b");
    let metadata = |request: &mut thalweg::metadata::MetadataMap| {
        request.insert(INITIAL.0, AsciiMetadataValue::from_static(INITIAL.1));
        request.insert_bin(TRAILING.0, BinaryMetadataValue::from_bytes(TRAILING.1));
    };

    let mut request = Request::new(SimpleRequest {
        response_size: 1,
        payload: Some(payload(1)),
        ..SimpleRequest::default()
    });
    metadata(request.metadata_mut());
    let response = client.unary_call(request).await.map_err(unexpected)?;
    // Trailing metadata of a unary call is merged into the initial metadata.
    let echoed = response.metadata().get(INITIAL.0).and_then(|value| value.to_str().ok());
    check_equal("unary initial metadata", echoed, Some(INITIAL.1))?;
    let echoed = response.metadata().get_bin(TRAILING.0).and_then(|value| value.to_bytes().ok());
    check_equal("unary trailing metadata", echoed.as_deref(), Some(TRAILING.1))?;

    let (pings, requests) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::new(requests));
    metadata(request.metadata_mut());
    send(&pings, ping(1, 1)).await?;
    let response = client.full_duplex_call(request).await.map_err(unexpected)?;
    let echoed = response.metadata().get(INITIAL.0).and_then(|value| value.to_str().ok());
    check_equal("stream's initial metadata", echoed, Some(INITIAL.1))?;
    let mut responses = response.into_inner();
    check_equal("response", next(&mut responses).await?, Some(reply(1)))?;
    drop(pings);
    check_equal("end of the stream", next(&mut responses).await?, None)?;
    let trailers = responses.trailers().await.map_err(unexpected)?.unwrap_or_default();
    let echoed = trailers.get_bin(TRAILING.0).and_then(|value| value.to_bytes().ok());
    check_equal("stream's trailing metadata", echoed.as_deref(), Some(TRAILING.1))
}

type Pings = mpsc::Sender<StreamingOutputCallRequest>;
type Pongs = Streaming<StreamingOutputCallResponse>;

/// Starts a FullDuplexCall and returns its two ends. The first request is queued before the call: a server may send its
/// headers only with the first response. Until then there is no receiving end.
async fn duplex(
    client: &TestServiceClient,
    first: Option<StreamingOutputCallRequest>,
) -> Result<(Pings, Pongs), String> {
    let (pings, requests) = mpsc::channel(1);
    if let Some(first) = first {
        send(&pings, first).await?;
    }
    let response = client.full_duplex_call(ReceiverStream::new(requests)).await.map_err(unexpected)?;
    Ok((pings, response.into_inner()))
}

async fn send(pings: &Pings, ping: StreamingOutputCallRequest) -> Outcome {
    pings.send(ping).await.map_err(|_| "the call ended before its requests did".to_owned())
}

async fn next(responses: &mut Pongs) -> Result<Option<StreamingOutputCallResponse>, String> {
    responses.message().await.map_err(unexpected)
}

fn ping(response_size: i32, size: usize) -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        response_parameters: vec![parameters(response_size)],
        payload: Some(payload(size)),
        ..StreamingOutputCallRequest::default()
    }
}

fn parameters(size: i32) -> ResponseParameters {
    ResponseParameters { size, ..ResponseParameters::default() }
}

fn reply(size: i32) -> StreamingOutputCallResponse {
    StreamingOutputCallResponse {
        payload: Some(payload(usize::try_from(size).expect("sizes here are positive"))),
    }
}

fn payload(size: usize) -> Payload {
    Payload { r#type: 0, body: zeros(size) }
}

fn check_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    let shown = |value: T| format!("{value:?}").chars().take(200).collect::<String>();
    Err(format!("{what}: found {}, expected {}", shown(found), shown(expected)))
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err passes on")]
fn unexpected(status: Status) -> String {
    format!("the call failed: {status}")
}

fn check_refused<T>(ended: Result<T, Status>, expected: Code) -> Outcome {
    match ended {
        Err(status) => check_equal("status", status.code(), expected),
        Ok(_) => Err(format!("the call succeeded, expected {expected:?}")),
    }
}

fn check_refused_with<T>(ended: Result<T, Status>, message: &str) -> Outcome {
    match ended {
        Err(status) => check_equal("status", (status.code(), status.message()), (Code::Unknown, message)),
        Ok(_) => Err("the call succeeded, expected UNKNOWN".to_owned()),
    }
}
