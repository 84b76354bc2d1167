//! The course of a world: its calls, its servers, and the final checks.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use thalweg::{Channel, Server};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::call;
use super::duplex::Duplex;
use super::plan::CallPlan;
use super::service::Script;
use super::world::{World, lock};
use crate::http2::Side;

/// Longer than any world takes: later, it has stalled.
const STALLED_AFTER: Duration = Duration::from_secs(12 * 3600);
/// Time beyond its grace that a server may take to stop: drivers linger for one second, and it waits for two.
const STOP_SLACK: Duration = Duration::from_millis(2100);
/// Enough for a GOAWAY to travel both ways and for connections to linger.
const CLOSED_AFTER: Duration = Duration::from_secs(60);
/// Enough for woken tasks to run.
const WAKE_SLACK: Duration = Duration::from_millis(1);

/// Makes all calls and checks that nothing is left of them.
pub(super) async fn run(world: &Arc<World>) {
    thalweg::settle_alone(world.plan.slices);
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(serve(Arc::clone(world), stopped));
    let connecting = Arc::clone(world);
    let channel = Channel::builder("sim:1")
        .http2(world.plan.client.clone())
        .lanes(world.plan.lanes)
        .backoff_jitter(|| 0.5)
        .connector(move || Arc::clone(&connecting).connect())
        .connect_lazy()
        .expect("a good target");
    let mut calls = JoinSet::new();
    for _ in 0..world.plan.calls {
        // Short enough for metadata.
        let plan = CallPlan::new(lock(&world.random).number() >> 16, &world.plan);
        let (world, channel) = (Arc::clone(world), channel.clone());
        calls.spawn(async move { call::run(&world, channel, plan).await });
    }
    let all = async {
        while let Some(call) = calls.join_next().await {
            call.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
    };
    let ended = timeout(STALLED_AFTER, all).await;
    assert!(ended.is_ok(), "stalled: not all calls have ended; {channel:#?} {:#?}", world.plan);
    for lane in channel.lanes() {
        assert_eq!(lane.in_flight, 0, "unexpected call in flight");
    }
    drop(channel);
    sleep(CLOSED_AFTER).await;
    assert_eq!(Arc::strong_count(&world.ends), 1, "connections outlive their channel");
    world.assert_no_handlers();
    stop.send_replace(true);
    serving.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    assert_eq!(*lock(&world.failures), Vec::<String>::new());
}

/// Runs one server after the other until the world ends.
async fn serve(world: Arc<World>, mut stopped: watch::Receiver<bool>) {
    let mut restarts = world.plan.restarts.clone().into_iter();
    while !*stopped.borrow() {
        let (sender, incoming) = mpsc::unbounded_channel();
        *lock(&world.listener) = Some(sender);
        let restart_at = restarts.next().map(|after| world.start + after);
        let mut stopped_at = Instant::now();
        let shutdown = async {
            match restart_at {
                Some(at) => sleep_until(at).await,
                None => drop(stopped.wait_for(|stopped| *stopped).await),
            }
            world.note(Side::Server, "stop", 0, 0);
            world.was_stopped.store(true, Ordering::Relaxed);
            *lock(&world.listener) = None;
            stopped_at = Instant::now();
        };
        let server = Server::builder()
            // With a budget of a few bytes and a slow link, responses may take any time.
            .request_timeout(None)
            .reply_timeout(None)
            .http2(world.plan.server.clone())
            .shutdown_grace(world.plan.shutdown_grace)
            .add_service(Script { world: Arc::clone(&world) });
        server.serve_incoming(Incoming(incoming), shutdown).await.expect("a configuration");
        let took = stopped_at.elapsed();
        world.note(Side::Server, "stopped", 0, took.as_millis() as usize);
        assert!(took <= world.plan.shutdown_grace + STOP_SLACK, "stopping took {took:?}");
        sleep(WAKE_SLACK).await;
        world.assert_no_handlers();
        let pause = lock(&world.random).size(2000);
        sleep(Duration::from_millis(pause as u64)).await;
    }
}

/// Incoming connections.
struct Incoming(mpsc::UnboundedReceiver<Duplex>);

impl Stream for Incoming {
    type Item = Duplex;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Duplex>> {
        self.0.poll_recv(cx)
    }
}
