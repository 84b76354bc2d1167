//! Effects of interceptors on both sides, for all four call types.

use std::sync::{Arc, Mutex};

use thalweg::interceptor::{AnyMessage, Call, Interceptor, Messages, Next, Reply, Side, head};
use thalweg::metadata::MetadataMap;
use thalweg::server::{InterceptedService, Methods, ServerBuilder, Service};
use thalweg::{
    CallOptions, Caller, Code, InterceptedChannel, Method, Raw, Request, Response, Server, ServiceOptions,
    Status, Streaming,
};

use crate::support::{CHAT, COUNT, ECHO, Echo, REPEAT, connect, echo, items, raw, start};

/// A log of events in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().expect("no panic").push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

/// Logs everything that it sees.
struct Recording(&'static str, Log);

impl Recording {
    fn watch(&self, what: &'static str, messages: Messages) -> Messages {
        let (name, log) = (self.0, self.1.clone());
        let each = move |message: &mut AnyMessage| {
            let Raw(bytes) = message.downcast_ref().expect("all messages here are Raw");
            log.add(format!("{name} {what} {}", String::from_utf8_lossy(bytes)));
            Ok(())
        };
        let log = self.1.clone();
        messages.on_message(each).on_end(move |end| log.add(format!("{name} {what}s: {}", ended(end))))
    }
}

fn ended(end: Result<&MetadataMap, &Status>) -> String {
    match end {
        Ok(trailers) if trailers.is_empty() => "end".to_owned(),
        Ok(trailers) => format!("end, with {} trailers", trailers.len()),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

impl Interceptor for Recording {
    async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
        let side = if call.side() == Side::Client { "calls" } else { "serves" };
        self.1.add(format!("{} {side} {} {:?}", self.0, call.method().name(), call.call_type()));
        match next.run(call.map_messages(|messages| self.watch("request", messages))).await {
            Ok(response) => Ok(response.map(|messages| self.watch("response", messages))),
            Err(status) => {
                self.1.add(format!("{}: {}", self.0, ended(Err(&status))));
                Err(status)
            }
        }
    }
}

async fn collect(mut messages: Streaming<Raw>) -> Result<Vec<Raw>, Status> {
    let mut all = Vec::new();
    while let Some(message) = messages.message().await? {
        all.push(message);
    }
    Ok(all)
}

/// Makes one call of each type and returns the outcomes.
async fn call_all(caller: &impl Caller) -> [Result<String, String>; 4] {
    let options = CallOptions::default();
    let text = |outcome: Result<Vec<Raw>, Status>| match outcome {
        Ok(messages) => Ok(messages
            .iter()
            .map(|Raw(bytes)| String::from_utf8_lossy(bytes).into_owned())
            .collect::<Vec<_>>()
            .join(",")),
        Err(status) => Err(format!("{:?}: {}", status.code(), status.message())),
    };
    let unary = caller.unary::<Raw, Raw>(&ECHO, Request::new(raw("a")), &options).await;
    let unary = unary.map(|response| vec![response.into_inner()]);
    let requests = Request::new(items(vec![raw("a"), raw("b")]));
    let count = caller.client_streaming::<_, Raw>(&COUNT, requests, &options).await;
    let count = count.map(|response| vec![response.into_inner()]);
    let repeat = match caller.server_streaming(&REPEAT, Request::new(raw("2 0")), &options).await {
        Ok(response) => collect(response.into_inner()).await,
        Err(status) => Err(status),
    };
    let requests = Request::new(items(vec![raw("a"), raw("b")]));
    let chat = match caller.bidi_streaming(&CHAT, requests, &options).await {
        Ok(response) => collect(response.into_inner()).await,
        Err(status) => Err(status),
    };
    [text(unary), text(count), text(repeat), text(chat)]
}

/// Checks the outcomes of calls through `client`'s interceptors to a server with `server`'s.
async fn check(
    client: impl FnOnce(InterceptedChannel) -> InterceptedChannel,
    server: impl FnOnce(ServerBuilder) -> ServerBuilder,
    expected: [Result<&str, &str>; 4],
) {
    let target = start(server(Server::builder().add_service(Echo::default()))).await;
    let outcome = call_all(&client(connect(&target).await.into())).await;
    let outcome = outcome.each_ref().map(|one| one.as_deref().map_err(String::as_str));
    assert_eq!(outcome, expected);
}

const PLAIN: [Result<&str, &str>; 4] = [Ok("a"), Ok("2 2"), Ok(","), Ok("a,b")];

#[tokio::test]
async fn interceptor_sees_messages_and_statuses_of_all_call_types() {
    let log = Log::default();
    let (client, server) = (Recording("c", log.clone()), Recording("s", log.clone()));
    let target = start(Server::builder().interceptor(server).add_service(Echo::default())).await;
    let channel = connect(&target).await.with_interceptor(client);
    let check = |expected: &[&str]| {
        // Both sides log concurrently; each side's entries are in order.
        let recorded = log.take();
        for side in ["c", "s"] {
            let of_side = |line: &&str| line.starts_with(side);
            let recorded: Vec<&str> = recorded.iter().map(String::as_str).filter(of_side).collect();
            let mut expected: Vec<&str> = expected.iter().copied().filter(of_side).collect();
            let mut sorted = recorded.clone();
            if recorded != expected {
                // Requests and responses of a stream may overtake each other.
                sorted.sort_unstable();
                expected.sort_unstable();
            }
            assert_eq!(sorted, expected);
        }
    };
    let options = CallOptions::default();
    let response: Response<Raw> =
        channel.unary(&ECHO, Request::new(raw("a")), &options).await.expect("a response");
    assert_eq!(response.into_inner(), raw("a"));
    check(&[
        "c calls Echo Unary",
        "c request a",
        "c requests: end",
        "c response a",
        "c responses: end",
        "s serves Echo Unary",
        "s request a",
        "s requests: end",
        "s response a",
        "s responses: end",
    ]);
    let response = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("fail")), &options).await;
    assert_eq!(response.expect_err("it fails").code(), Code::NotFound);
    check(&[
        "c calls Echo Unary",
        "c request fail",
        "c requests: end",
        "c: NotFound: nichts: ü %",
        "s serves Echo Unary",
        "s request fail",
        "s requests: end",
        "s: NotFound: nichts: ü %",
    ]);
    let requests = Request::new(items(vec![raw("a"), raw("b")]));
    let chat = channel.bidi_streaming(&CHAT, requests, &options).await.expect("a stream");
    assert_eq!(collect(chat.into_inner()).await.expect("an echo"), [raw("a"), raw("b")]);
    check(&[
        "c calls Chat BidiStreaming",
        "c request a",
        "c request b",
        "c requests: end",
        "c response a",
        "c response b",
        "c responses: end",
        "s serves Chat BidiStreaming",
        "s request a",
        "s response a",
        "s request b",
        "s response b",
        "s requests: end",
        "s responses: end",
    ]);
}

