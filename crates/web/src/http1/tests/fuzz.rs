//! Fuzz test: for any input, the service sees only requests that a strict parser sees.
//!
//! - `THALWEG_FUZZ_SEED=n` sets the seed;
//! - `THALWEG_FUZZ_ITERATIONS=n` sets the number of connections, `THALWEG_FUZZ_SECONDS=n` the time limit.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::Client;

/// xorshift64*: deterministic for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns one of `of` with a probability of 1/12, else `usual`.
    fn rarely<T: Copy>(&mut self, usual: T, of: &[T]) -> T {
        if self.below(12) == 0 { self.pick(of) } else { usual }
    }
}

/// Invalid line ends.
const LINE_ENDS: &[&str] = &["\n", "\r", "\r\r\n", "\n\r\n", " \r\n", "\r\n "];

fn request(random: &mut Random, out: &mut Vec<u8>) {
    let mut line = |random: &mut Random, text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(random.rarely("\r\n", LINE_ENDS).as_bytes());
    };
    let method = random.rarely("POST", &["GET", "HEAD", "OPTIONS", "CONNECT", "p st", ""]);
    let target = random.rarely("/a", &["*", "http://b/c", "b:80", "/unread", "/a b", "/\0", "", "/a\u{e4}"]);
    let version = random.rarely("HTTP/1.1", &["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 "]);
    line(random, &format!("{method} {target} {version}"));
    let host =
        random.rarely("Host: a", &["Host: a\r\nHost: b", "A: b", "Host : a", "Host: a b", "Upgrade: h2c"]);
    line(random, host);
    if random.below(3) == 0 {
        let other =
            ["Connection: close", "Expect: 100-continue", "TE: trailers", " folded", "A: b\0", "A", ": b"];
        let other = random.rarely("A: b", &other);
        line(random, other);
    }
    let chunks = ["3\r\nabc", "0a;b=c\r\n0123456789", "1\r\n\n"];
    let lengths =
        ["-1", "3", "03", "3, 3", "5", " 5 ", "0x5", "99999999999999999999", "5\r\nContent-Length: 5", ""];
    let codings =
        ["xchunked", "gzip, chunked", "chunked, identity", "chunked\r\nContent-Length: 3", "CHUNKED", ""];
    match random.below(3) {
        0 => line(random, ""),
        1 => {
            let length = random.rarely("5", &lengths);
            line(random, &format!("Content-Length: {length}"));
            line(random, "");
            out.extend_from_slice(random.rarely("abcde", &["abcd", "abcdef"]).as_bytes());
        }
        _ => {
            let name =
                random.rarely("Transfer-Encoding", &["transfer-encoding", "Transfer-Encoding ", "T\u{65}"]);
            let coding = random.rarely("chunked", &codings);
            line(random, &format!("{name}: {coding}"));
            line(random, "");
            for _ in 0..random.below(3) {
                let chunk = random
                    .rarely("5\r\nabcde", &["-1", " 5\r\nabcde", "5 \r\nabcde", "5\r\nabc", "5\nabcde"]);
                let chunk = random.rarely(chunk, &chunks);
                line(random, chunk);
            }
            line(random, "0");
            if random.below(6) == 0 {
                let trailer = random.rarely("A: b", &["A", " A: b", "A : b", "A: b\0"]);
                line(random, trailer);
            }
            line(random, "");
        }
    }
}

fn connection(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(4) {
        request(random, &mut bytes);
    }
    for _ in 0..random.below(3).saturating_sub(1) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, random.pick(b"\r\n\0 \t:;0a,\xff")),
            _ => bytes[at] = random.pick(b"\r\n\0 \t:;0a,\xff"),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// Returns the requests of `bytes`, by method and body, before the first invalid one, and whether all are valid.
fn read_strictly(mut bytes: &[u8]) -> (Vec<(String, Vec<u8>)>, bool) {
    let mut requests = Vec::new();
    loop {
        while let Some(rest) = bytes.strip_prefix(b"\r\n") {
            bytes = rest;
        }
        if bytes.is_empty() {
            return (requests, true);
        }
        match strict_request(bytes) {
            Some((request, rest)) => {
                requests.push(request);
                bytes = rest;
            }
            None => return (requests, false),
        }
    }
}

type Strict<'b> = ((String, Vec<u8>), &'b [u8]);

