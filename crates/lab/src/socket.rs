//! Bare socket as a reference: moves the same bytes in the same run, between threads pinned like client and server.
//!
//! A message is its payload plus gRPC's five-byte prefix, so an empty message also moves data.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, SockAddr, Socket, Type};
use thalweg_load::peer::{BIDI_OUTSTANDING_BYTES, BIDI_OUTSTANDING_MESSAGES_MAX};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::usage::{ProcessUsage, waited_by_this_thread};

use crate::load::{Pattern, Point, Transport};
use crate::record::{
    Connections, LaneRule, LoadResult, LoadSettings, MessageOwnership, Note, Recorder, RunContext,
};

/// gRPC's message prefix: one byte of flags, four of length.
const PREFIX_BYTES: u64 = 5;
/// Largest read or write; larger ones are not faster.
const CHUNK_BYTES: usize = 256 << 10;
/// Send buffer size of a Unix socket, equal to Thalweg's.
const UDS_SEND_BUFFER_BYTES: usize = 1 << 20;
/// Bytes in flight on a pipelined socket, the same as on a driven bidi stream.
const PIPELINED_BYTES: u64 = BIDI_OUTSTANDING_BYTES as u64;
const PIPELINED_MESSAGES_MIN: u64 = 2;
const PIPELINED_MESSAGES_MAX: u64 = BIDI_OUTSTANDING_MESSAGES_MAX as u64;
/// Time without progress after which the measurement fails.
const STALL_MS_MAX: u16 = 10_000;
const STALL_MAX: Duration = Duration::from_millis(STALL_MS_MAX as u64);

/// Mode in which a thread waits for its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitMode {
    /// Sleeps until the kernel wakes it.
    Asleep,
    /// Retries at once.
    Spinning,
}

/// Returns how threads wait on each connection that measures the reference.
///
/// Two threads on a socket fall in or out of step by chance, and stay so, which halves or doubles the rate. A thread
/// that spins gets a response sooner, and Thalweg spins for a short time. The reference is what sockets allow, so the
/// fastest connection counts.
fn tries(pattern: Pattern) -> &'static [WaitMode] {
    match pattern {
        Pattern::OneWay => &[WaitMode::Asleep; 3],
        Pattern::Echo | Pattern::Pipelined => {
            &[WaitMode::Asleep, WaitMode::Spinning, WaitMode::Asleep, WaitMode::Spinning]
        }
    }
}

/// Moves the point's messages over a bare socket on a few connections in turn; the fastest counts.
pub(crate) fn measure(
    point: &Point,
    pattern: Pattern,
    client_cpus: Option<&CpuList>,
    server_cpus: Option<&CpuList>,
) -> io::Result<LoadResult> {
    let tries = tries(pattern);
    let part = tries.len() as u32;
    let point = Point { warmup: point.warmup / part, duration: point.duration / part, ..point.clone() };
    let mut fastest: Option<LoadResult> = None;
    for &waiting in tries {
        let result = measure_once(&point, pattern, waiting, client_cpus, server_cpus)?;
        if fastest.as_ref().is_none_or(|fastest| result.rate_per_s > fastest.rate_per_s) {
            fastest = Some(result);
        }
    }
    fastest.ok_or_else(|| io::Error::other("no connection was tried"))
}

fn measure_once(
    point: &Point,
    pattern: Pattern,
    waiting: WaitMode,
    client_cpus: Option<&CpuList>,
    server_cpus: Option<&CpuList>,
) -> io::Result<LoadResult> {
    let (client, server) = connected_pair(point.transport)?;
    let peer = serve(server, pattern, waiting, server_cpus.cloned())?;
    let (point, client_cpus) = (point.clone(), client_cpus.cloned());
    // A separate thread, so that pinning does not affect the lab's own.
    let driver = thread::Builder::new().name("socket-client".to_owned()).spawn(move || {
        pin(client_cpus.as_ref())?;
        let measured = drive(&client, &point, pattern, waiting, client_cpus.as_ref())?;
        client.shutdown(Shutdown::Both)?;
        Ok(measured.finish(&point, pattern, waiting, client_cpus))
    })?;
    let result = join_thread(driver);
    let served = join_thread(peer);
    let mut result = result?;
    result.notes.extend(served?);
    Ok(result)
}

fn join_thread<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the socket measurement panicked")))
}

