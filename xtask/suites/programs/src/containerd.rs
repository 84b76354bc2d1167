//! `containerd-client`, with a containerd on a UNIX socket.

use std::collections::HashMap;
use std::time::Duration;

use containerd_client::services::v1::container::Runtime;
use containerd_client::services::v1::{
    Container, CreateContainerRequest, CreateNamespaceRequest, DeleteContentRequest, GetContainerRequest,
    InfoRequest, ListContainersRequest, Namespace, ReadContentRequest, SubscribeRequest, WriteAction,
    WriteContentRequest,
};
use containerd_client::{Client, with_namespace};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use prost_types::Any;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::outcome::Outcome;

const NAMESPACE: &str = "forest";
/// A blob of 1 MiB is written in pieces.
const PIECE: usize = 256 << 10;
const PIECES: usize = 4;

pub async fn drive(path: &str) -> Outcome {
    let client = Client::from_path(path).await?;
    println!("{:?}", client.version().version(()).await?.into_inner());
    let namespace = Namespace { name: NAMESPACE.to_owned(), ..Namespace::default() };
    let request = with_namespace!(CreateNamespaceRequest { namespace: Some(namespace) }, NAMESPACE);
    println!("{:?}", client.namespaces().create(request).await?.into_inner().namespace);
    content(&client).await?;
    containers(&client).await?;
    events(&client).await
}

/// A call for the rates.
pub async fn version(channel: Channel) -> Outcome {
    Client::from(channel).version().version(()).await?;
    Ok(())
}

async fn content(client: &Client) -> Outcome {
    let pieces: Vec<Vec<u8>> = (0..PIECES).map(|piece| vec![piece as u8; PIECE]).collect();
    let write = |(number, data): (usize, &Vec<u8>)| WriteContentRequest {
        action: WriteAction::Write as i32,
        r#ref: "oak".to_owned(),
        offset: (number * PIECE) as i64,
        data: data.clone(),
        ..WriteContentRequest::default()
    };
    let mut requests: Vec<_> = pieces.iter().enumerate().map(write).collect();
    requests.push(WriteContentRequest {
        action: WriteAction::Commit as i32,
        r#ref: "oak".to_owned(),
        offset: (PIECES * PIECE) as i64,
        total: (PIECES * PIECE) as i64,
        // Without a root it could be collected.
        labels: HashMap::from([("containerd.io/gc.root".to_owned(), "2026-11-29T12:00:00Z".to_owned())]),
        ..WriteContentRequest::default()
    });
    let requests = with_namespace!(tokio_stream::iter(requests), NAMESPACE);
    let written: Vec<_> = client.content().write(requests).await?.into_inner().try_collect().await?;
    println!("{:?}", written.iter().map(|response| response.offset).collect::<Vec<_>>());
    let digest = written.last().ok_or("no response to a write")?.digest.clone();

    let request = InfoRequest { digest: digest.clone() };
    let info = client.content().info(with_namespace!(request, NAMESPACE)).await?.into_inner().info;
    println!("{digest}: {:?} bytes", info.map(|info| info.size));
    let request = ReadContentRequest { digest: digest.clone(), ..ReadContentRequest::default() };
    let read = client.content().read(with_namespace!(request, NAMESPACE)).await?.into_inner();
    let read: Vec<_> = read.map_ok(|response| response.data).try_collect().await?;
    assert!(read.concat() == pieces.concat(), "other content was read");

    let request = DeleteContentRequest { digest: digest.clone() };
    client.content().delete(with_namespace!(request, NAMESPACE)).await?;
    let request = InfoRequest { digest };
    failed(client.content().info(with_namespace!(request, NAMESPACE)).await)
}

fn create(id: &str) -> Request<CreateContainerRequest> {
    let container = Container {
        id: id.to_owned(),
        labels: HashMap::from([("kind".to_owned(), "tree".to_owned())]),
        runtime: Some(Runtime { name: "io.containerd.runc.v2".to_owned(), options: None }),
        spec: Some(Any { type_url: "types.example/Tree".to_owned(), value: b"spec".to_vec() }),
        ..Container::default()
    };
    with_namespace!(CreateContainerRequest { container: Some(container) }, NAMESPACE)
}

async fn containers(client: &Client) -> Outcome {
    let created = client.containers().create(create("oak")).await?.into_inner().container;
    println!("{:?}", created.map(|container| (container.id, container.labels, container.spec)));
    failed(client.containers().create(create("oak")).await)?;
    failed(client.containers().create(create("/")).await)?;
    client.containers().create(create("elm")).await?;
    let request = ListContainersRequest { filters: vec!["labels.kind==tree".to_owned()] };
    let listed = client.containers().list_stream(with_namespace!(request, NAMESPACE)).await?.into_inner();
    let listed: Vec<_> = listed.try_collect().await?;
    println!(
        "{:?}",
        listed.iter().filter_map(|listed| Some(&listed.container.as_ref()?.id)).collect::<Vec<_>>()
    );
    let request = GetContainerRequest { id: "palm".to_owned() };
    failed(client.containers().get(with_namespace!(request, NAMESPACE)).await)?;
    // The namespace is missing.
    failed(client.containers().get(GetContainerRequest { id: "oak".to_owned() }).await)
}

/// An event is received while the stream stays open. containerd sends response headers with the first event.
async fn events(client: &Client) -> Outcome {
    let filters = vec![format!(r#"namespace=={NAMESPACE},topic=="/containers/create""#)];
    let mut events = client.events();
    let subscribed = async {
        let mut received = events.subscribe(SubscribeRequest { filters }).await?.into_inner();
        received.next().await.ok_or_else(|| Status::unknown("the events ended"))?
    };
    let creating = async {
        for number in 0.. {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Err(status) = client.containers().create(create(&format!("tree-{number}"))).await {
                return status;
            }
        }
        unreachable!("the numbers ended")
    };
    let event = tokio::select! {
        event = subscribed => event?,
        status = creating => return Err(status.into()),
    };
    println!("{} {} {:?}", event.namespace, event.topic, event.event.map(|event| event.type_url));
    Ok(())
}

/// A call that containerd refuses.
fn failed<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Outcome {
    match outcome {
        Err(status) => println!("{:?}: {}", status.code(), status.message()),
        Ok(response) => return Err(format!("unexpected response to a wrong request: {response:?}").into()),
    }
    Ok(())
}