fn strict_request(bytes: &[u8]) -> Option<Strict<'_>> {
    let (line, mut rest) = strict_line(bytes)?;
    let (method, other) = line.split_once(' ')?;
    let (_, version) = other.split_once(' ')?;
    let (mut length, mut is_chunked) = (None, false);
    loop {
        let (line, tail) = strict_line(rest)?;
        rest = tail;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "content-length" if length.is_none() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                length = Some(value.parse::<usize>().ok()?);
            }
            "transfer-encoding" if !is_chunked && version == "HTTP/1.1" => {
                is_chunked = value.eq_ignore_ascii_case("chunked").then_some(true)?;
            }
            "content-length" | "transfer-encoding" => return None,
            _ => {}
        }
    }
    let mut body = Vec::new();
    match (length, is_chunked) {
        (Some(_), true) => return None,
        (length, false) => {
            let (body_bytes, tail) = rest.split_at_checked(length.unwrap_or(0))?;
            body.extend_from_slice(body_bytes);
            rest = tail;
        }
        (None, true) => loop {
            let (line, tail) = strict_line(rest)?;
            rest = tail;
            let (size, extension) = line.split_at(line.find([' ', '\t', ';']).unwrap_or(line.len()));
            let is_size = (1..=16).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_extension = extension.is_empty() || extension.trim_start().starts_with(';');
            if !(is_size && is_extension) {
                return None;
            }
            match usize::from_str_radix(size, 16).ok()? {
                0 => {
                    loop {
                        let (line, tail) = strict_line(rest)?;
                        rest = tail;
                        if line.is_empty() {
                            break;
                        }
                        let (name, _) = line.split_once(':')?;
                        let is_token = name.chars().all(|c| c.is_ascii_alphanumeric());
                        (is_token && !name.is_empty()).then_some(())?;
                    }
                    break;
                }
                size => {
                    let (chunk, tail) = rest.split_at_checked(size)?;
                    body.extend_from_slice(chunk);
                    rest = tail.strip_prefix(b"\r\n")?;
                }
            }
        },
    }
    Some(((method.to_owned(), body), rest))
}

/// Splits off a line of permitted characters.
fn strict_line(bytes: &[u8]) -> Option<(Cow<'_, str>, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = String::from_utf8_lossy(bytes[..end].strip_suffix(b"\r")?);
    line.chars().all(|c| c == '\t' || !c.is_control()).then_some((line, &bytes[end + 1..]))
}

/// Returns the number of requests that the service handled completely.
async fn execute(bytes: &[u8], piece_len: usize) -> usize {
    let mut client = Client::new();
    for piece in bytes.chunks(piece_len) {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    let received = client.receive().await;
    let (expected, is_right) = read_strictly(bytes);
    let context = || format!("{:?} in pieces of {piece_len}: {received:?}", String::from_utf8_lossy(bytes));
    let mut served = 0;
    for (line, (method, body)) in client.log.lines().iter().zip(&expected) {
        assert!(line.starts_with(&format!("{method} ")), "{line:?}, not {method}: {}", context());
        let (request_line, read) = line.split_once(": ").unwrap_or((line, ""));
        if request_line.contains("/unread") {
            continue;
        }
        let read = read.strip_suffix(" and trailers").unwrap_or(read);
        assert_eq!(read, String::from_utf8_lossy(body), "{}", context());
        served += 1;
    }
    // One more request, with an invalid body, may have reached the service.
    for line in client.log.lines().iter().skip(expected.len()) {
        let (request_line, read) = line.split_once(": ").unwrap_or((line, ""));
        assert!(!is_right, "{line:?}: {}", context());
        assert!(
            request_line.contains("/unread") || read.contains("malformed HTTP/1.1 body"),
            "{line:?}: {}",
            context()
        );
        assert_eq!(client.log.lines().len(), expected.len() + 1, "{}", context());
    }
    if client.serving.is_finished() {
        client.serving.await.unwrap_or_else(|error| panic!("{error}: {}", context()));
    }
    served
}

#[tokio::test(start_paused = true)]
async fn connections() {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seed = number("THALWEG_FUZZ_SEED").unwrap_or(0);
    let iterations = number("THALWEG_FUZZ_ITERATIONS").unwrap_or(3000);
    let until = number("THALWEG_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut random = Random(0x5eed_0001 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut iteration, mut served) = (0, 0);
    while until.map_or(iteration < iterations, |until| Instant::now() < until) {
        iteration += 1;
        let bytes = connection(&mut random);
        let piece_len = random.pick(&[usize::MAX, usize::MAX, 1, 2, 5, 17]);
        served += execute(&bytes, piece_len).await;
    }
    // Most connections have a valid request.
    assert!(served as u64 > iteration / 2, "{served} requests of {iteration} connections");
}
