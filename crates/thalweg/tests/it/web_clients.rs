//! A generated client by Connect and gRPC-Web, over both HTTP versions: it sees the same as with gRPC.

use std::sync::Arc;

use thalweg::server::{Methods, Service};
use thalweg::web::Web;
use thalweg::{
    CallOptions, Channel, Code, Protocol, Raw, Request, Response, Server, ServiceOptions, Status, Streaming,
};
use tokio::sync::mpsc;

use crate::support::{COUNT, Echo, Items, Receiver, echo, items, raw, soon, start};
use code::shapes::v1::shapes_client::ShapesClient;
use code::shapes::v1::{Answer, Question};

#[expect(unreachable_pub, clippy::pedantic, reason = "generated code")]
mod code {
    include!("../../../build/tests/golden/shapes/mod.rs");
}

/// Four methods of the generated service. They echo the texts, and `x-asked` as `x-echo`; `fail` fails.
struct Shapes;

fn to_answer(text: &str) -> Result<Answer, Status> {
    if text == "fail" {
        return Err(Status::not_found("nichts: ü"));
    }
    Ok(Answer { text: Some(text.to_owned()), ..Answer::default() })
}

fn response<T, Q>(request: &Request<Q>, message: T) -> Response<T> {
    let mut response = Response::new(message);
    if let Some(value) = request.metadata().get("x-asked") {
        response.metadata_mut().insert("x-echo", value.clone());
    }
    response
}

#[expect(clippy::unused_async, reason = "handlers are async, those that do not wait, too")]
impl Shapes {
    async fn unary(self: Arc<Self>, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(response(&request, to_answer(&request.get_ref().text)?))
    }

    async fn client_stream(
        self: Arc<Self>,
        request: Request<Streaming<Question>>,
    ) -> Result<Response<Answer>, Status> {
        let mut response = response(&request, ());
        let mut questions = request.into_inner();
        let mut all = String::new();
        while let Some(question) = questions.message().await? {
            all += &question.text;
        }
        let metadata = std::mem::take(response.metadata_mut());
        let mut response = Response::new(to_answer(&all)?);
        *response.metadata_mut() = metadata;
        Ok(response)
    }

    /// One response per letter.
    async fn server_stream(
        self: Arc<Self>,
        request: Request<Question>,
    ) -> Result<Response<Items<Result<Answer, Status>>>, Status> {
        let text = &request.get_ref().text;
        let mut responses: Vec<_> =
            text.chars().map(|letter| to_answer(letter.encode_utf8(&mut [0; 4]))).collect();
        // Messages sent before the failure still arrive.
        responses.extend(to_answer(text).is_err().then(|| to_answer(text)));
        Ok(response(&request, items(responses)))
    }

    async fn both_ways(
        self: Arc<Self>,
        request: Request<Streaming<Question>>,
    ) -> Result<Response<Each>, Status> {
        let response = response(&request, ());
        let mut each = Response::new(Each(request.into_inner()));
        *each.metadata_mut() = response.metadata().clone();
        Ok(each)
    }
}

/// Responds to each question as it arrives.
struct Each(Streaming<Question>);

impl thalweg::Stream for Each {
    type Item = Result<Answer, Status>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let question = std::pin::Pin::new(&mut self.0).poll_next(cx);
        question.map(|question| question.map(|question| to_answer(&question?.text)))
    }
}

impl Service for Shapes {
    const NAME: &'static str = "shapes.v1.Shapes";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Unary", &service, &options, Shapes::unary);
        methods.client_streaming("ClientStream", &service, &options, Shapes::client_stream);
        methods.server_streaming("ServerStream", &service, &options, Shapes::server_stream);
        methods.bidi_streaming("BothWays", &service, &options, Shapes::both_ways);
    }
}

fn question(text: &str) -> Question {
    Question { text: text.to_owned(), ..Question::default() }
}

/// Creates a request with `x-asked`.
fn with_metadata<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-asked", "a b".parse().expect("a value"));
    request
}

fn echoed<T>(response: &Response<T>) -> &str {
    response.metadata().get("x-echo").expect("it came back").to_str().expect("text")
}

/// Returns all texts of a stream, and how it ended.
async fn collect_texts(mut responses: Streaming<Answer>) -> (Vec<String>, Result<(), (Code, String)>) {
    let mut collect_texts = Vec::new();
    loop {
        match soon(responses.message()).await {
            Ok(Some(to_answer)) => collect_texts.push(to_answer.text.expect("a text")),
            Ok(None) => return (collect_texts, Ok(())),
            Err(status) => return (collect_texts, Err((status.code(), status.message().to_owned()))),
        }
    }
}

fn failed<T>(outcome: Result<T, Status>) -> (Code, String) {
    let status = outcome.err().expect("it fails");
    (status.code(), status.message().to_owned())
}

