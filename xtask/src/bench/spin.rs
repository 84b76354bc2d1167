//! The limit of busy polling: two processes that only poll a non-blocking socket and exchange a call's bytes.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::failure::Result;

/// Bytes on the wire of Thalweg's empty unary call once its headers are in the dynamic tables.
const REQUEST_BYTES: usize = 31;
const RESPONSE_BYTES: usize = 36;
/// How long the other process may take to listen.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// `cargo xtask spin echo ADDRESS` serves one connection; `cargo xtask spin measure ADDRESS MILLISECONDS` prints the
/// median round trip in ns.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let mut next = |what: &str| arguments.next_word().ok_or_else(|| misuse!("spin needs {what}"));
    let (side, address) = (next("echo or measure")?, next("an address")?);
    match side.as_str() {
        "echo" => echo(open(&address, true)?.as_mut())?,
        "measure" => {
            let milliseconds = next("a time in ms")?.parse();
            let time =
                Duration::from_millis(milliseconds.map_err(|_| misuse!("invalid time: expected a number"))?);
            let mut stream = connected(&address)?;
            println!("{}", median_ns(stream.as_mut(), time)?);
        }
        other => return Err(misuse!("unknown command `{other}` of spin; use echo or measure")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Accepts a connection at `address`, or connects to it.
fn open(address: &str, accepts: bool) -> io::Result<Box<dyn Stream>> {
    if let Some(path) = address.strip_prefix("unix:") {
        let stream = if accepts { UnixListener::bind(path)?.accept()?.0 } else { UnixStream::connect(path)? };
        stream.set_nonblocking(true)?;
        return Ok(Box::new(stream));
    }
    let stream = if accepts { TcpListener::bind(address)?.accept()?.0 } else { TcpStream::connect(address)? };
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(Box::new(stream))
}

/// Connects, retrying until the other process listens.
fn connected(address: &str) -> io::Result<Box<dyn Stream>> {
    let deadline = Instant::now() + CONNECT_LIMIT;
    loop {
        match open(address, false) {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            connected => return connected,
        }
    }
}

/// Responds until the other end closes the connection.
fn echo(stream: &mut dyn Stream) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES];
    while receive(stream, &mut request)? {
        stream.write_all(&[0; RESPONSE_BYTES])?;
    }
    Ok(())
}

fn median_ns(stream: &mut dyn Stream, time: Duration) -> io::Result<u128> {
    let mut response = [0; RESPONSE_BYTES];
    let (began, mut round_trips) = (Instant::now(), Vec::new());
    while began.elapsed() < time {
        let sent = Instant::now();
        stream.write_all(&[0; REQUEST_BYTES])?;
        if !receive(stream, &mut response)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        round_trips.push(sent.elapsed().as_nanos());
    }
    round_trips.sort_unstable();
    round_trips.get(round_trips.len() / 2).copied().ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Polls until all of `bytes` has arrived; returns false at the end of the stream.
fn receive(stream: &mut dyn Stream, bytes: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Ok(false),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
