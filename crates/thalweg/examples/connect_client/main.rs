//! Client for Connect's conformance suite: calls by gRPC, gRPC-Web and Connect, over HTTP/1.1 and HTTP/2.
//!
//! ```text
//! connectconformance --conf FILE --mode client -- connect_client FOLDER
//! ```
//!
//! `FOLDER` is the suite's folder `proto`; the client reads descriptors from it, which JSON messages need. It reads
//! calls from standard input and writes their results to standard output.

mod call;
mod messages;
mod requests;

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message as _;
use thalweg::tls::{Certificate, ClientTlsConfig, Identity};
use thalweg::{Channel, Protocol};
use thalweg_protobuf::Schema;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use messages as pb;

/// Maximum number of concurrent calls. With thousands, calls would delay each other beyond the suite's deadlines.
const CALLS_MAX: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("the folder of the suite's .proto files is missing")?;
    let schema = schema(Path::new(&folder))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let channels = Channels::default();
    let permits = Arc::new(Semaphore::new(CALLS_MAX));
    let mut calls = JoinSet::new();
    while let Some(test_case) = read_framed()? {
        let test_case = pb::ClientCompatRequest::decode(&test_case[..])?;
        let (channels, schema) = (channels.clone(), schema.clone());
        let permit = runtime.block_on(Arc::clone(&permits).acquire_owned())?;
        calls.spawn_on(
            async move {
                let _permit = permit;
                let test_name = test_case.test_name.clone();
                let outcome = match channels.get(&test_case) {
                    Ok(channel) => call::make(channel, schema, test_case).await,
                    Err(error) => Err(error),
                };
                let outcome = Some(match outcome {
                    Ok(result) => pb::Outcome::Response(result),
                    Err(error) => pb::Outcome::Error(pb::ClientErrorResult { message: error.to_string() }),
                });
                write_framed(&pb::ClientCompatResponse { test_name, outcome }.encode_to_vec())
            },
            runtime.handle(),
        );
    }
    for written in runtime.block_on(calls.join_all()) {
        written?;
    }
    Ok(())
}

/// Compiles the service's messages and their dependencies.
fn schema(folder: &Path) -> Result<Schema, Box<dyn Error>> {
    let folder = folder.to_owned();
    let read = move |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let descriptors = thalweg_protobuf::sources::compile(&["connectrpc/conformance/v1/service.proto"], read)?;
    Ok(Schema::from_descriptor_set(&descriptors)?)
}

/// Channels by target and transport; calls with the same settings share one.
#[derive(Clone, Default)]
struct Channels(Arc<Mutex<HashMap<ChannelKey, Channel>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct ChannelKey {
    target: String,
    is_http1: bool,
    protocol: Protocol,
    uses_get: bool,
    authority: Vec<u8>,
    identity: Option<pb::TlsCreds>,
}

impl Channels {
    fn get(&self, test_case: &pb::ClientCompatRequest) -> Result<Channel, Box<dyn Error + Send + Sync>> {
        let channel_key = ChannelKey {
            target: format!("{}:{}", test_case.host, test_case.port),
            is_http1: test_case.http_version == 1,
            protocol: match test_case.protocol {
                1 => Protocol::Connect,
                2 => Protocol::Grpc,
                3 => Protocol::GrpcWeb,
                other => return Err(format!("protocol {other} is unknown").into()),
            },
            uses_get: test_case.use_get_http_method,
            authority: test_case.server_tls_cert.clone(),
            identity: test_case.client_tls_creds.clone(),
        };
        let mut channels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(&channel_key) {
            return Ok(channel.clone());
        }
        let channel = channel_key.channel()?;
        channels.insert(channel_key, channel.clone());
        Ok(channel)
    }
}

impl ChannelKey {
    fn channel(&self) -> Result<Channel, Box<dyn Error + Send + Sync>> {
        let mut builder =
            Channel::builder(&self.target).protocol(self.protocol).http1(self.is_http1).get(self.uses_get);
        if !self.authority.is_empty() {
            let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.authority));
            if let Some(pb::TlsCreds { cert, key }) = &self.identity {
                tls = tls.identity(Identity::from_pem(cert, key));
            }
            builder = builder.tls(tls);
        }
        Ok(builder.connect_lazy()?)
    }
}

/// Reads a length-prefixed message; `None` at the end.
fn read_framed() -> std::io::Result<Option<Vec<u8>>> {
    let mut input = std::io::stdin().lock();
    let mut len = [0; 4];
    match input.read_exact(&mut len) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome?,
    }
    let mut message = vec![0; u32::from_be_bytes(len) as usize];
    input.read_exact(&mut message)?;
    Ok(Some(message))
}

fn write_framed(message: &[u8]) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(&(message.len() as u32).to_be_bytes())?;
    output.write_all(message)?;
    output.flush()
}
