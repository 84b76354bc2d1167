//! What has gathered on a connection is answered before all of it is taken in, so that both ends work at the same time.

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
/// Calls of the batch; many more than one slice has.
const BATCH: usize = 60;

/// Echoes; the last call of the batch keeps the thread until the caller of another has its answer.
struct LastWaits {
    begun: AtomicUsize,
    answered: Mutex<Receiver<()>>,
}

impl LastWaits {
    fn echo(&self, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if number == CALLS_BEFORE + BATCH {
            let answered = self.answered.lock().expect("no panic").recv_timeout(Duration::from_secs(60));
            answered.map_err(|_| Status::internal("no call of the batch was answered yet"))?;
        }
        Ok(Response::new(request.into_inner()))
    }
}

impl Service for LastWaits {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let call = |service: Arc<Self>, request| async move { service.echo(request) };
        methods.unary("Echo", &Arc::new(self), &ServiceOptions::default(), call);
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Serves on a thread of its own: within one thread there is nobody to take an answer while a handler keeps it.
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

async fn call(channel: Channel, answered: Option<Sender<()>>) {
    let reply: Result<Response<Raw>, Status> =
        channel.unary(&ECHO, Request::new(raw("x")), &CallOptions::default()).await;
    if let Some(answered) = answered {
        // Nobody waits for more than one.
        let _ = answered.send(());
    }
    assert_eq!(reply.expect("an answer").into_inner(), raw("x"));
}

#[test]
fn the_first_of_a_batch_is_answered_while_the_last_is_at_work() {
    let (answer, answered) = mpsc::channel();
    let target = serve(LastWaits { begun: AtomicUsize::new(0), answered: Mutex::new(answered) });
    runtime().block_on(async {
        let channel = Channel::builder(target).connect().await.expect("a server");
        for _ in 0..CALLS_BEFORE {
            call(channel.clone(), None).await;
        }
        // All of them are encoded before the connection's task has its turn, so they leave in one write.
        let calls: Vec<_> =
            (0..BATCH).map(|_| tokio::spawn(call(channel.clone(), Some(answer.clone())))).collect();
        for call in calls {
            call.await.expect("an answer");
        }
    });
}
