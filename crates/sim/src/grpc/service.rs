//! The service: each call's seed determines its handler's actions.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use thalweg::server::{Methods, Service};
use thalweg::{Encoding, Raw, Request, Response, ServiceOptions, Status, Streaming};

use super::messages;
use super::plan::{CallPlan, Ending};
use super::world::World;
use crate::http2::Side;
use crate::seeds::PLANNED_PANIC;

pub(super) static UNARY: thalweg::Method = thalweg::Method::new("/sim.Script/Unary");
pub(super) static CLIENT_STREAMING: thalweg::Method = thalweg::Method::new("/sim.Script/ClientStreaming");
pub(super) static SERVER_STREAMING: thalweg::Method = thalweg::Method::new("/sim.Script/ServerStreaming");
pub(super) static BIDI: thalweg::Method = thalweg::Method::new("/sim.Script/Bidi");

/// Metadata key of the request with the call's seed.
pub(super) const SEED: &str = "x-seed";

/// All four kinds of calls.
pub(super) struct Script {
    pub(super) world: Arc<World>,
}

impl Service for Script {
    const NAME: &'static str = "sim.Script";

    fn register(self, methods: &mut Methods<'_>) {
        let mut options = ServiceOptions::default();
        options.send_compressed = self.world.plan.compresses.then_some(Encoding::Gzip);
        let service = Arc::new(self);
        methods.unary("Unary", &service, &options, Script::unary);
        methods.client_streaming("ClientStreaming", &service, &options, Script::client_streaming);
        methods.server_streaming("ServerStreaming", &service, &options, Script::server_streaming);
        methods.bidi_streaming("Bidi", &service, &options, Script::bidi);
    }
}

impl Script {
    async fn unary(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        let mut run = HandlerRun::begin(&self.world, &request);
        run.receive(request.get_ref());
        run.pause().await;
        run.end().await?;
        Ok(Response::new(run.response(0)))
    }

    async fn client_streaming(
        self: Arc<Self>,
        request: Request<Streaming<Raw>>,
    ) -> Result<Response<Raw>, Status> {
        let mut run = HandlerRun::begin(&self.world, &request);
        let mut requests = request.into_inner();
        run.receive_all(&mut requests).await?;
        run.pause().await;
        run.end().await?;
        Ok(Response::new(run.response(0)))
    }

    #[expect(clippy::unused_async, reason = "all handlers are async functions")]
    async fn server_streaming(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Responses>, Status> {
        let mut run = HandlerRun::begin(&self.world, &request);
        run.receive(request.get_ref());
        Ok(Response::new(Responses::new(run, None)))
    }

    #[expect(clippy::unused_async, reason = "all handlers are async functions")]
    async fn bidi(self: Arc<Self>, request: Request<Streaming<Raw>>) -> Result<Response<Responses>, Status> {
        let run = HandlerRun::begin(&self.world, &request);
        Ok(Response::new(Responses::new(run, Some(request.into_inner()))))
    }
}

/// A running handler, until it ends or is dropped.
struct HandlerRun {
    world: Arc<World>,
    plan: CallPlan,
    received: usize,
}

impl HandlerRun {
    fn begin<T>(world: &Arc<World>, request: &Request<T>) -> HandlerRun {
        let seed = request.metadata().get(SEED).and_then(|seed| seed.to_str().ok()?.parse().ok());
        let plan = CallPlan::new(seed.expect("every call has its seed"), &world.plan);
        world.handler_started(plan.seed);
        HandlerRun { world: Arc::clone(world), plan, received: 0 }
    }

    fn receive(&mut self, request: &Raw) {
        self.world.note(Side::Server, "request", self.plan.seed, request.0.len());
        if let Err(failure) = messages::check(&self.plan, Side::Client, self.received, request) {
            self.world.fail(&format!("call {}: {failure}", self.plan.seed));
        }
        self.received += 1;
    }

    /// Reads the planned number of requests; if that is all of them, also reads their end.
    async fn receive_all(&mut self, requests: &mut Streaming<Raw>) -> Result<(), Status> {
        while self.received < self.plan.reads {
            self.receive_next(requests).await?;
        }
        if self.received == self.plan.requests.len() && requests.message().await?.is_some() {
            self.world.fail(&format!("call {}: more requests than were sent", self.plan.seed));
        }
        Ok(())
    }

    async fn receive_next(&mut self, requests: &mut Streaming<Raw>) -> Result<(), Status> {
        let Some(request) = requests.message().await? else {
            self.world.fail(&format!("call {}: requests end after {}", self.plan.seed, self.received));
            return Err(Status::internal("too few requests"));
        };
        self.receive(&request);
        Ok(())
    }

    async fn pause(&self) {
        if !self.plan.response_pause.is_zero() {
            tokio::time::sleep(self.plan.response_pause).await;
        }
    }

    async fn end(&self) -> Result<(), Status> {
        match self.plan.ending {
            Ending::Ok => Ok(()),
            Ending::Fail(code) => Err(Status::new(code, "as planned: ü %")),
            Ending::Panic => std::panic::panic_any(PLANNED_PANIC),
            Ending::Never => pending().await,
        }
    }

    fn response(&self, index: usize) -> Raw {
        messages::message(&self.plan, Side::Server, index)
    }
}

impl Drop for HandlerRun {
    fn drop(&mut self) {
        self.world.handler_ended(self.plan.seed);
    }
}

type Step = Pin<Box<dyn Future<Output = (ResponseState, Option<Result<Raw, Status>>)> + Send>>;

/// The responses of a streaming call.
struct Responses {
    /// `None` after the last response or an error.
    step: Option<Step>,
}

/// State that creates the next response.
struct ResponseState {
    run: HandlerRun,
    requests: Option<Streaming<Raw>>,
    next: usize,
}

impl Responses {
    fn new(run: HandlerRun, requests: Option<Streaming<Raw>>) -> Responses {
        let state = ResponseState { run, requests, next: 0 };
        Responses { step: Some(Box::pin(state.step())) }
    }
}

impl ResponseState {
    async fn step(mut self) -> (ResponseState, Option<Result<Raw, Status>>) {
        let response = self.response().await.transpose();
        (self, response)
    }

    async fn response(&mut self) -> Result<Option<Raw>, Status> {
        let index = self.next;
        self.next += 1;
        let last = index == self.run.plan.responses.len();
        if let Some(requests) = &mut self.requests {
            if last {
                self.run.receive_all(requests).await?;
            } else if self.run.received < self.run.plan.reads {
                self.run.receive_next(requests).await?;
            }
        }
        if last {
            self.run.end().await?;
            return Ok(None);
        }
        self.run.pause().await;
        Ok(Some(self.run.response(index)))
    }
}

impl Stream for Responses {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(step) = &mut self.step else { return Poll::Ready(None) };
        let (state, response) = ready!(step.as_mut().poll(cx));
        self.step = matches!(response, Some(Ok(_))).then(|| Box::pin(state.step()) as Step);
        Poll::Ready(response)
    }
}
