//! Reading from the socket: into the thread's buffer, or straight into the buffer of a large message.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use thalweg_http2::{ConnectionError, Event, ExpectedData};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::output_buffer;
use super::read_buffer::ReadBuffer;
use super::{Driver, Endpoint, Phase, Progress};
use crate::connection::inbox::{LentInbox, READ_AHEAD_LEN};
use crate::scheduler::ReadChunks;

impl<IO, E> Driver<IO, E>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Endpoint,
{
    /// Reads once, unless a chunk of the last read is left, and runs the protocol and what it made ready.
    pub(super) fn read(&mut self, cx: &mut Context<'_>) -> io::Result<Progress> {
        if self.chunks.is_underway() {
            let mut rest = std::mem::take(&mut self.leftover);
            let done = self.take_chunk(&rest);
            rest.drain(..done);
            self.leftover = rest;
            return Ok(Progress::Made);
        }
        if let Some(expected) = self.expected
            && self.phase == Phase::Open
        {
            let key = expected.tag.into();
            let lent = self.connection.lock().slot(key).and_then(|slot| slot.inbox.lend(expected.len));
            if let Some(lent) = lent {
                return self.read_to_message(cx, expected, lent);
            }
        }
        let kept = self.leftover.len();
        let mut buffer = ReadBuffer::take(kept);
        let bytes = buffer.bytes();
        bytes[..kept].copy_from_slice(&self.leftover);
        let end = if self.is_gathering { kept + READ_AHEAD_LEN } else { bytes.len() };
        let outcome = self.poll_read(|io| {
            let mut unread = ReadBuf::new(&mut bytes[kept..end]);
            io.poll_read(cx, &mut unread).map_ok(|()| unread.filled().len())
        });
        let Poll::Ready(read) = outcome? else { return Ok(Progress::None) };
        self.is_gathering = false;
        let arrived = &bytes[..kept + read];
        self.chunks.begin(arrived, self.is_alone);
        let done = self.take_chunk(arrived);
        self.leftover.clear();
        self.leftover.extend_from_slice(&arrived[done..]);
        Ok(Progress::Made)
    }

    /// Reads the bytes of a large message straight into its own buffer, and up to `READ_AHEAD_LEN` bytes more. This
    /// saves a copy.
    fn read_to_message(
        &mut self,
        cx: &mut Context<'_>,
        expected: ExpectedData,
        lent: LentInbox,
    ) -> io::Result<Progress> {
        let LentInbox { bytes: mut inbox, len_max } = lent;
        let mut unread = (&mut inbox).limit(len_max + READ_AHEAD_LEN);
        let outcome = self.poll_read(|io| poll_read_buf(io, cx, &mut unread));
        let read = if let Ok(Poll::Ready(read)) = outcome { read } else { 0 };
        let appended = read.min(len_max);
        let mut buffer = ReadBuffer::take(0);
        let behind = &mut buffer.bytes()[..read - appended];
        behind.copy_from_slice(&inbox[inbox.len() - behind.len()..]);
        inbox.truncate(inbox.len() - behind.len());
        self.return_inbox(expected, inbox, appended);
        if outcome?.is_pending() {
            return Ok(Progress::None);
        }
        self.is_gathering = true;
        let unfinished = self.take_in(behind, false);
        self.leftover.clear();
        self.leftover.extend_from_slice(unfinished);
        Ok(Progress::Made)
    }

    /// Returns the inbox to its slot with `appended` more bytes, as a DATA event would.
    fn return_inbox(&mut self, expected: ExpectedData, bytes: Vec<u8>, appended: usize) {
        let ExpectedData { stream, tag, .. } = expected;
        let mut state = self.connection.lock();
        match state.parts(tag.into()) {
            Some((slot, http2, _)) => slot.inbox.return_lent(bytes, appended, slot.stream, http2),
            None => state.http2.release(stream, appended),
        }
        if appended > 0 {
            let event = state.http2.note_direct_data(appended);
            let event = event.unwrap_or(Event::Data { stream, tag, bytes: &[], start: 0, end_stream: false });
            self.endpoint.on_event(&mut state, &event, 0);
        }
        self.may_have_output |= state.http2.wants_write();
    }

    /// Reads at least one byte; retries if the system call was interrupted.
    fn poll_read(
        &mut self,
        mut read: impl FnMut(Pin<&mut IO>) -> Poll<io::Result<usize>>,
    ) -> io::Result<Poll<usize>> {
        loop {
            match read(Pin::new(&mut self.io)) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(Ok(read)) => {
                    self.work.has_moved = true;
                    self.busy_poll.note_read(read, self.polled_at);
                    self.read_len += read;
                    return Ok(Poll::Ready(read));
                }
            }
        }
    }

    /// Processes the next chunk of `rest`. Returns the number of bytes consumed: all, if the connection is no longer
    /// open.
    fn take_chunk(&mut self, rest: &[u8]) -> usize {
        let end = self.chunks.end(rest);
        let has_more = end < rest.len();
        let unfinished = match self.phase {
            Phase::Open => self.take_in(&rest[..end], has_more).len(),
            _ => 0,
        };
        if self.phase != Phase::Open {
            self.chunks = ReadChunks::default();
            return rest.len();
        }
        self.chunks.note_taken(unfinished, rest.len() - end);
        end - unfinished
    }

    /// Runs the protocol, and what it made ready, on `arrived`. Returns the incomplete frame at its end.
    fn take_in<'a>(&mut self, arrived: &'a [u8], has_more: bool) -> &'a [u8] {
        let mut input = arrived;
        if let Err(error) = self.receive(&mut input) {
            input = &[];
            self.fail(&error, arrived);
        }
        self.endpoint.run_ready(&self.connection, arrived, has_more, self.polled_at);
        // Responses do not notify the driver.
        self.may_have_output |= !E::IS_CLIENT;
        input
    }

    fn receive(&mut self, input: &mut &[u8]) -> Result<(), ConnectionError> {
        self.chunks.resume();
        let now = self.polled_at.into_std();
        let arrived_len = input.len();
        let mut state = self.connection.lock();
        state.activity = state.activity.wrapping_add(1);
        state.shrunk = false;
        if !E::IS_CLIENT {
            output_buffer::lend(&mut state.http2);
        }
        loop {
            let input_start = arrived_len - input.len();
            let Some(event) = state.http2.poll_event(input, now)? else { break };
            if matches!(event, Event::DecodeBudgetSpent) && !input.is_empty() {
                // The driver checks this poll's time limit before it continues with the rest.
                self.chunks.pause();
                break;
            }
            self.endpoint.on_event(&mut state, &event, input_start);
        }
        if input.is_empty() {
            state.frame_started_at = None;
        } else if input.len() < arrived_len || state.frame_started_at.is_none() {
            state.frame_started_at = Some(self.polled_at);
        }
        self.expected = state.http2.expected_data();
        self.has_settings = state.http2.settings_received();
        self.may_have_output |= state.http2.wants_write();
        state.take_deferred(&mut self.deferred);
        drop(state);
        self.has_woken = self.deferred.run();
        Ok(())
    }
}
