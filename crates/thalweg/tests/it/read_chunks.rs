//! A server responds to the first requests of a batch before it has read the rest, so that both ends work in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{ECHO, raw};
use thalweg::server::{Methods, Service};
use thalweg::{CallOptions, Channel, Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::runtime::{Builder, Runtime};

/// Calls until the connection counts as the only one of its thread.
const CALLS_BEFORE: usize = 100;
/// Calls per batch; many more than one chunk holds.
const BATCH: usize = 60;
/// If the server did not sleep before a batch arrived, it reads it as one, and the test sends another batch.
const BATCHES_MAX: usize = 100;

/// Echoes; the last call of a batch blocks the thread until another call's caller has its response.
struct WaitsForFirst {
    started: AtomicUsize,
    /// Batch number, from one, of a call with a response.
    response_receiver: Mutex<Receiver<usize>>,
    timed_out: Arc<AtomicUsize>,
}

impl WaitsForFirst {
    fn echo(&self, request: Request<Raw>) -> Response<Raw> {
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        if number > CALLS_BEFORE && (number - CALLS_BEFORE).is_multiple_of(BATCH) {
            self.wait((number - CALLS_BEFORE) / BATCH);
        }
        Response::new(request.into_inner())
    }

    fn wait(&self, batch: usize) {
        let response_receiver = self.response_receiver.lock().expect("no panic");
        loop {
            match response_receiver.recv_timeout(Duration::from_secs(1)) {
                // From an earlier batch that got its responses at once.
                Ok(other) if other < batch => {}
                Ok(_) => return,
                Err(_) => break,
            }
        }
        self.timed_out.fetch_add(1, Ordering::SeqCst);
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

async fn call(channel: Channel, response_receiver: Option<(Sender<usize>, usize)>) {
    let response: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("x")), &CallOptions::default()).await;
    if let Some((response_receiver, batch)) = response_receiver {
        // Only one is waited for.
        let _ = response_receiver.send(batch);
    }
    assert_eq!(response.expect("a response").into_inner(), raw("x"));
}

#[test]
fn first_of_batch_is_answered_while_last_runs() {
    let (response_sender, response_receiver) = mpsc::channel();
    let timed_out = Arc::new(AtomicUsize::new(0));
    let target = serve(WaitsForFirst {
        started: AtomicUsize::new(0),
        response_receiver: Mutex::new(response_receiver),
        timed_out: timed_out.clone(),
    });
    runtime().block_on(async {
        // With a second connection, this one would not be the only one of the server's thread.
        let channel = Channel::builder(target).lanes(1).connect().await.expect("a server");
        for _ in 0..CALLS_BEFORE {
            call(channel.clone(), None).await;
        }
        for batch in 1..=BATCHES_MAX {
            // The server is asleep by then, unless the machine is busy.
            tokio::time::sleep(Duration::from_millis(50)).await;
            // All are encoded before the connection's task runs, so they leave in one write.
            let one = || tokio::spawn(call(channel.clone(), Some((response_sender.clone(), batch))));
            let calls: Vec<_> = (0..BATCH).map(|_| one()).collect();
            for call in calls {
                call.await.expect("a response");
            }
            if timed_out.load(Ordering::SeqCst) < batch {
                return;
            }
        }
        panic!("no call of {BATCHES_MAX} batches was answered before the last of its batch was done");
    });
}
