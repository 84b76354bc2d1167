//! Compiles and calls all generated code. The golden files of `crates/build` are included here, because that crate does
//! not depend on the library that they need.

#![deny(unfulfilled_lint_expectations)]

use std::pin::Pin;
use std::time::Duration;

use code::shapes::r#type::r#async::{Word, keywords_client, keywords_server};
use code::shapes::v1::common::{Page, Size};
use code::shapes::v1::question::{Part, part::Detail};
use code::shapes::v1::shapes_client::ShapesClient;
use code::shapes::v1::shapes_server::{Shapes, ShapesServer};
use code::shapes::v1::{
    Answer, Question, channel_client, channel_server, nothing_server, old_server, result_client,
    result_server, t_client, t_server,
};
use code::{Ping, rootless_client, rootless_server};
use thalweg::server::ServerBuilder;
use thalweg::{Channel, Code, Encoding, Request, Response, Server, Status, Stream, Streaming};
use tokio_stream::StreamExt as _;

#[expect(unreachable_pub, clippy::pedantic, reason = "generated code")]
mod code {
    include!("../../../crates/build/tests/golden/shapes/mod.rs");
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Returns the name of the called method and the question.
fn answer(method: &str, question: &Question) -> Answer {
    Answer { text: Some(format!("{method}: {}", question.text)), ..Answer::default() }
}

fn single_response(method: &str, request: Request<Question>) -> Response<Answer> {
    Response::new(answer(method, &request.into_inner()))
}

/// Returns the answer twice.
fn two_responses(method: &str, request: Request<Question>) -> Response<ResponseStream<Answer>> {
    let answer = answer(method, &request.into_inner());
    Response::new(Box::pin(tokio_stream::iter([Ok(answer.clone()), Ok(answer)])))
}

/// Answers each question as it arrives.
fn response_per_question(
    method: &'static str,
    request: Request<Streaming<Question>>,
) -> Response<ResponseStream<Answer>> {
    Response::new(Box::pin(request.into_inner().map(move |question| Ok(answer(method, &question?)))))
}

/// A question without an answer.
const NO_ANSWER: &str = "no answer";

struct Everything;

impl Shapes for Everything {
    async fn unary(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        if request.get_ref().text == NO_ANSWER {
            std::future::pending::<()>().await;
        }
        Ok(single_response("Unary", request))
    }

    async fn client_stream(&self, request: Request<Streaming<Question>>) -> Result<Response<Answer>, Status> {
        let mut questions = request.into_inner();
        let mut all = Question::default();
        while let Some(question) = questions.message().await? {
            all.text += &question.text;
        }
        Ok(Response::new(answer("ClientStream", &all)))
    }

    type ServerStreamStream = ResponseStream<Answer>;

    async fn server_stream(
        &self,
        request: Request<Question>,
    ) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(two_responses("ServerStream", request))
    }

    type BothWaysStream = ResponseStream<Answer>;

    async fn both_ways(
        &self,
        request: Request<Streaming<Question>>,
    ) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(response_per_question("BothWays", request))
    }

    async fn old_unary(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("OldUnary", request))
    }

    type OldStreamStream = ResponseStream<Answer>;

    async fn old_stream(
        &self,
        request: Request<Streaming<Question>>,
    ) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(response_per_question("OldStream", request))
    }

    async fn nested(&self, request: Request<Detail>) -> Result<Response<Page>, Status> {
        let number =
            request.into_inner().text.parse().map_err(|_| Status::invalid_argument("not a number"))?;
        Ok(Response::new(Page { number, size: Some(Size { entries: 4, most: None }) }))
    }

    async fn nothing(&self, _request: Request<()>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }

    async fn now(&self, request: Request<String>) -> Result<Response<prost_types::Timestamp>, Status> {
        let time = request.into_inner().parse().map_err(|_| Status::invalid_argument("not a time"))?;
        Ok(Response::new(time))
    }

    type TicksStream = ResponseStream<Vec<u8>>;

    async fn ticks(
        &self,
        request: Request<Streaming<prost_types::Duration>>,
    ) -> Result<Response<Self::TicksStream>, Status> {
        let lengths = request.into_inner().map(|tick| Ok(vec![b'-'; tick?.seconds as usize]));
        Ok(Response::new(Box::pin(lengths)))
    }

    async fn r#type(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Type", request))
    }

    type AwaitStream = ResponseStream<Answer>;

    async fn r#await(&self, request: Request<Question>) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(two_responses("Await", request))
    }

    async fn self_(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Self", request))
    }

    async fn new(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("New", request))
    }

    async fn connect(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Connect", request))
    }

    async fn clone(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Clone", request))
    }

    async fn register(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Register", request))
    }

    type LowerCaseStream = ResponseStream<Answer>;

    async fn lower_case(
        &self,
        request: Request<Question>,
    ) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(two_responses("lower_case", request))
    }

    type HTTPCallStream = ResponseStream<Answer>;

    async fn http_call(
        &self,
        request: Request<Question>,
    ) -> Result<Response<ResponseStream<Answer>>, Status> {
        Ok(two_responses("HTTPCall", request))
    }
}

