//! Channels in front of real proxies and servers: nginx that ends connections, haproxy that reloads, and servers of
//! three other stacks of which one stops. No call fails, except those that a server cancels when it stops.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::rust;
use crate::failure::Result;
use crate::files::{create_empty, list, text};
use crate::job::Job;
use crate::peers;
use crate::server::{Server, free_port};
use crate::{tools, workspace};

const IN_FLIGHT: u64 = 16;
/// Calls through nginx: each connection has 50.
const CALLS: u64 = 10_000;
const RELOADS: u32 = 6;
const RELOAD_PERIOD: Duration = Duration::from_secs(1);
/// Time from a load's start to the stop of a server, and to its end.
const STOP_AFTER: Duration = Duration::from_secs(2);
const LOAD_S: u64 = 4;
/// Least number of calls in such a load.
const LOAD_CALLS_MIN: u64 = 1000;

pub(super) fn check() -> Result<String> {
    let folder = create_empty(workspace::output().join("fleet"))?;
    let nginx = nginx(&folder)?;
    let haproxy = haproxy(&folder)?;
    let mixed = mixed_servers()?;
    Ok(format!(
        "{nginx} calls through nginx, {haproxy} during {RELOADS} reloads of haproxy, {mixed} on servers of three \
         stacks, each of which stopped once; none failed but those that gRPC's C core cancelled"
    ))
}

