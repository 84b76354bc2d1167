//! One call, and the check of its outcome.

use std::time::Duration;

use thalweg::{CallOptions, Channel, Code, Encoding, Raw, Request, Status, Streaming};
use tokio::time::Instant;

use super::messages;
use super::plan::{CallPlan, Ending, Kind};
use super::service::{BIDI, CLIENT_STREAMING, SEED, SERVER_STREAMING, UNARY};
use super::world::World;
use crate::http2::Side;

/// How a call ended for its caller.
#[derive(Debug)]
enum Outcome {
    /// The caller dropped it.
    Dropped,
    Ended {
        status: Result<(), Status>,
        responses: usize,
    },
}

/// Timers have a resolution of a millisecond.
const TIMER_SLACK: Duration = Duration::from_millis(3);

/// Makes a call at its start time and checks its outcome.
pub(super) async fn run(world: &World, channel: Channel, plan: CallPlan) {
    tokio::time::sleep(plan.start).await;
    world.note(Side::Client, "call", plan.seed, 0);
    let started = Instant::now();
    let call = perform(world, &channel, &plan);
    let outcome = match plan.drop_after {
        None => call.await,
        Some(after) => tokio::time::timeout(after, call).await.unwrap_or(Outcome::Dropped),
    };
    let code = match &outcome {
        Outcome::Dropped => 99,
        Outcome::Ended { status, .. } => status.as_ref().err().map_or(0, |status| status.code() as usize),
    };
    world.note(Side::Client, "end", plan.seed, code);
    if let Err(failure) = check_outcome(world, &plan, &outcome, started.elapsed()) {
        panic!("{failure}: {outcome:?}\n{plan:#?}");
    }
}

async fn perform(world: &World, channel: &Channel, plan: &CallPlan) -> Outcome {
    let mut options = CallOptions::default();
    options.wait_for_ready = Some(plan.wait_for_ready);
    options.send_compressed = plan.compresses.then_some(Encoding::Gzip);
    let first = || messages::message(plan, Side::Client, 0);
    let requests = || messages::Requests::new(plan);
    let streaming = match plan.kind {
        Kind::Unary => return single(plan, channel.unary(&UNARY, request(plan, first()), &options).await),
        Kind::ClientStreaming => {
            let call = channel.client_streaming(&CLIENT_STREAMING, request(plan, requests()), &options);
            return single(plan, call.await);
        }
        Kind::ServerStreaming => {
            channel.server_streaming(&SERVER_STREAMING, request(plan, first()), &options).await
        }
        Kind::Bidi => channel.bidi_streaming(&BIDI, request(plan, requests()), &options).await,
    };
    match streaming {
        Ok(response) => read(world, plan, response.into_inner()).await,
        Err(status) => Outcome::Ended { status: Err(status), responses: 0 },
    }
}

fn request<T>(plan: &CallPlan, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(SEED, plan.seed.to_string().parse().expect("digits"));
    if let Some(deadline) = plan.deadline {
        request.set_timeout(deadline);
    }
    request
}

fn single(plan: &CallPlan, response: Result<thalweg::Response<Raw>, Status>) -> Outcome {
    match response {
        Ok(response) => {
            messages::check(plan, Side::Server, 0, response.get_ref()).expect("the planned response");
            Outcome::Ended { status: Ok(()), responses: 1 }
        }
        Err(status) => Outcome::Ended { status: Err(status), responses: 0 },
    }
}

async fn read(world: &World, plan: &CallPlan, mut stream: Streaming<Raw>) -> Outcome {
    let mut responses = 0;
    loop {
        if responses == plan.responses_max {
            return Outcome::Dropped;
        }
        match stream.message().await {
            Ok(Some(response)) => {
                world.note(Side::Client, "response", plan.seed, response.0.len());
                messages::check(plan, Side::Server, responses, &response).expect("the planned response");
                responses += 1;
            }
            Ok(None) => return Outcome::Ended { status: Ok(()), responses },
            Err(status) => return Outcome::Ended { status: Err(status), responses },
        }
    }
}

fn check_outcome(
    world: &World,
    plan: &CallPlan,
    outcome: &Outcome,
    took: Duration,
) -> Result<(), &'static str> {
    if let Some(deadline) = plan.deadline
        && took > deadline + TIMER_SLACK
    {
        return Err("the call outlived its deadline");
    }
    let Outcome::Ended { status, responses } = outcome else {
        let may_drop = plan.responses_max != usize::MAX || plan.drop_after.is_some();
        return if may_drop { Ok(()) } else { Err("unexpected drop of the call") };
    };
    let code = status.as_ref().err().map_or(Code::Ok, Status::code);
    match code {
        Code::DeadlineExceeded => match plan.deadline {
            Some(deadline) if took + TIMER_SLACK >= deadline => Ok(()),
            _ => Err("the deadline had not passed"),
        },
        // Requests that had not reached the server, or had no response yet, when a link broke or the server stopped.
        Code::Unavailable if world.was_disrupted() => Ok(()),
        code => check_handler_outcome(plan, code, *responses),
    }
}

/// Checks the handler's own outcome.
fn check_handler_outcome(plan: &CallPlan, code: Code, responses: usize) -> Result<(), &'static str> {
    let is_stream = matches!(plan.kind, Kind::ServerStreaming | Kind::Bidi);
    let all = plan.responses.len();
    let (expected, count) = match plan.ending {
        Ending::Ok => (Code::Ok, all..=all),
        Ending::Fail(code) if is_stream => (code, all..=all),
        Ending::Fail(code) => (code, 0..=0),
        // Packed but unsent responses are lost with the handler.
        Ending::Panic if is_stream => (Code::Internal, 0..=all),
        Ending::Panic => (Code::Internal, 0..=0),
        Ending::Never => return Err("the handler does not end"),
    };
    if code != expected {
        return Err("unexpected status");
    }
    if !count.contains(&responses) {
        return Err("unexpected number of responses");
    }
    Ok(())
}
