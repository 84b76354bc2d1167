//! gRPC's interoperability tests with grpc-go, both ways.

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{certificates, tools};

/// Where the certificates of these steps lie.
const FOLDER: &str = "interop-certs";

/// The cases that need no credentials: each in the clear and over TLS.
const CASES: &[&str] = &[
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
];

/// grpc-go's client against `thalweg serve`.
pub(super) fn server(log: &Log) -> Result<String, Failure> {
    let client = Job::new(tools::INTEROP_CLIENT.get(log)?);
    let thalweg = Job::new(rust::command(log)?);
    let port = free_port()?;
    let serve = thalweg.clone().words(&format!("serve --listen 127.0.0.1:{port}"));
    let plain = run_cases(&client, &serve, port, log)?;
    let certs = certificates::make(thalweg.clone(), FOLDER, log)?;
    let port = free_port()?;
    let serve = thalweg.words(&format!("serve --listen 127.0.0.1:{port} --cert"));
    let serve = serve.arg(certs.join("server.pem")).arg("--key").arg(certs.join("server.key"));
    let client = client
        .words("--use_tls --use_test_ca --server_host_override localhost --ca_file")
        .arg(certs.join("ca.pem"));
    let tls = run_cases(&client, &serve, port, log)?;
    Ok(format!("{plain}; over TLS {tls}"))
}

/// Our client against grpc-go's server.
pub(super) fn client(log: &Log) -> Result<String, Failure> {
    let client = Job::new(rust::example("interop_client", log)?);
    let port = free_port()?;
    let go = Job::new(tools::INTEROP_SERVER.get(log)?);
    let plain = run_cases(&client, &go.clone().words(&format!("--port {port}")), port, log)?;
    let certs = certificates::make(Job::new(rust::command(log)?), FOLDER, log)?;
    let port = free_port()?;
    let serve = go.words(&format!("--port {port} --use_tls --tls_cert_file")).arg(certs.join("server.pem"));
    let serve = serve.arg("--tls_key_file").arg(certs.join("server.key"));
    let client =
        client.words("--use_tls --server_host_override localhost --ca_file").arg(certs.join("ca.pem"));
    let tls = run_cases(&client, &serve, port, log)?;
    Ok(format!("{plain}; over TLS {tls}"))
}

/// Runs every case; one that fails does not keep the others from being tried.
fn run_cases(client: &Job, serve: &Job, port: u16, log: &Log) -> Result<String, Failure> {
    let server = Server::start(serve, port, log)?;
    let mut failed = Vec::new();
    for case in CASES {
        let words = format!("--server_host 127.0.0.1 --server_port {port} --test_case {case}");
        if client.clone().words(&words).seconds(30).run(log).is_err() {
            log.line(format_args!("FAILED: {case}"))?;
            failed.push(*case);
        }
    }
    server.stop()?;
    let passed = CASES.len() - failed.len();
    match failed.len() {
        0 => Ok(format!("{passed} of {passed} cases")),
        _ => {
            Err(Failure::failed(format!("{passed} of {} cases; failed: {}", CASES.len(), failed.join(", "))))
        }
    }
}
