//! `gcloud-pubsub`, with a stub: topics and subscriptions in memory, as an emulator has them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use gcloud_gax::conn::Environment;
use gcloud_pubsub::client::{Client, ClientConfig};
use gcloud_pubsub::subscription::SubscriptionConfig;
use tokio::sync::Notify;
use tonic::{Request, Response, Status, Streaming};

use crate::outcome::Outcome;

/// The messages, whose crate has no servers.
pub mod messages {
    pub use gcloud_googleapis::pubsub::v1::*;

    /// prost's type for `google.protobuf.Empty`.
    pub type Empty = ();
}

mod services {
    tonic::include_proto!("google.pubsub.v1.Publisher");
    tonic::include_proto!("google.pubsub.v1.Subscriber");
}

use messages::*;
use services::publisher_server::{Publisher, PublisherServer};
use services::subscriber_server::{Subscriber, SubscriberServer};

const MESSAGES: usize = 300;
/// Messages taken by a unary call; the others come by a stream.
const PULLED: usize = 10;
const MESSAGE_SIZE: usize = 10_000;

pub async fn drive(address: &str) -> Outcome {
    let client = client(address).await?;
    let name = format!("trees-{}", std::process::id());
    let topic = client.topic(&name);
    println!("{}", topic.exists(None).await?);
    topic.create(None, None).await?;
    println!("{} {:?}", topic.exists(None).await?, topic.create(None, None).await.map_err(|it| it.code()));
    let subscription = client.create_subscription(&name, &name, SubscriptionConfig::default(), None).await?;

    let publisher = topic.new_publisher(None);
    let mut sent = Vec::new();
    for number in 0..MESSAGES {
        sent.push(publisher.publish(message(number)).await);
    }
    let mut ids = BTreeSet::new();
    for awaiter in sent {
        ids.insert(awaiter.get().await?);
    }
    println!("{} published", ids.len());

    let mut received = BTreeSet::new();
    for message in subscription.pull(PULLED as i32, None).await? {
        received.insert(number(&message.message)?);
        message.ack().await?;
    }
    println!("{} pulled", received.len());
    let mut messages = subscription.subscribe(None).await?;
    let mut refused = None;
    while received.len() < MESSAGES {
        let message = messages.next().await.ok_or("the stream ended")?;
        let number = number(&message.message)?;
        if refused.is_none() {
            // It comes again.
            refused = Some(number);
            message.nack().await?;
        } else {
            received.insert(number);
            message.ack().await?;
        }
    }
    assert!(refused.is_some_and(|number| received.contains(&number)), "a refused message did not come again");
    println!("{} received, {} left", received.len(), messages.dispose().await);

    let nobody = client.topic("palms").new_publisher(None);
    let status = publish(nobody).await.unwrap_err();
    println!("{status}");
    let mut publisher = publisher;
    publisher.shutdown().await;
    Ok(())
}

pub async fn client(address: &str) -> Outcome<Client> {
    let config = ClientConfig {
        environment: Environment::Emulator(address.to_owned()),
        project_id: Some("forest".to_owned()),
        pool_size: 1,
        ..ClientConfig::default()
    };
    Ok(Client::new(config).await?)
}

/// A call for the rates: publishes one message.
pub async fn publish(topic: gcloud_pubsub::publisher::Publisher) -> Outcome {
    let ids = topic.publish_immediately(vec![message(0)], None).await;
    let ids = ids.map_err(|status| format!("{:?}: {}", status.code(), status.message()))?;
    assert_eq!(ids.len(), 1);
    Ok(())
}

fn message(number: usize) -> PubsubMessage {
    let attributes = HashMap::from([("number".to_owned(), number.to_string())]);
    PubsubMessage { data: vec![number as u8; MESSAGE_SIZE], attributes, ..PubsubMessage::default() }
}

/// The number of a message, whose contents are checked.
fn number(message: &PubsubMessage) -> Outcome<usize> {
    let number: usize = message.attributes.get("number").ok_or("no attribute")?.parse()?;
    assert_eq!(message.data, vec![number as u8; MESSAGE_SIZE]);
    Ok(number)
}

pub fn publisher() -> PublisherServer<impl Publisher> {
    PublisherServer::new(Broker)
}

pub fn subscriber() -> SubscriberServer<impl Subscriber> {
    SubscriberServer::new(Broker)
}

struct Broker;

#[derive(Default)]
struct State {
    topics: HashMap<String, Topic>,
    subscriptions: HashMap<String, Queue>,
    published: usize,
}

struct Queue {
    subscription: Subscription,
    waiting: VecDeque<PubsubMessage>,
    /// Delivered and not acknowledged. The id of a message is that of its acknowledgement.
    delivered: HashMap<String, PubsubMessage>,
    changed: Arc<Notify>,
}

impl Queue {
    fn deliver(&mut self, count: usize) -> Vec<ReceivedMessage> {
        let count = count.min(self.waiting.len());
        let messages: Vec<_> = self.waiting.drain(..count).collect();
        let received = messages.into_iter().map(|message| {
            let ack_id = message.message_id.clone();
            self.delivered.insert(ack_id.clone(), message.clone());
            ReceivedMessage { ack_id, message: Some(message), ..ReceivedMessage::default() }
        });
        received.collect()
    }
}

