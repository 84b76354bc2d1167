//! Records traffic between client and server, and decodes requests.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_http2::FieldList;
use thalweg_http2::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, Kind, PREFACE};
use thalweg_http2::hpack::Decoder;

/// Recorded bytes.
#[derive(Clone)]
pub(crate) struct Piece {
    /// Index of the connection.
    pub(crate) connection: usize,
    /// Whether the client sent it.
    pub(crate) is_client: bool,
    pub(crate) bytes: Vec<u8>,
}

/// Recorded pieces in order.
pub(crate) type Recorded = Arc<Mutex<Vec<Piece>>>;

/// Forwards connections to `server` and records traffic. Returns the listening address and the record.
pub(crate) fn record(server: String) -> (String, Recorded) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let recorded = Recorded::default();
    let kept = recorded.clone();
    thread::spawn(move || {
        for (connection, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let server = TcpStream::connect(&server).unwrap();
            for (is_client, mut from, mut to) in
                [(true, client.try_clone().unwrap(), server.try_clone().unwrap()), (false, server, client)]
            {
                let kept = kept.clone();
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    // A reset ends the connection, too.
                    while let Ok(len @ 1..) = from.read(&mut bytes) {
                        let piece = Piece { connection, is_client, bytes: bytes[..len].to_vec() };
                        kept.lock().unwrap().push(piece);
                        if to.write_all(&bytes[..len]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (address, recorded)
}

/// A request of a client.
pub(crate) struct Asked {
    stream: u32,
    fields: Vec<(String, String)>,
    /// Messages with their prefixes: compressed flag and length.
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the requests whose path ends with `method`, in order.
pub(crate) fn requests(recorded: &Recorded, method: &str) -> Vec<Asked> {
    let pieces = recorded.lock().unwrap().clone();
    let connections = pieces.iter().map(|piece| piece.connection + 1).max().unwrap_or(0);
    let all = (0..connections).flat_map(|connection| {
        let of = |piece: &&Piece| piece.is_client && piece.connection == connection;
        asked(&pieces.iter().filter(of).flat_map(|piece| piece.bytes.clone()).collect::<Vec<u8>>())
    });
    all.filter(|asked| asked.field(":path").unwrap().ends_with(method)).collect()
}

/// Decodes the requests of one connection.
fn asked(bytes: &[u8]) -> Vec<Asked> {
    let mut rest = bytes.strip_prefix(PREFACE).unwrap();
    // Larger than any server's limit, so that no entry the client uses is evicted.
    let mut decoder = Decoder::new(1 << 20);
    let mut all: Vec<Asked> = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEADER_LEN>() {
        let head = FrameHeader::parse(head);
        let (payload, behind) = behind.split_at(behind.len().min(head.len as usize));
        rest = behind;
        let stream = head.stream.get();
        match head.kind {
            Kind::Headers => {
                assert!(head.flags.contains(Flags::END_HEADERS), "a head in several frames");
                let mut fields = FieldList::new();
                decoder.decode(payload, 1 << 20, &mut fields).unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let fields = fields.iter().map(|field| (text(field.name), text(field.value))).collect();
                all.push(Asked { stream, fields, body: Vec::new() });
            }
            Kind::Data => {
                let asked = all.iter_mut().find(|asked| asked.stream == stream).unwrap();
                asked.body.extend(payload);
            }
            _ => {}
        }
    }
    all
}
