//! HTTP/1.1 connections: pipelined heads and bodies, in arbitrary pieces.
//!
//! The service must see the same requests however the bytes are cut. Each piece is parsed twice, strictly and by hyper,
//! and neither may depend on the cuts. The number of responses equals that of requests.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body as _;
use thalweg_web::body::Body;
use thalweg_web::http1::{Http1Limits, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::features::{Features, feature};

/// An input is a byte, which selects the cuts, and the client's bytes.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    const CONNECTIONS: &[&str] = &[
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcdePOST / HTTP/1.1\r\nHost: b\r\n\
         Content-Length: 1\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;b=c\r\n\
         0123456789\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        "GET http://b/c HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a:80\r\n\r\nHEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n\
         GET / HTTP/1.0\r\n\r\n",
        "\r\n\r\nPOST /unread HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\n\
         Content-Length: 3\r\n\r\n0\r\n\r\n",
        "POST /unread HTTP/1.1\r\nhost:a\r\nContent-Length: 3\r\n\r\nabcCONNECT a:80 HTTP/1.1\r\n\
         Host: a:80\r\n\r\n",
        "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n01234567890123456789POST /unread HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\nContent-Length: 3\r\n\r\nabc",
        "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nHost: b\r\n\
         Content-Length: 1\r\n\r\nxPOST / HTTP/1.POST /\r\n\r\n",
    ];
    let with_cut = |cut: u8| CONNECTIONS.iter().map(move |bytes| [&[cut], bytes.as_bytes()].concat());
    with_cut(7).chain(with_cut(1)).collect()
}

pub(super) fn target(data: &[u8]) -> Features {
    let Some((cut, bytes)) = data.split_first() else { return Features::new() };
    let piece_len = usize::from(*cut).max(1);
    let (unsplit, responses) = run(bytes, bytes.len().max(1));
    let (split, _) = run(bytes, piece_len);
    // After an unread body the connection continues only if the rest of the body has arrived, and no malformed request
    // arrived with it.
    let is_unread = |request: &String| request.split(' ').count() == 2;
    let agree = match unsplit.iter().position(is_unread) {
        None => unsplit == split,
        Some(unread) => split.len() > unread && (unsplit.starts_with(&split) || split.starts_with(&unsplit)),
    };
    assert!(agree, "in pieces of {piece_len} bytes {split:?}, and else {unsplit:?}");
    let statuses: Vec<&str> =
        responses.split("HTTP/1.").skip(1).filter_map(|response| response.get(2..5)).collect();
    let finals = statuses.iter().filter(|status| !status.starts_with('1')).count();
    // A rejected head gets a response, too.
    assert!(
        (unsplit.len()..=unsplit.len() + 1).contains(&finals),
        "{unsplit:?} are answered by {responses:?}"
    );
    let mut features = Features::from([feature(&statuses)]);
    for request in &unsplit {
        let (method, rest) = request.split_once(' ').unwrap_or_default();
        features.insert(feature((method.len().min(8), rest.len().min(40) / 4, rest.ends_with("refused"))));
    }
    features
}

/// Returns the requests seen by the service, and the responses.
fn run(bytes: &[u8], piece_len: usize) -> (Vec<String>, String) {
    thread_local! {
        static RUNTIME: Runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    }
    let requests = RefCell::new(Vec::new());
    let responses = RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let (mut client, server) = duplex(64 << 10);
            let service = |request| respond(request, &requests);
            let limits = Http1Limits::default();
            let serving = serve(server, service, &limits, pending());
            let client_task = async {
                for piece in bytes.chunks(piece_len) {
                    // The server may have closed the connection early.
                    if client.write_all(piece).await.is_err() {
                        break;
                    }
                    sleep(Duration::from_millis(1)).await;
                }
                // Longer than any of the server's timeouts.
                sleep(Duration::from_secs(200)).await;
                client.shutdown().await.ok();
                let mut responses = Vec::new();
                client.read_to_end(&mut responses).await.ok();
                String::from_utf8_lossy(&responses).into_owned()
            };
            let ((), responses) = tokio::join!(serving, client_task);
            responses
        })
    });
    (requests.into_inner(), responses)
}

async fn respond(request: Request<Body>, requests: &RefCell<Vec<String>>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    let number = requests.borrow().len();
    requests.borrow_mut().push(format!("{} {}", head.method, head.uri));
    if head.uri.path() != "/unread" {
        let mut read = Vec::new();
        let end = loop {
            match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                Some(Ok(frame)) => read.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => break " refused".to_owned(),
                None => break format!(" {}", String::from_utf8_lossy(&read)),
            }
        };
        requests.borrow_mut()[number].push_str(&end);
    }
    Response::new(Body::full("ok"))
}
