//! Links fields, extensions and service methods to their types, once all names are known.

use std::collections::HashSet;

use super::checks::{check_json_names, check_message, check_name};
use super::{Compiler, PendingExtension, PendingMessage, at, field, join, layout, not_a};
use crate::schema::error::{Problem, SchemaError};
use crate::schema::features::number;
use crate::schema::name_index::NameIndex;
use crate::schema::pool::{FieldData, MethodData, OneofData, Pool, Symbol};
use crate::schema::raw;
use crate::schema::table::Entry;

/// The message option that lets JSON names conflict: `deprecated_legacy_json_field_conflicts`.
const LEGACY_JSON_FIELD_CONFLICTS: u32 = 11;

impl<'a> Compiler<'a> {
    pub(super) fn link(&mut self) -> Result<(), SchemaError> {
        for pending in std::mem::take(&mut self.messages) {
            self.link_message(&pending)?;
        }
        for pending in std::mem::take(&mut self.extensions) {
            self.link_extension(&pending)?;
        }
        for message in 0..self.pool.messages.len() as u32 {
            let entries = self.entries_of(message);
            check_message(&self.pool, message, &entries)?;
            let table = layout::table(&mut self.pool, message, entries);
            self.pool.tables.push(table);
        }
        layout::complete(&mut self.pool);
        for (index, service) in std::mem::take(&mut self.services) {
            self.link_service(index, service)?;
        }
        Ok(())
    }

    /// Returns the entries of fields and extensions, sorted by number; on a duplicate number the earlier field comes
    /// first.
    fn entries_of(&self, message: u32) -> Vec<Entry> {
        let data = &self.pool.messages[message as usize];
        let fields = data.fields.clone().chain(data.extensions.iter().copied());
        let mut entries: Vec<Entry> = fields.map(|field| self.entries[field as usize]).collect();
        entries.sort_by_key(|entry| (entry.number, entry.field));
        entries
    }

    fn push(&mut self, data: FieldData, entry: Entry) {
        self.entries.push(Entry { field: self.pool.fields.len() as u32, ..entry });
        self.pool.fields.push(data);
    }

    fn link_message(&mut self, pending: &PendingMessage<'a>) -> Result<(), SchemaError> {
        let PendingMessage { index, message, features } = pending;
        let data = &self.pool.messages[*index as usize];
        let (file, name) = (data.file, data.name.to_string());
        let edition = self.pool.files[file as usize].edition;
        let here = |pool: &Pool, element: &str, problem| {
            at(&pool.files[file as usize].name, &join(&name, element), problem)
        };
        let mut oneofs = Vec::with_capacity(message.oneofs.len());
        let mut oneof_features = Vec::with_capacity(message.oneofs.len());
        for oneof in &message.oneofs {
            let checked = check_name(oneof.name)
                .and_then(|()| features.with(edition, &oneof.options, number::ONEOF))
                .map_err(|problem| here(&self.pool, oneof.name, problem))?;
            oneof_features.push(checked);
            oneofs.push(OneofData { name: oneof.name.into(), fields: Vec::new(), synthetic: false });
        }
        let start = self.pool.fields.len() as u32;
        for field in &message.fields {
            let index_of_field = self.pool.fields.len() as u32;
            let linked = (|| {
                let mut features = *features;
                if let Some(oneof) = field.oneof {
                    let member = usize::try_from(oneof).ok().and_then(|oneof| oneofs.get_mut(oneof));
                    let member = member.ok_or(Problem::Oneof(oneof))?;
                    member.fields.push(index_of_field);
                    member.synthetic |= field.proto3_optional;
                    features = oneof_features[oneof as usize];
                }
                if field.extendee.is_some() {
                    return Err(Problem::Extendee);
                }
                field::field(&self.pool, field, *index, file, &name, features)
            })();
            let (data, entry) = linked.map_err(|problem| here(&self.pool, field.name, problem))?;
            self.push(data, entry);
        }
        let fields = start..self.pool.fields.len() as u32;
        let mut by_name = NameIndex::for_names(fields.len());
        let mut by_json_name = NameIndex::for_names(fields.len());
        let declared = &self.pool.fields[start as usize..];
        for (position, field) in (0..).zip(declared) {
            if !by_name.insert(position, |position| declared[position as usize].name.text()) {
                let other = self.pool.files[file as usize].name.to_string();
                return Err(here(&self.pool, field.name.text(), Problem::DuplicateName { other }));
            }
            // If JSON names conflict, the first field wins.
            by_json_name.insert(position, |position| declared[position as usize].json_name.text());
        }
        let may_conflict = raw::option(&message.options, LEGACY_JSON_FIELD_CONFLICTS)
            .map_err(|problem| here(&self.pool, "", problem))?
            .is_some_and(|option| option != 0);
        if !may_conflict {
            check_json_names(&self.pool, fields.clone(), file, features.loose_json)?;
        }
        for oneof in &oneofs {
            if oneof.fields.is_empty() {
                return Err(here(&self.pool, &oneof.name, Problem::EmptyOneof));
            }
            if oneof.synthetic && oneof.fields.len() > 1 {
                let problem = Problem::Invalid("a proto3 optional field needs its own oneof");
                return Err(here(&self.pool, &oneof.name, problem));
            }
        }
        let data = &mut self.pool.messages[*index as usize];
        (data.fields, data.oneofs, data.by_name, data.by_json_name) = (fields, oneofs, by_name, by_json_name);
        Ok(())
    }