fn connected_pair(transport: Transport) -> io::Result<(Socket, Socket)> {
    match transport {
        Transport::Tcp => {
            let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
            listener.listen(1)?;
            let address: SockAddr = listener.local_addr()?;
            let client = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            client.connect(&address)?;
            let (server, _) = listener.accept()?;
            for socket in [&client, &server] {
                socket.set_tcp_nodelay(true)?;
            }
            Ok((client, server))
        }
        Transport::Uds => {
            let (client, server) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
            client.set_send_buffer_size(UDS_SEND_BUFFER_BYTES)?;
            server.set_send_buffer_size(UDS_SEND_BUFFER_BYTES)?;
            Ok((client, server))
        }
    }
}

/// Echoes or discards data until the peer closes. Returns a note if other programs kept the thread from its CPU.
fn serve(
    mut socket: Socket,
    pattern: Pattern,
    waiting: WaitMode,
    cpus: Option<CpuList>,
) -> io::Result<JoinHandle<io::Result<Option<Note>>>> {
    thread::Builder::new().name("socket-server".to_owned()).spawn(move || {
        pin(cpus.as_ref())?;
        socket.set_nonblocking(waiting == WaitMode::Spinning)?;
        let watched = ThreadUsage::begin(cpus.as_ref())?;
        let served = || Ok(watched.end("server")?.1);
        let mut buffer = Chunk::new();
        loop {
            let answered = match retry_while_blocked(|| socket.read(&mut buffer)) {
                Ok(0) => return served(),
                Ok(_) if pattern == Pattern::OneWay => Ok(()),
                Ok(read) => write_all(&mut socket, &buffer[..read]),
                Err(error) => Err(error),
            };
            match answered {
                Ok(()) => {}
                // A client that closes with messages in flight is the normal end.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
                {
                    return served();
                }
                Err(error) => return Err(error),
            }
        }
    })
}

/// Retries while a non-blocking socket would block.
fn retry_while_blocked(mut moved: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match moved() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            moved => return moved,
        }
    }
}

fn write_all(socket: &mut Socket, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = retry_while_blocked(|| socket.write(bytes))?;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// CPU usage of this thread.
struct ThreadUsage {
    began: Instant,
    cpu: CpuTime,
    waited: Duration,
    /// Whether the thread is pinned. Unpinned threads may wait for each other.
    is_pinned: bool,
}

impl ThreadUsage {
    fn begin(cpus: Option<&CpuList>) -> io::Result<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu: CpuTime::of_this_thread()?,
            waited: waited_by_this_thread(),
            is_pinned: cpus.is_some(),
        })
    }

    /// Returns the CPU time since the start, and a note if other programs kept the thread from its CPUs.
    fn end(&self, side: &str) -> io::Result<(CpuTime, Option<Note>)> {
        let (window_ns, cpu) =
            (self.began.elapsed().as_nanos() as u64, CpuTime::of_this_thread()? - self.cpu);
        let waited_ns = waited_by_this_thread().saturating_sub(self.waited).as_nanos() as u64;
        let used = ProcessUsage {
            user_ns: (cpu.user_ns + cpu.system_ns) as u64,
            waited_ns,
            // No other thread of this program is pinned there.
            others_ns: waited_ns,
            processors: 1,
            ..ProcessUsage::default()
        };
        let reason =
            used.kept_waiting(&format!("bare socket's {side}"), window_ns).filter(|_| self.is_pinned);
        Ok((cpu, reason.map(|reason| Note { text: reason.text, invalidates: true })))
    }
}

fn pin(cpus: Option<&CpuList>) -> io::Result<()> {
    cpus.map_or(Ok(()), CpuList::pin_this_thread)
}

/// Figures of the client thread for the measured time.
struct Measured {
    recorder: Recorder,
    started: SystemTime,
    duration: Duration,
    cpu: CpuTime,
    note: Option<Note>,
}

