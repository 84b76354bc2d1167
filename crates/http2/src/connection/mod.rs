//! One HTTP/2 connection.

use std::time::Instant;

use bytes::Bytes;

use crate::config::Config;
use crate::error::{ConnectionError, ErrorCode, OpenError, SendError};
use crate::event::Event;
use crate::fields::Block;
use crate::headers::Head;
use crate::output::Output;
use crate::stream::{StreamId, Tag};

/// One HTTP/2 connection, client or server.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    head: Head,
    output: Output,
}

#[allow(clippy::unused_self, clippy::needless_pass_by_value, missing_docs, unused_variables)]
impl Connection {
    /// The preface and SETTINGS are already in the output.
    pub fn client(config: Config, now: Instant) -> Self {
        Connection { config, head: Head::default(), output: Output::default() }
    }

    /// SETTINGS are already in the output; the client's preface is awaited.
    pub fn server(config: Config, now: Instant) -> Self {
        Connection { config, head: Head::default(), output: Output::default() }
    }

    pub fn poll_event<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        unimplemented!()
    }

    pub fn fields(&self) -> &Head {
        &self.head
    }

    pub fn set_tag(&mut self, stream: StreamId, tag: Tag) {
        unimplemented!()
    }

    pub fn release(&mut self, stream: StreamId, bytes: usize) {
        unimplemented!()
    }

    pub fn can_open(&self) -> bool {
        unimplemented!()
    }

    pub fn open(&mut self, tag: Tag, head: Block<'_>, end_stream: bool) -> Result<StreamId, OpenError> {
        unimplemented!()
    }

    pub fn send_headers(
        &mut self,
        stream: StreamId,
        block: Block<'_>,
        end_stream: bool,
    ) -> Result<(), SendError> {
        unimplemented!()
    }

    pub fn send_data_in_place(
        &mut self,
        stream: StreamId,
        len: usize,
        end_stream: bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, SendError> {
        unimplemented!()
    }

    pub fn send_data(&mut self, stream: StreamId, bytes: Bytes, end_stream: bool) -> Result<(), SendError> {
        unimplemented!()
    }

    pub fn queued(&self, stream: StreamId) -> usize {
        unimplemented!()
    }

    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        unimplemented!()
    }

    pub fn is_open(&self, stream: StreamId) -> bool {
        unimplemented!()
    }

    pub fn ping(&mut self, payload: [u8; 8]) {
        unimplemented!()
    }

    pub fn drain(&mut self, now: Instant) {
        unimplemented!()
    }

    pub fn close(&mut self, code: ErrorCode, debug: &[u8]) {
        unimplemented!()
    }

    pub fn is_drained(&self) -> bool {
        unimplemented!()
    }

    pub fn active_streams(&self) -> usize {
        unimplemented!()
    }

    pub fn peer_going_away(&self) -> bool {
        unimplemented!()
    }

    pub fn is_closed(&self) -> bool {
        unimplemented!()
    }

    pub fn settings_received(&self) -> bool {
        unimplemented!()
    }

    pub fn take_output(&mut self, out: &mut Output) -> bool {
        unimplemented!()
    }

    pub fn wants_write(&self) -> bool {
        unimplemented!()
    }

    pub fn timeout(&self) -> Option<Instant> {
        unimplemented!()
    }

    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), ConnectionError> {
        unimplemented!()
    }

    pub fn shrink(&mut self) {
        unimplemented!()
    }
}
