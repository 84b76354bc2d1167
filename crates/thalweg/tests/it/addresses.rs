//! Targets with several addresses, some of them unresponsive, and socket options for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use thalweg::channel::ChannelBuilder;
use thalweg::web::Web;
use thalweg::{Channel, Protocol, Server};

use crate::support::{Echo, echo, raw, soon, start};

/// An address where connection attempts get no response: its accept queue is full.
struct Silent {
    listener: Socket,
    queued: Vec<TcpStream>,
}

impl Silent {
    fn new() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
        listener.listen(0).expect("it listens");
        let mut silent = Self { listener, queued: Vec::new() };
        while let Ok(stream) = TcpStream::connect_timeout(&silent.address(), Duration::from_millis(200)) {
            silent.queued.push(stream);
        }
        silent
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().ok().and_then(|address| address.as_socket()).expect("bound")
    }
}

/// Returns a target whose last address alone responds, and guards that keep the others silent.
async fn target(silent: usize) -> (String, Vec<Silent>) {
    let server = Server::builder().add_service(Echo::default()).web(Web::new());
    let good = start(server).await;
    let silent: Vec<_> = (0..silent).map(|_| Silent::new()).collect();
    let addresses: Vec<_> = silent.iter().map(|silent| silent.address().to_string()).chain([good]).collect();
    (format!("ipv4:{}", addresses.join(",")), silent)
}

/// Waiting for a silent address would take a share of an hour.
#[tokio::test]
async fn silent_addresses_do_not_delay_connecting() {
    let (target, _silent) = target(2).await;
    let check = async |set: fn(ChannelBuilder) -> ChannelBuilder| {
        let builder = set(Channel::builder(&target).connect_timeout(Duration::from_secs(3600)));
        let channel = soon(builder.connect()).await.expect("the last address answers");
        assert_eq!(soon(echo(&channel, raw("x"))).await.expect("an echo"), raw("x"));
    };
    check(|builder| builder).await;
    check(|builder| builder.tcp_keepalive(Duration::from_secs(60))).await;
    check(|builder| builder.local_address(Ipv4Addr::LOCALHOST.into())).await;
    check(|builder| {
        let builder = builder.tcp_keepalive(Duration::from_secs(60)).tcp_keepalive_retries(3);
        builder.tcp_keepalive_interval(Duration::from_secs(5)).local_address(Ipv4Addr::LOCALHOST.into())
    })
    .await;
    check(|builder| builder.protocol(Protocol::Connect).http1(true)).await;
}

#[tokio::test]
async fn connect_timeout_names_all_silent_addresses() {
    let silent = [Silent::new(), Silent::new()];
    let [first, second] = silent.each_ref().map(Silent::address);
    let builder = Channel::builder(format!("ipv4:{first},{second}"));
    let error =
        soon(builder.connect_timeout(Duration::from_millis(600)).connect()).await.expect_err("silence");
    let error = error.to_string();
    let named = [first, second].map(|address| error.find(&format!("{address} had not accepted it")));
    assert!(named[0].is_some() && named[0] < named[1], "{error}");
}

#[tokio::test]
async fn addresses_of_other_ip_version_are_skipped() {
    let (target, _silent) = target(0).await;
    let local = IpAddr::from(Ipv6Addr::LOCALHOST);
    let error =
        soon(Channel::builder(&target).local_address(local).connect()).await.expect_err("none is left");
    let expected = "has no IPv6 address to connect to from ::1; use a local IPv4 address";
    assert!(error.to_string().contains(expected), "{error}");
}