fn state() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn queue(&mut self, name: &str) -> Result<&mut Queue, Status> {
        self.subscriptions.get_mut(name).ok_or_else(|| Status::not_found(format!("no subscription {name}")))
    }
}

#[tonic::async_trait]
impl Publisher for Broker {
    async fn create_topic(&self, request: Request<Topic>) -> Result<Response<Topic>, Status> {
        let topic = request.into_inner();
        let former = state().topics.insert(topic.name.clone(), topic.clone());
        if former.is_some() {
            return Err(Status::already_exists("the topic exists"));
        }
        Ok(Response::new(topic))
    }

    async fn get_topic(&self, request: Request<GetTopicRequest>) -> Result<Response<Topic>, Status> {
        let params = request.metadata().get("x-goog-request-params").cloned();
        let GetTopicRequest { topic } = request.into_inner();
        if params.is_none_or(|params| params != format!("topic={topic}")) {
            return Err(Status::invalid_argument("x-goog-request-params"));
        }
        let topic = state().topics.get(&topic).cloned();
        Ok(Response::new(topic.ok_or_else(|| Status::not_found("no such topic"))?))
    }

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResponse>, Status> {
        let PublishRequest { topic, messages } = request.into_inner();
        let state = &mut *state();
        if !state.topics.contains_key(&topic) {
            return Err(Status::not_found(format!("no topic {topic}")));
        }
        let mut message_ids = Vec::new();
        for mut message in messages {
            state.published += 1;
            message.message_id = state.published.to_string();
            message_ids.push(message.message_id.clone());
            let queues = state.subscriptions.values_mut();
            for queue in queues.filter(|queue| queue.subscription.topic == topic) {
                queue.waiting.push_back(message.clone());
                queue.changed.notify_one();
            }
        }
        Ok(Response::new(PublishResponse { message_ids }))
    }
}

#[tonic::async_trait]
impl Subscriber for Broker {
    async fn create_subscription(
        &self,
        request: Request<Subscription>,
    ) -> Result<Response<Subscription>, Status> {
        let subscription = request.into_inner();
        let queue = Queue {
            subscription: subscription.clone(),
            waiting: VecDeque::new(),
            delivered: HashMap::new(),
            changed: Arc::default(),
        };
        state().subscriptions.insert(subscription.name.clone(), queue);
        Ok(Response::new(subscription))
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let subscription = state().queue(&request.get_ref().subscription)?.subscription.clone();
        Ok(Response::new(subscription))
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        let PullRequest { subscription, max_messages, .. } = request.into_inner();
        let received_messages = state().queue(&subscription)?.deliver(max_messages as usize);
        Ok(Response::new(PullResponse { received_messages }))
    }

    type StreamingPullStream = BoxStream<'static, Result<StreamingPullResponse, Status>>;

    async fn streaming_pull(
        &self,
        request: Request<Streaming<StreamingPullRequest>>,
    ) -> Result<Response<Self::StreamingPullStream>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.ok_or_else(|| Status::invalid_argument("no request"))?;
        let changed = state().queue(&first.subscription)?.changed.clone();
        // The requests stay open with the responses.
        let stream = stream::unfold((first, changed, requests), async |(first, changed, requests)| {
            loop {
                let received_messages = match state().queue(&first.subscription) {
                    Ok(queue) => queue.deliver(first.max_outstanding_messages as usize),
                    Err(status) => return Some((Err(status), (first, changed, requests))),
                };
                if !received_messages.is_empty() {
                    let response =
                        StreamingPullResponse { received_messages, ..StreamingPullResponse::default() };
                    return Some((Ok(response), (first, changed, requests)));
                }
                changed.notified().await;
            }
        });
        Ok(Response::new(stream.boxed()))
    }

    async fn acknowledge(&self, request: Request<AcknowledgeRequest>) -> Result<Response<Empty>, Status> {
        let AcknowledgeRequest { subscription, ack_ids } = request.into_inner();
        let state = &mut *state();
        let queue = state.queue(&subscription)?;
        for id in ack_ids {
            queue
                .delivered
                .remove(&id)
                .ok_or_else(|| Status::invalid_argument(format!("no message {id}")))?;
        }
        Ok(Response::new(()))
    }

    /// A deadline of 0 returns messages to the queue.
    async fn modify_ack_deadline(
        &self,
        request: Request<ModifyAckDeadlineRequest>,
    ) -> Result<Response<Empty>, Status> {
        let ModifyAckDeadlineRequest { subscription, ack_ids, ack_deadline_seconds } = request.into_inner();
        if ack_deadline_seconds != 0 {
            return Err(Status::unimplemented("longer deadlines"));
        }
        let state = &mut *state();
        let queue = state.queue(&subscription)?;
        for id in ack_ids {
            let message = queue.delivered.remove(&id);
            queue.waiting.push_back(message.ok_or_else(|| Status::invalid_argument("no such message"))?);
        }
        queue.changed.notify_one();
        Ok(Response::new(()))
    }
}
