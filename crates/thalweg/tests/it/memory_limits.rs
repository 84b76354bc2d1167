//! Memory that all clients together can make a server hold, over sockets and with requests that handlers keep.

use std::sync::Arc;
use std::time::Duration;

use crate::support::peer::{Peer, REQUEST, compressed_envelope, envelope};
use crate::support::{ECHO, Items, connect, items, raw, soon, start};
use bytes::Bytes;
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::{CallOptions, Code, Raw, Request, Response, Server, ServiceOptions, Status};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::io::duplex;

const MEBIBYTE: usize = 1 << 20;

pub(crate) async fn client_of(server: ServerBuilder) -> Peer {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(server.serve_connection(far));
    Peer::client(near).await
}

pub(crate) fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

/// Responds with this message.
struct Large(Raw);

impl Large {
    #[expect(clippy::unused_async, reason = "handlers are async")]
    async fn get(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        Ok(Response::new(self.0.clone()))
    }
}

impl Service for Large {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        methods.unary("Echo", &service, &ServiceOptions::default(), Large::get);
    }
}

/// If all connections reach the budget, one that does not read is closed, and the others continue.
#[tokio::test]
async fn large_responses_count_for_all_connections_together() {
    let service = Large(Raw(Bytes::from(vec![0; MEBIBYTE])));
    let target = start(Server::builder().add_service(service).max_memory(8 * MEBIBYTE)).await;
    let honest_caller = connect(&target).await;
    let mut hoarder = Vec::new();
    for _ in 0..3 {
        let (mut near, far) = duplex(64 * 1024);
        let mut socket = tokio::net::TcpStream::connect(&target).await.expect("a listener");
        tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut near, &mut socket).await;
        });
        let mut peer = Peer::client(far).await;
        for stream in streams().take(20) {
            peer.headers(stream, false, REQUEST).message(stream, true, b"");
        }
        peer.send().await;
        hoarder.push(peer);
    }
    let mut ended = 0;
    for peer in &mut hoarder {
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        ended += usize::from(goaway.is_ok_and(|goaway| goaway.code() == ErrorCode::EnhanceYourCalm));
    }
    assert!(ended >= 1, "none was ended");
    let options = CallOptions::default();
    let response = soon(honest_caller.unary::<_, Raw>(&ECHO, Request::new(raw("")), &options)).await;
    assert_eq!(
        response.map(|response| response.into_inner().0.len()).map_err(|status| status.code()),
        Ok::<_, Code>(MEBIBYTE)
    );
}

/// Keeps requests while its calls run, which never end.
pub(crate) struct KeepsRequests;

impl KeepsRequests {
    async fn hold_request(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        std::future::pending::<()>().await;
        Ok(Response::new(request.into_inner()))
    }

    async fn hold_request_stream(
        self: Arc<Self>,
        request: Request<Raw>,
    ) -> Result<Response<Items<Result<Raw, Status>>>, Status> {
        std::future::pending::<()>().await;
        Ok(Response::new(items(vec![Ok(request.into_inner())])))
    }
}

impl Service for KeepsRequests {
    const NAME: &'static str = "test.Keeping";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        methods.unary("One", &service, &ServiceOptions::default(), KeepsRequests::hold_request);
        methods.server_streaming(
            "Stream",
            &service,
            &ServiceOptions::default(),
            KeepsRequests::hold_request_stream,
        );
    }
}

/// Requests held by handlers count towards the budget of all connections, by their uncompressed size.
#[tokio::test(start_paused = true)]
async fn requests_count_for_all_connections_together() {
    let check = async |path: &str, envelope: &[u8], calls: usize, is_ended: bool| {
        let mut headers: Vec<_> = REQUEST.iter().copied().filter(|(name, _)| *name != ":path").collect();
        headers.insert(0, (":path", path));
        headers.push(("grpc-encoding", "gzip"));
        let server = Server::builder().add_service(KeepsRequests).max_memory(2 * MEBIBYTE);
        let mut peer = client_of(server).await;
        for stream in streams().take(calls) {
            peer.headers(stream, false, &headers);
            for part in envelope.chunks(100_000) {
                peer.data(stream, false, part).send().await;
            }
            peer.data(stream, true, b"").send().await;
        }
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        assert_eq!(goaway.is_ok(), is_ended, "{path}: {calls} calls of {} bytes", envelope.len());
    };
    for path in ["/test.Keeping/One", "/test.Keeping/Stream"] {
        for envelope in [envelope(&vec![0; 60_000]), compressed_envelope(&vec![0; 60_000])] {
            check(path, &envelope, 40, true).await;
            check(path, &envelope, 10, false).await;
        }
        check(path, &envelope(&vec![0; 300_000]), 8, true).await;
        check(path, &envelope(b"small"), 100, false).await;
    }
}
