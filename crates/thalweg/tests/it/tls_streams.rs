//! Work per poll of a TLS stream is bounded, so that other tasks run.

use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use thalweg::tls::rustls::{self, ClientConfig, ClientConnection, RootCertStore};
use thalweg::tls::testing::server_stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::support::certificates::Authority;
use crate::support::poll_once;

/// An in-memory wire: data is available at once, and no one is woken.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Directions>>);

#[derive(Default)]
struct Directions {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut wire = self.0.lock().expect("no panic");
        if wire.to_server.is_empty() {
            return Poll::Pending;
        }
        let fits = wire.to_server.len().min(buf.remaining());
        buf.put_slice(&wire.to_server[..fits]);
        wire.to_server.drain(..fits);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.0.lock().expect("no panic").to_client.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Wire {
    /// Exchanges data between the server and rustls's own client.
    fn exchange(&self, client: &mut ClientConnection) {
        let mut wire = self.0.lock().expect("no panic");
        let sent = std::mem::take(&mut wire.to_client);
        let mut sent = &sent[..];
        while !sent.is_empty() {
            client.read_tls(&mut sent).expect("space");
            client.process_new_packets().expect("TLS");
        }
        while client.wants_write() {
            client.write_tls(&mut wire.to_server).expect("memory");
        }
    }
}

/// Returns a server's stream and its client after their handshake.
fn connected() -> (impl AsyncRead + Unpin, ClientConnection, Wire) {
    let authority = Authority::new();
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate_der()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a configuration");

    let (wire, buffered) = (Wire::default(), Arc::new(AtomicUsize::new(0)));
    let identity = authority.identity("localhost");
    let mut accepting = pin!(server_stream(identity.into(), wire.clone(), &buffered));
    let stream = loop {
        wire.exchange(&mut client);
        if let Some(accepted) = poll_once(accepting.as_mut()) {
            break accepted.expect("a handshake");
        }
    };
    wire.exchange(&mut client);
    (stream, client, wire)
}

/// Returns the data of one poll, if it is ready.
fn read_once(stream: &mut (impl AsyncRead + Unpin), space: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; space];
    let mut buf = ReadBuf::new(&mut bytes);
    let polled = Pin::new(stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
    let read = buf.filled().to_vec();
    match polled {
        Poll::Ready(outcome) => {
            outcome.expect("records");
            Some(read)
        }
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn one_read_decrypts_at_most_64_small_records() {
    let (mut stream, mut client, wire) = connected();
    let sent: Vec<u8> = (0..1000_u32).map(|number| number as u8).collect();
    for byte in sent.chunks(1) {
        client.writer().write_all(byte).expect("space");
    }
    wire.exchange(&mut client);
    let mut read = Vec::new();
    let mut read_lens = Vec::new();
    while let Some(bytes) = read_once(&mut stream, 4096) {
        read_lens.push(bytes.len());
        read.extend(bytes);
    }
    assert_eq!(read, sent);
    // All of it was available at the first read; later reads decrypted the rest.
    assert_eq!(read_lens, [&[64; 15][..], &[40]].concat());
}

/// A full read of the largest records completes in one poll.
#[tokio::test]
async fn one_read_decrypts_all_large_records() {
    let (mut stream, mut client, wire) = connected();
    client.set_buffer_limit(None);
    client.writer().write_all(&vec![5; 100_000]).expect("space");
    wire.exchange(&mut client);
    assert_eq!(read_once(&mut stream, 200_000).map(|read| read.len()), Some(100_000));
}

/// The sender of an invalid record gets an alert (RFC 8446 §6.2).
#[tokio::test]
async fn invalid_record_causes_alert() {
    let (mut stream, mut client, wire) = connected();
    client.writer().write_all(b"x").expect("space");
    wire.exchange(&mut client);
    *wire.0.lock().expect("no panic").to_server.last_mut().expect("a record") ^= 1;
    let mut space = [0; 10];
    let outcome = poll_once(pin!(stream.read(&mut space))).expect("present");
    let error = outcome.expect_err("it is wrong").to_string();
    assert!(error.contains("cannot decrypt"), "{error}");
    let sent = std::mem::take(&mut wire.0.lock().expect("no panic").to_client);
    client.read_tls(&mut &sent[..]).expect("space");
    let alert = client.process_new_packets().expect_err("an alert");
    assert_eq!(alert, rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
}

/// A handshake message has at most 64 KiB, and is held within one buffer however many records it takes.
#[tokio::test]
async fn endless_handshake_is_rejected() {
    let hello = [&[1, 0, 0xff, 0xff][..], &vec![3; 0xfff0]].concat();
    let records = hello.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect::<Vec<u8>>();
    let (wire, buffered) = (Wire::default(), Arc::new(AtomicUsize::new(0)));
    wire.0.lock().expect("no panic").to_server = records;
    let identity = Authority::new().identity("localhost");
    let mut accepting = pin!(server_stream(identity.into(), wire, &buffered));
    let mut buffered_max = 0;
    let rejected = loop {
        let accepted = poll_once(accepting.as_mut());
        buffered_max = buffered_max.max(buffered.load(Ordering::Relaxed));
        if let Some(accepted) = accepted {
            break accepted.err().expect("it has no end");
        }
    };
    assert!(rejected.contains("a TLS message is too large"), "{rejected}");
    // The read buffer, and the buffer of outgoing data.
    assert!(buffered_max <= 2 * 130 * 1024, "{buffered_max} bytes");
}