    fn link_extension(&mut self, pending: &PendingExtension<'a>) -> Result<(), SchemaError> {
        let PendingExtension { file, scope, field, features } = pending;
        let name = join(scope, field.name);
        let index = self.pool.fields.len() as u32;
        self.declare_name(Symbol::Extension(index), &name, field.name, *file)?;
        let linked = (|| {
            let extendee = field.extendee.ok_or(Problem::Extendee)?;
            let message = match self.pool.resolve(scope, extendee) {
                Some(Symbol::Message(message)) => message,
                Some(_) => return Err(not_a(extendee, "a message")),
                None => return Err(Problem::NotFound(extendee.to_owned())),
            };
            let (data, entry) = field::field(&self.pool, field, message, *file, scope, *features)?;
            let target = &self.pool.messages[message as usize];
            if !target.extension_ranges.iter().any(|range| (range.start..range.end).contains(&entry.number)) {
                return Err(Problem::ExtensionRange {
                    extendee: target.name.to_string(),
                    number: field.number,
                });
            }
            if field.oneof.is_some() {
                return Err(Problem::Invalid("an extension cannot be a member of a oneof"));
            }
            Ok((data, entry))
        })();
        let (data, entry) =
            linked.map_err(|problem| at(&self.pool.files[*file as usize].name, &name, problem))?;
        self.pool.messages[data.message as usize].extensions.push(index);
        self.push(data, entry);
        Ok(())
    }

    fn link_service(&mut self, index: u32, service: &raw::Service<'a>) -> Result<(), SchemaError> {
        let data = &self.pool.services[index as usize];
        let (file, name) = (data.file, data.name.to_string());
        let package = self.pool.files[file as usize].package.to_string();
        let mut methods = Vec::with_capacity(service.methods.len());
        let mut names = HashSet::with_capacity(service.methods.len());
        for method in &service.methods {
            let here = |problem| at(&self.pool.files[file as usize].name, &join(&name, method.name), problem);
            let message = |of: &str| match self.pool.resolve(&package, of) {
                Some(Symbol::Message(message)) => Ok(message),
                Some(_) => Err(here(not_a(of, "a message"))),
                None => Err(here(Problem::NotFound(of.to_owned()))),
            };
            check_name(method.name).map_err(here)?;
            if !names.insert(method.name) {
                let other = self.pool.files[file as usize].name.to_string();
                return Err(here(Problem::DuplicateName { other }));
            }
            methods.push(MethodData {
                name: method.name.into(),
                input: message(method.input)?,
                output: message(method.output)?,
                client_streaming: method.client_streaming,
                server_streaming: method.server_streaming,
                options: method.options.as_slice().into(),
            });
        }
        self.pool.services[index as usize].methods = methods;
        Ok(())
    }
}