impl Measured {
    fn finish(self, point: &Point, pattern: Pattern, waiting: WaitMode, cpus: Option<CpuList>) -> LoadResult {
        let busy_poll = match waiting {
            WaitMode::Asleep => Duration::ZERO,
            WaitMode::Spinning => STALL_MAX,
        };

        let call = pattern.call();
        let (out, back) = call.payloads();
        let payload_bytes = self.recorder.operations() * point.size_bytes.0;
        let mut result = self.recorder.finish(RunContext {
            settings: LoadSettings {
                target: format!("a bare {} socket", point.transport),
                call,
                size_bytes: point.size_bytes.0,
                in_flight: point.in_flight,
                connections: 1,
                lanes: LaneRule::Fixed,
                method: None,
                echo: None,
                message_ownership: MessageOwnership::default(),
                warmup_ns: u64::try_from(point.warmup.as_nanos()).unwrap_or(u64::MAX),
                duration_ns: u64::try_from(point.duration.as_nanos()).ok(),
                total: None,
                bare: None,
                busy_poll_ns: Some(busy_poll.as_nanos() as u64),
                cpus,
            },
            started: self.started,
            duration: self.duration,
            from_ns: 0,
            client_cpu: self.cpu,
            // `accept` and `socketpair` create exactly one connection.
            connections: Connections { asked: 1, established: Some(1) },
            notes: self.note.into_iter().collect(),
        });
        (result.bytes_sent, result.bytes_received) = (payload_bytes * out, payload_bytes * back);
        result
    }
}

/// Warms up, then measures.
fn drive(
    socket: &Socket,
    point: &Point,
    pattern: Pattern,
    waiting: WaitMode,
    cpus: Option<&CpuList>,
) -> io::Result<Measured> {
    let message_bytes = point.size_bytes.0 + PREFIX_BYTES;
    let mut mover: Box<dyn Mover> = match pattern {
        Pattern::OneWay => Box::new(Sender::new(socket, message_bytes)),
        Pattern::Echo => {
            Box::new(EchoMover::new(socket, message_bytes, u64::from(point.in_flight), waiting)?)
        }
        Pattern::Pipelined => {
            Box::new(EchoMover::new(socket, message_bytes, pipelined(message_bytes), waiting)?)
        }
    };
    let warm_until = Instant::now() + point.warmup;
    let mut unmeasured = Recorder::new(pattern.call(), Instant::now());
    while Instant::now() < warm_until {
        mover.step(&mut unmeasured)?;
    }

    let watched = ThreadUsage::begin(cpus)?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let mut recorder = Recorder::new(pattern.call(), began);
    let mut duration = Duration::ZERO;
    // A point shorter than one message lasts until a message is done; a zero rate would be useless.
    while duration < point.duration || recorder.operations() == 0 {
        mover.step(&mut recorder)?;
        duration = began.elapsed();
    }
    let (cpu, note) = watched.end("client")?;
    Ok(Measured { recorder, started, duration, cpu, note })
}

/// Returns the number of messages in flight on a pipelined socket.
fn pipelined(message_bytes: u64) -> u64 {
    (PIPELINED_BYTES / message_bytes).clamp(PIPELINED_MESSAGES_MIN, PIPELINED_MESSAGES_MAX)
}

/// Moves some messages and records those that are done.
trait Mover {
    fn step(&mut self, recorder: &mut Recorder) -> io::Result<()>;
}

/// A buffer of [`CHUNK_BYTES`] that starts in the middle of a page.
///
/// On some processors the kernel copies three times slower if the destination lies a few bytes after the source, modulo
/// the page size. Received data mostly starts near the start of a page. Large allocator blocks start there too, which
/// would make the reference depend on an unlucky address.
struct Chunk {
    block: Vec<u8>,
    start: usize,
}

const PAGE_BYTES: usize = 4096;

impl Chunk {
    fn new() -> Self {
        let block = vec![0; CHUNK_BYTES + PAGE_BYTES];
        let start = (PAGE_BYTES + PAGE_BYTES / 2 - block.as_ptr() as usize % PAGE_BYTES) % PAGE_BYTES;
        Self { block, start }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block[self.start..][..CHUNK_BYTES]
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.start..][..CHUNK_BYTES]
    }
}

/// Writes messages as fast as the socket accepts them. Small ones share a write, as in any good stack.
struct Sender<'s> {
    socket: &'s Socket,
    message_bytes: u64,
    chunk: Chunk,
    /// Written bytes of the current message.
    written: u64,
    message_began: Instant,
}

impl<'s> Sender<'s> {
    fn new(socket: &'s Socket, message_bytes: u64) -> Self {
        Self { socket, message_bytes, chunk: Chunk::new(), written: 0, message_began: Instant::now() }
    }
}

impl Mover for Sender<'_> {
    fn step(&mut self, recorder: &mut Recorder) -> io::Result<()> {
        self.written += (&*self.socket).write(&self.chunk)? as u64;
        let whole = self.written / self.message_bytes;
        self.written %= self.message_bytes;
        if whole > 0 {
            let now = Instant::now();
            recorder.record_pace(self.message_began, now, whole);
            self.message_began = now;
        }
        Ok(())
    }
}

