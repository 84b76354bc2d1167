//! A browser that is told where to look, the requests that it makes, and what a script in its page tells.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Response, Uri};

const PATIENCE: Duration = Duration::from_secs(120);

/// What a script tells by `POST /told`, a `name: value` each, until it is done.
pub(crate) struct Told {
    facts: Mutex<Sender<String>>,
    is_done: Mutex<bool>,
    has_ended: Condvar,
}

impl Told {
    pub(crate) fn new() -> (Told, Receiver<String>) {
        let (sender, facts) = channel();
        (Told { facts: Mutex::new(sender), is_done: Mutex::default(), has_ended: Condvar::new() }, facts)
    }

    /// The answer to a request that is the script's own. `/held` is answered when it is done: until then the page has
    /// not loaded, and the browser stays.
    pub(crate) fn answer(&self, request: &Request) -> Option<Response<Bytes>> {
        match request.uri.path() {
            "/held" => {
                let done = self.is_done.lock().unwrap();
                let _done = self.has_ended.wait_timeout_while(done, PATIENCE, |is_done| !*is_done);
            }
            "/told" => {
                let fact = String::from_utf8_lossy(&request.body).into_owned();
                if fact.starts_with("done") || fact.starts_with("fault") {
                    *self.is_done.lock().unwrap() = true;
                    self.has_ended.notify_all();
                }
                // Whoever read them may be gone.
                let _ = self.facts.lock().unwrap().send(fact);
            }
            _ => return None,
        }
        Some(Response::new(Bytes::new()))
    }
}

/// What the page has told, until it is done.
pub(crate) fn read(told: &Receiver<String>) -> HashMap<String, String> {
    let deadline = Instant::now() + PATIENCE;
    let mut facts = HashMap::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let fact = told.recv_timeout(left);
        let fact = fact.unwrap_or_else(|_| panic!("the page did not come to its end: {facts:#?}"));
        let (name, value) = fact.split_once(": ").unwrap();
        assert_ne!(name, "fault", "{value}; {facts:#?}");
        if name == "done" {
            return facts;
        }
        facts.insert(name.to_owned(), value.to_owned());
    }
}

/// Answers each request on a thread of its own, and gives the port.
pub(crate) fn serve(
    answer: impl Fn(&Request, TcpStream) -> std::io::Result<()> + Clone + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, stream) = (answer.clone(), stream.unwrap());
            // A browser that is closed closes its connections.
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone()?);
                let Some(request) = Request::read(&mut reader)? else { return Ok(()) };
                answer(&request, stream)
            });
        }
    });
    port
}

pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split(' ');
        let (Some(method), Some(uri)) = (words.next(), words.next()) else { return Ok(None) };
        let (method, uri) = (method.parse().unwrap(), uri.parse().unwrap());
        let mut headers = HeaderMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let len = headers.get("content-length").map_or(0, |len| len.to_str().unwrap().parse().unwrap());
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        Ok(Some(Request { method, uri, headers, body: body.into() }))
    }
}

pub(crate) fn write_whole(stream: &mut TcpStream, answer: &Response<Bytes>) -> std::io::Result<()> {
    write_head(stream, answer, &format!("content-length: {}\r\n", answer.body().len()))?;
    stream.write_all(answer.body())
}

pub(crate) fn write_head(
    stream: &mut TcpStream,
    answer: &Response<Bytes>,
    more: &str,
) -> std::io::Result<()> {
    let mut head =
        format!("HTTP/1.1 {} x\r\nconnection: close\r\n{more}", answer.status().as_u16()).into_bytes();
    for (name, value) in answer.headers() {
        head.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend_from_slice(b"\r\n");
    stream.write_all(&head)
}

pub(crate) struct Browser {
    process: Child,
    profile: PathBuf,
}

impl Browser {
    pub(crate) fn open(name: &str, url: &str, width: u32, is_dark: bool) -> Browser {
        let profile =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}-{}", std::process::id()));
        fs::create_dir_all(&profile).unwrap();
        // It ends by itself when the page has loaded, which it has when the script is done: that holds an image back.
        let process = Command::new(chromium())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--dump-dom", &format!("--window-size={width},900")])
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark)))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("the browser was found a moment ago");
        Browser { process, profile }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself. It has processes of its own, and may be one of a script's.
        let group = format!("kill -KILL -- -{}", self.process.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

fn chromium() -> PathBuf {
    let names =
        ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| candidates.into_iter().find(|path| path.is_file())).expect(
        "Chromium is needed to look at the page, and there is none on the PATH. On Debian: `apt-get install \
         chromium-headless-shell`. One elsewhere can be named by the environment variable CHROMIUM.",
    )
}
