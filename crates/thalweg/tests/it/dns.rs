//! Names in the DNS of a server of the test's own: addresses and service configs (gRFC A2).

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thalweg::channel::{ChannelBuilder, DnsResolver, ProxyConfig};
use thalweg::{Channel, Code, Server};
use tokio::time::{sleep, timeout};

use crate::support::{Echo, echo, raw, soon};

/// dnsmasq with some records.
struct Dnsmasq {
    port: u16,
    folder: std::path::PathBuf,
    process: Child,
}

impl Dnsmasq {
    /// Starts it with the records of a configuration.
    fn start(records: &str) -> Self {
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("bound").port();
        let folder = std::env::temp_dir().join(format!("thalweg-dns-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        drop(free);
        let process = run(&folder, port, records);
        Self { port, folder, process }
    }

    /// Replaces the records.
    fn set(&mut self, records: &str) {
        self.stop();
        self.process = run(&self.folder, self.port, records);
    }

    fn stop(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it has run");
    }

    fn channel(&self, target: &str) -> ChannelBuilder {
        let resolver = DnsResolver::new(&format!("dns://127.0.0.1:{}/{target}", self.port)).expect("a name");
        let fast = Duration::from_millis(50);
        let builder = Channel::builder(target).resolver(resolver).proxy(ProxyConfig::Off).lanes(1);
        builder.resolution_refresh(fast).resolution_interval_min(fast)
    }
}

fn run(folder: &std::path::Path, port: u16, records: &str) -> Child {
    let path = folder.join("dnsmasq.conf");
    let settings =
        "no-resolv\nno-hosts\nno-daemon\nbind-interfaces\nlisten-address=127.0.0.1\nlocal=/test/\n";
    std::fs::write(&path, format!("{settings}port={port}\n{records}")).expect("a file");
    let mut command = Command::new("dnsmasq");
    command.arg(format!("--conf-file={}", path.display())).arg("--pid-file");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().expect("dnsmasq; install the package dnsmasq-base");
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    process
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Starts a server at 127.0.0.`host`, and returns its address.
async fn server(host: u8, port: u16) -> SocketAddr {
    let address = format!("127.0.0.{host}:{port}").parse().expect("an address");
    let server = Server::builder().add_service(Echo::default());
    let bound = server.bind(&[address]).await.expect("a free address");
    let address = bound.local_addresses()[0].to_string();
    tokio::spawn(bound.serve());
    address.parse().expect("a TCP address")
}

/// Calls until the channel is connected to exactly these hosts of 127.0.0.0/24.
async fn until_connected(channel: &Channel, hosts: &[u8]) {
    let connected = || {
        let lanes = channel.lanes().into_iter().filter(|lane| lane.state == "READY");
        let peers = lanes.filter_map(|lane| Some(lane.peer?.rsplit_once(':')?.0.to_owned()));
        let mut peers: Vec<_> = peers.collect();
        peers.sort_unstable();
        peers
    };
    let expected: Vec<_> = hosts.iter().map(|host| format!("127.0.0.{host}")).collect();
    let reached = async {
        while connected() != expected {
            soon(echo(channel, raw("x"))).await.expect("a response");
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), reached).await.unwrap_or_else(|_| panic!("{:?}", connected()));
}

/// Returns addresses of `orders.test`.
fn addresses(hosts: &[u8]) -> String {
    hosts.iter().map(|host| format!("host-record=orders.test,127.0.0.{host}\n")).collect::<Vec<_>>().concat()
}

/// Returns the TXT record with these choices.
fn choices(json: &str) -> String {
    let text = format!("grpc_config={json}").replace('"', "\\\"");
    format!("txt-record=_grpc_config.orders.test,v=other\ntxt-record=_grpc_config.orders.test,\"{text}\"\n")
}

const ROUND_ROBIN: &str = r#"[{"clientLanguage": ["go"], "serviceConfig": {"loadBalancingConfig": 5}},
    {"serviceConfig": {"loadBalancingConfig": [{"round_robin": {}}]}}]"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs dnsmasq"]
async fn addresses_and_config_change_while_the_channel_runs() {
    let first = server(2, 0).await;
    let second = server(3, first.port()).await;
    let third = server(4, first.port()).await;
    assert_eq!((second.port(), third.port()), (first.port(), first.port()));
    let mut dns = Dnsmasq::start(&addresses(&[2]));
    let channel = dns.channel(&format!("orders.test:{}", first.port())).connect_lazy().expect("a channel");
    until_connected(&channel, &[2]).await;
    // A new address: `pick_first` stays, and the config of the TXT record connects to both.
    let config = choices(&ROUND_ROBIN.replace('\n', " "));
    dns.set(&(addresses(&[2, 3]) + &config));
    until_connected(&channel, &[2, 3]).await;
    dns.set(&(addresses(&[3, 4]) + &config));
    until_connected(&channel, &[3, 4]).await;
    // An invalid config: the addresses are used, and the last config stays.
    dns.set(&(addresses(&[2, 3, 4]) + &choices(r#"[{"serviceConfig": {"loadBalancingConfig": 5}}]"#)));
    until_connected(&channel, &[2, 3, 4]).await;
    // A name server that is down changes nothing.
    dns.stop();
    sleep(Duration::from_millis(500)).await;
    until_connected(&channel, &[2, 3, 4]).await;
    dns.process = run(&dns.folder, dns.port, &addresses(&[4]));
    until_connected(&channel, &[4]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs dnsmasq"]
async fn config_of_methods_applies_to_the_first_call() {
    let at = server(5, 0).await;
    let limit = r#"[{"serviceConfig": {"methodConfig": [{"name": [{}], "maxRequestMessageBytes": 10}]}}]"#;
    let dns = Dnsmasq::start(&(addresses(&[5]) + &choices(limit)));
    let target = format!("orders.test:{}", at.port());
    let sent = async |builder: ChannelBuilder| {
        let channel = builder.connect_lazy().expect("a channel");
        soon(echo(&channel, raw("12345678901"))).await.map(drop).map_err(|status| status.code())
    };
    assert_eq!(sent(dns.channel(&target)).await, Err(Code::ResourceExhausted));
    assert_eq!(sent(dns.channel(&target).disable_service_config(true)).await, Ok(()));
    let unread = DnsResolver::new(&format!("dns://127.0.0.1:{}/{target}", dns.port)).expect("a name");
    assert_eq!(sent(dns.channel(&target).resolver(unread.service_config(false))).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs dnsmasq"]
async fn missing_names_are_errors() {
    let dns = Dnsmasq::start(&addresses(&[2]));
    let channel = dns.channel("missing.test:1").connect_lazy().expect("a channel");
    let status = soon(echo(&channel, raw("x"))).await.expect_err("no such name");
    let (start, hint) = ("failed to resolve missing.test:1: ", "check the name and its DNS records");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains(start) && status.message().contains(hint), "{}", status.message());
}
