//! The page in a browser: a script goes through it and calls methods of all four types. The server is the test's, on
//! the crate's own functions of Connect.

use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use thalweg_engine::{Code, EncodingSet, Status, StatusParts};
use thalweg_web::connect::{Answering, RequestHead, RequestReader, Rules, Shape, read_request};
use thalweg_web::page::Page;

use crate::browser::{Browser, Request, Told, read, serve, write_head, write_whole};
use crate::openapi::library;

const PROBE: &str = include_str!("page_probe.js");
/// How long a server waits for what the page tells.
const SEEN_MAX: Duration = Duration::from_secs(30);
const SIZE_MAX: usize = 1 << 20;

#[test]
fn all_four_types_of_calls_on_a_wide_light_page() {
    check("wide", 1280, false);
}

#[test]
fn all_four_types_of_calls_on_a_narrow_dark_page() {
    check("narrow", 390, true);
}

fn check(name: &str, width: u32, is_dark: bool) {
    let (site, port, told) = Site::start();
    let browser = Browser::open(name, &format!("http://127.0.0.1:{port}/docs"), width, is_dark);
    let facts = read(&told);
    drop(browser);
    let fact =
        |name: &str| facts.get(name).map_or_else(|| panic!("nothing of {name}: {facts:#?}"), String::as_str);

    assert_eq!((fact("width"), fact("dark")), (&*width.to_string(), if is_dark { "true" } else { "false" }));
    for (name, value) in facts.iter().filter(|(name, _)| name.contains("sticks out")) {
        assert_eq!(value, "0", "{name}");
    }
    assert!(fact("front").starts_with("GetBook ListBooks CreateBook"), "{}", fact("front"));
    assert_eq!((fact("focus"), fact("found"), fact("menu")), ("filter", "WatchBooks", "false"));
    assert_eq!(fact("theme changes"), "true");

    assert_eq!((fact("GetBook ended"), fact("GetBook error")), ("OK", ""));
    assert_eq!(
        fact("GetBook messages"),
        r#"{"title":"<img src=x onerror=alert(1)>","name":"it's <b>","who":"me, 2"}"#
    );
    assert!(fact("GetBook trailers").contains("x-cost12"), "{}", fact("GetBook trailers"));
    assert_eq!((fact("elements from texts"), fact("no JSON")), ("0", "true"));
    assert_eq!(fact("no metadata"), "Metadata is “name: value”, and this is not: no colon");

    assert_eq!((fact("UpdateBook ended"), fact("UpdateBook messages")), ("NOT_FOUND", ""));
    assert!(fact("UpdateBook error").starts_with("no book is called so"), "{}", fact("UpdateBook error"));

    assert_eq!((fact("WatchBooks seen"), fact("WatchBooks ended")), ("runs", "OK"));
    assert_eq!(fact("WatchBooks messages"), r#"{"number":1} {"number":2}"#);
    assert!(fact("WatchBooks trailers").contains("x-cost3"));

    assert_eq!((fact("ImportBooks ended"), fact("ImportBooks messages")), ("OK", r#"{"count":"2"}"#));
    assert_eq!(fact("Ask ended"), "RESOURCE_EXHAUSTED");
    assert_eq!(fact("Ask messages"), r#"{"text":"Where?"} {"text":"When?"}"#);
    assert!(fact("Ask error").contains("enough for today"));
    assert!(fact("Ask trailers").contains("x-cost4"));

    assert_eq!((fact("Stopped ended"), fact("Stopped messages")), ("CANCELED", r#"{"number":1}"#));
    assert_eq!(fact("Late ended"), "DEADLINE_EXCEEDED");
    assert_eq!(fact("LockBook ended"), "UNIMPLEMENTED");
    assert!(fact("LockBook error").contains("HTTP 404: nothing here"), "{}", fact("LockBook error"));

    check_commands(&facts, port, &site);
}

fn check_commands(facts: &HashMap<String, String>, port: u16, site: &Site) {
    assert_eq!(
        facts["GetBook curl"],
        format!(
            "curl 'http://127.0.0.1:{port}/library.v1.Library/GetBook' \\\n  -H 'content-type: application/json' \\\n  \
             -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  -H 'connect-timeout-ms: 60000' \\\n  \
             -d '{{\"name\":\"it'\\''s <b>\"}}'"
        )
    );
    assert_eq!(
        facts["GetBook grpcurl"],
        format!(
            "grpcurl -plaintext \\\n  -max-time 60 \\\n  -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  \
             -d '{{\"name\":\"it'\\''s <b>\"}}' \\\n  127.0.0.1:{port} library.v1.Library/GetBook"
        )
    );
    assert_eq!(
        facts["GetBook thalweg call"],
        format!(
            "thalweg call http://127.0.0.1:{port} library.v1.Library/GetBook \\\n  --timeout 60000ms \\\n  \
             -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  -d '{{\"name\":\"it'\\''s <b>\"}}'"
        )
    );
    assert!(facts["ImportBooks grpcurl"].contains("-d '{\"title\":\"One\"}\n{\"title\":\"Zwei ü\"}'"));
    // What is piped into curl is what the page has sent.
    let (printf, curl) = facts["ImportBooks curl"].split_once(" |\n").unwrap();
    assert!(curl.contains("--data-binary @-") && curl.contains("application/connect+json"), "{curl}");
    let printed = Command::new("sh").args(["-c", printf]).output().unwrap();
    let bodies = site.bodies.lock().unwrap();
    assert_eq!(printed.stdout, bodies["/library.v1.Library/ImportBooks"]);
}

/// The page, and a library that knows what the script asks for.
struct Site {
    page: Page,
    told: Told,
    /// How often somebody has seen a first message.
    seen: Mutex<u32>,
    has_seen: Condvar,
    bodies: Mutex<HashMap<String, Vec<u8>>>,
}

impl Site {
    fn start() -> (Arc<Site>, u16, Receiver<String>) {
        let (rules, info) = library();
        let (told, facts) = Told::new();
        let site = Arc::new(Site {
            page: Page::new(&rules, &info),
            told,
            seen: Mutex::default(),
            has_seen: Condvar::new(),
            bodies: Mutex::default(),
        });
        let serving = site.clone();
        let port = serve(move |request, stream| serving.answer(request, stream));
        (site, port, facts)
    }

    fn answer(&self, request: &Request, mut stream: TcpStream) -> std::io::Result<()> {
        if let Some(mut part) = self.page.answer(&request.method, request.uri.path()) {
            if request.uri.path() == "/docs/page.js" {
                *part.body_mut() = [part.body(), PROBE.as_bytes()].concat().into();
            }
            return write_whole(&mut stream, &part);
        }
        if let Some(answer) = self.told.answer(request) {
            if request.body.starts_with(b"WatchBooks seen") {
                *self.seen.lock().unwrap() += 1;
                self.has_seen.notify_all();
            }
            return write_whole(&mut stream, &answer);
        }
        let rules = Rules {
            codecs: &["json"],
            requires_version: true,
            accepts: EncodingSet::ALL,
            offers: EncodingSet::ALL,
        };
        self.bodies.lock().unwrap().insert(request.uri.path().to_owned(), request.body.to_vec());
        match read_request(&request.method, &request.uri, &request.headers, &rules) {
            Ok(Some(head)) => self.call(request, &head, stream),
            Ok(None) => {
                write_whole(&mut stream, &Response::builder().status(404).body(Bytes::new()).unwrap())
            }
            Err(refusal) => write_whole(&mut stream, &refusal.answer()),
        }
    }

    fn call(&self, request: &Request, head: &RequestHead<'_>, mut stream: TcpStream) -> std::io::Result<()> {
        let answering = head.answering();
        let method = request.uri.path().rsplit('/').next().unwrap();
        if head.shape == Shape::Post {
            let answer = match method {
                "GetBook" => got_book(request, head, &answering),
                "UpdateBook" => answering.failure(&Status::new(Code::NotFound, "no book is called so")),
                _ => Response::builder().status(404).body(Bytes::from_static(b"nothing here")).unwrap(),
            };
            return write_whole(&mut stream, &answer);
        }
        let mut messages = RequestReader::new(head.encoding, SIZE_MAX);
        messages.push(request.body.clone());
        let messages: Vec<Bytes> = std::iter::from_fn(|| messages.take().unwrap()).collect();
        let answer = answering.head(&HeaderMap::new()).unwrap();
        write_head(&mut stream, &answer.map(|()| Bytes::new()), "transfer-encoding: chunked\r\n")?;
        let mut send = |messages: &[&[u8]], end: Option<Result<&HeaderMap, &Status>>| {
            let mut out = Vec::new();
            for message in messages {
                answering.message(message, &mut out).unwrap();
            }
            if let Some(outcome) = end {
                answering.end(outcome, &mut out);
            }
            write!(stream, "{:x}\r\n", out.len())?;
            stream.write_all(&out)?;
            stream.write_all(if end.is_some() { b"\r\n0\r\n\r\n" } else { b"\r\n" })
        };
        match method {
            "WatchBooks" => {
                let before = *self.seen.lock().unwrap();
                send(&[br#"{"number":1}"#], None)?;
                if head.metadata.contains_key("x-hold") {
                    // Until the browser goes away.
                    thread::sleep(SEEN_MAX);
                    return Ok(());
                }
                let wait = self
                    .has_seen
                    .wait_timeout_while(self.seen.lock().unwrap(), SEEN_MAX, |seen| *seen == before);
                assert!(!wait.unwrap().1.timed_out(), "the first message was not shown before the second");
                send(&[br#"{"number":2}"#], Some(Ok(&cost("3"))))
            }
            "ImportBooks" => {
                let count = format!(r#"{{"count":"{}"}}"#, messages.len());
                send(&[count.as_bytes()], Some(Ok(&HeaderMap::new())))
            }
            "Ask" => {
                let enough = Status::from(StatusParts {
                    code: Code::ResourceExhausted,
                    message: "enough for today".into(),
                    details: Bytes::new(),
                    metadata: cost("4"),
                });
                let answers: Vec<&[u8]> = messages.iter().map(AsRef::as_ref).collect();
                send(&answers, Some(Err(&enough)))
            }
            other => panic!("{other}"),
        }
    }
}

fn got_book(request: &Request, head: &RequestHead<'_>, answering: &Answering<'_>) -> Response<Bytes> {
    assert!(head.timeout.is_some_and(|timeout| timeout == Duration::from_secs(60)));
    let asked: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let value =
        |name: &str| head.metadata.get(name).and_then(|value| value.to_str().ok()).unwrap_or("nobody");
    let who = format!("{}, {}", value("x-who"), value("x-two"));
    let book =
        format!(r#"{{"title":"<img src=x onerror=alert(1)>","name":{},"who":"{who}"}}"#, asked["name"]);
    answering.success(&HeaderMap::new(), &cost("12"), book.into())
}

fn cost(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("x-cost"), HeaderValue::from_static(value))])
}
