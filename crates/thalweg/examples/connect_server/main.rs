//! Server for Connect's conformance suite: its `ConformanceService` by gRPC, gRPC-Web and Connect on one port.
//!
//! ```text
//! connectconformance --conf FILE --mode server -- connect_server FOLDER [ENCODING]
//! ```
//!
//! `FOLDER` is the suite's folder `proto`; the server reads descriptors from it. Responses are compressed with
//! `ENCODING`, gzip by default, for clients that accept it. The server reads its settings from standard input and
//! writes its address to standard output.

mod messages;

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message as _;
use thalweg::metadata::MetadataMap;
use thalweg::server::{Methods, Service, Trailers};
use thalweg::tls::{Certificate, Identity, ServerTlsConfig};
use thalweg::web::Web;
use thalweg::{
    Code, Deadline, Encoding, ListenAddress, Request, Response, Server, ServiceOptions, Status, Stream,
    Streaming,
};

use messages as pb;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("the folder of the suite's .proto files is missing")?;
    let descriptors = descriptors(Path::new(&folder))?;
    let encoding = match std::env::args().nth(2) {
        Some(name) => {
            let named = Encoding::ALL.iter().find(|encoding| encoding.name() == name);
            *named.ok_or_else(|| format!("unknown encoding {name}"))?
        }
        None => Encoding::Gzip,
    };
    let setup = pb::ServerCompatRequest::decode(&read_framed()?[..])?;

    let mut options = ServiceOptions::default();
    options.send_compressed = Some(encoding);
    options.compression_threshold = 0;
    if setup.message_receive_limit > 0 {
        options.max_decoding_message_size = setup.message_receive_limit as usize;
    }
    let web = Web::new().descriptors(descriptors);
    let mut server = Server::builder().add_service(Conformance(options)).web(web);
    let mut ready = pb::ServerCompatResponse { host: "127.0.0.1".to_owned(), ..Default::default() };
    if setup.use_tls {
        let creds = setup.server_creds.ok_or("the suite has not sent a certificate")?;
        let mut tls = ServerTlsConfig::new().identity(Identity::from_pem(&creds.cert, &creds.key));
        if !setup.client_tls_cert.is_empty() {
            tls = tls.client_ca_root(Certificate::from_pem(&setup.client_tls_cert));
        }
        server = server.tls(tls);
        ready.pem_cert = creds.cert;
    }
    let bound = server.bind("127.0.0.1:0".parse::<SocketAddr>()?).await?;
    let [ListenAddress::Tcp(address)] = bound.local_addresses() else {
        return Err("the server has no port".into());
    };
    ready.port = address.parse::<SocketAddr>()?.port().into();
    write_framed(&ready.encode_to_vec())?;
    Ok(bound.serve().await?)
}

/// Compiles the descriptors of the service and its dependencies.
fn descriptors(folder: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = folder.to_owned();
    let read = move |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    Ok(thalweg_protobuf::sources::compile(&["connectrpc/conformance/v1/service.proto"], read)?)
}

fn read_framed() -> std::io::Result<Vec<u8>> {
    let mut input = std::io::stdin().lock();
    let mut len = [0; 4];
    input.read_exact(&mut len)?;
    let mut message = vec![0; u32::from_be_bytes(len) as usize];
    input.read_exact(&mut message)?;
    Ok(message)
}

fn write_framed(message: &[u8]) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(&(message.len() as u32).to_be_bytes())?;
    output.write_all(message)?;
    output.flush()
}

struct Conformance(ServiceOptions);

impl Service for Conformance {
    const NAME: &'static str = "connectrpc.conformance.v1.ConformanceService";

    fn register(self, methods: &mut Methods<'_>) {
        let options = self.0.clone();
        let service = Arc::new(self);
        methods.unary("Unary", &service, &options, Conformance::unary);
        methods.unary("IdempotentUnary", &service, &options, Conformance::idempotent_unary);
        methods.unary("Unimplemented", &service, &options, Conformance::unimplemented);
        methods.server_streaming("ServerStream", &service, &options, Conformance::server_stream);
        methods.client_streaming("ClientStream", &service, &options, Conformance::client_stream);
        methods.bidi_streaming("BidiStream", &service, &options, Conformance::bidi_stream);
    }
}

impl Conformance {
    async fn unary(
        self: Arc<Self>,
        request: Request<pb::UnaryRequest>,
    ) -> Result<Response<pb::UnaryResponse>, Status> {
        let mut info = info(&request);
        let request = request.into_inner();
        info.requests.push(any("UnaryRequest", &request));
        unary_response(request.response_definition, info).await
    }

    async fn idempotent_unary(
        self: Arc<Self>,
        request: Request<pb::UnaryRequest>,
    ) -> Result<Response<pb::UnaryResponse>, Status> {
        let mut info = info(&request);
        let request = request.into_inner();
        info.requests.push(any("IdempotentUnaryRequest", &request));
        unary_response(request.response_definition, info).await
    }

