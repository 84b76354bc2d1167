//! A byte stream over TLS records.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::CommonState;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, WriteTraffic};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::buffers::{self, BLOCK_LEN, Buffer, BufferMemory};
use super::explain::explain;
use super::session::Session;
use crate::scheduler::yield_now;

/// Reads and writes plaintext over TLS records on `IO`.
///
/// A pending write has already encrypted its bytes, and must be called again with the same ones, as a driver does. It
/// returns their number once the records have been sent. So no accepted byte is left unflushed.
#[derive(Debug)]
pub(crate) struct TlsStream<IO, S> {
    io: IO,
    session: Box<S>,
    /// Received records.
    incoming: Buffer,
    /// Whether `incoming` may have more complete records: decrypting stopped because the reader's buffer was full.
    is_stopped: bool,
    /// Whether rustls has rejected the bytes in `incoming`. They are not processed again, which would fail again.
    has_failed: bool,
    /// Decrypted bytes that did not fit the reader's buffer.
    decrypted: Buffer,
    /// Records being written to `io`.
    outgoing: Buffer,
    /// Number of bytes of the pending write that are in `outgoing`.
    accepted: usize,
    /// Whether the peer has sent close_notify.
    is_ended: bool,
    /// Memory of the three buffers.
    memory: BufferMemory,
}

/// Maximum plaintext bytes in a record (RFC 8446 §5.1).
const RECORD_LEN: usize = 16 * 1024;
/// Maximum overhead of a record: 5 bytes of header, 8 of nonce in TLS 1.2, 16 of tag, 1 of type.
const RECORD_EXTRA: usize = 30;
/// Plaintext bytes of one write: as many records as a block holds.
const WRITE_MAX: usize = 16 * RECORD_LEN;
/// Additional bytes of a write, if a slice ends with them: a frame of 128 KiB is sent with its header.
const WRITE_BEYOND: usize = 1024;
/// Minimum overhead of a record after its header: a tag, and in TLS 1.3 a type.
const SEAL_LEN: usize = 17;
/// Space for messages of rustls's own: a key update, two tickets.
const RECORD_MARGIN: usize = 512;
/// Maximum records decrypted for one read. A full read of the largest records has sixteen. One of records with a byte
/// each has thousands, which take milliseconds.
const RECORDS_AT_ONCE: usize = 64;
/// Bytes that a handshake reads before it yields: more than most clients send in total. Clients may send records with
/// a byte each.
const HANDSHAKE_READ_LEN: usize = 8 * 1024;
/// Maximum bytes in the buffer without a complete record or handshake message. Such a message has at most 64 KiB, split
/// into records with some overhead each.
const UNFINISHED_MAX: usize = BLOCK_LEN;

impl<IO, S> TlsStream<IO, S>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Session,
{
    pub(super) fn new(io: IO, session: S, memory: BufferMemory) -> Self {
        Self {
            io,
            session: Box::new(session),
            incoming: Buffer::default(),
            is_stopped: false,
            has_failed: false,
            decrypted: Buffer::default(),
            outgoing: Buffer::default(),
            accepted: 0,
            is_ended: false,
            memory,
        }
    }

    fn note_memory(&self) {
        self.memory.note(self.incoming.block_len() + self.decrypted.block_len() + self.outgoing.block_len());
    }

    pub(super) fn session(&self) -> &CommonState {
        self.session.common()
    }

    /// Returns the received bytes that are not decrypted.
    pub(super) fn unread(&self) -> &[u8] {
        self.incoming.bytes()
    }