impl old_server::Old for Everything {
    async fn call(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Old", request))
    }
}

impl result_server::Result_ for Everything {
    async fn get(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("Result", request))
    }
}

impl t_server::T_ for Everything {
    async fn get(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        Ok(single_response("T", request))
    }
}

impl channel_server::Channel for Everything {
    async fn status(
        &self,
        _request: Request<code::shapes::v1::Request>,
    ) -> Result<Response<code::shapes::v1::Status>, Status> {
        Err(Status::not_found("no status"))
    }
}

impl nothing_server::Nothing for Everything {}

impl keywords_server::Keywords for Everything {
    async fn r#match(&self, _request: Request<Word>) -> Result<Response<Part>, Status> {
        Ok(Response::new(Part { details: vec![Detail { text: "match".to_owned() }] }))
    }
}

impl rootless_server::Rootless for Everything {
    type CallStream = ResponseStream<Ping>;

    async fn call(&self, _request: Request<Ping>) -> Result<Response<Self::CallStream>, Status> {
        Ok(Response::new(Box::pin(tokio_stream::iter([Ok(Ping {}), Ok(Ping {}), Ok(Ping {})]))))
    }
}

/// Returns a channel to a server with all services.
async fn serve() -> Channel {
    let server = Server::builder()
        .add_service(ShapesServer::new(Everything))
        .add_service(old_server::OldServer::new(Everything))
        .add_service(result_server::ResultServer::new(Everything))
        .add_service(t_server::TServer::new(Everything))
        .add_service(channel_server::ChannelServer::new(Everything))
        .add_service(nothing_server::NothingServer::new(Everything))
        .add_service(keywords_server::KeywordsServer::new(Everything))
        .add_service(rootless_server::RootlessServer::new(Everything));
    start(server).await
}

/// Serves on a free port and returns a channel to it.
async fn start(server: ServerBuilder) -> Channel {
    let any_port = "127.0.0.1:0".parse().expect("an address");
    let server = server.bind(&[any_port]).await.expect("a free port");
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    Channel::builder(target).connect().await.expect("the server listens")
}

fn question(text: &str) -> Question {
    Question { text: text.to_owned(), ..Question::default() }
}

#[track_caller]
fn check(answer: Result<Response<Answer>, Status>, expected: &str) {
    let answer = answer.expect("an answer").into_inner();
    assert_eq!(answer.text.as_deref(), Some(expected));
}

