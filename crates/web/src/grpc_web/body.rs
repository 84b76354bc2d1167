//! Bodies, binary or text, as they are read.

use bytes::Bytes;
use thalweg_engine::{Encoding, Status};

use super::text::Decoder;
use crate::envelope::{Part, Reader};

/// A body: the envelopes in it, whatever it is written in.
#[derive(Debug)]
pub(super) struct Body {
    decoder: Option<Decoder>,
    reader: Reader,
    /// What is wrong with the text.
    failure: Option<Status>,
    /// Whether anything has arrived.
    pub(super) is_begun: bool,
}

impl Body {
    pub(super) fn new(is_text: bool, reader: Reader) -> Body {
        Body { decoder: is_text.then(Decoder::default), reader, failure: None, is_begun: false }
    }

    pub(super) fn push(&mut self, piece: Bytes) {
        self.is_begun |= !piece.is_empty();
        match &mut self.decoder {
            None => self.reader.push(piece),
            Some(decoder) if self.failure.is_none() => match decoder.decode(&piece) {
                Ok(bytes) => self.reader.push(bytes.into()),
                Err(failure) => self.failure = Some(failure),
            },
            Some(_) => {}
        }
    }

    pub(super) fn take(&mut self) -> Result<Option<Part>, Status> {
        match (self.reader.take()?, &self.failure) {
            (None, Some(failure)) => Err(failure.clone()),
            (part, _) => Ok(part),
        }
    }

    pub(super) fn finish(&self) -> Result<(), Status> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.decoder.as_ref().map_or(Ok(()), Decoder::finish)?;
        self.reader.finish()
    }

    fn is_empty(&self) -> bool {
        self.decoder.as_ref().is_none_or(Decoder::is_empty) && self.reader.is_empty()
    }

    fn len(&self) -> usize {
        self.reader.len()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.reader.has_ended()
    }
}

/// The body of a request, at a server: push pieces, take messages until there is none.
#[derive(Debug)]
pub struct RequestReader(Body);

impl RequestReader {
    /// Reads messages of at most `size_max` bytes, compressed as the head of the request says.
    pub fn new(is_text: bool, encoding: Encoding, size_max: usize) -> RequestReader {
        RequestReader(Body::new(is_text, Reader::new(0, encoding, size_max)))
    }

    /// Bytes that have arrived.
    pub fn push(&mut self, piece: Bytes) {
        self.0.push(piece);
    }

    /// The next message, if it has arrived whole.
    ///
    /// # Errors
    /// See [`Reader::take`]; INTERNAL for text that is no Base64.
    pub fn take(&mut self) -> Result<Option<Bytes>, Status> {
        // Nothing but its last message ends a request.
        Ok(self.0.take()?.map(|(Part::Message(message) | Part::Ending(message))| message))
    }

    /// The body has ended.
    ///
    /// # Errors
    /// See [`Reader::finish`].
    pub fn finish(&self) -> Result<(), Status> {
        self.0.finish()
    }

    /// Whether nothing has arrived yet that was not taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much has arrived that was not taken, in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
