//! Calls on a balanced channel while pods come and go.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg::channel::policy::PolicyConfig;
use thalweg::server::{Methods, Service};
use thalweg::{CallOptions, Channel, Method, Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::api::{Api, slice};

static NAME: Method = Method::new("/test.Pod/Name");

/// A server that responds with its address.
struct Pod {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    stopped: tokio::task::JoinHandle<()>,
}

struct Name(String);

impl Service for Name {
    const NAME: &'static str = "test.Pod";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Name", &Arc::new(self), &ServiceOptions::default(), name);
    }
}

async fn name(pod: Arc<Name>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
    Ok(Response::new(Raw(pod.0.clone().into())))
}

impl Pod {
    /// Starts it at 127.0.0.`host`.
    async fn start(host: u8) -> Self {
        let free =
            std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let server = Server::builder().add_service(Name(address.to_string()));
        let bound = server.bind(&[address.into()]).await.expect("a free address");
        let (stop, stopping) = oneshot::channel::<()>();
        let stopped = tokio::spawn(async move {
            let stopping = async {
                let _ = stopping.await;
            };
            bound.serve_until(stopping).await.expect("a graceful end");
        });
        Self { address, stop, stopped }
    }

    fn slice(&self, version: &str) -> String {
        slice(&format!("of-{}", self.address.ip()), version, &[self.address])
    }

    async fn stop(self) {
        drop(self.stop);
        self.stopped.await.expect("it ends");
    }
}

/// Calls without pause, and collects the pods that respond.
struct Callers {
    pods: Arc<Mutex<BTreeSet<String>>>,
    ends: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Result<u64, Status>>>,
}

impl Callers {
    fn start(channel: &Channel) -> Self {
        let (pods, ends) = (Arc::<Mutex<BTreeSet<String>>>::default(), Arc::new(AtomicBool::new(false)));
        let caller = |_| {
            let (channel, pods, ends) = (channel.clone(), Arc::clone(&pods), Arc::clone(&ends));
            tokio::spawn(async move {
                let mut calls = 0;
                while !ends.load(Ordering::Relaxed) {
                    let request = Request::new(Raw("".into()));
                    let response: Response<Raw> =
                        channel.unary(&NAME, request, &CallOptions::default()).await?;
                    let name = String::from_utf8_lossy(&response.get_ref().0).into_owned();
                    pods.lock().expect("no caller panics").insert(name);
                    calls += 1;
                    tokio::task::yield_now().await;
                }
                Ok(calls)
            })
        };
        let tasks = (0..4).map(caller).collect();
        Self { pods, ends, tasks }
    }

    /// Waits until exactly these pods respond.
    async fn until(&self, expected: &[&Pod]) {
        let expected: BTreeSet<_> = expected.iter().map(|pod| pod.address.to_string()).collect();
        let reached = async {
            loop {
                self.pods.lock().expect("no caller panics").clear();
                sleep(Duration::from_millis(50)).await;
                if *self.pods.lock().expect("no caller panics") == expected {
                    return;
                }
            }
        };
        let reached = timeout(Duration::from_secs(20), reached).await;
        reached.unwrap_or_else(|_| panic!("{:?} respond, not {expected:?}", self.pods));
    }

    /// Returns the number of calls, none of which failed.
    async fn end(self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        let mut calls = 0;
        for task in self.tasks {
            calls += task.await.expect("no caller panics").expect("no call fails");
        }
        calls
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_pods_are_added_and_removed() {
    let mut api = Api::start().await;
    let (one, two, three) = (Pod::start(11).await, Pod::start(12).await, Pod::start(13).await);
    let channel = Channel::builder("orders.shop")
        .resolver(api.resolver("orders.shop:grpc"))
        .load_balancing(PolicyConfig::RoundRobin)
        .connect_lazy()
        .expect("a valid channel");
    let callers = Callers::start(&channel);
    let mut watch = api.list_and_watch("5", &[one.slice("3"), two.slice("4")]).await;
    callers.until(&[&one, &two]).await;
    watch.event("ADDED", &three.slice("6")).await;
    callers.until(&[&one, &two, &three]).await;
    watch.event("DELETED", &one.slice("7")).await;
    callers.until(&[&two, &three]).await;
    one.stop().await;
    // Without the API server, the calls go on.
    drop(watch);
    api.request().await.fail(503, "the API server restarts");
    callers.until(&[&two, &three]).await;
    let _watch = api.list_and_watch("9", &[three.slice("6")]).await;
    callers.until(&[&three]).await;
    two.stop().await;
    assert!(callers.end().await > 100);
}
