//! Generated code for all kinds of names and options. That it compiles is most of the test.

use std::sync::Arc;

use thalweg_tonic_tests::in_memory;
use tokio_stream::StreamExt as _;
use tonic::codegen::BoxStream;
use tonic::transport::server::Router;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::generated::google::protobuf::{Any, StringValue};
use crate::generated::{arcs, included, names, stubs, wellknown};

fn channel(router: Router) -> Channel {
    in_memory(router, &Endpoint::from_static("http://names.test"))
}

struct UnwrittenService;

impl stubs::unwritten_server::Unwritten for UnwrittenService {}

#[tokio::test]
async fn methods_without_implementation_are_unimplemented() {
    let server = stubs::unwritten_server::UnwrittenServer::new(UnwrittenService);
    let mut client =
        stubs::unwritten_client::UnwrittenClient::new(channel(Server::builder().add_service(server)));
    let requests = || tokio_stream::iter([(), ()]);
    for code in [
        client.unary(()).await.unwrap_err().code(),
        client.server_stream(()).await.unwrap_err().code(),
        client.client_stream(requests()).await.unwrap_err().code(),
        client.both_streams(requests()).await.unwrap_err().code(),
    ] {
        assert_eq!(code, Code::Unimplemented);
    }
}

struct SharedService;

#[tonic::async_trait]
impl arcs::shared_server::Shared for SharedService {
    type BothStream = BoxStream<arcs::Text>;

    async fn unary(self: Arc<Self>, request: Request<arcs::Text>) -> Result<Response<arcs::Text>, Status> {
        Ok(Response::new(request.into_inner()))
    }

    async fn both(
        self: Arc<Self>,
        request: Request<Streaming<arcs::Text>>,
    ) -> Result<Response<BoxStream<arcs::Text>>, Status> {
        Ok(Response::new(Box::pin(request.into_inner())))
    }
}

#[tokio::test]
async fn services_may_be_shared_by_arc() {
    let shared = Arc::new(SharedService);
    let server = arcs::shared_server::SharedServer::from_arc(Arc::clone(&shared));
    let mut client = arcs::shared_client::SharedClient::new(channel(Server::builder().add_service(server)));
    let text = arcs::Text { text: "a".to_owned() };
    assert_eq!(client.unary(text.clone()).await.unwrap().into_inner(), text);
    let responses = client.both(tokio_stream::iter([text.clone()])).await.unwrap().into_inner();
    assert_eq!(responses.collect::<Vec<_>>().await.pop().unwrap().unwrap(), text);
}

struct NamesService;

#[tonic::async_trait]
impl names::result_server::Result for NamesService {
    type CloneStream = BoxStream<names::Response>;

    async fn drop(&self, _: Request<included::Empty>) -> Result<Response<names::Response>, Status> {
        Ok(Response::new(names::Response { step: 1 }))
    }

    async fn clone(
        &self,
        _: Request<included::Empty>,
    ) -> Result<Response<BoxStream<names::Response>>, Status> {
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(names::Response { step: 2 })))))
    }
}

#[tonic::async_trait]
impl names::service_server::Service for NamesService {
    type RequestStream = BoxStream<names::Response>;

    async fn request(
        &self,
        request: Request<Streaming<names::Response>>,
    ) -> Result<Response<BoxStream<names::Response>>, Status> {
        Ok(Response::new(Box::pin(request.into_inner())))
    }
}

#[tonic::async_trait]
impl names::foo_server::Foo for NamesService {
    type FooStream = BoxStream<names::Response>;

    async fn foo(
        &self,
        request: Request<Streaming<names::Response>>,
    ) -> Result<Response<BoxStream<names::Response>>, Status> {
        Ok(Response::new(Box::pin(request.into_inner())))
    }
}

#[tonic::async_trait]
impl names::tonic_server::Tonic for NamesService {
    async fn tonic(&self, request: Request<crate::Animal>) -> Result<Response<names::Plain>, Status> {
        Ok(Response::new(names::Plain { text: request.into_inner().name.unwrap_or_default() }))
    }

    async fn old(&self, request: Request<names::Response>) -> Result<Response<names::Response>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

#[tonic::async_trait]
impl included::included_server::Included for NamesService {
    async fn r#do(&self, _: Request<included::Empty>) -> Result<Response<included::Empty>, Status> {
        Ok(Response::new(included::Empty {}))
    }
}

#[tokio::test]
async fn names_used_by_generated_code_are_escaped() {
    let router = Server::builder()
        .add_service(names::result_server::ResultServer::new(NamesService))
        .add_service(names::service_server::ServiceServer::new(NamesService))
        .add_service(names::foo_server::FooServer::new(NamesService))
        .add_service(names::tonic_server::TonicServer::new(NamesService))
        .add_service(included::included_server::IncludedServer::new(NamesService));
    let channel = channel(router);
    let mut result = names::result_client::ResultClient::new(channel.clone());
    assert_eq!(result.drop(included::Empty {}).await.unwrap().into_inner().step, 1);
    // The qualified name avoids `Clone::clone`.
    let steps = names::result_client::ResultClient::clone(&mut result, included::Empty {});
    let mut steps = steps.await.unwrap().into_inner();
    assert_eq!(steps.message().await.unwrap().unwrap().step, 2);
    let single_request = || tokio_stream::once(names::Response { step: 3 });
    let mut service = names::service_client::ServiceClient::new(channel.clone());
    let mut steps = service.request(single_request()).await.unwrap().into_inner();
    assert_eq!(steps.message().await.unwrap().unwrap().step, 3);
    let mut foo = names::foo_client::FooClient::new(channel.clone());
    let mut steps = foo.foo(single_request()).await.unwrap().into_inner();
    assert_eq!(steps.message().await.unwrap().unwrap().step, 3);
    let mut tonic = names::tonic_client::TonicClient::new(channel.clone());
    let animal = crate::Animal { name: Some("cat".to_owned()) };
    assert_eq!(tonic.tonic(animal).await.unwrap().into_inner().text, "cat");
    #[expect(deprecated, reason = "it is declared so")]
    let old = tonic.old(names::Response { step: 4 });
    assert_eq!(old.await.unwrap().into_inner().step, 4);
    let mut included = included::included_client::IncludedClient::new(channel);
    included.r#do(included::Empty {}).await.unwrap();
}

struct AdminService;

#[tonic::async_trait]
impl wellknown::admin_server::Admin for AdminService {
    async fn empty(&self, _: Request<()>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }

    async fn text(&self, request: Request<StringValue>) -> Result<Response<()>, Status> {
        Err(Status::aborted(request.into_inner().value))
    }

    async fn any(&self, request: Request<Any>) -> Result<Response<()>, Status> {
        Err(Status::aborted(request.into_inner().type_url))
    }
}

#[tokio::test]
async fn well_known_types_work() {
    let server = wellknown::admin_server::AdminServer::new(AdminService);
    let mut client =
        wellknown::admin_client::AdminClient::new(channel(Server::builder().add_service(server)));
    client.empty(()).await.unwrap();
    assert_eq!(
        client.text(StringValue { value: "a text".to_owned() }).await.unwrap_err().message(),
        "a text"
    );
    let any = Any { type_url: "a/b".to_owned(), value: Vec::new() };
    assert_eq!(client.any(any).await.unwrap_err().message(), "a/b");
}
