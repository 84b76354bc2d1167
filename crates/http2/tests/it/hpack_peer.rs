//! HPACK compared with Go's: 100,000 random header lists each way, with changes of the table size.
//!
//! The peer is golang.org/x/net/http2/hpack, which every Go gRPC peer uses, in a child process (`hpack_peer/main.go`).
//! It compiles in about a second and handles thousands of lists per message; an interpreted implementation would take
//! minutes.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use crate::hpack_support::{Random, assert_received, random_list};
use thalweg_http2::hpack::{DecodeOutcome, Decoder, Encoder};
use thalweg_http2::{Block, FieldList, FixedFields, Indexing};

const LISTS: usize = 100_000;
const LISTS_PER_MESSAGE: usize = 1000;

/// A Go process with an encoder and a decoder. `hpack_peer/main.go` describes the messages.
struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Peer {
    /// Builds and starts the peer. Concurrent tests build it separately.
    fn start(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hpack_peer");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(source)
            .status()
            .expect("this test needs Go to build the HPACK peer: install it (https://go.dev/doc/install)");
        assert!(built.success(), "`go build` of tests/hpack_peer failed: see above");
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer that was just built starts");
        let (stdin, stdout) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        Self { process, stdin, stdout }
    }

    /// Sends one message and returns the response. The peer reads a whole message before it responds, so neither side
    /// waits for the other with a full pipe.
    fn exchange(&mut self, operations: &[u8]) -> Vec<u8> {
        const GONE: &str = "the peer is running; it says on standard error what made it stop";
        self.stdin.write_all(&(operations.len() as u32).to_be_bytes()).expect(GONE);
        self.stdin.write_all(operations).expect(GONE);
        let mut len = [0; 4];
        self.stdout.read_exact(&mut len).expect(GONE);
        let mut response = vec![0; u32::from_be_bytes(len) as usize];
        self.stdout.read_exact(&mut response).expect(GONE);
        response
    }

    fn stop(self) {
        let Self { mut process, stdin, stdout } = self;
        drop((stdin, stdout));
        assert!(process.wait().expect("the peer is ours").success());
    }
}

fn put_string(string: &[u8], out: &mut Vec<u8>) {
    out.extend((string.len() as u32).to_be_bytes());
    out.extend(string);
}

fn put_list(list: &FieldList, out: &mut Vec<u8>) {
    out.push(list.len() as u8);
    for field in list.iter() {
        put_string(field.name, out);
        put_string(field.value, out);
        out.push(u8::from(field.indexing == Indexing::Never));
    }
}

fn take_string<'a>(response: &mut &'a [u8]) -> &'a [u8] {
    let (len, rest) = response.split_first_chunk().expect("a length");
    let (string, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
    *response = rest;
    string
}

fn take_octet(response: &mut &[u8]) -> u8 {
    let (&octet, rest) = response.split_first().expect("an octet");
    *response = rest;
    octet
}

fn take_list(response: &mut &[u8]) -> FieldList {
    let mut list = FieldList::new();
    for _ in 0..take_octet(response) {
        let (name, value) = (take_string(response), take_string(response));
        let sensitive = take_octet(response) == 1;
        list.push(name, value, if sensitive { Indexing::Never } else { Indexing::Insert });
    }
    list
}

#[test]
#[ignore = "needs Go"]
fn go_decodes_what_we_encode() {
    let mut peer = Peer::start("hpack_peer_decodes");
    let mut random = Random::new(1);
    let fixed: Vec<Arc<FixedFields>> = (0..150).map(|_| FixedFields::new(random_list(&mut random))).collect();
    let mut encoder = Encoder::new();
    for message in 0..LISTS / LISTS_PER_MESSAGE {
        let (mut operations, mut sent) = (Vec::new(), Vec::new());
        for _ in 0..LISTS_PER_MESSAGE {
            if random.one_in(50) {
                // Go rejects a second size update in a block unless its table is empty by then, so the first of two
                // consecutive sizes is 0.
                let sizes: &[usize] = if random.one_in(3) { &[0, 4096] } else { &[*random.pick(SIZES)] };
                for &size in sizes {
                    encoder.set_max_table_size(size);
                    operations.push(b'd');
                    operations.extend((size as u32).to_be_bytes());
                }
                // Sent immediately, so that the next change is in another block.
                send(&mut encoder, None, FieldList::new(), &mut operations, &mut sent);
            }
            // A few lists are used much more often than others, so that cached blocks are used too.
            let choice = if random.one_in(2) { random.below(10) } else { random.below(fixed.len()) };
            let fixed = (!random.one_in(4)).then(|| &fixed[choice]);
            let extra = if random.one_in(3) { random_list(&mut random) } else { FieldList::new() };
            send(&mut encoder, fixed, extra, &mut operations, &mut sent);
        }
        let response = peer.exchange(&operations);
        let mut response = &response[..];
        for (number, (fixed, extra)) in sent.iter().enumerate() {
            let lists = fixed.map(|fixed| fixed.fields()).into_iter().chain([extra]);
            assert_received(&take_list(&mut response), lists, &format!("message {message}, list {number}"));
        }
        assert!(response.is_empty());
    }
    peer.stop();
}

const SIZES: &[&usize] = &[&0, &33, &100, &300, &1000, &4096, &65_536];

fn send<'a>(
    encoder: &mut Encoder,
    fixed: Option<&'a Arc<FixedFields>>,
    extra: FieldList,
    operations: &mut Vec<u8>,
    sent: &mut Vec<(Option<&'a Arc<FixedFields>>, FieldList)>,
) {
    let mut block = Vec::new();
    encoder.encode(Block { fixed, extra: &extra }, &mut block);
    operations.push(b'D');
    put_string(&block, operations);
    sent.push((fixed, extra));
}

#[test]
#[ignore = "needs Go"]
fn we_decode_what_go_encodes() {
    let mut peer = Peer::start("hpack_peer_encodes");
    let mut random = Random::new(2);
    let mut decoder = Decoder::new(4096);
    let mut received = FieldList::new();
    let repeated: Vec<_> = (0..20).map(|_| random_list(&mut random)).collect();
    for message in 0..LISTS / LISTS_PER_MESSAGE {
        let (mut operations, mut sent) = (Vec::new(), Vec::new());
        for _ in 0..LISTS_PER_MESSAGE {
            let mut sizes = Vec::new();
            while random.one_in(40) {
                let size = *random.pick(SIZES);
                sizes.push(size);
                operations.push(b'e');
                operations.extend((size as u32).to_be_bytes());
            }
            let mut list =
                if random.one_in(2) { repeated[random.below(20)].clone() } else { random_list(&mut random) };
            // Go announces sizes with the first field of a block.
            list.push(b"last", b"", Indexing::Insert);
            operations.push(b'E');
            put_list(&list, &mut operations);
            sent.push((sizes, list));
        }
        let response = peer.exchange(&operations);
        let mut response = &response[..];
        for (number, (sizes, list)) in sent.iter().enumerate() {
            let what = format!("message {message}, list {number}");
            for &size in sizes {
                decoder.set_max_table_size(size);
            }
            let block = take_string(&mut response);
            let outcome = decoder.decode(block, usize::MAX, &mut received);
            assert_eq!(outcome, Ok(DecodeOutcome::Complete), "{what}: {block:02x?}");
            assert_received(&received, [list], &what);
        }
        assert!(response.is_empty());
    }
    peer.stop();
}