#[tokio::test]
async fn passive_interceptor_changes_nothing() {
    let log = Log::default();
    check(|channel| channel, |server| server, PLAIN).await;
    let passes = || head(Ok);
    check(|channel| channel.with_interceptor(passes()), |server| server.interceptor(passes()), PLAIN).await;
    let records = || Recording("", log.clone());
    check(|channel| channel.with_interceptor(records()), |server| server.interceptor(records()), PLAIN).await;
    let forwards = || |call: Call, next: Next| next.run(call);
    check(
        |channel| channel.with_interceptor(forwards()).with_interceptor(passes()).with_interceptor(records()),
        |server| server.interceptor(passes()).interceptor(forwards()).interceptor(passes()),
        PLAIN,
    )
    .await;
}

#[tokio::test]
async fn interceptor_can_reject_calls() {
    const REFUSED: Result<&str, &str> = Err("Unauthenticated: no token");
    let refuses = || head(|_| Err(Status::unauthenticated("no token")));
    check(|channel| channel.with_interceptor(refuses()), |server| server, [REFUSED; 4]).await;
    check(|channel| channel, |server| server.interceptor(refuses()), [REFUSED; 4]).await;
    let forwards = || |call: Call, next: Next| next.run(call);
    check(|channel| channel, |server| server.interceptor(forwards()).interceptor(refuses()), [REFUSED; 4])
        .await;
    check(
        |channel| channel.with_interceptor(refuses()).with_interceptor(forwards()),
        |server| server,
        [REFUSED; 4],
    )
    .await;
}

