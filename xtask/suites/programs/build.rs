//! Generates `programs.Forest` and `programs.Leaves`, and servers of services whose published crates contain only
//! clients.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    let forest = [["find", "Find", "Tree", "Tree"], ["grow", "Grow", "Tree", "stream Tree"]];
    let leaves = [
        ["send", "Send", "stream Leaf", "Leaf"],
        ["receive", "Receive", "Leaf", "stream Leaf"],
        ["exchange", "Exchange", "stream Leaf", "stream Leaf"],
    ];
    Builder::new().compile(&[
        service("programs", "Forest", "crate::forest", &forest),
        service("programs", "Leaves", "crate::streams", &leaves),
    ]);
    let publisher = [
        ["create_topic", "CreateTopic", "Topic", "Topic"],
        ["get_topic", "GetTopic", "GetTopicRequest", "Topic"],
        ["publish", "Publish", "PublishRequest", "PublishResponse"],
    ];
    let subscriber = [
        ["create_subscription", "CreateSubscription", "Subscription", "Subscription"],
        ["get_subscription", "GetSubscription", "GetSubscriptionRequest", "Subscription"],
        ["pull", "Pull", "PullRequest", "PullResponse"],
        ["streaming_pull", "StreamingPull", "stream StreamingPullRequest", "stream StreamingPullResponse"],
        ["acknowledge", "Acknowledge", "AcknowledgeRequest", "Empty"],
        ["modify_ack_deadline", "ModifyAckDeadline", "ModifyAckDeadlineRequest", "Empty"],
    ];
    let workload = [
        ["fetch_x509_svid", "FetchX509SVID", "Empty", "stream Identities"],
        ["fetch_x509_bundles", "FetchX509Bundles", "Empty", "stream Bundles"],
    ];
    Builder::new().build_client(false).compile(&[
        service("google.pubsub.v1", "Publisher", "crate::pubsub::messages", &publisher),
        service("google.pubsub.v1", "Subscriber", "crate::pubsub::messages", &subscriber),
        service("", "SpiffeWorkloadAPI", "crate::workload", &workload),
    ]);
}

/// A service with types of the module `types`. A method is its name, its name on the wire, and its request and
/// response, which may begin with `stream `.
fn service(package: &str, name: &str, types: &str, methods: &[[&str; 4]]) -> Service {
    let path = |name: &str| format!("{types}::{}", name.trim_start_matches("stream "));
    let mut service = Service::builder().package(package).name(name);
    for [name, route, input, output] in methods {
        let mut method = Method::builder()
            .name(name)
            .route_name(route)
            .input_type(path(input))
            .output_type(path(output))
            .codec_path("tonic_prost::ProstCodec");
        if input.starts_with("stream ") {
            method = method.client_streaming();
        }
        if output.starts_with("stream ") {
            method = method.server_streaming();
        }
        service = service.method(method.build());
    }
    service.build()
}