    /// Runs the handshake until bytes can be written. Its last messages may wait for the first write.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let outcome = self.shake(cx);
        self.note_memory();
        outcome
    }

    fn shake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut read = 0;
        loop {
            match self.step(|_, _| ())? {
                Step::Went => {}
                Step::MayWrite(()) => return Poll::Ready(Ok(())),
                // The peer's data came with its last message.
                Step::Ended if !self.session().is_handshaking() => return Poll::Ready(Ok(())),
                Step::Ended | Step::Over => return Poll::Ready(Err(Broken::Closed)),
                Step::Blocked => {
                    // Reading does not wait for writing: the peer may be waiting for the same.
                    if let Poll::Ready(flushed) = self.poll_flush_outgoing(cx) {
                        flushed?;
                    }
                    if read >= HANDSHAKE_READ_LEN {
                        return yield_now(cx);
                    }
                    match ready!(self.poll_fill(cx, HANDSHAKE_READ_LEN))? {
                        0 => return Poll::Ready(Err(Broken::Closed)),
                        more => read += more,
                    }
                }
            }
        }
    }

    /// Sends rustls's alert for an error, as far as `io` accepts it at once.
    pub(super) fn send_alert(&mut self, cx: &mut Context<'_>) {
        while matches!(self.step(|_, _| ()), Ok(Step::Went)) {}
        let _ = self.poll_flush_outgoing(cx);
    }

    /// Runs one step of rustls on the received bytes, and keeps the plaintext found. Calls `write` if bytes may be
    /// written.
    fn step<T>(
        &mut self,
        write: impl FnOnce(&mut WriteTraffic<'_, S::Data>, &mut Buffer) -> T,
    ) -> Result<Step<T>, rustls::Error> {
        // Alerts are sent before records are processed.
        if self.has_failed && !self.session().wants_write() {
            return Err(failed_before());
        }
        let Self { session, incoming, decrypted, outgoing, is_stopped, has_failed, .. } = self;
        // Decrypting stops only after complete messages. So no handshake message is incomplete, and rustls need not see
        // the waiting records.
        let records = if *is_stopped { &mut [][..] } else { incoming.bytes_mut() };
        let status = session.process(records);
        let mut discard = status.discard;
        let step = match status.state.inspect_err(|_| *has_failed = true)? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    append(decrypted, record.payload);
                }
                Step::Went
            }
            ConnectionState::EncodeTlsData(mut message) => {
                encode(outgoing, |space| message.encode(space))?;
                Step::Went
            }
            // Pending records in `outgoing` are sent before anything waits.
            ConnectionState::TransmitTlsData(message) => {
                message.done();
                Step::Went
            }
            ConnectionState::WriteTraffic(mut traffic) => Step::MayWrite(write(&mut traffic, outgoing)),
            ConnectionState::BlockedHandshake => Step::Blocked,
            ConnectionState::PeerClosed => Step::Ended,
            ConnectionState::Closed => Step::Over,
            // Early data is never requested, and rustls may add states.
            _ => return Err(rustls::Error::General("unexpected TLS state".to_owned())),
        };
        incoming.consume(discard);
        if matches!(step, Step::Ended | Step::Over) {
            self.is_ended = true;
        }
        Ok(step)
    }

    /// Decrypts the received records until `buf` is full, the next record does not fit, or [`RECORDS_AT_ONCE`] records
    /// have yielded bytes.
    fn decrypt(&mut self, buf: &mut ReadBuf<'_>) -> Result<(), rustls::Error> {
        let Self { session, incoming, decrypted, outgoing, is_stopped, has_failed, is_ended, .. } = self;
        if buf.remaining() == 0 {
            return Ok(());
        }
        if *has_failed {
            return Err(failed_before());
        }
        *is_stopped = false;
        let (before, mut records) = (buf.filled().len(), 0);
        while !incoming.is_empty() && !*is_ended && !*is_stopped {
            // The record waits for a reader with more space, so that its bytes are copied only once.
            if buf.filled().len() > before && plain_len(incoming.bytes()) > buf.remaining() {
                *is_stopped = true;
                break;
            }
            let status = session.process(incoming.bytes_mut());
            let mut discard = status.discard;
            let continues = match status.state.inspect_err(|_| *has_failed = true)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        records += usize::from(!record.payload.is_empty());
                        let (fits, rest) = record.payload.split_at(record.payload.len().min(buf.remaining()));
                        buf.put_slice(fits);
                        if !rest.is_empty() {
                            append(decrypted, rest);
                        }
                    }
                    *is_stopped = buf.remaining() == 0 || records >= RECORDS_AT_ONCE;
                    true
                }
                ConnectionState::EncodeTlsData(mut message) => {
                    encode(outgoing, |space| message.encode(space))?;
                    true
                }
                ConnectionState::TransmitTlsData(message) => {
                    message.done();
                    true
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    *is_ended = true;
                    false
                }
                _ => false,
            };
            incoming.consume(discard);
            if !continues {
                break;
            }
        }
        Ok(())
    }

    /// Reads once from `io`, at most `len_max` bytes, after the incomplete record. Returns the number of bytes; 0 at
    /// the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>, len_max: usize) -> Poll<io::Result<usize>> {
        let unfinished = self.incoming.len();
        if unfinished >= UNFINISHED_MAX {
            return Poll::Ready(Err(invalid("a TLS message is too large".to_owned())));
        }
        let space = self.incoming.space(BLOCK_LEN - unfinished);
        let end = space.len().min(len_max);
        let mut unread = ReadBuf::new(&mut space[..end]);
        let outcome = Pin::new(&mut self.io).poll_read(cx, &mut unread);
        let read = unread.filled().len();
        match outcome {
            Poll::Ready(Ok(())) => {
                self.incoming.extend(read);
                Poll::Ready(Ok(read))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.incoming.shrink();
                Poll::Pending
            }
        }
    }

    /// Fills `buf` with decrypted bytes, or else with those of the received records.
    fn read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            if !self.decrypted.is_empty() {
                let fits = self.decrypted.len().min(buf.remaining());
                buf.put_slice(&self.decrypted.bytes()[..fits]);
                self.decrypted.consume(fits);
            }
            if self.decrypted.is_empty()
                && let Err(error) = self.decrypt(buf)
            {
                self.send_alert(cx);
                return Poll::Ready(Err(io_error(&error)));
            }
            if buf.filled().len() > before || self.is_ended {
                return Poll::Ready(Ok(()));
            }
            // rustls's own messages do not wait for a write.
            if let Poll::Ready(outcome) = self.poll_flush_outgoing(cx) {
                outcome?;
            }
            if ready!(self.poll_fill(cx, BLOCK_LEN))? == 0 {
                return Poll::Ready(Err(truncated()));
            }
        }
    }

    fn poll_flush_outgoing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, self.outgoing.bytes()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.outgoing.consume(written),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Runs `write` once rustls allows writing. Its own messages come first.
    fn may_write<T>(
        &mut self,
        mut write: impl FnMut(&mut WriteTraffic<'_, S::Data>, &mut Buffer) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match self.step(&mut write).map_err(|error| io_error(&error))? {
                Step::MayWrite(outcome) => return outcome,
                Step::Went | Step::Ended => {}
                Step::Blocked | Step::Over => return Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    /// Encrypts the first bytes of `slices`. Returns their number.
    fn encrypt(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.may_write(|traffic, outgoing| {
            let mut accepted = 0;
            buffers::with_record_buffer(|record| {
                for slice in slices {
                    let taken = len_taken(slice.len(), accepted);
                    accepted += taken;
                    let (full_records, mut rest) = slice[..taken].split_at(taken / RECORD_LEN * RECORD_LEN);
                    if !full_records.is_empty() {
                        // Encrypted in place. The bytes before it become a record of their own: filling that up would
                        // copy more than it saves, and large messages are best read from the start of a record.
                        seal_record(traffic, outgoing, record)?;
                        seal(traffic, outgoing, full_records)?;
                    }
                    while !rest.is_empty() {
                        let part = rest.len().min(RECORD_LEN - record.len());
                        record.extend_from_slice(&rest[..part]);
                        rest = &rest[part..];
                        if record.len() == RECORD_LEN {
                            seal_record(traffic, outgoing, record)?;
                        }
                    }
                    if taken < slice.len() || accepted >= WRITE_MAX {
                        break;
                    }
                }
                seal_record(traffic, outgoing, record)?;
                Ok(accepted)
            })
        })
    }
}

/// Result of a step.
enum Step<T> {
    /// Made progress; there may be more to do.
    Went,
    /// The handshake waits for the peer's next message.
    Blocked,
    /// The handshake is over, and writing is possible.
    MayWrite(T),
    /// The peer has closed its direction.
    Ended,
    /// Both directions are closed.
    Over,
}

/// Reason why there is no TLS connection.
#[derive(Debug)]
pub(super) enum Broken {
    Io(io::Error),
    Tls(rustls::Error),
    /// The peer has closed the connection.
    Closed,
}

impl From<rustls::Error> for Broken {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns how many bytes of a slice one write takes: all of it, or as many records as there is space for.
fn len_taken(len: usize, accepted: usize) -> usize {
    if accepted + len <= WRITE_MAX + WRITE_BEYOND {
        return len;
    }
    WRITE_MAX.saturating_sub(accepted) / RECORD_LEN * RECORD_LEN
}

/// Returns the plaintext length of the next record, or slightly more; 0 if unknown.
fn plain_len(records: &[u8]) -> usize {
    match records {
        [_, _, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])).saturating_sub(SEAL_LEN),
        _ => 0,
    }
}