#[tokio::test]
async fn request_rejected_by_head_function_is_not_decoded() {
    static NUMBER: thalweg::Method = thalweg::Method::new("/test.Number/Take");
    /// Decoding always fails.
    struct Number;
    impl thalweg::Message for Number {
        fn encoded_len(&self) -> usize {
            0
        }
        fn encode(&self, _: &mut Vec<u8>) {}
        fn decode(_: &[u8]) -> Result<Self, thalweg::DecodeError> {
            Err(thalweg::DecodeError::new("looked at"))
        }
    }
    struct Numbers;
    impl thalweg::server::Service for Numbers {
        const NAME: &'static str = "test.Number";
        fn register(self, methods: &mut thalweg::server::Methods<'_>) {
            let options = thalweg::ServiceOptions::default();
            let take = async |_: Request<Number>| Ok(Response::new(raw("")));
            methods.unary(
                "Take",
                &Arc::new(self),
                &options,
                move |_, request| async move { take(request).await },
            );
        }
    }
    let check = async |server: ServerBuilder, expected: Code| {
        let channel = connect(&start(server.add_service(Numbers)).await).await;
        let options = CallOptions::default();
        let outcome = channel.unary::<Raw, Raw>(&NUMBER, Request::new(raw("")), &options).await;
        assert_eq!(outcome.expect_err("no number").code(), expected);
    };
    let refuses = || head(|_| Err(Status::unauthenticated("no token")));
    check(Server::builder(), Code::Internal).await;
    check(Server::builder().interceptor(head(Ok)), Code::Internal).await;
    check(Server::builder().interceptor(refuses()), Code::Unauthenticated).await;
    let forwards = |call: Call, next: Next| next.run(call);
    check(Server::builder().interceptor(refuses()).interceptor(forwards), Code::Unauthenticated).await;
    check(Server::builder().interceptor(forwards).interceptor(refuses()), Code::Internal).await;
}

/// Appends `name` to `x-echo`.
fn sign_with(name: &'static str) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Send + Sync {
    move |mut request| {
        let before = request.metadata().get("x-echo").map_or("", |value| value.to_str().expect("ASCII"));
        let signed = format!("{before}{name}").parse().expect("ASCII");
        request.metadata_mut().insert("x-echo", signed);
        Ok(request)
    }
}

#[tokio::test]
async fn interceptors_run_outermost_first() {
    let full = |name: &'static str| {
        move |mut call: Call, next: Next| {
            let head = Request::from_parts(call.metadata().clone(), thalweg::Extensions::default(), ());
            *call.metadata_mut() = sign_with(name)(head).expect("it passes all").into_parts().0;
            next.run(call)
        }
    };
    let check = async |client: &dyn Fn(InterceptedChannel) -> InterceptedChannel,
                       server: ServerBuilder,
                       recorded| {
        let channel = client(connect(&start(server).await).await.into());
        let response: Response<Raw> =
            channel.unary(&ECHO, Request::new(raw("a")), &CallOptions::default()).await.expect("a response");
        assert_eq!(response.metadata().get("x-echo").expect("echoed"), recorded);
    };
    let service = || InterceptedService::new(Echo::default(), head(sign_with("i")));
    check(
        &|channel| channel.with_interceptor(head(sign_with("b"))).with_interceptor(full("a")),
        Server::builder().interceptor(head(sign_with("c"))).add_service(service()).interceptor(full("d")),
        "abcdi",
    )
    .await;
    check(
        &|channel| channel.with_interceptor(full("b")).with_interceptor(head(sign_with("a"))),
        Server::builder()
            .add_service(InterceptedService::new(service(), full("h")))
            .interceptor(full("c"))
            .interceptor(full("d")),
        "abcdhi",
    )
    .await;
}

/// A different type; only its encoding matters.
struct Shout(Vec<u8>);
impl thalweg::Message for Shout {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_ascii_uppercase());
    }
    fn decode(wire: &[u8]) -> Result<Self, thalweg::DecodeError> {
        Ok(Self(wire.to_vec()))
    }
}

