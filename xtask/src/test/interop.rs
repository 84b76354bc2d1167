//! gRPC's interoperability tests with grpc-go, in both directions.

use std::path::{Path, PathBuf};

use super::cases::Cases;
use super::rust;
use crate::failure::Result;
use crate::job::Job;
use crate::server::Server;
use crate::{certificates, tools};

/// The cases without credentials, each in plain text and over TLS.
const CASES: &str = "empty_unary large_unary client_streaming server_streaming ping_pong empty_stream \
                     timeout_on_sleeping_server cancel_after_begin cancel_after_first_response \
                     status_code_and_message special_status_message custom_metadata unimplemented_method \
                     unimplemented_service";

/// Runs grpc-go's client against `thalweg serve`.
pub(super) fn server() -> Result<String> {
    let client = Job::new(tools::INTEROP_CLIENT.get()?);
    let plain = run_cases(&client, rust::serve("")?)?;
    let certs = certificates()?;
    let identity = format!("--cert {} --key {}", file(&certs, "server.pem"), file(&certs, "server.key"));
    let flags = "--use_tls --use_test_ca --server_host_override localhost --ca_file";
    let tls = run_cases(&client.words(flags).arg(certs.join("ca.pem")), rust::serve(&identity)?)?;
    Ok(format!("{plain}; over TLS {tls}"))
}

/// Runs our client against grpc-go's server.
pub(super) fn client() -> Result<String> {
    let client = Job::new(rust::example("interop_client")?);
    let go = tools::INTEROP_SERVER.get()?;
    let serve = |flags: &str| Server::start(|port| Job::new(&go).words(&format!("--port {port} {flags}")));
    let plain = run_cases(&client, serve("")?)?;
    let certs = certificates()?;
    let [cert, key] = ["server.pem", "server.key"].map(|name| file(&certs, name));
    let server = serve(&format!("--use_tls --tls_cert_file {cert} --tls_key_file {key}"))?;
    let client =
        client.words("--use_tls --server_host_override localhost --ca_file").arg(certs.join("ca.pem"));
    Ok(format!("{plain}; over TLS {}", run_cases(&client, server)?))
}

fn certificates() -> Result<PathBuf> {
    certificates::make(Job::new(rust::command()?), "interop-certs")
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Runs all cases; a failed one does not stop the others.
fn run_cases(client: &Job, server: Server) -> Result<String> {
    let mut cases = Cases::default();
    for case in CASES.split(' ') {
        let words = format!("--server_host 127.0.0.1 --server_port {} --test_case {case}", server.port());
        cases.count(case, client.clone().words(&words).seconds(30).run())?;
    }
    server.stop()?;
    cases.verdict("cases")
}
