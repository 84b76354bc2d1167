//! Figures of a run for monitoring while it goes on: asked for by Prometheus, pushed by OTLP. On a thread of its own;
//! what is told is worked out there when it is asked for, or pushed.

mod accept;
mod families;
mod http;
mod otlp;
mod pb;
mod snapshot;
mod text;

use std::io;
use std::net::TcpListener;
use std::thread::JoinHandle;

use thalweg::Channel;
use thalweg::metadata::MetadataMap;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use self::otlp::Push;
use self::snapshot::Latest;
use super::any_arguments::ExportArgs;
use super::notices::Notices;
use super::watching::{Told, Watcher};
use crate::failure::Failure;
use crate::{metadata, runtime};

/// Tells others of a run.
pub(super) struct Export {
    latest: Latest,
    /// Ends the thread's work.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Export {
    /// None where nobody is to be told. Prometheus can ask from now on.
    pub(super) fn begin(args: &ExportArgs, notices: &Notices) -> Result<Option<Box<dyn Watcher>>, Failure> {
        let listener = args.prometheus.as_deref().map(|address| listen(address, notices)).transpose()?;
        if listener.is_none() && args.otlp.is_none() {
            return Ok(None);
        }
        let latest = Latest::default();
        let runtime = runtime::runtime(1)?;
        let push = match &args.otlp {
            Some(target) => Some(push(target, args, &latest, notices, &runtime)?),
            None => None,
        };
        let (end, ends) = oneshot::channel();
        let of_thread = latest.clone();
        let thread = runtime::thread(move || runtime.block_on(work(listener, push, of_thread, ends)))?;
        Ok(Some(Box::new(Self { latest, end: Some(end), thread: Some(thread) })))
    }
}

impl Watcher for Export {
    fn told(&mut self, told: &Told) {
        if let Told::Begins(running) = told {
            self.latest.set(running);
        }
    }

    fn end(&mut self) {
        // Both fail where the thread has panicked, which has been said.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Until the run has ended, and then the last push.
async fn work(
    listener: Option<TcpListener>,
    push: Option<Push>,
    latest: Latest,
    ends: oneshot::Receiver<()>,
) {
    let serving = listener.map(|listener| tokio::spawn(http::serve(listener, latest)));
    match push {
        Some(push) => push.until(ends).await,
        // Whoever would say it is gone: that is an end, too.
        None => drop(ends.await),
    }
    if let Some(serving) = serving {
        serving.abort();
    }
}

fn listen(address: &str, notices: &Notices) -> Result<TcpListener, Failure> {
    let bind = || -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        notices.say(&format!("metrics at http://{}/metrics", listener.local_addr()?));
        Ok(listener)
    };
    bind()
        .map_err(|error| Failure::bad_arguments(format!("--prometheus: cannot listen on {address}: {error}")))
}

fn push(
    target: &str,
    args: &ExportArgs,
    latest: &Latest,
    notices: &Notices,
    runtime: &Runtime,
) -> Result<Push, Failure> {
    let _in_runtime = runtime.enter();
    let channel = Channel::builder(target).connect_lazy();
    let channel = channel.map_err(|error| Failure::bad_arguments(format!("--otlp {target}: {error}")))?;
    let headers: MetadataMap = metadata::map(&args.otlp_header);
    Ok(Push {
        channel,
        target: target.to_owned(),
        headers,
        every: args.otlp_interval,
        latest: latest.clone(),
        notices: notices.clone(),
    })
}
