//! Cost of a buffer's alignment: a bare socket, a writing and a reading thread, and the reader's buffer at different
//! offsets in its page.
//!
//! AMD processors with fast short `rep movsb` (Zen 3, Zen 4) copy at a third to half of the speed to some addresses.
//! These are 1 to 31 bytes past the source, modulo the page. Other processors show a row of equal figures.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use super::table::Table;
use super::turns::{alternating, column};
use crate::failure::Result;
use crate::peers::BuiltPeer;

/// Offsets of the reader's buffer from the start of a page, in bytes.
const OFFSETS: [usize; 8] = [0, 1, 9, 16, 32, 64, 256, 2048];
const PAGE_BYTES: usize = 4096;
const WRITE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 128 << 10;
const WINDOW: Duration = Duration::from_millis(400);
const ROUNDS: usize = 5;

pub(super) fn run(_: &[BuiltPeer]) -> Result<Vec<Table>> {
    let columns = OFFSETS.map(|offset| format!("at {offset}"));
    let mut rows = Vec::new();
    for (name, connect) in [("TCP", tcp as fn() -> io::Result<Ends>), ("UDS", uds)] {
        let rounds = alternating(ROUNDS, &OFFSETS, |offset| Ok(measure(connect()?, *offset)?))?;
        let medians = (0..OFFSETS.len()).map(|place| format!("{:.1}", column(&rounds, place).median));
        rows.push([name.to_owned()].into_iter().chain(medians).collect());
    }
    let title = format!(
        "A bare socket, writes of 64 KiB, reads of 128 KiB; {ROUNDS} rounds, in alternating order; GB/s:"
    );
    Ok(vec![Table::new(title, [""].into_iter().chain(columns.iter().map(String::as_str)), rows)])
}

type Ends = (Box<dyn Write + Send>, Box<dyn Read + Send>);

fn tcp() -> io::Result<Ends> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    writer.set_nodelay(true)?;
    Ok((Box::new(writer), Box::new(listener.accept()?.0)))
}

fn uds() -> io::Result<Ends> {
    let (writer, reader) = UnixStream::pair()?;
    Ok((Box::new(writer), Box::new(reader)))
}

/// GB/s received into a buffer `offset` bytes past the start of a page.
fn measure((mut writer, mut reader): Ends, offset: usize) -> io::Result<f64> {
    let sender = thread::spawn(move || {
        let chunk = vec![1; WRITE_BYTES];
        // Ends when the reader closes the socket.
        while writer.write_all(&chunk).is_ok() {}
    });
    let mut block = vec![0; READ_BYTES + 2 * PAGE_BYTES];
    let start = PAGE_BYTES - block.as_ptr() as usize % PAGE_BYTES + offset;
    let buffer = &mut block[start..start + READ_BYTES];
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < WINDOW {
        bytes += reader.read(buffer)?;
    }
    let rate = bytes as f64 / began.elapsed().as_secs_f64() / 1e9;
    drop(reader);
    sender.join().map_err(|_| io::Error::other("the writer panicked"))?;
    Ok(rate)
}