fn append(buffer: &mut Buffer, bytes: &[u8]) {
    buffer.space(bytes.len())[..bytes.len()].copy_from_slice(bytes);
    buffer.extend(bytes.len());
}

/// Lets a message write itself, with as much space as it needs.
fn encode(
    outgoing: &mut Buffer,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), rustls::Error> {
    let mut len_min = RECORD_MARGIN;
    loop {
        match write(outgoing.space(len_min)) {
            Ok(written) => {
                outgoing.extend(written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(error)) if error.required_size > len_min => {
                len_min = error.required_size;
            }
            Err(error) => return Err(rustls::Error::General(error.to_string())),
        }
    }
}

/// Encrypts the gathered bytes as one record.
fn seal_record<D>(
    traffic: &mut WriteTraffic<'_, D>,
    outgoing: &mut Buffer,
    record: &mut Vec<u8>,
) -> io::Result<()> {
    if !record.is_empty() {
        seal(traffic, outgoing, record)?;
        record.clear();
    }
    Ok(())
}

fn seal<D>(traffic: &mut WriteTraffic<'_, D>, outgoing: &mut Buffer, plain: &[u8]) -> io::Result<()> {
    let records = plain.len().div_ceil(RECORD_LEN);
    let mut len_min = plain.len() + records * RECORD_EXTRA + RECORD_MARGIN;
    loop {
        match traffic.encrypt(plain, outgoing.space(len_min)) {
            Ok(written) => {
                outgoing.extend(written);
                return Ok(());
            }
            Err(EncryptError::InsufficientSize(error)) if error.required_size > len_min => {
                len_min = error.required_size;
            }
            Err(error) => return Err(invalid(format!("failed to encrypt: {error}"))),
        }
    }
}

impl<IO, S> AsyncRead for TlsStream<IO, S>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Session,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = self.read(cx, buf);
        self.note_memory();
        outcome
    }
}

