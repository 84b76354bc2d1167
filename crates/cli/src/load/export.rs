//! Exports metrics of a run.

use std::io;
use std::net::TcpListener;

use thalweg::Channel;
use thalweg_dynamic::metadata;
use thalweg_load::export::{Export, Push};

use super::any_arguments::ExportArgs;
use super::notices::Notices;
use super::watching::{RunEvent, Watcher};
use crate::failure::Failure;
use crate::runtime;

/// Starts the export, or returns `None` if none is requested. Prometheus can scrape when this returns.
pub(super) fn begin(args: &ExportArgs, notices: &Notices) -> Result<Option<Box<dyn Watcher>>, Failure> {
    let listener = args.prometheus.as_deref().map(|address| listen(address, notices)).transpose()?;
    if listener.is_none() && args.otlp.is_none() {
        return Ok(None);
    }
    let runtime = runtime::runtime(1)?;
    let push = {
        let _in_runtime = runtime.enter();
        args.otlp.as_deref().map(|target| push(target, args)).transpose()?
    };
    let notices = notices.clone();
    let export = Export::start(runtime, listener, push, move |text| notices.say(text));
    let export = export.map_err(|error| Failure::failed(format!("failed to start a thread: {error}")))?;
    Ok(Some(Box::new(export)))
}

impl Watcher for Export {
    fn on_event(&mut self, event: &RunEvent) {
        if let RunEvent::Begins(running) = event {
            self.begins(running);
        }
    }

    fn end(&mut self) {
        Self::end(self);
    }
}

fn listen(address: &str, notices: &Notices) -> Result<TcpListener, Failure> {
    let bind = || -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        notices.say(&format!("metrics at http://{}/metrics", listener.local_addr()?));
        Ok(listener)
    };
    bind().map_err(|error| {
        Failure::bad_arguments(format!("--prometheus: failed to listen on {address}: {error}"))
    })
}

fn push(target: &str, args: &ExportArgs) -> Result<Push, Failure> {
    let channel = Channel::builder(target).connect_lazy();
    let channel = channel.map_err(|error| Failure::bad_arguments(format!("--otlp {target}: {error}")))?;
    let headers = metadata::map(&args.otlp_header);
    Ok(Push { channel, target: target.to_owned(), headers, every: args.otlp_interval })
}
