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
struct LastWaits {
    begun: AtomicUsize,
    /// Batch number, from one, of a call with a response.
    answered: Mutex<Receiver<usize>>,
    waited_in_vain: Arc<AtomicUsize>,
}

impl LastWaits {
    fn echo(&self, request: Request<Raw>) -> Response<Raw> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if number > CALLS_BEFORE && (number - CALLS_BEFORE).is_multiple_of(BATCH) {
            self.wait((number - CALLS_BEFORE) / BATCH);
        }
        Response::new(request.into_inner())
    }

    fn wait(&self, batch: usize) {
        let answered = self.answered.lock().expect("no panic");
        loop {
            match answered.recv_timeout(Duration::from_secs(1)) {
                // From an earlier batch that got its responses at once.
                Ok(other) if other < batch => {}
                Ok(_) => return,
                Err(_) => break,
            }
        }
        self.waited_in_vain.fetch_add(1, Ordering::SeqCst);
    }
}

impl Service for LastWaits {
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
fn serve(service: LastWaits) -> String {
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

async fn call(channel: Channel, answered: Option<(Sender<usize>, usize)>) {
    let reply: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("x")), &CallOptions::default()).await;
    if let Some((answered, batch)) = answered {
        // Only one is waited for.
        let _ = answered.send(batch);
    }
    assert_eq!(reply.expect("an answer").into_inner(), raw("x"));
}

#[test]
fn the_first_of_a_batch_is_answered_while_the_last_is_at_work() {
    let (answer, answered) = mpsc::channel();
    let waited_in_vain = Arc::new(AtomicUsize::new(0));
    let target = serve(LastWaits {
        begun: AtomicUsize::new(0),
        answered: Mutex::new(answered),
        waited_in_vain: waited_in_vain.clone(),
    });
    runtime().block_on(async {
        let channel = Channel::builder(target).connect().await.expect("a server");
        for _ in 0..CALLS_BEFORE {
            call(channel.clone(), None).await;
        }
        for batch in 1..=BATCHES_MAX {
            // The server is asleep by then, unless the machine is busy.
            tokio::time::sleep(Duration::from_millis(50)).await;
            // All are encoded before the connection's task runs, so they leave in one write.
            let one = || tokio::spawn(call(channel.clone(), Some((answer.clone(), batch))));
            let calls: Vec<_> = (0..BATCH).map(|_| one()).collect();
            for call in calls {
                call.await.expect("an answer");
            }
            if waited_in_vain.load(Ordering::SeqCst) < batch {
                return;
            }
        }
        panic!("no call of {BATCHES_MAX} batches was answered before the last of its batch was done");
    });
}
