//! Repeated fields, packed or with one tag per element.

use super::records::following;
use super::unordered::PrintInterrupt;
use super::{Printer, packed};
use crate::schema::Kind;
use crate::schema::number::read_number;
use crate::schema::table::Entry;
use crate::transcode::keys::SeenFields;
use crate::transcode::sink::Sink;
use crate::wire::{Reader, WireType};

impl<'s, S: Sink> Printer<'s, S> {
    pub(super) fn repeated(
        &mut self,
        field: &'s Entry,
        mut tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        let mut list = None;
        loop {
            match field.kind {
                Kind::String | Kind::Bytes => {
                    let value = reader.len_prefixed()?;
                    self.element(field, &mut list, seen, open)?;
                    self.text_or_bytes(field, value)?;
                    if field.kind == Kind::String
                        && let (tag @ ..0x80, Some(list)) = (tag, &mut list)
                    {
                        // With a one-byte tag, print the following plain texts as a batch.
                        let read = self.sink.plain_strings(list, tag as u8, reader.rest(), self.out_len_max);
                        reader.skip_bytes(read);
                        self.check_len()?;
                    }
                }
                Kind::Message | Kind::Group => {
                    self.element(field, &mut list, seen, open)?;
                    self.nested(field, tag, reader, depth)?;
                }
                _ if tag & 7 == WireType::Len as u32 => {
                    self.packed(field, reader.nested()?, &mut list, seen, open)?;
                }
                _ => {
                    let value = read_number(field.element, reader)?;
                    self.number_element(field, value, &mut list, seen, open)?;
                }
            }
            match following(field, reader)? {
                Some(following) => tag = following,
                None => break,
            }
        }
        if let Some(list) = list {
            self.sink.end_list(list);
        }
        Ok(())
    }

    #[inline]
    fn number_element(
        &mut self,
        field: &'s Entry,
        value: u64,
        list: &mut Option<S::OpenContainer>,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        if field.is_closed() && !self.has(field, value) {
            return Ok(());
        }
        self.element(field, list, seen, open)?;
        self.number(field, value);
        Ok(())
    }

    /// Prints one packed record.
    fn packed(
        &mut self,
        field: &'s Entry,
        mut packed: Reader<'_>,
        list: &mut Option<S::OpenContainer>,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        if field.kind == Kind::Enum {
            while !packed.is_empty() {
                let value = read_number(field.element, &mut packed)?;
                self.number_element(field, value, list, seen, open)?;
            }
            return Ok(());
        }
        if packed.is_empty() {
            return Ok(());
        }
        let list = self.list(field, list, seen, open)?;
        packed::read(field.element, packed, |words| self.sink.numbers(list, field.kind, words))?;
        self.check_len()
    }

    /// Starts an element.
    #[inline]
    fn element(
        &mut self,
        field: &Entry,
        list: &mut Option<S::OpenContainer>,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        let list = self.list(field, list, seen, open)?;
        self.sink.element(list);
        self.check_len()
    }

    /// Returns the list, which is opened by its first element. An empty list counts as absent.
    #[inline]
    fn list<'l>(
        &mut self,
        field: &Entry,
        list: &'l mut Option<S::OpenContainer>,
        seen: &mut SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<&'l mut S::OpenContainer, PrintInterrupt> {
        if list.is_none() {
            if seen.set(field.slot) {
                return Err(PrintInterrupt::Unordered);
            }
            self.name(field, open);
        }
        Ok(list.get_or_insert_with(|| self.sink.begin_list()))
    }
}