async fn check(target: &str, protocol: Protocol, is_http1: bool) {
    let context = format!("{protocol:?}, HTTP/1.1: {is_http1}");
    let channel = Channel::builder(target).protocol(protocol).http1(is_http1);
    let client = ShapesClient::new(channel.connect().await.expect(&context));
    let failure = (Code::NotFound, "nichts: ü".to_owned());

    let response = soon(client.unary(with_metadata(question("a")))).await.expect(&context);
    assert_eq!((echoed(&response), response.get_ref().text.as_deref()), ("a b", Some("a")), "{context}");
    assert_eq!(failed(soon(client.unary(question("fail"))).await), failure, "{context}");

    let questions = || items(vec![question("a"), question("b")]);
    let response = soon(client.client_stream(with_metadata(questions()))).await.expect(&context);
    assert_eq!((echoed(&response), response.get_ref().text.as_deref()), ("a b", Some("ab")), "{context}");
    let questions_that_fail = items(vec![question("fa"), question("il")]);
    assert_eq!(failed(soon(client.client_stream(questions_that_fail)).await), failure, "{context}");

    let response = soon(client.server_stream(with_metadata(question("abc")))).await.expect(&context);
    assert_eq!(echoed(&response), "a b", "{context}");
    let letters = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    assert_eq!(collect_texts(response.into_inner()).await, (letters("abc"), Ok(())), "{context}");
    let response = soon(client.server_stream(question("fail"))).await.expect(&context);
    assert_eq!(
        collect_texts(response.into_inner()).await,
        (letters("fail"), Err(failure.clone())),
        "{context}"
    );

    if is_http1 {
        let rejected = failed(soon(client.both_ways(questions())).await);
        assert_eq!(rejected.0, Code::Unimplemented, "{context} {rejected:?}");
        return;
    }
    // Each gets its response before the next is sent.
    let (questions, receiver) = mpsc::unbounded_channel();
    questions.send(question("a")).expect("it reads");
    let response = soon(client.both_ways(with_metadata(Receiver(receiver)))).await.expect(&context);
    assert_eq!(echoed(&response), "a b", "{context}");
    let mut responses = response.into_inner();
    for next in ["b", "c", "fail"] {
        assert!(soon(responses.message()).await.expect(&context).is_some(), "{context}");
        questions.send(question(next)).expect("it reads");
    }
    assert_eq!(failed(soon(responses.message()).await), failure, "{context}");
    let ended = soon(client.both_ways(items(vec![question("a"), question("b")]))).await.expect(&context);
    assert_eq!(collect_texts(ended.into_inner()).await, (letters("ab"), Ok(())), "{context}");
}

#[tokio::test]
async fn generated_clients_work_with_every_protocol() {
    let target = start(Server::builder().add_service(Shapes).web(Web::new())).await;
    check(&target, Protocol::Grpc, false).await;
    for protocol in [Protocol::Connect, Protocol::GrpcWeb, Protocol::GrpcWebText] {
        check(&target, protocol, false).await;
        check(&target, protocol, true).await;
    }
}

#[tokio::test]
async fn timeouts_and_limits_of_a_service_config_apply_to_all_protocols() {
    let config = r#"{ "methodConfig": [{ "name": [{ "service": "test.Echo" }], "timeout": "0.2s",
        "maxRequestMessageBytes": 8, "maxResponseMessageBytes": 6 }] }"#;
    let target = start(Server::builder().add_service(Echo::default()).web(Web::new())).await;
    for protocol in [Protocol::Grpc, Protocol::Connect, Protocol::GrpcWeb, Protocol::GrpcWebText] {
        for is_http1 in [false, true] {
            if protocol == Protocol::Grpc && is_http1 {
                continue;
            }
            let channel = Channel::builder(&target).protocol(protocol).http1(is_http1).service_config(config);
            let channel = channel.connect_lazy().expect("valid settings");
            for (message, expected) in [
                ("short", Ok(())),
                ("sleep", Err(Code::DeadlineExceeded)),
                ("larger request", Err(Code::ResourceExhausted)),
                ("medium!", Err(Code::ResourceExhausted)),
            ] {
                let outcome = echo(&channel, raw(message)).await;
                let outcome = outcome.map(drop).map_err(|status| status.code());
                assert_eq!(outcome, expected, "{message}, {protocol:?}, HTTP/1.1: {is_http1}");
            }
            let options = CallOptions::default();
            let requests = items(vec![raw("larger request")]);
            let call = channel.client_streaming::<_, Raw>(&COUNT, Request::new(requests), &options).await;
            let code = call.map(drop).map_err(|status| status.code());
            assert_eq!(code, Err(Code::ResourceExhausted), "{protocol:?}, HTTP/1.1: {is_http1}");
        }
    }
}
