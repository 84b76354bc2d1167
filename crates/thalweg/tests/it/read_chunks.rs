//! A server responds to the first requests of a batch before it has read the rest, so that both ends work in parallel.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{ECHO, raw};
use thalweg::server::{Methods, Service};
use thalweg::{CallOptions, Channel, Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::runtime::{Builder, Runtime};

/// Calls until the connection counts as the only one of its thread.
const CALLS_BEFORE: usize = 50;
/// Pause before each of them. A server that spins between calls counts nothing.
const PAUSE: Duration = Duration::from_millis(2);
/// Calls per batch; many more than one chunk holds.
const BATCH: usize = 60;
/// A server that did not sleep before the batch arrived reads it as one. Then another server gets a batch: this one's
/// handler counts as slow.
const SERVERS_MAX: usize = 20;

/// Echoes; the last call of the batch blocks the thread until another call's caller has its response.
struct WaitsForFirst {
    started: AtomicUsize,
    responses: Mutex<Receiver<()>>,
    has_timed_out: Arc<AtomicBool>,
}

impl WaitsForFirst {
    fn echo(&self, request: Request<Raw>) -> Response<Raw> {
        if self.started.fetch_add(1, Ordering::SeqCst) + 1 == CALLS_BEFORE + BATCH {
            let first = self.responses.lock().expect("no panic").recv_timeout(Duration::from_secs(1));
            self.has_timed_out.store(first.is_err(), Ordering::SeqCst);
        }
        Response::new(request.into_inner())
    }
}

impl Service for WaitsForFirst {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let call = |service: Arc<Self>, request| async move { Ok(service.echo(request)) };
        methods.unary("Echo", &Arc::new(self), &ServiceOptions::default(), call);
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Serves on a thread of its own: on a single thread, no client could receive a response while a handler blocks.
fn serve(service: WaitsForFirst) -> String {
    let (address, bound) = mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let server = Server::builder().add_service(service);
            let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a port");
            address.send(server.local_addresses()[0].to_string()).expect("somebody waits");
            server.serve().await.expect("it serves on");
        });
    });
    bound.recv().expect("a server")
}

async fn call(channel: Channel, responses: Option<Sender<()>>) {
    let response: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("x")), &CallOptions::default()).await;
    if let Some(responses) = responses {
        // Only one is waited for.
        let _ = responses.send(());
    }
    assert_eq!(response.expect("a response").into_inner(), raw("x"));
}

/// Returns whether a call of a batch is answered before the last of the batch is done.
async fn answers_during_batch() -> bool {
    let (response_sender, responses) = mpsc::channel();
    let has_timed_out = Arc::new(AtomicBool::new(false));
    let target = serve(WaitsForFirst {
        started: AtomicUsize::new(0),
        responses: Mutex::new(responses),
        has_timed_out: has_timed_out.clone(),
    });
    // With a second connection, this one would not be the only one of the server's thread.
    let channel = Channel::builder(target).lanes(1).connect().await.expect("a server");
    for _ in 0..CALLS_BEFORE {
        tokio::time::sleep(PAUSE).await;
        call(channel.clone(), None).await;
    }
    // The server is asleep by then, unless the machine is busy.
    tokio::time::sleep(Duration::from_millis(50)).await;
    // All are encoded before the connection's task runs, so they leave in one write.
    let one = || tokio::spawn(call(channel.clone(), Some(response_sender.clone())));
    let calls: Vec<_> = (0..BATCH).map(|_| one()).collect();
    for call in calls {
        call.await.expect("a response");
    }
    !has_timed_out.load(Ordering::SeqCst)
}

#[test]
fn first_of_batch_is_answered_while_last_runs() {
    runtime().block_on(async {
        for _ in 0..SERVERS_MAX {
            if answers_during_batch().await {
                return;
            }
        }
        panic!("no call of {SERVERS_MAX} batches was answered before the last of its batch was done");
    });
}