#[tokio::test]
async fn interceptor_can_change_messages() {
    let doubles = |messages: Messages| {
        messages.on_message(|message| {
            let Raw(bytes) = message.downcast_mut().expect("all messages here are Raw");
            *bytes = [&bytes[..], &bytes[..]].concat().into();
            Ok(())
        })
    };
    let shouts = |messages: Messages| {
        messages.on_message(|message| {
            *message = AnyMessage::new(Shout(message.to_bytes().to_vec()));
            Ok(())
        })
    };
    let requests = move |change: fn(Messages) -> Messages| {
        move |call: Call, next: Next| next.run(call.map_messages(change))
    };
    let responses = move |change: fn(Messages) -> Messages| {
        move |call: Call, next: Next| async move { Ok(next.run(call).await?.map(change)) }
    };
    let doubled = [Ok("aa"), Ok("2 4"), Ok(","), Ok("aa,bb")];
    // "2 02 0" is not a valid order, so the interceptor leaves `Repeat` unchanged.
    let streams = |call: Call, next: Next| {
        let is_repeat = call.method().name() == "Repeat";
        next.run(call.map_messages(|messages| {
            if is_repeat {
                messages
            } else {
                messages.on_message(|message| {
                    let Raw(bytes) = message.downcast_mut().expect("all messages here are Raw");
                    *bytes = [&bytes[..], &bytes[..]].concat().into();
                    Ok(())
                })
            }
        }))
    };
    check(|channel| channel.with_interceptor(streams), |server| server, doubled).await;
    check(|channel| channel, |server| server.interceptor(streams), doubled).await;
    let expected_texts = [Ok("aa"), Ok("2 22 2"), Ok(","), Ok("aa,bb")];
    check(|channel| channel.with_interceptor(responses(doubles)), |server| server, expected_texts).await;
    check(|channel| channel, |server| server.interceptor(responses(doubles)), expected_texts).await;
    let shouted = [Ok("A"), Ok("2 2"), Ok(","), Ok("A,B")];
    check(|channel| channel.with_interceptor(requests(shouts)), |server| server, shouted).await;
    check(|channel| channel, |server| server.interceptor(requests(shouts)), shouted).await;
    check(|channel| channel.with_interceptor(responses(shouts)), |server| server, shouted).await;
    check(|channel| channel, |server| server.interceptor(responses(shouts)), shouted).await;
}

#[tokio::test]
async fn interceptor_can_reject_messages() {
    const REFUSED: Result<&str, &str> = Err("InvalidArgument: no b");
    let no_b = |messages: Messages| {
        messages.on_message(|message| match message.to_bytes().first() {
            Some(b'b' | b'2') => Err(Status::invalid_argument("no b")),
            _ => Ok(()),
        })
    };
    let requests = move |call: Call, next: Next| next.run(call.map_messages(no_b));
    let responses = move |call: Call, next: Next| async move { Ok(next.run(call).await?.map(no_b)) };
    let all = [Ok("a"), REFUSED, REFUSED, REFUSED];
    check(|channel| channel.with_interceptor(requests), |server| server, all).await;
    check(|channel| channel, |server| server.interceptor(requests), all).await;
    let all = [Ok("a"), REFUSED, Ok(","), REFUSED];
    check(|channel| channel.with_interceptor(responses), |server| server, all).await;
    check(|channel| channel, |server| server.interceptor(responses), all).await;
}