impl<IO, S> AsyncWrite for TlsStream<IO, S>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Session,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.accepted == 0 {
            self.accepted = self.encrypt(slices)?;
        }
        let flushed = self.poll_flush_outgoing(cx);
        self.note_memory();
        ready!(flushed)?;
        Poll::Ready(Ok(std::mem::take(&mut self.accepted)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush_outgoing(cx)
    }

    /// Sends close_notify, and closes our direction.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // rustls sends it only once. A session that failed sends nothing.
        let _ = self.may_write(|traffic, outgoing| {
            let outcome = traffic.queue_close_notify(outgoing.space(RECORD_MARGIN));
            outgoing.extend(outcome.unwrap_or(0));
            Ok(())
        });
        ready!(self.poll_flush_outgoing(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

fn failed_before() -> rustls::Error {
    rustls::Error::General("TLS has already failed".to_owned())
}

/// Converts a rustls error to an error of the stream.
fn io_error(error: &rustls::Error) -> io::Error {
    invalid(explain(error))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Without close_notify it is unknown whether the peer or an attacker ended the stream (RFC 8446 §6.1).
fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed without TLS's close_notify")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_takes_complete_slices_or_records() {
        let check = |slices: &[usize], expected: &[usize]| {
            let mut accepted = 0;
            let taken = slices.iter().map(|len| {
                let taken = len_taken(*len, accepted);
                accepted += taken;
                taken
            });
            assert_eq!(taken.collect::<Vec<_>>(), expected, "{slices:?}");
        };
        check(&[9, WRITE_MAX], &[9, WRITE_MAX]);
        check(&[9, WRITE_MAX, 9, 1000, 1000], &[9, WRITE_MAX, 9, 1000, 0]);
        check(&[2 * WRITE_MAX], &[WRITE_MAX]);
        check(&[9, 2 * WRITE_MAX], &[9, WRITE_MAX - RECORD_LEN]);
        check(&[WRITE_MAX - 5, 2 * RECORD_LEN], &[WRITE_MAX - 5, 0]);
    }

    #[test]
    fn length_of_next_record_is_estimated() {
        assert_eq!(plain_len(&[23, 3, 3, 0x40, 0x11, 7]), RECORD_LEN);
        assert_eq!(plain_len(&[23, 3, 3, 0x40]), 0);
        assert_eq!(plain_len(&[23, 3, 3, 0, 1]), 0);
    }
}
