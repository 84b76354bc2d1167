//! Limits of TLS on this machine: rustls alone, and connections opened and held. Run by `cargo xtask bench tls`.
//!
//! ```text
//! tls_limits memory CA CHAIN KEY                  records of 16 KiB, sealed and opened in memory
//! tls_limits socket WRITER READER CA CHAIN KEY    the same from one processor to another, over a socket
//! tls_limits handshakes TARGET CA full|resumed    connections per second, one call on each
//! tls_limits idle TARGET CA COUNT                 COUNT connections, a call on each, until stdin ends
//! ```

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg::channel::ChannelBuilder;
use thalweg::tls::rustls::client::UnbufferedClientConnection;
use thalweg::tls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use thalweg::tls::rustls::pki_types::pem::PemObject;
use thalweg::tls::rustls::server::UnbufferedServerConnection;
use thalweg::tls::rustls::unbuffered::ConnectionState;
use thalweg::tls::rustls::{CipherSuite, ClientConfig, RootCertStore, ServerConfig};
use thalweg::tls::{Certificate, CertificateDer, ClientTlsConfig, PrivateKeyDer};
use thalweg::{Channel, Request};
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_measure::cpus::CpuList;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["memory", authority, chain, key] => {
            in_memory(Path::new(authority), Path::new(chain), Path::new(key))
        }
        ["socket", writer, reader, authority, chain, key] => {
            over_socket(writer, reader, Path::new(authority), Path::new(chain), Path::new(key))
        }
        ["handshakes", target, authority, kind @ ("full" | "resumed")] => {
            handshakes(target, Path::new(authority), *kind == "resumed")
        }
        ["idle", target, authority, count] => {
            count.parse().map_err(Into::into).and_then(|count| idle(target, Path::new(authority), count))
        }
        _ => {
            let known =
                "memory CA CHAIN KEY, socket WRITER READER CA CHAIN KEY, handshakes TARGET CA full|resumed";
            Err(format!("use {known}, or idle TARGET CA COUNT").into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Duration of each measurement.
const WINDOW: Duration = Duration::from_secs(1);
/// Bytes that the engine reads and writes at once.
const CHUNK_LEN: usize = 128 * 1024;

/// Returns a provider with AES-128-GCM, the engine's preference.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// Advances one side's handshake as far as possible without the other.
macro_rules! shake {
    ($session:expr, $incoming:expr, $outgoing:expr) => {
        loop {
            let status = $session.process_tls_records(&mut $incoming);
            let discard = status.discard;
            let can_continue = match status.state? {
                ConnectionState::EncodeTlsData(mut message) => {
                    let mut space = vec![0; 20_000];
                    let len = message.encode(&mut space)?;
                    $outgoing.extend_from_slice(&space[..len]);
                    true
                }
                ConnectionState::TransmitTlsData(message) => {
                    message.done();
                    true
                }
                _ => false,
            };
            $incoming.drain(..discard);
            if !can_continue {
                break;
            }
        }
    };
}

/// Returns two sessions after the handshake.
fn sessions(
    authority: &Path,
    chain: &Path,
    key: &Path,
) -> Outcome<(UnbufferedClientConnection, UnbufferedServerConnection)> {
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<Vec<_>, _>>()?;
    let server = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    let (mut client, mut server) = (
        UnbufferedClientConnection::new(trusting(authority)?, "localhost".try_into()?)?,
        UnbufferedServerConnection::new(Arc::new(server))?,
    );
    let (mut to_server, mut to_client): (Vec<u8>, Vec<u8>) = Default::default();
    for _ in 0..4 {
        shake!(client, to_client, to_server);
        shake!(server, to_server, to_client);
    }
    Ok((client, server))
}

fn in_memory(authority: &Path, chain: &Path, key: &Path) -> Outcome<()> {
    let (mut client, mut server) = sessions(authority, chain, key)?;
    let (plain, mut sealed) = (vec![7; CHUNK_LEN], vec![0; 2 * CHUNK_LEN]);
    let (mut sealing, mut opening, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    while sealing + opening < WINDOW {
        let start = Instant::now();
        let len = seal(&mut client, &plain, &mut sealed)?;
        sealing += start.elapsed();
        let start = Instant::now();
        bytes += open(&mut server, &mut sealed[..len])?.1;
        opening += start.elapsed();
    }
    let mb_per_s = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    println!("{{\"seal_mb_per_s\": {:.0}, \"open_mb_per_s\": {:.0}}}", mb_per_s(sealing), mb_per_s(opening));
    Ok(())
}

/// Measures throughput from a thread that seals and writes to one that reads and opens, each on its own processor.
fn over_socket(on_writer: &str, on_reader: &str, authority: &Path, chain: &Path, key: &Path) -> Outcome<()> {
    let (mut client, mut server) = sessions(authority, chain, key)?;
    let (on_writer, on_reader): (CpuList, CpuList) = (on_writer.parse()?, on_reader.parse()?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut writer = TcpStream::connect(listener.local_addr()?)?;
    let (mut reader, _) = listener.accept()?;
    writer.set_nodelay(true)?;
    let (read, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, ends) = (Arc::clone(&read), Arc::clone(&is_over));
    std::thread::spawn(move || {
        let _ = on_writer.pin_this_thread();
        let (plain, mut sealed) = (vec![7; CHUNK_LEN], vec![0; 2 * CHUNK_LEN]);
        while !ends.load(Ordering::Relaxed) {
            let Ok(len) = seal(&mut client, &plain, &mut sealed) else { break };
            if writer.write_all(&sealed[..len]).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        let _ = on_reader.pin_this_thread();
        let mut buffer = vec![0; 2 * CHUNK_LEN];
        let mut end = 0;
        while let Ok(more) = reader.read(&mut buffer[end..])
            && more > 0
        {
            end += more;
            let Ok((taken, bytes)) = open(&mut server, &mut buffer[..end]) else { break };
            buffer.copy_within(taken..end, 0);
            end -= taken;
            counted.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    });
    std::thread::sleep(WINDOW / 4);
    let (before, start) = (read.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(WINDOW);
    let bytes = read.load(Ordering::Relaxed) - before;
    let elapsed = start.elapsed();
    is_over.store(true, Ordering::Relaxed);
    println!("{{\"mb_per_s\": {:.0}}}", bytes as f64 / elapsed.as_secs_f64() / 1e6);
    Ok(())
}

fn seal(client: &mut UnbufferedClientConnection, plain: &[u8], sealed: &mut [u8]) -> Outcome<usize> {
    match client.process_tls_records(&mut []).state? {
        ConnectionState::WriteTraffic(mut traffic) => Ok(traffic.encrypt(plain, sealed)?),
        state => Err(format!("{state:?}").into()),
    }
}

/// Returns the number of record bytes consumed, and of payload bytes in them.
fn open(server: &mut UnbufferedServerConnection, sealed: &mut [u8]) -> Outcome<(usize, usize)> {
    let (mut taken, mut bytes) = (0, 0);
    loop {
        let status = server.process_tls_records(&mut sealed[taken..]);
        taken += status.discard;
        match status.state? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    taken += record.discard;
                    bytes += std::hint::black_box(record.payload).len();
                }
            }
            _ => return Ok((taken, bytes)),
        }
    }
}

fn trusting(authority: &Path) -> Outcome<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Returns a channel with one connection.
fn channel(target: &str, tls: ClientTlsConfig) -> ChannelBuilder {
    Channel::builder(target).lanes(1).tls(tls.domain_name("localhost"))
}

async fn call(channel: &Channel) -> Outcome<()> {
    BenchmarkServiceClient::new(channel.clone()).unary_call(Request::new(SimpleRequest::default())).await?;
    Ok(())
}

/// Opens a channel per connection, with or without shared TLS sessions.
#[tokio::main(flavor = "current_thread")]
async fn handshakes(target: &str, authority: &Path, is_resumed: bool) -> Outcome<()> {
    let shared = ClientTlsConfig::from_rustls(trusting(authority)?);
    let own = ClientTlsConfig::new().ca_certificate(Certificate::from_file(authority));
    let tls = || if is_resumed { shared.clone() } else { own.clone() };
    // Session tickets are available after the first connection's call.
    call(&channel(target, tls()).connect().await?).await?;
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < WINDOW {
        let four = (0..4).map(|_| {
            let builder = channel(target, tls());
            tokio::spawn(async move {
                let channel = builder.connect().await.map_err(|error| error.to_string())?;
                call(&channel).await.map_err(|error| error.to_string())
            })
        });
        for connected in four.collect::<Vec<_>>() {
            connected.await??;
            count += 1;
        }
    }
    println!("{{\"per_s\": {:.0}}}", f64::from(count) / start.elapsed().as_secs_f64());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn idle(target: &str, authority: &Path, count: usize) -> Outcome<()> {
    let tls = ClientTlsConfig::from_rustls(trusting(authority)?);
    let mut channels = Vec::new();
    for _ in 0..count {
        let channel = channel(target, tls.clone()).connect().await?;
        call(&channel).await?;
        channels.push(channel);
    }
    println!("ready");
    std::io::stdout().flush()?;
    // Connections are held until stdin is closed.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}
