//! Absent fields: required ones, and those without presence if defaults are printed.

use super::Printer;
use super::unordered::PrintInterrupt;
use crate::schema::Kind;
use crate::schema::table::{FieldShape, Table};
use crate::transcode::error::PrintError;
use crate::transcode::keys::SeenFields;
use crate::transcode::sink::Sink;

impl<'s, S: Sink> Printer<'s, S> {
    /// Called at the end of a message: checks required fields, and prints absent fields without presence if `defaults`
    /// is set.
    pub(super) fn unset(
        &mut self,
        table: &'s Table,
        seen: &SeenFields,
        open: &mut S::OpenContainer,
    ) -> Result<(), PrintInterrupt> {
        if !self.options.allow_partial {
            self.check_required(table, seen)?;
        }
        if !self.options.defaults {
            return Ok(());
        }
        // In order of declaration, without extensions.
        for field in self.pool.messages[table.message as usize].fields.clone() {
            let field = self.pool.entry(&self.pool.fields[field as usize]);
            if seen.has(field.slot) {
                continue;
            }
            match field.shape() {
                FieldShape::Singular if !field.is_implicit() => {}
                FieldShape::Singular => {
                    self.name(field, open);
                    match field.kind {
                        Kind::String | Kind::Bytes => self.text_or_bytes(field, &[])?,
                        _ => self.number(field, 0),
                    }
                }
                FieldShape::Repeated => {
                    self.name(field, open);
                    let list = self.sink.begin_list();
                    self.sink.end_list(list);
                }
                FieldShape::Map => {
                    self.name(field, open);
                    let map = self.sink.begin_map();
                    self.sink.end_map(map);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn check_required(&self, table: &Table, seen: &SeenFields) -> Result<(), PrintInterrupt> {
        if table.required.is_empty() {
            return Ok(());
        }
        let mut required = table.required.iter().map(|&index| &table.entries()[usize::from(index)]);
        match required.find(|field| !seen.has(field.slot)) {
            None => Ok(()),
            Some(field) => {
                let field = self.pool.full_name(self.pool.field(field));
                Err(PrintInterrupt::Incomplete(Box::new(PrintError::Required { field })))
            }
        }
    }
}