async fn check_answers(answers: Result<Response<Streaming<Answer>>, Status>, expected: &[&str]) {
    let answers: Vec<String> = answers
        .expect("a stream")
        .into_inner()
        .map(|answer| answer.expect("an answer").text.unwrap_or_default())
        .collect()
        .await;
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn all_call_types_work() {
    let shapes = ShapesClient::new(serve().await);
    let questions = || tokio_stream::iter([question("a"), question("b")]);
    check(shapes.unary(question("a")).await, "Unary: a");
    check(shapes.client_stream(questions()).await, "ClientStream: ab");
    check_answers(shapes.server_stream(question("a")).await, &["ServerStream: a"; 2]).await;
    check_answers(shapes.both_ways(questions()).await, &["BothWays: a", "BothWays: b"]).await;
}

#[tokio::test]
#[expect(deprecated, reason = "deprecated in the .proto file")]
async fn deprecated_methods_work() {
    let shapes = ShapesClient::new(serve().await);
    check(shapes.old_unary(question("a")).await, "OldUnary: a");
    check_answers(shapes.old_stream(tokio_stream::iter([question("a")])).await, &["OldStream: a"]).await;
}

#[tokio::test]
#[expect(deprecated, reason = "deprecated in the .proto file")]
async fn deprecated_service_works() {
    let old = code::shapes::v1::old_client::OldClient::new(serve().await);
    check(old.call(question("a")).await, "Old: a");
}

#[tokio::test]
async fn imported_types_work() {
    let shapes = ShapesClient::new(serve().await);
    let page = shapes.nested(Detail { text: "7".to_owned() }).await.expect("a page").into_inner();
    assert_eq!(page, Page { number: 7, size: Some(Size { entries: 4, most: None }) });
    assert_eq!(page.size.map(|size| size.most()), Some(100), "the default of proto2");

    shapes.nothing(()).await.expect("nothing");
    let time = shapes.now("1970-01-01T00:01:00Z".to_owned()).await.expect("a time").into_inner();
    assert_eq!(time, prost_types::Timestamp { seconds: 60, nanos: 0 });

    let ticks = tokio_stream::iter([1, 3].map(|seconds| prost_types::Duration { seconds, nanos: 0 }));
    let lengths = shapes.ticks(ticks).await.expect("a stream").into_inner();
    let lengths: Vec<Vec<u8>> = lengths.map(|length| length.expect("bytes")).collect().await;
    assert_eq!(lengths, [&b"-"[..], b"---"]);
}

#[tokio::test]
async fn reserved_names_are_escaped() {
    let channel = serve().await;
    let shapes = ShapesClient::new(channel.clone());
    check(shapes.r#type(question("a")).await, "Type: a");
    check_answers(shapes.r#await(question("a")).await, &["Await: a"; 2]).await;
    check(shapes.self_(question("a")).await, "Self: a");
    check(shapes.new_(question("a")).await, "New: a");
    check(shapes.connect_(question("a")).await, "Connect: a");
    check(shapes.clone_(question("a")).await, "Clone: a");
    check(shapes.register(question("a")).await, "Register: a");
    check_answers(shapes.lower_case(question("a")).await, &["lower_case: a"; 2]).await;
    check_answers(shapes.http_call(question("a")).await, &["HTTPCall: a"; 2]).await;

    check(result_client::ResultClient::new(channel.clone()).get(question("a")).await, "Result: a");
    check(t_client::TClient::new(channel.clone()).get(question("a")).await, "T: a");
    let keywords = keywords_client::KeywordsClient::new(channel.clone());
    let part = keywords.r#match(Word {}).await.expect("a part").into_inner();
    assert_eq!(part.details[0].text, "match");

    let missing = channel_client::ChannelClient::new(channel);
    let status = missing.status(code::shapes::v1::Request {}).await.expect_err("there is no status");
    assert_eq!((status.code(), status.message()), (Code::NotFound, "no status"));
}

#[tokio::test]
async fn service_without_package_works() {
    assert_eq!(rootless_client::CALL.path(), "/Rootless/Call");
    let rootless = rootless_client::RootlessClient::new(serve().await);
    let pings = rootless.call(Ping {}).await.expect("a stream").into_inner();
    assert_eq!(pings.collect::<Vec<_>>().await.len(), 3);
}

#[tokio::test]
async fn client_options_apply_to_calls() {
    let shapes = ShapesClient::new(serve().await);
    let check = async |client: ShapesClient, expected: Code| {
        let answer = client.unary(question("longer than two bytes")).await;
        assert_eq!(answer.map_or_else(|status| status.code(), |_| Code::Ok), expected);
    };
    check(shapes.clone(), Code::Ok).await;
    check(shapes.clone().send_compressed(Encoding::Gzip), Code::Ok).await;
    check(shapes.clone().max_encoding_message_size(2), Code::ResourceExhausted).await;
    check(shapes.clone().max_decoding_message_size(2), Code::ResourceExhausted).await;

    let impatient = shapes.clone().timeout(Duration::from_millis(1));
    let status = impatient.unary(question(NO_ANSWER)).await.expect_err("there is no answer");
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn server_options_apply_to_methods() {
    let check = async |server: ShapesServer<Everything>, expected: Code| {
        let shapes = ShapesClient::new(start(Server::builder().add_service(server)).await);
        let answer = shapes.send_compressed(Encoding::Gzip).unary(question("longer than two bytes")).await;
        assert_eq!(answer.map_or_else(|status| status.code(), |_| Code::Ok), expected);
    };
    let server = || ShapesServer::new(Everything);
    check(server(), Code::Ok).await;
    check(server().send_compressed(Encoding::Gzip), Code::Ok).await;
    check(server().max_decoding_message_size(2), Code::ResourceExhausted).await;
    check(server().max_encoding_message_size(2), Code::ResourceExhausted).await;
}

#[tokio::test]
async fn interceptors_run_on_both_sides() {
    let add_mark = |mut request: Request<()>| {
        request.metadata_mut().insert("x-mark", "1".parse().expect("ASCII"));
        Ok(request)
    };
    let require_mark = |request: Request<()>| match request.metadata().get("x-mark") {
        Some(_) => Ok(request),
        None => Err(Status::unauthenticated("no mark")),
    };
    let check = async |server: ServerBuilder, expected: Code| {
        let channel = start(server).await;
        for _ in 0..2 {
            let marked = ShapesClient::with_interceptor(channel.clone(), add_mark);
            assert!(marked.unary(question("a")).await.is_ok());
        }
        let answer = ShapesClient::new(channel).unary(question("a")).await;
        assert_eq!(answer.map_or_else(|status| status.code(), |_| Code::Ok), expected);
    };
    check(Server::builder().add_service(ShapesServer::new(Everything)), Code::Ok).await;
    let server = ShapesServer::with_interceptor(Everything, require_mark);
    check(Server::builder().add_service(server), Code::Unauthenticated).await;
}
