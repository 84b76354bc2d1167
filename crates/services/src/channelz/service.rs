//! The channelz service.

use thalweg::inventory::{self, ServerSnapshot};
use thalweg::server::{Methods, Service};
use thalweg::{Request, Response, Status};

use super::convert;
use super::pb::channelz_server::{Channelz, ChannelzServer, SERVICE_NAME};
use super::pb::{
    GetChannelRequest, GetChannelResponse, GetServerRequest, GetServerResponse, GetServerSocketsRequest,
    GetServerSocketsResponse, GetServersRequest, GetServersResponse, GetSocketRequest, GetSocketResponse,
    GetSubchannelRequest, GetSubchannelResponse, GetTopChannelsRequest, GetTopChannelsResponse,
};

/// `grpc.channelz.v1.Channelz` for this process.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ChannelzService;

impl ChannelzService {
    /// Creates the service for this process.
    pub fn new() -> Self {
        Self
    }
}

impl Service for ChannelzService {
    const NAME: &'static str = SERVICE_NAME;

    fn register(self, methods: &mut Methods<'_>) {
        ChannelzServer::new(ProcessChannelz).max_decoding_message_size(REQUEST_BYTES_MAX).register(methods);
    }
}

/// Maximum request size. Requests only have a few numbers.
const REQUEST_BYTES_MAX: usize = 1024;

/// Maximum number of results in a page.
const PAGE_LEN_MAX: usize = 100;

struct ProcessChannelz;

impl Channelz for ProcessChannelz {
    async fn get_top_channels(
        &self,
        request: Request<GetTopChannelsRequest>,
    ) -> Result<Response<GetTopChannelsResponse>, Status> {
        let GetTopChannelsRequest { start_channel_id, max_results } = request.into_inner();
        let page = Page::new("start_channel_id", start_channel_id, max_results)?;
        let (channels, end) = page.select(inventory::channels(), |channel| channel.id);
        let channel = channels.iter().map(convert::channel).collect();
        Ok(Response::new(GetTopChannelsResponse { channel, end }))
    }

    async fn get_servers(
        &self,
        request: Request<GetServersRequest>,
    ) -> Result<Response<GetServersResponse>, Status> {
        let GetServersRequest { start_server_id, max_results } = request.into_inner();
        let page = Page::new("start_server_id", start_server_id, max_results)?;
        let (servers, end) = page.select(inventory::servers(), |server| server.id);
        let server = servers.iter().map(convert::server).collect();
        Ok(Response::new(GetServersResponse { server, end }))
    }

    async fn get_server(
        &self,
        request: Request<GetServerRequest>,
    ) -> Result<Response<GetServerResponse>, Status> {
        let server = server(request.into_inner().server_id)?;
        Ok(Response::new(GetServerResponse { server: Some(convert::server(&server)) }))
    }

    async fn get_server_sockets(
        &self,
        request: Request<GetServerSocketsRequest>,
    ) -> Result<Response<GetServerSocketsResponse>, Status> {
        let GetServerSocketsRequest { server_id, start_socket_id, max_results } = request.into_inner();
        let page = Page::new("start_socket_id", start_socket_id, max_results)?;
        let (sockets, end) = page.select(server(server_id)?.sockets, |socket| *socket);
        let socket_ref =
            sockets.into_iter().map(|socket| convert::socket_ref(socket, String::new())).collect();
        Ok(Response::new(GetServerSocketsResponse { socket_ref, end }))
    }

    async fn get_channel(
        &self,
        request: Request<GetChannelRequest>,
    ) -> Result<Response<GetChannelResponse>, Status> {
        let id = request.into_inner().channel_id;
        let channel = inventory::channels().into_iter().find(|channel| matches_id(channel.id, id));
        let channel = channel.ok_or_else(|| not_found("channel", id))?;
        Ok(Response::new(GetChannelResponse { channel: Some(convert::channel(&channel)) }))
    }

    async fn get_subchannel(
        &self,
        request: Request<GetSubchannelRequest>,
    ) -> Result<Response<GetSubchannelResponse>, Status> {
        let id = request.into_inner().subchannel_id;
        let mut endpoints = inventory::channels().into_iter().flat_map(|channel| channel.endpoints);
        let endpoint = endpoints.find(|endpoint| matches_id(endpoint.id, id));
        let endpoint = endpoint.ok_or_else(|| not_found("subchannel", id))?;
        Ok(Response::new(GetSubchannelResponse { subchannel: Some(convert::subchannel(&endpoint)) }))
    }

    async fn get_socket(
        &self,
        request: Request<GetSocketRequest>,
    ) -> Result<Response<GetSocketResponse>, Status> {
        let id = request.into_inner().socket_id;
        let socket = u64::try_from(id).ok().and_then(inventory::socket);
        let socket = socket.ok_or_else(|| not_found("socket", id))?;
        Ok(Response::new(GetSocketResponse { socket: Some(convert::socket(&socket)) }))
    }
}

fn server(id: i64) -> Result<ServerSnapshot, Status> {
    let server = inventory::servers().into_iter().find(|server| matches_id(server.id, id));
    server.ok_or_else(|| not_found("server", id))
}

fn matches_id(id: u64, requested_id: i64) -> bool {
    u64::try_from(requested_id) == Ok(id)
}

fn not_found(kind: &str, id: i64) -> Status {
    Status::not_found(format!("unknown {kind} {id}"))
}

/// A page of a list.
#[derive(Debug)]
struct Page {
    start: u64,
    len_max: usize,
}

impl Page {
    fn new(start_name: &str, start: i64, max_results: i64) -> Result<Self, Status> {
        let positive = |name: &str, value: i64| {
            let negative =
                |_| Status::invalid_argument(format!("invalid {name} {value}; it must not be negative"));
            u64::try_from(value).map_err(negative)
        };
        let start = positive(start_name, start)?;
        let len_max = match positive("max_results", max_results)? {
            0 => PAGE_LEN_MAX,
            requested_id => usize::try_from(requested_id).unwrap_or(PAGE_LEN_MAX).min(PAGE_LEN_MAX),
        };
        Ok(Self { start, len_max })
    }

    /// Returns the page of a list sorted by ID, and whether it is the last.
    fn select<T>(&self, all: Vec<T>, id: impl Fn(&T) -> u64) -> (Vec<T>, bool) {
        let mut rest = all.into_iter().skip_while(|entry| id(entry) < self.start);
        let page = rest.by_ref().take(self.len_max).collect();
        (page, rest.next().is_none())
    }
}
