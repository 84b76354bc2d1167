//! One call of the suite.

use std::error::Error;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message as _;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Encoding, Method, Raw, Request, Response, Status, Streaming};
use thalweg_protobuf::{Schema, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::messages::{self as pb, CancelTiming};
use crate::requests::{Progress, Requests};

type BoxError = Box<dyn Error + Send + Sync>;

/// Default service if the suite names none.
const SERVICE: &str = "connectrpc.conformance.v1.ConformanceService";
/// Message type of the responses; those of all methods have the same fields.
const UNARY_RESPONSE: &str = "connectrpc.conformance.v1.UnaryResponse";
/// `STREAM_TYPE_…`.
const UNARY: i32 = 1;
const CLIENT_STREAM: i32 = 2;
const SERVER_STREAM: i32 = 3;
const FULL_DUPLEX: i32 = 5;

/// Makes a call; an error says why it could not be made.
pub(crate) async fn make(
    channel: Channel,
    schema: Schema,
    test_case: pb::ClientCompatRequest,
) -> Result<pb::ClientResponseResult, BoxError> {
    let call = Call::new(&test_case, schema)?;
    let messages: Vec<Raw> =
        test_case.request_messages.iter().map(|message| call.request(message)).collect::<Result<_, _>>()?;
    let timing = test_case.cancel.as_ref().map(|cancel| cancel.timing);
    // The default is to cancel at once.
    let timing = timing.map(|timing| timing.unwrap_or(CancelTiming::AfterCloseSendMs(0)));
    let stays_open = matches!(timing, Some(CancelTiming::BeforeCloseSend(_)));
    let delay = Duration::from_millis(test_case.request_delay_ms.into());
    let is_full_duplex = test_case.stream_type == FULL_DUPLEX;
    let is_one = matches!(test_case.stream_type, UNARY | SERVER_STREAM);
    if is_one && messages.len() != 1 {
        return Err("there must be one request".into());
    }
    let (requests, progress) = Requests::new(messages, delay, is_full_duplex, stays_open);
    let Progress { unsent, all_sent, permits } = progress;
    let responses_max = match timing {
        Some(CancelTiming::AfterNumResponses(count)) => Some(count as usize),
        _ => None,
    };

    let recorded = Arc::clone(&call.recorded);
    let cancelled = async {
        match timing {
            Some(CancelTiming::BeforeCloseSend(_)) => {
                let _ = all_sent.await;
            }
            Some(CancelTiming::AfterCloseSendMs(millis)) => {
                if !is_one {
                    let _ = all_sent.await;
                }
                sleep(Duration::from_millis(millis.into())).await;
            }
            Some(CancelTiming::AfterNumResponses(_)) | None => std::future::pending().await,
        }
    };
    let made = call.run(channel, test_case.stream_type, requests, permits, responses_max);
    let outcome = tokio::select! {
        outcome = made => outcome,
        () = cancelled => Err(Status::cancelled("the suite has it cancelled")),
    };
    let mut result = recorded.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Err(status) = outcome {
        result.num_unsent_requests = i32::try_from(unsent.load(Ordering::Relaxed)).unwrap_or(i32::MAX);
        result.error = Some(error(&status));
        let metadata = headers(status.metadata());
        if result.response_headers.is_empty() {
            // The caller gets headers and trailers merged.
            result.response_headers.clone_from(&metadata);
        }
        result.response_trailers = metadata;
    }
    Ok(result)
}

struct Call {
    method: Method,
    metadata: MetadataMap,
    options: CallOptions,
    /// Schema for JSON; `None` for Protobuf messages.
    json: Option<Schema>,
    delay: Duration,
    recorded: Arc<Mutex<pb::ClientResponseResult>>,
}

impl Call {
    fn new(test_case: &pb::ClientCompatRequest, schema: Schema) -> Result<Call, BoxError> {
        let service = test_case.service.as_deref().unwrap_or(SERVICE);
        let name = test_case.method.as_deref().ok_or("there is no method")?;
        let is_json = test_case.codec == 2;
        let mut method = Method::from_path(&format!("/{service}/{name}"))?;
        if is_json {
            method = method.with_content_subtype("json");
        }
        if test_case.use_get_http_method {
            method = method.without_side_effects();
        }
        let mut options = CallOptions::default();
        options.timeout = test_case.timeout_ms.map(|millis| Duration::from_millis(millis.into()));
        options.compression_threshold = 0;
        options.send_compressed = match test_case.compression {
            0 | 1 => None,
            2 => Some(Encoding::Gzip),
            3 => Some(Encoding::Brotli),
            4 => Some(Encoding::Zstd),
            5 => Some(Encoding::Deflate),
            other => return Err(format!("compression {other} is not there").into()),
        };
        if test_case.message_receive_limit > 0 {
            options.max_decoding_message_size = test_case.message_receive_limit as usize;
        }
        let mut metadata = http::HeaderMap::new();
        for header in &test_case.request_headers {
            for value in &header.value {
                let name = http::HeaderName::from_bytes(header.name.as_bytes())?;
                metadata.append(name, http::HeaderValue::from_str(value)?);
            }
        }
        Ok(Call {
            method,
            metadata: MetadataMap::from_headers(metadata),
            options,
            json: is_json.then_some(schema),
            delay: Duration::from_millis(test_case.request_delay_ms.into()),
            recorded: Arc::default(),
        })
    }

    async fn run(
        self,
        channel: Channel,
        stream_type: i32,
        requests: Requests,
        permits: Option<mpsc::UnboundedSender<()>>,
        responses_max: Option<usize>,
    ) -> Result<(), Status> {
        let Call { method, options, .. } = &self;
        match stream_type {
            UNARY => {
                sleep(self.delay).await;
                let response = channel.unary(method, self.to_request(requests.only()), options).await?;
                self.record_one(response)
            }
            CLIENT_STREAM => {
                let response = channel.client_streaming(method, self.to_request(requests), options).await?;
                self.record_one(response)
            }
            SERVER_STREAM => {
                sleep(self.delay).await;
                let response =
                    channel.server_streaming(method, self.to_request(requests.only()), options).await?;
                self.record_all(response, None, responses_max).await
            }
            _ => {
                if let Some(permits) = &permits {
                    let _ = permits.send(());
                }
                let response = channel.bidi_streaming(method, self.to_request(requests), options).await?;
                self.record_all(response, permits, responses_max).await
            }
        }
    }

    fn to_request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        *request.metadata_mut() = self.metadata.clone();
        request
    }

    /// Records a response whose headers and trailers are merged.
    fn record_one(&self, response: Response<Raw>) -> Result<(), Status> {
        let metadata = headers(response.metadata());
        let payload = self.payload(&response.into_inner())?;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.response_headers.clone_from(&metadata);
        recorded.response_trailers = metadata;
        recorded.payloads.push(payload);
        Ok(())
    }

    async fn record_all(
        &self,
        response: Response<Streaming<Raw>>,
        mut permits: Option<mpsc::UnboundedSender<()>>,
        responses_max: Option<usize>,
    ) -> Result<(), Status> {
        let lock = || self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        lock().response_headers = headers(response.metadata());
        let mut responses = response.into_inner();
        let mut count = 0;
        while let Some(message) = responses.message().await? {
            let payload = self.payload(&message)?;
            lock().payloads.push(payload);
            count += 1;
            if responses_max == Some(count) {
                return Err(Status::cancelled("the suite has it cancelled"));
            }
            permits = permits.filter(|permits| permits.send(()).is_ok());
        }
        lock().response_trailers = headers(&responses.trailers().await?.unwrap_or_default());
        Ok(())
    }

    /// Encodes a request message.
    fn request(&self, message: &pb::Any) -> Result<Raw, BoxError> {
        let Some(schema) = &self.json else { return Ok(Raw(message.value.clone().into())) };
        let name = message.type_url.rsplit('/').next().unwrap_or_default();
        let message_type = schema.message(name).ok_or("the suite's message has an unknown type")?;
        Ok(Raw(json::from_wire(message_type, &message.value)?.into()))
    }

    /// Decodes a response's payload.
    fn payload(&self, message: &Raw) -> Result<Vec<u8>, Status> {
        let undecodable = |error: &dyn Error| Status::internal(format!("the response: {error}"));
        let from_json;
        let mut wire = &message.0[..];
        if let Some(schema) = &self.json {
            let message_type = schema.message(UNARY_RESPONSE);
            let message_type = message_type.ok_or_else(|| Status::internal("there are no descriptors"))?;
            from_json = json::to_wire(message_type, wire).map_err(|error| undecodable(&error))?;
            wire = &from_json;
        }
        Ok(pb::UnaryResponse::decode(wire).map_err(|error| undecodable(&error))?.payload.unwrap_or_default())
    }
}

fn headers(metadata: &MetadataMap) -> Vec<pb::Header> {
    let metadata: &http::HeaderMap = metadata.as_ref();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let header = |name: &http::HeaderName| pb::Header {
        name: name.to_string(),
        value: metadata.get_all(name).iter().map(text).collect(),
    };
    metadata.keys().map(header).collect()
}

fn error(status: &Status) -> pb::Error {
    let details = pb::Status::decode(status.details()).unwrap_or_default().details;
    pb::Error { code: status.code() as i32, message: Some(status.message().to_owned()), details }
}
