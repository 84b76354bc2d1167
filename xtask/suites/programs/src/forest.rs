//! `tonic-types` and `tonic-middleware`: a service of known trees, whose errors have details, behind an interceptor
//! and a middleware.

use futures::stream::{self, BoxStream, StreamExt as _};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Service, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_middleware::{InterceptorFor, Middleware, MiddlewareFor, RequestInterceptor, ServiceBound};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::outcome::Outcome;

tonic::include_proto!("programs.Forest");

pub use forest_client::ForestClient;
use forest_server::{Forest, ForestServer};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Tree {
    #[prost(string, tag = "1")]
    pub name: String,
    /// In metres; of `Grow`, also the number of responses.
    #[prost(uint32, tag = "2")]
    pub height: u32,
}

/// `Grow` fails after this many responses.
const HEIGHT_MAX: u32 = 100;
/// The interceptor requires this metadata.
const KEY: (&str, &str) = ("x-key", "oak");
/// The interceptor adds this to requests, and the middleware to responses.
const STAMP: &str = "x-stamp";

/// Details of errors, in responses without a message and behind messages.
pub async fn drive_details(address: &str) -> Outcome {
    let mut client = client(address).await?;
    let status = client.find(request("", 0)).await.unwrap_err();
    let details = status.get_error_details();
    let violations = &details.bad_request().ok_or("no BadRequest")?.field_violations;
    assert_eq!((violations[0].field.as_str(), violations[0].description.as_str()), ("name", "is empty"));
    assert_eq!(details.localized_message().ok_or("no LocalizedMessage")?.message, "ein Name fehlt – 木");
    println!("{:?} {}: {details:?}", status.code(), status.message());

    let status = client.find(request("palm", 0)).await.unwrap_err();
    println!("{:?} {}: {:?}", status.code(), status.message(), status.get_error_details_vec());

    let mut grown = client.grow(request("oak", HEIGHT_MAX + 1)).await?.into_inner();
    for height in 1..=HEIGHT_MAX {
        assert_eq!(grown.message().await?.map(|tree| tree.height), Some(height));
    }
    let status = grown.message().await.unwrap_err();
    let details = status.get_error_details();
    assert_eq!(details.quota_failure().ok_or("no QuotaFailure")?.violations[0].subject, "oak");
    println!("{:?} {}: {details:?}", status.code(), status.message());
    Ok(())
}

pub async fn drive_middleware(address: &str) -> Outcome {
    let mut client = client(address).await?;
    let response = client.find(request("oak", 0)).await?;
    assert_eq!(response.metadata().get(STAMP).map(|value| value.as_bytes()), Some(&b"200 OK"[..]));
    println!("{:?}", response.into_inner());
    // The service sees what the interceptor has added.
    println!("{:?}", client.find(request(STAMP, 0)).await?.into_inner());

    let status = client.find(Request::new(Tree::default())).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "no key"));
    assert_eq!(status.metadata().get(STAMP), None, "the interceptor is outside the middleware");
    let grown = client.grow(request("oak", 3)).await?;
    assert!(grown.metadata().contains_key(STAMP));
    let grown: Vec<_> = grown.into_inner().collect().await;
    println!("{grown:?}");
    Ok(())
}

pub async fn client(address: &str) -> Outcome<ForestClient<Channel>> {
    Ok(ForestClient::new(Endpoint::from_shared(format!("http://{address}"))?.connect().await?))
}

/// A call for the rates.
pub async fn find<T>(mut client: ForestClient<T>) -> Outcome
where
    T: GrpcService<Body>,
    T::Error: Into<tonic::codegen::StdError>,
    T::ResponseBody: tonic::codegen::Body<Data = bytes::Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<tonic::codegen::StdError> + Send,
{
    client.find(request("oak", 0)).await?;
    Ok(())
}

/// A request with the key.
pub fn request(name: &str, height: u32) -> Request<Tree> {
    let mut request = Request::new(Tree { name: name.to_owned(), height });
    request.metadata_mut().insert(KEY.0, KEY.1.parse().expect("a valid value"));
    request
}

pub type Served = InterceptorFor<MiddlewareFor<ForestServer<Trees>, Stamp>, Gate>;

pub fn serve() -> Served {
    InterceptorFor::new(MiddlewareFor::new(ForestServer::new(Trees), Stamp), Gate)
}

pub struct Trees;

#[tonic::async_trait]
impl Forest for Trees {
    async fn find(&self, request: Request<Tree>) -> Result<Response<Tree>, Status> {
        let height = match request.get_ref().name.as_str() {
            "oak" => 40,
            STAMP => request.metadata().get_all(STAMP).iter().count() as u32,
            "" => {
                let mut details = ErrorDetails::with_bad_request_violation("name", "is empty");
                details
                    .add_help_link("names of trees", "https://example.com/trees")
                    .set_localized_message("de", "ein Name fehlt – 木");
                return Err(Status::with_error_details(Code::InvalidArgument, "no name", details));
            }
            name => {
                let details = ErrorDetails::with_resource_info("tree", name, "programs", "unknown");
                return Err(Status::with_error_details(Code::NotFound, "no such tree", details));
            }
        };
        Ok(Response::new(Tree { height, ..request.into_inner() }))
    }

    type GrowStream = BoxStream<'static, Result<Tree, Status>>;

    async fn grow(&self, request: Request<Tree>) -> Result<Response<Self::GrowStream>, Status> {
        let tree = request.into_inner();
        let heights = 1..=tree.height;
        let tree = move |height| match height {
            1..=HEIGHT_MAX => Ok(Tree { height, ..tree.clone() }),
            _ => {
                let mut details = ErrorDetails::with_quota_failure_violation(&tree.name, "too high");
                details.set_retry_info(Some(std::time::Duration::from_millis(1500)));
                Err(Status::with_error_details(Code::ResourceExhausted, "no more", details))
            }
        };
        Ok(Response::new(stream::iter(heights.map(tree)).boxed()))
    }
}

/// Refuses requests without the key.
#[derive(Clone)]
pub struct Gate;

#[tonic::async_trait]
impl RequestInterceptor for Gate {
    async fn intercept(&self, mut request: http::Request<Body>) -> Result<http::Request<Body>, Status> {
        if request.headers().get(KEY.0).is_none_or(|value| value != KEY.1) {
            return Err(Status::unauthenticated("no key"));
        }
        request.headers_mut().insert(STAMP, http::HeaderValue::from_static("asked"));
        Ok(request)
    }
}

/// Adds the response's HTTP status to its headers.
#[derive(Clone)]
pub struct Stamp;

#[tonic::async_trait]
impl<S> Middleware<S> for Stamp
where
    S: ServiceBound,
    S::Future: Send,
{
    async fn call(
        &self,
        request: http::Request<Body>,
        mut service: S,
    ) -> Result<http::Response<Body>, S::Error> {
        let mut response = Service::call(&mut service, request).await?;
        let stamp = http::HeaderValue::from_str(&response.status().to_string());
        response.headers_mut().insert(STAMP, stamp.expect("a valid value"));
        Ok(response)
    }
}