#[tokio::test]
async fn interceptor_can_respond_itself() {
    let answers = |call: Call, _: Next| async move {
        Ok(Response::new(if call.call_type().has_one_response() {
            Messages::one(raw("mine"))
        } else {
            Messages::stream(items(vec![Ok(raw("mine")), Ok(raw("too"))]))
        }))
    };
    let all = [Ok("mine"), Ok("mine"), Ok("mine,too"), Ok("mine,too")];
    check(|channel| channel.with_interceptor(answers), |server| server, all).await;
    check(|channel| channel, |server| server.interceptor(answers), all).await;
    // A stream where one message is expected, and the reverse.
    let answers =
        |_: Call, _: Next| async move { Ok(Response::new(Messages::stream(items(vec![Ok(raw("x"))])))) };
    check(|channel| channel.with_interceptor(answers), |server| server, [Ok("x"); 4]).await;
    check(|channel| channel, |server| server.interceptor(answers), [Ok("x"); 4]).await;
    let answers = |_: Call, _: Next| async move { Ok(Response::new(Messages::one(raw("x")))) };
    check(|channel| channel.with_interceptor(answers), |server| server, [Ok("x"); 4]).await;
    check(|channel| channel, |server| server.interceptor(answers), [Ok("x"); 4]).await;
}

#[tokio::test]
async fn panic_in_interceptor_ends_its_call() {
    const PANICKED: Result<&str, &str> = Err("Internal: the handler panicked");
    let panics = |_: Call, _: Next| async move { panic!("asked to") };
    check(|channel| channel, |server| server.interceptor(panics), [PANICKED; 4]).await;
}

#[tokio::test]
async fn interceptor_can_retry() {
    let tries = |call: Call, next: Next| async move {
        // The sent message is consumed, so the retry sends a new one.
        let again = call.with_messages(Messages::one(raw("again")));
        match next.clone().run(call).await {
            Err(status) if status.code() == Code::NotFound => next.run(again).await,
            outcome => outcome,
        }
    };
    let target = start(Server::builder().add_service(Echo::default())).await;
    let channel = connect(&target).await.with_interceptor(tries);
    let response = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("fail")), &CallOptions::default()).await;
    assert_eq!(response.expect("the second try").into_inner(), raw("again"));
}

#[tokio::test]
async fn extensions_reach_handler() {
    #[derive(Clone)]
    struct User(String);
    static USER_NAME: thalweg::Method = thalweg::Method::new("/test.Who/AmI");
    struct UserService;
    impl thalweg::server::Service for UserService {
        const NAME: &'static str = "test.Who";
        fn register(self, methods: &mut thalweg::server::Methods<'_>) {
            let options = thalweg::ServiceOptions::default();
            methods.unary("AmI", &Arc::new(self), &options, |_, request: Request<Raw>| async move {
                let user = request.extensions().get::<User>().map_or("nobody", |user| &user.0);
                Ok(Response::new(raw(user)))
            });
        }
    }
    let check = async |server: ServerBuilder, expected: &str| {
        let channel = connect(&start(server.add_service(UserService)).await).await;
        let response =
            channel.unary::<Raw, Raw>(&USER_NAME, Request::new(raw("")), &CallOptions::default()).await;
        assert_eq!(response.expect("a response").into_inner(), raw(expected));
    };
    check(Server::builder(), "nobody").await;
    let names = head(|mut request: Request<()>| {
        request.extensions_mut().insert(User("Ada".to_owned()));
        Ok(request)
    });
    check(Server::builder().interceptor(names), "Ada").await;
    let names = |mut call: Call, next: Next| {
        call.extensions_mut().insert(User("Ada".to_owned()));
        next.run(call)
    };
    check(Server::builder().interceptor(names), "Ada").await;
}

#[tokio::test]
async fn dropped_stream_ends_with_cancelled() {
    let log = Log::default();
    let target = start(Server::builder().add_service(Echo::default())).await;
    let channel = connect(&target).await;
    let recorded_end = channel.with_interceptor(Recording("c", log.clone()));
    let request = Request::new(raw("1000000 1"));
    let mut response = recorded_end
        .server_streaming::<Raw, Raw>(&REPEAT, request, &CallOptions::default())
        .await
        .expect("a stream")
        .into_inner();
    assert!(response.message().await.expect("a message").is_some());
    log.take();
    drop(response);
    assert_eq!(log.take(), ["c responses: Cancelled: the stream was dropped before its end"]);
    crate::support::until(|| channel.lanes()[0].in_flight == 0).await;
    assert!(echo(&channel, raw("a")).await.is_ok());
}