/// Calls over four lanes through nginx, which sends GOAWAY after 50 requests of a connection.
fn nginx(folder: &Path) -> Result<u64> {
    let server = rust::serve("")?;
    let port = free_port()?;
    let settings = format!(
        "daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
         events {{}}
         http {{
             access_log off;
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
             uwsgi_temp_path uwsgi; scgi_temp_path scgi;
             upstream back {{ server {}; keepalive 16; }}
             server {{
                 listen 127.0.0.1:{port} http2;
                 keepalive_requests 50;
                 location / {{ grpc_pass grpc://back; }}
             }}
         }}",
        server.address()
    );
    fs::write(folder.join("nginx.conf"), settings)?;
    let nginx = Job::new(tools::nginx()?).arg("-p").arg(folder).words("-c nginx.conf");
    let nginx = Server::start_at(&nginx, port)?;
    let ok = load_without_failures(&nginx.address(), &format!("-n {CALLS} --connections 4"))?;
    ensure!(ok == CALLS, "{ok} of {CALLS} calls");
    nginx.stop()?;
    Ok(ok)
}

/// Calls through haproxy, whose next process takes over the listener while the last one finishes its calls.
fn haproxy(folder: &Path) -> Result<u64> {
    tools::debian("haproxy", &["haproxy"])?;
    let server = rust::serve("")?;
    let (port, socket, settings) = (free_port()?, folder.join("haproxy.sock"), folder.join("haproxy.cfg"));
    let text = format!(
        "global\n stats socket {} mode 600 level admin expose-fd listeners\n\
         defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
         frontend front\n bind 127.0.0.1:{port} proto h2\n default_backend back\n\
         backend back\n server one {} proto h2\n",
        socket.display(),
        server.address()
    );
    fs::write(&settings, text)?;
    let haproxy = Job::new("haproxy").arg("-f").arg(&settings);
    let mut proxy = Server::start_at(&haproxy, port)?;
    let (address, seconds) = (proxy.address(), u64::from(RELOADS) + 2);
    thread::scope(|scope| {
        let flags = format!("-z {seconds}s --connections 4");
        let load = scope.spawn(move || load_without_failures(&address, &flags));
        for _ in 0..RELOADS {
            thread::sleep(RELOAD_PERIOD);
            let next = haproxy.clone().arg("-x").arg(&socket).arg("-sf").arg(proxy.process_id().to_string());
            let last = std::mem::replace(&mut proxy, Server::start_at(&next, port)?);
            last.wait_until_ended()?;
        }
        load.join().map_err(|_| failed!("the thread of a load panicked"))?
    })
}

/// Calls over one channel to servers of grpc-go, gRPC C++ and gRPC's C core in Python, each of which stops once. The C
/// core cancels calls that it has not begun when it stops, those of grpc-go's client, too.
fn mixed_servers() -> Result<u64> {
    let go_and_cpp = peers::named(&["grpc-go", "grpc-cpp"])?;
    let go_and_cpp = go_and_cpp.into_iter().map(peers::Peer::build).collect::<Result<Vec<_>>>()?;
    let (python, script) = (tools::python()?, workspace::suites().join("python/grpcio_server.py"));
    let mut ok = 0;
    for stopped in 0..=go_and_cpp.len() {
        let mut servers: Vec<Server> =
            go_and_cpp.iter().map(|peer| Server::start(|port| peer.serve(port))).collect::<Result<_>>()?;
        servers.push(Server::start(|port| Job::new(&python).arg(&script).arg(port.to_string()))?);
        let addresses: Vec<String> = servers.iter().map(Server::address).collect();
        let target = format!("ipv4:{}", addresses.join(","));
        let calls = thread::scope(|scope| {
            let load = scope.spawn(|| load(&target, &format!("--lb round_robin -z {LOAD_S}s")));
            thread::sleep(STOP_AFTER);
            servers.remove(stopped).stop_gracefully()?;
            load.join().map_err(|_| failed!("the thread of a load panicked"))?
        })?;
        let is_c_core = stopped > 0;
        let all_cancelled = calls.errors["CANCELLED"] == calls.failed;
        let are_few = is_c_core && all_cancelled && calls.failed <= IN_FLIGHT;
        ensure!(calls.failed == 0 || are_few, "{target}: {} calls failed: {}", calls.failed, calls.errors);
        ensure!(calls.ok >= LOAD_CALLS_MIN, "only {} calls", calls.ok);
        calls.are_spread(&addresses, &addresses[stopped])?;
        ok += calls.ok;
    }
    Ok(ok)
}

/// Calls of a load.
struct Calls {
    ok: u64,
    failed: u64,
    /// Failed calls by code.
    errors: Value,
    /// Calls to each server.
    servers: Vec<(String, u64)>,
}

impl Calls {
    /// Checks that servers that stayed got the same number of calls, and `stopped` some.
    fn are_spread(&self, addresses: &[String], stopped: &str) -> Result<()> {
        let calls_of = |address: &str| self.servers.iter().find(|of| of.0 == address).map_or(0, |of| of.1);
        let stayed: Vec<u64> = addresses.iter().filter(|it| *it != stopped).map(|it| calls_of(it)).collect();
        let (least, most) = (stayed.iter().min().unwrap_or(&0), stayed.iter().max().unwrap_or(&0));
        let is_even = most - least <= most / 20;
        ensure!(is_even && *least > 0 && calls_of(stopped) > 0, "unevenly spread: {:?}", self.servers);
        ensure!(calls_of(stopped) < *least, "{stopped} stopped, and was called as often: {:?}", self.servers);
        Ok(())
    }
}

/// Like [`load`], but any failed call is an error.
fn load_without_failures(target: &str, flags: &str) -> Result<u64> {
    let calls = load(target, flags)?;
    ensure!(calls.failed == 0, "{target}: {} calls failed: {}", calls.failed, calls.errors);
    Ok(calls.ok)
}

/// Makes calls with these flags.
fn load(target: &str, flags: &str) -> Result<Calls> {
    let job =
        Job::new(rust::command()?).arg("load").arg(target).words(&format!("-c {IN_FLIGHT} -O json {flags}"));
    let run = job.json()?;
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let server = |it: &Value| (text(&it["server"]).to_owned(), count(&it["calls"]));
    let [ok, failed] = ["ok", "failed"].map(|name| count(&run[name]));
    Ok(Calls {
        ok,
        failed,
        errors: run["errors"].clone(),
        servers: list(&run["servers"]).iter().map(server).collect(),
    })
}
