//! What did not come: fields that must be there, and those without presence, if they are wanted.

use super::{Printer, Stop};
use crate::schema::Kind;
use crate::transcode::error::PrintError;
use crate::transcode::keys::Seen;
use crate::transcode::sink::Sink;
use crate::transcode::tables::{Shape, Type};

impl<'s, S: Sink> Printer<'s, S> {
    /// At the end of a message's fields: those that must be there, and those without presence that did not come, if they
    /// are wanted.
    pub(super) fn unset(
        &mut self,
        message_type: &'s Type,
        seen: &Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        if !self.options.allow_partial {
            self.check_required(message_type, seen)?;
        }
        if !self.options.defaults {
            return Ok(());
        }
        for field in message_type.fields.iter().filter(|field| !seen.has(field.seen) && !field.is_extension) {
            match field.shape {
                Shape::Singular if !field.is_implicit => {}
                Shape::Singular => {
                    self.name(field, open);
                    match field.kind {
                        Kind::String | Kind::Bytes => self.text_or_bytes(field, &[])?,
                        _ => self.number(field, 0),
                    }
                }
                Shape::Repeated => {
                    self.name(field, open);
                    let list = self.sink.begin_list();
                    self.sink.end_list(list);
                }
                Shape::Map => {
                    self.name(field, open);
                    let map = self.sink.begin_map();
                    self.sink.end_map(map);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn check_required(&self, message_type: &Type, seen: &Seen) -> Result<(), Stop> {
        match message_type.required.iter().find(|&&index| !seen.has(index)) {
            None => Ok(()),
            Some(&index) => {
                let field = message_type.fields[usize::from(index)].index;
                let field = self.pool.full_name(&self.pool.fields[field as usize]);
                Err(Stop::Incomplete(Box::new(PrintError::Required { field })))
            }
        }
    }
}
