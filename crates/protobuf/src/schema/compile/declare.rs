//! Declares the names of messages, enums, extensions and services in their scopes.

use super::checks::{check_elements, check_full_name_len, check_name, check_package};
use super::enums::enum_data;
use super::{Compiler, PendingExtension, PendingMessage, Scope, at, join};
use crate::schema::error::{Problem, SchemaError};
use crate::schema::features::{Edition, Features, FieldPresence, number};
use crate::schema::name_index::NameIndex;
use crate::schema::pool::{ExtensionRange, FileData, MessageData, NONE, ServiceData, Symbol};
use crate::schema::raw;

impl<'a> Compiler<'a> {
    pub(super) fn declare(&mut self, file: &'a raw::File<'a>) -> Result<(), SchemaError> {
        let here = |problem| at(file.name, "", problem);
        let edition = Edition::of(file).map_err(here)?;
        let features = Features::of(edition).with(edition, &file.options, number::FILE).map_err(here)?;
        if features.presence == FieldPresence::Required {
            return Err(here(Problem::Invalid("a file cannot make all fields required")));
        }
        check_package(file.package).map_err(here)?;
        let index = self.pool.files.len() as u32;
        self.pool.files.push(FileData {
            name: file.name.into(),
            package: file.package.into(),
            edition,
            dependencies: file.dependencies.iter().map(|&name| name.into()).collect(),
            options: file.options.as_slice().into(),
        });
        let scope = Scope { file: index, edition, name: file.package, message: NONE, features };
        for message in &file.messages {
            self.declare_message(message, scope)?;
        }
        for declared in &file.enums {
            self.declare_enum(declared, scope)?;
        }
        self.declare_extensions(&file.extensions, scope);
        for service in &file.services {
            let name = join(file.package, service.name);
            let index = self.pool.services.len() as u32;
            self.declare_name(Symbol::Service(index), &name, service.name, scope.file)?;
            self.pool.services.push(ServiceData {
                name: name.into(),
                file: scope.file,
                methods: Vec::new(),
                options: service.options.as_slice().into(),
            });
            self.services.push((index, service));
        }
        Ok(())
    }

    /// The recursion is bounded: [`raw`] limits the nesting depth.
    fn declare_message(
        &mut self,
        message: &'a raw::Message<'a>,
        scope: Scope<'_>,
    ) -> Result<(), SchemaError> {
        let name = join(scope.name, message.name);
        let index = self.pool.messages.len() as u32;
        self.declare_name(Symbol::Message(index), &name, message.name, scope.file)?;
        let here = |problem| at(&self.pool.files[scope.file as usize].name, &name, problem);
        let features = scope.features.with(scope.edition, &message.options, number::MESSAGE).map_err(here)?;
        let flag = |number| Ok(raw::option(&message.options, number).map_err(here)?.unwrap_or(0) != 0);
        let mut ranges = Vec::with_capacity(message.extension_ranges.len());
        for &(start, end) in &message.extension_ranges {
            if start < 1 || end <= start {
                return Err(here(Problem::Invalid("an extension range is empty or starts below 1")));
            }
            ranges.push(ExtensionRange { start: start as u32, end: end as u32 });
        }
        let data = MessageData {
            name: name.as_str().into(),
            file: scope.file,
            parent: scope.message,
            map_entry: flag(7)?,
            message_set: flag(1)?,
            extension_ranges: ranges,
            reserved_names: message.reserved_names.iter().map(|&name| name.into()).collect(),
            options: message.options.as_slice().into(),
            fields: 0..0,
            extensions: Vec::new(),
            oneofs: Vec::new(),
            by_name: NameIndex::default(),
            by_json_name: NameIndex::default(),
        };
        self.pool.messages.push(data);
        self.messages.push(PendingMessage { index, message, features });
        let inner = Scope { name: &name, message: index, features, ..scope };
        for nested in &message.messages {
            self.declare_message(nested, inner)?;
        }
        for declared in &message.enums {
            self.declare_enum(declared, inner)?;
        }
        self.declare_extensions(&message.extensions, inner);
        Ok(())
    }

    fn declare_extensions(&mut self, extensions: &'a [raw::Field<'a>], scope: Scope<'_>) {
        self.extensions.extend(extensions.iter().map(|field| PendingExtension {
            file: scope.file,
            scope: scope.name.to_owned(),
            field,
            features: scope.features,
        }));
    }

    fn declare_enum(&mut self, declared: &'a raw::Enum<'a>, scope: Scope<'_>) -> Result<(), SchemaError> {
        let name = join(scope.name, declared.name);
        let index = self.pool.enums.len() as u32;
        self.declare_name(Symbol::Enum(index), &name, declared.name, scope.file)?;
        let data = enum_data(declared, &name, scope)
            .map_err(|problem| at(&self.pool.files[scope.file as usize].name, &name, problem))?;
        self.pool.enums.push(data);
        Ok(())
    }

    /// Enters a full name, whose last part is `last_part`.
    pub(super) fn declare_name(
        &mut self,
        symbol: Symbol,
        name: &str,
        last_part: &str,
        file: u32,
    ) -> Result<(), SchemaError> {
        let here = |problem| at(&self.pool.files[file as usize].name, name, problem);
        check_name(last_part).map_err(here)?;
        check_full_name_len(name).map_err(here)?;
        check_elements("elements", symbol.index() as usize + 1).map_err(here)?;
        if let Some(&other) = self.pool.names.get(name) {
            let other = self.pool.files[self.pool.file_of(other) as usize].name.to_string();
            return Err(here(Problem::DuplicateName { other }));
        }
        self.pool.names.insert(name.into(), symbol);
        Ok(())
    }
}