#[tokio::test]
async fn custom_streams_pass_interceptors() {
    let check = async |given: Vec<Result<Raw, Status>>, expected: Result<Vec<Raw>, Code>| {
        let mut stream = Streaming::from_stream(items(given));
        let mut recorded = Vec::new();
        let outcome = loop {
            match stream.message().await {
                Ok(Some(message)) => recorded.push(message),
                Ok(None) => break Ok(recorded),
                Err(status) => break Err(status.code()),
            }
        };
        assert_eq!(outcome, expected);
        assert_eq!(stream.message().await.expect("nothing follows"), None);
    };
    check(vec![], Ok(vec![])).await;
    check(vec![Ok(raw("a")), Ok(raw("b"))], Ok(vec![raw("a"), raw("b")])).await;
    check(vec![Ok(raw("a")), Err(Status::aborted("")), Ok(raw("b"))], Err(Code::Aborted)).await;
}

#[cfg(feature = "tower")]
mod layers {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    use thalweg::interceptor::layer;
    use tower_layer::{Layer, layer_fn};
    use tower_service::Service;

    use super::*;

    /// A service that counts its calls and rejects `b`s.
    #[derive(Clone)]
    struct Counted<S>(S, Arc<AtomicUsize>);

    impl<S: Service<Call, Response = Reply>> Service<Call> for Counted<S> {
        type Response = Reply;
        type Error = S::Error;
        type Future = S::Future;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, call: Call) -> S::Future {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.call(call)
        }
    }

    fn counts<S>(count: &Arc<AtomicUsize>) -> impl Layer<S, Service = Counted<S>> + use<S> {
        let count = Arc::clone(count);
        layer_fn(move |service| Counted(service, Arc::clone(&count)))
    }

    /// Fails in `poll_ready`.
    #[derive(Clone)]
    struct Overloaded;

    impl Service<Call> for Overloaded {
        type Response = Reply;
        type Error = Box<dyn std::error::Error + Send + Sync>;
        type Future = std::future::Ready<Result<Reply, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Err("overloaded".into()))
        }

        fn call(&mut self, _: Call) -> Self::Future {
            std::future::ready(Err("called though not ready".into()))
        }
    }

    #[tokio::test]
    async fn tower_layers_work_as_interceptors() {
        let (at_client, at_server) = (Arc::default(), Arc::default());
        check(
            |channel| channel.with_interceptor(layer(counts(&at_client))),
            |server| server.interceptor(layer(counts(&at_server))),
            PLAIN,
        )
        .await;
        assert_eq!((at_client.load(Ordering::SeqCst), at_server.load(Ordering::SeqCst)), (4, 4));
        let overloaded = || layer(layer_fn(|_| Overloaded));
        let all = [Err("Unknown: overloaded"); 4];
        check(|channel| channel.with_interceptor(overloaded()), |server| server, all).await;
        check(|channel| channel, |server| server.interceptor(overloaded()), all).await;
    }
}

/// A service with a method whose name is invalid.
struct Misnamed;

impl Service for Misnamed {
    const NAME: &'static str = "test.Misnamed";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        let call = |_: Arc<Self>, request: Request<Raw>| async { Ok(Response::new(request.into_inner())) };
        methods.unary("Echo/Twice", &service, &options, call);
        methods.unary("Echo", &service, &options, call);
    }
}

#[tokio::test]
async fn method_with_an_invalid_name_fails_its_calls() {
    static TWICE: Method = Method::new("/test.Misnamed/Echo/Twice");
    static ECHO: Method = Method::new("/test.Misnamed/Echo");
    type With = fn(ServerBuilder) -> ServerBuilder;
    let with: [With; 3] = [
        |server| server,
        |server| server.interceptor(head(Ok)),
        |server| server.interceptor(Recording("server", Log::default())),
    ];
    for with in with {
        let channel = connect(&start(with(Server::builder()).add_service(Misnamed)).await).await;
        let call = async |method| {
            let options = CallOptions::default();
            channel.unary::<Raw, Raw>(method, Request::new(raw("x")), &options).await
        };
        let status = call(&TWICE).await.expect_err("its name is invalid");
        assert_eq!(status.code(), Code::Internal, "{status}");
        assert!(status.message().contains("/test.Misnamed/Echo/Twice"), "{status}");
        call(&ECHO).await.expect("a response");
    }
}