    #[expect(clippy::unused_async, reason = "as methods are")]
    async fn unimplemented(self: Arc<Self>, _: Request<()>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented("the suite wants this method to be none"))
    }

    async fn client_stream(
        self: Arc<Self>,
        request: Request<Streaming<pb::UnaryRequest>>,
    ) -> Result<Response<pb::UnaryResponse>, Status> {
        let mut info = info(&request);
        let mut requests = request.into_inner();
        let mut definition = None;
        while let Some(request) = requests.message().await? {
            info.requests.push(any("ClientStreamRequest", &request));
            if info.requests.len() == 1 {
                definition = request.response_definition;
            }
        }
        unary_response(definition, info).await
    }

    #[expect(clippy::unused_async, reason = "as methods are")]
    async fn server_stream(
        self: Arc<Self>,
        request: Request<pb::ServerStreamRequest>,
    ) -> Result<Response<ResponseStream>, Status> {
        let mut info = info(&request);
        let request = request.into_inner();
        info.requests.push(any("ServerStreamRequest", &request));
        Ok(stream_response(request.response_definition.unwrap_or_default(), info, None))
    }

    async fn bidi_stream(
        self: Arc<Self>,
        request: Request<Streaming<pb::BidiStreamRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        let mut info = info(&request);
        let mut requests = request.into_inner();
        let mut definition = pb::StreamResponseDefinition::default();
        while let Some(request) = requests.message().await? {
            info.requests.push(any("BidiStreamRequest", &request));
            if info.requests.len() > 1 {
                continue;
            }
            definition = request.response_definition.unwrap_or_default();
            if request.full_duplex {
                return Ok(stream_response(definition, info, Some(requests)));
            }
        }
        Ok(stream_response(definition, info, None))
    }
}

/// Describes a request.
fn info<T>(request: &Request<T>) -> pb::RequestInfo {
    let headers = request.metadata().clone().into_headers();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let header = |name: &HeaderName| pb::Header {
        name: name.to_string(),
        value: headers.get_all(name).iter().map(text).collect(),
    };
    // Rounds up, because some of the time has passed.
    let timeout = Deadline::of(request).map(|deadline| deadline.remaining() + Duration::from_micros(999));
    pb::RequestInfo {
        request_headers: headers.keys().map(header).collect(),
        timeout_ms: timeout.map(|timeout| timeout.as_millis() as i64),
        requests: Vec::new(),
    }
}

fn any(name: &str, message: &impl prost::Message) -> pb::Any {
    pb::Any {
        type_url: format!("type.googleapis.com/connectrpc.conformance.v1.{name}"),
        value: message.encode_to_vec(),
    }
}

fn metadata(headers: &[pb::Header]) -> MetadataMap {
    let mut metadata = HeaderMap::new();
    for header in headers {
        for value in &header.value {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                metadata.append(name, value);
            }
        }
    }
    MetadataMap::from_headers(metadata)
}

/// Creates the status that a definition asks for.
fn failure(error: pb::Error, info: Option<&pb::RequestInfo>, metadata: MetadataMap) -> Status {
    let mut details = error.details;
    details.extend(info.map(|info| any("ConformancePayload.RequestInfo", info)));
    let message = error.message.unwrap_or_default();
    let status = pb::Status { code: error.code, message: message.clone(), details };
    let code = Code::from_i32(error.code);
    Status::with_details_and_metadata(code, message, status.encode_to_vec().into(), metadata)
}

async fn unary_response(
    definition: Option<pb::UnaryResponseDefinition>,
    info: pb::RequestInfo,
) -> Result<Response<pb::UnaryResponse>, Status> {
    let definition = definition.unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(u64::from(definition.response_delay_ms))).await;
    if let Some(error) = definition.error {
        let mut all_fields = definition.response_headers;
        all_fields.extend(definition.response_trailers);
        return Err(failure(error, Some(&info), metadata(&all_fields)));
    }
    let data = definition.response_data.unwrap_or_default();
    let payload = pb::ConformancePayload { data, request_info: Some(info) };
    let mut response = Response::new(pb::UnaryResponse { payload: Some(payload) });
    *response.metadata_mut() = metadata(&definition.response_headers);
    response.extensions_mut().insert(Trailers(metadata(&definition.response_trailers)));
    Ok(response)
}

fn stream_response(
    definition: pb::StreamResponseDefinition,
    info: pb::RequestInfo,
    requests: Option<Streaming<pb::BidiStreamRequest>>,
) -> Response<ResponseStream> {
    let trailers = metadata(&definition.response_trailers);
    let error = definition.error.map(|error| {
        let is_only_response = definition.response_data.is_empty();
        failure(error, is_only_response.then_some(&info), trailers.clone())
    });
    let responses = ResponseStream {
        remaining: definition.response_data.into_iter(),
        info: Some(info),
        error,
        delay: Duration::from_millis(u64::from(definition.response_delay_ms)),
        sleep: None,
        requests,
        is_request_answered: false,
    };
    let mut response = Response::new(responses);
    *response.metadata_mut() = metadata(&definition.response_headers);
    response.extensions_mut().insert(Trailers(trailers));
    response
}

/// A stream of responses.
struct ResponseStream {
    remaining: std::vec::IntoIter<Vec<u8>>,
    /// Request info for the next response.
    info: Option<pb::RequestInfo>,
    error: Option<Status>,
    delay: Duration,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    /// In full duplex, each request gets one response.
    requests: Option<Streaming<pb::BidiStreamRequest>>,
    /// The last request got its response.
    is_request_answered: bool,
}

impl Stream for ResponseStream {
    type Item = Result<pb::UnaryResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_request_answered
            && let Some(requests) = &mut this.requests
        {
            match Pin::new(requests).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(Some(Ok(request))) => {
                    let info = this.info.get_or_insert_default();
                    info.requests.push(any("BidiStreamRequest", &request));
                    this.is_request_answered = false;
                }
                // The remaining responses are sent without further requests.
                Poll::Ready(None) => this.requests = None,
            }
        }
        if this.remaining.len() == 0 {
            return Poll::Ready(this.error.take().map(Err));
        }
        if !this.delay.is_zero() {
            let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.delay)));
            match sleep.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => this.sleep = None,
            }
        }
        this.is_request_answered = true;
        let data = this.remaining.next().unwrap_or_default();
        let payload = pb::ConformancePayload { data, request_info: this.info.take() };
        Poll::Ready(Some(Ok(pb::UnaryResponse { payload: Some(payload) })))
    }
}