/// Keeps a number of messages in flight and awaits their echoes.
struct EchoMover<'s> {
    socket: &'s Socket,
    message_bytes: u64,
    chunk: Chunk,
    unwritten: u64,
    /// Returned bytes of the oldest message in flight.
    returned: u64,
    /// When each message in flight was handed over, oldest first.
    handed_over: VecDeque<Instant>,
    waiting: WaitMode,
}

impl<'s> EchoMover<'s> {
    fn new(socket: &'s Socket, message_bytes: u64, in_flight: u64, waiting: WaitMode) -> io::Result<Self> {
        // Reads and writes must not block each other: the peer does not read while it cannot write.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            message_bytes,
            chunk: Chunk::new(),
            unwritten: message_bytes * in_flight,
            returned: 0,
            handed_over: std::iter::repeat_n(Instant::now(), in_flight as usize).collect(),
            waiting,
        })
    }

    /// Writes pending bytes as far as the socket accepts them.
    fn write(&mut self) -> io::Result<bool> {
        if self.unwritten == 0 {
            return Ok(false);
        }
        let length = self.chunk.len().min(usize::try_from(self.unwritten).unwrap_or(usize::MAX));
        let Some(written) = unless_would_block((&*self.socket).write(&self.chunk[..length]))? else {
            return Ok(false);
        };
        self.unwritten -= written as u64;
        Ok(true)
    }

    /// Reads echoes; each complete message makes room for another.
    fn read(&mut self, recorder: &mut Recorder) -> io::Result<bool> {
        let Some(read) = unless_would_block((&*self.socket).read(&mut self.chunk))? else {
            return Ok(false);
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.returned += read as u64;
        let whole = self.returned / self.message_bytes;
        self.returned %= self.message_bytes;
        self.unwritten += whole * self.message_bytes;
        let now = Instant::now();
        for _ in 0..whole {
            let handed_over = self.handed_over.pop_front().expect("no more comes back than went out");
            recorder.record(handed_over, now);
            self.handed_over.push_back(now);
        }
        Ok(true)
    }
}

impl Mover for EchoMover<'_> {
    fn step(&mut self, recorder: &mut Recorder) -> io::Result<()> {
        let wrote = self.write()?;
        let read = self.read(recorder)?;
        if wrote || read {
            return Ok(());
        }
        // The caller checks the clock.
        if self.waiting == WaitMode::Spinning {
            return match self.handed_over.front() {
                Some(since) if since.elapsed() > STALL_MAX => Err(stalled()),
                _ => Ok(()),
            };
        }
        let wanted =
            if self.unwritten > 0 { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        match poll(&mut [PollFd::new(self.socket.as_fd(), wanted)], PollTimeout::from(STALL_MS_MAX)) {
            Ok(0) => Err(stalled()),
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn stalled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the socket stalled")
}

fn unless_would_block(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::size::ByteSize;

    use super::*;
    use crate::load::Work;

    fn check(pattern: Pattern, transport: Transport, size: u64, in_flight: u32) {
        let point = Point {
            work: Work::Socket(pattern),
            size_bytes: ByteSize(size),
            transport,
            in_flight,
            connections: 1,
            active: None,
            tls: false,
            round_trip: Duration::ZERO,
            warmup: Duration::from_millis(2),
            duration: Duration::from_millis(10),
        };
        let result = measure(&point, pattern, None, None).unwrap();
        assert!(result.messages > 0, "{point}: nothing moved");
        assert!(result.duration_ns >= 10_000_000 / tries(pattern).len() as u64);
        assert_eq!(result.bytes_sent, result.messages * size);
        assert_eq!(result.bytes_received, if pattern == Pattern::OneWay { 0 } else { result.bytes_sent });
        match (pattern, result.latency_ns, result.pace_ns) {
            (Pattern::OneWay, None, Some(pace)) => assert!(pace.mean <= pace.gap_max as f64, "{pace:?}"),
            (_, Some(latency), None) => assert!(latency.min <= latency.p50 && latency.p50 <= latency.max),
            both => panic!("{both:?}"),
        }
    }

    #[test]
    fn every_pattern_moves_every_size_over_both_transports() {
        for transport in Transport::ALL {
            for size in [0, 1000, 1_500_000] {
                check(Pattern::OneWay, transport, size, 1);
                check(Pattern::Echo, transport, size, 1);
                check(Pattern::Echo, transport, size, 16);
                check(Pattern::Pipelined, transport, size, 1);
            }
        }
    }
}
