//! `tonic-xds`: a channel finds its server by a control plane, a stub in that server.

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::config::core::v3::address::Address::SocketAddress as Socket;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as manager;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use futures::stream::{BoxStream, StreamExt as _};
use manager::http_connection_manager::RouteSpecifier;
use manager::{HttpConnectionManager, Rds};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};
use tonic_types::StatusExt as _;
use tonic_xds::{
    BootstrapConfig, ChannelCredentialType, XdsChannelBuilder, XdsChannelConfig, XdsChannelGrpc, XdsUri,
};

use crate::forest::{ForestClient, request};
use crate::outcome::Outcome;

/// The name of all resources.
const FOREST: &str = "forest";

pub async fn drive(address: &str) -> Outcome {
    let mut client = client(address)?;
    for _ in 0..100 {
        let tree = client.find(request("oak", 0)).await?.into_inner();
        assert_eq!((tree.name.as_str(), tree.height), ("oak", 40));
    }
    let grown: Vec<_> = client.grow(request("oak", 3)).await?.into_inner().collect().await;
    println!("{grown:?}");
    let status = client.find(request("", 0)).await.unwrap_err();
    println!("{:?} {}: {:?}", status.code(), status.message(), status.get_error_details());
    Ok(())
}

pub fn client(address: &str) -> Outcome<ForestClient<XdsChannelGrpc>> {
    let bootstrap = BootstrapConfig::builder(format!("http://{address}"))
        .channel_creds([ChannelCredentialType::Insecure])
        .node_id("programs")
        .build()?;
    let config = XdsChannelConfig::new(XdsUri::parse(&format!("xds:///{FOREST}"))?).with_bootstrap(bootstrap);
    Ok(ForestClient::new(XdsChannelBuilder::new(config).build_grpc_channel()?))
}

/// The control plane, of which all traffic goes to `address`.
pub fn serve(address: &str) -> Outcome<AggregatedDiscoveryServiceServer<impl AggregatedDiscoveryService>> {
    let (host, port) = address.rsplit_once(':').ok_or("an address without a port")?;
    let port = port.parse()?;
    Ok(AggregatedDiscoveryServiceServer::new(ControlPlane { host: host.to_owned(), port }))
}

#[derive(Clone)]
struct ControlPlane {
    host: String,
    port: u32,
}

impl ControlPlane {
    /// The resource of a type that is named by its message.
    fn resource(&self, type_url: &str) -> Result<Any, Status> {
        let value = match type_url.rsplit('.').next() {
            Some("Listener") => listener().encode_to_vec(),
            Some("RouteConfiguration") => routes().encode_to_vec(),
            Some("Cluster") => cluster().encode_to_vec(),
            Some("ClusterLoadAssignment") => self.endpoints().encode_to_vec(),
            _ => return Err(Status::invalid_argument(format!("no resources of type {type_url}"))),
        };
        Ok(Any { type_url: type_url.to_owned(), value })
    }

    fn endpoints(&self) -> ClusterLoadAssignment {
        let address = SocketAddress {
            address: self.host.clone(),
            port_specifier: Some(PortSpecifier::PortValue(self.port)),
            ..SocketAddress::default()
        };
        let endpoint =
            Endpoint { address: Some(Address { address: Some(Socket(address)) }), ..Endpoint::default() };
        let host_identifier = Some(HostIdentifier::Endpoint(endpoint));
        let lb_endpoints = vec![LbEndpoint { host_identifier, ..LbEndpoint::default() }];
        let endpoints = vec![LocalityLbEndpoints { lb_endpoints, ..LocalityLbEndpoints::default() }];
        ClusterLoadAssignment {
            cluster_name: FOREST.to_owned(),
            endpoints,
            ..ClusterLoadAssignment::default()
        }
    }
}

fn listener() -> Listener {
    let rds = Rds { route_config_name: FOREST.to_owned(), ..Rds::default() };
    let route_specifier = Some(RouteSpecifier::Rds(rds));
    let manager = HttpConnectionManager { route_specifier, ..HttpConnectionManager::default() };
    let type_url = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.\
                    HttpConnectionManager";
    let manager = Any { type_url: type_url.to_owned(), value: manager.encode_to_vec() };
    let api_listener = Some(ApiListener { api_listener: Some(manager) });
    Listener { name: FOREST.to_owned(), api_listener, ..Listener::default() }
}

fn routes() -> RouteConfiguration {
    let path_specifier = Some(PathSpecifier::Prefix("/programs.Forest/".to_owned()));
    let cluster_specifier = Some(ClusterSpecifier::Cluster(FOREST.to_owned()));
    let route = Route {
        r#match: Some(RouteMatch { path_specifier, ..RouteMatch::default() }),
        action: Some(Action::Route(RouteAction { cluster_specifier, ..RouteAction::default() })),
        ..Route::default()
    };
    let host = VirtualHost {
        name: FOREST.to_owned(),
        domains: vec!["*".to_owned()],
        routes: vec![route],
        ..VirtualHost::default()
    };
    RouteConfiguration { name: FOREST.to_owned(), virtual_hosts: vec![host], ..RouteConfiguration::default() }
}

fn cluster() -> Cluster {
    let cluster_discovery_type = Some(ClusterDiscoveryType::Type(DiscoveryType::Eds as i32));
    Cluster { name: FOREST.to_owned(), cluster_discovery_type, ..Cluster::default() }
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for ControlPlane {
    type StreamAggregatedResourcesStream = BoxStream<'static, Result<DiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let plane = self.clone();
        let respond = move |request: Result<DiscoveryRequest, Status>| {
            let response = request.and_then(|request| plane.respond(request)).transpose();
            async { response }
        };
        Ok(Response::new(request.into_inner().filter_map(respond).boxed()))
    }

    type DeltaAggregatedResourcesStream = BoxStream<'static, Result<DeltaDiscoveryResponse, Status>>;

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("delta_aggregated_resources"))
    }
}

impl ControlPlane {
    /// Acknowledgements have no response.
    fn respond(&self, request: DiscoveryRequest) -> Result<Option<DiscoveryResponse>, Status> {
        if let Some(error) = request.error_detail {
            return Err(Status::invalid_argument(error.message));
        }
        if !request.version_info.is_empty() {
            return Ok(None);
        }
        Ok(Some(DiscoveryResponse {
            version_info: "1".to_owned(),
            nonce: "1".to_owned(),
            resources: vec![self.resource(&request.type_url)?],
            type_url: request.type_url,
            ..DiscoveryResponse::default()
        }))
    }
}
