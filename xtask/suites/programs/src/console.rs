//! `console-subscriber`: a task of the server is watched by a client of its service.

use std::time::Duration;

use console_api::field::{Name, Value};
use console_api::instrument::instrument_client::InstrumentClient;
use console_api::instrument::instrument_server::InstrumentServer;
use console_api::instrument::{InstrumentRequest, PauseRequest, ResumeRequest, TaskDetailsRequest};
use console_api::tasks::{Stats, Task};
use console_api::{Field, Id};
use console_subscriber::{ConsoleLayer, Server};
use tonic::transport::{Channel, Endpoint};
use tracing::Instrument as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::outcome::Outcome;

const TASK: &str = "warden";
const INTERVAL: Duration = Duration::from_millis(20);

pub async fn drive(address: &str) -> Outcome {
    let mut client = client(address).await?;
    let mut updates = client.watch_updates(InstrumentRequest {}).await?.into_inner();
    // The first update has all tasks, the later ones their polls.
    let (mut id, mut polls) = (None, 0);
    while polls < 3 {
        let update = updates.message().await?.ok_or("the updates ended")?.task_update;
        let Some(update) = update else { continue };
        if let Some(task) = update.new_tasks.iter().find(|task| is_named(task)) {
            id = task.id;
            println!("{:?} {}", task.kind(), task.fields.len());
        }
        let stats = id.and_then(|id| update.stats_update.get(&id.id));
        polls = stats.map_or(polls, polls_of);
    }
    drop(updates);

    let mut details = client.watch_task_details(TaskDetailsRequest { id }).await?.into_inner();
    let shown = details.message().await?.ok_or("no details")?;
    assert_eq!(shown.task_id, id);
    assert!(shown.poll_times_histogram.is_some(), "{shown:?}");
    for id in [None, Some(Id { id: 0 }), Some(Id { id: u64::MAX })] {
        let status = client.watch_task_details(TaskDetailsRequest { id }).await.unwrap_err();
        println!("{:?}: {}", status.code(), status.message());
    }
    println!("{:?}", client.pause(PauseRequest {}).await?.into_inner());
    println!("{:?}", client.resume(ResumeRequest {}).await?.into_inner());
    Ok(())
}

pub async fn client(address: &str) -> Outcome<InstrumentClient<Channel>> {
    Ok(InstrumentClient::new(Endpoint::from_shared(format!("http://{address}"))?.connect().await?))
}

/// A call for the rates.
pub async fn resume(mut client: InstrumentClient<Channel>) -> Outcome {
    client.resume(ResumeRequest {}).await?;
    Ok(())
}

fn is_named(task: &Task) -> bool {
    let is_it = |field: &Field| match (&field.name, &field.value) {
        (Some(Name::StrName(name)), Some(Value::StrVal(value))) => name == "task.name" && value == TASK,
        _ => false,
    };
    task.fields.iter().any(is_it)
}

fn polls_of(stats: &Stats) -> u64 {
    stats.poll_stats.as_ref().map_or(0, |stats| stats.polls)
}

/// Starts to record tasks, and one to be recorded.
pub fn serve() -> InstrumentServer<Server> {
    let (layer, server) = ConsoleLayer::builder().publish_interval(INTERVAL).build();
    let layer = layer.with_filter(filter_fn(|metadata| metadata.name().starts_with("runtime.")));
    tracing_subscriber::registry().with(layer).init();
    let parts = server.into_parts();
    tokio::spawn(parts.aggregator.run());
    // A tokio with its unstable features has such spans.
    let span = tracing::trace_span!("runtime.spawn", kind = "task", task.name = TASK);
    let task = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::spawn(task.instrument(span));
    parts.instrument_server
}
