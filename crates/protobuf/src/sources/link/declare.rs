//! Declares names, and checks the numbers of fields and ranges.

use std::collections::HashSet;
use std::rc::Rc;

use super::{Linker, Scope};
use crate::sources::error::Position;
use crate::sources::ids::{EnumId, FieldId, FileId, MessageId, NodeId, ServiceId};
use crate::sources::parse::FIELD_NUMBER_MAX;
use crate::sources::pool::{Entry, Label, NumberRange, Symbol, qualified};

/// Maximum length of a package name, as in protoc.
const PACKAGE_BYTES_MAX: usize = 511;
/// Maximum number of parts of a package name, as in protoc.
const PACKAGE_PARTS_MAX: usize = 101;
/// Maximum length of a full name. The descriptor repeats the full name at each use of a type: with protoc's 64 KiB, a
/// file of one megabyte could grow to gigabytes.
const FULL_NAME_BYTES_MAX: usize = 4096;
/// Maximum number of fields of a message, as in protoc.
const FIELDS_MAX: usize = 65_535;

impl Linker {
    pub(in crate::sources) fn declare(&mut self, scope: &mut Scope) {
        self.check_imports(scope.file);
        if !self.declare_package(scope) {
            return;
        }
        let file = &self.pool[scope.file];
        let package = file.package.clone();
        let (messages, enums) = (file.messages.clone(), file.enums.clone());
        let (services, extensions) = (file.services.clone(), file.extensions.clone());
        for message in messages {
            self.declare_message(scope.file, message, &package, scope.package);
        }
        for declared in enums {
            self.declare_enum(scope.file, declared, &package, scope.package);
        }
        for service in services {
            self.declare_service(scope.file, service, scope.package);
        }
        for extension in extensions {
            self.declare_field(scope.file, extension, scope.package);
        }
    }

    fn check_imports(&mut self, file: FileId) {
        let mut seen = HashSet::new();
        let imports = &self.pool[file].imports;
        let twice = imports.iter().filter(|import| !seen.insert(import.name.clone()));
        let twice: Vec<_> = twice.map(|import| (import.at, import.name.clone())).collect();
        for (at, name) in twice {
            self.pool.error(file, at, format!("import \"{name}\" is listed twice"));
        }
    }

    fn declare_package(&mut self, scope: &mut Scope) -> bool {
        let file = scope.file;
        let package = self.pool[file].package.clone();
        let at = self.pool[file].package_at;
        if package.len() > PACKAGE_BYTES_MAX || package.split('.').count() > PACKAGE_PARTS_MAX {
            let message =
                format!("package name of more than {PACKAGE_BYTES_MAX} bytes or {PACKAGE_PARTS_MAX} parts");
            self.pool.error(file, at, message);
            return false;
        }
        for part in package.split('.').filter(|part| !part.is_empty()) {
            scope.package = self.pool.child(scope.package, &part.into());
            match self.pool[scope.package].entry {
                None => self.pool[scope.package].entry = Some(Entry { symbol: Symbol::Package, file }),
                Some(Entry { symbol: Symbol::Package, .. }) => {}
                Some(Entry { file: other, .. }) => {
                    let name = self.pool.node_path(scope.package);
                    let other = self.pool[other].name.clone();
                    let message =
                        format!("\"{name}\" is already defined in file \"{other}\", and not as a package");
                    self.pool.error(file, at, message);
                }
            }
        }
        self.pool[file].node = Some(scope.package);
        scope.make_visible(&self.pool, Some(scope.package));
        true
    }

    fn declare_message(&mut self, file: FileId, message: MessageId, outer: &str, parent: NodeId) {
        let name = self.pool[message].name.clone();
        let node = self.pool.child(parent, &name);
        let full_name: Rc<str> = qualified(outer, &name).into();
        if full_name.len() > FULL_NAME_BYTES_MAX {
            let at = self.pool[message].name_at;
            self.pool.error(file, at, format!("full name of more than {FULL_NAME_BYTES_MAX} bytes"));
            return;
        }
        let declared = &mut self.pool[message];
        (declared.full_name, declared.node) = (full_name.clone(), Some(node));
        for index in 0..declared.oneofs.len() {
            let oneof = &self.pool[message].oneofs[index];
            let (name, at) = (oneof.name.clone(), oneof.name_at);
            self.add_symbol(file, node, &name, Symbol::Oneof, at);
        }
        for index in 0..self.pool[message].fields.len() {
            self.declare_field(file, self.pool[message].fields[index], node);
        }
        for index in 0..self.pool[message].enums.len() {
            self.declare_enum(file, self.pool[message].enums[index], &full_name, node);
        }
        self.check_extension_numbers(file, message);
        for index in 0..self.pool[message].extensions.len() {
            self.declare_field(file, self.pool[message].extensions[index], node);
        }
        self.check_reserved_numbers(file, message);
        for index in 0..self.pool[message].messages.len() {
            self.declare_message(file, self.pool[message].messages[index], &full_name, node);
        }
        let at = self.pool[message].name_at;
        self.add_symbol(file, parent, &name, Symbol::Message(message), at);
        if self.pool[message].fields.len() > FIELDS_MAX {
            self.pool.error(file, at, format!("message \"{name}\" has more than {FIELDS_MAX} fields"));
        }
        self.check_overlaps(file, message);
    }

    fn declare_field(&mut self, file: FileId, field: FieldId, parent: NodeId) {
        let declared = &self.pool[field];
        let (name, at, number) = (declared.name.clone(), declared.at, declared.number);
        let is_extension = declared.is_extension();
        if is_extension && declared.label == Label::Required {
            self.pool.error(file, at.kind, format!("extension \"{name}\" cannot be required"));
        }
        if self.pool[field].default.is_some() && self.pool[field].is_repeated() {
            self.pool.error(file, at.default, "a repeated field has no default value");
        }
        if number <= 0 {
            self.pool.error(file, at.number, format!("invalid field number {number}: it must be positive"));
        } else if !is_extension && number > FIELD_NUMBER_MAX {
            let message = format!("invalid field number {number}: the largest is {FIELD_NUMBER_MAX}");
            self.pool.error(file, at.number, message);
        }
        self.add_symbol(file, parent, &name, Symbol::Field(field), at.name);
    }

    fn declare_enum(&mut self, file: FileId, declared: EnumId, outer: &str, parent: NodeId) {
        let (name, at) = (self.pool[declared].name.clone(), self.pool[declared].name_at);
        let full_name = qualified(outer, &name);
        if full_name.len() > FULL_NAME_BYTES_MAX {
            self.pool.error(file, at, format!("full name of more than {FULL_NAME_BYTES_MAX} bytes"));
            return;
        }
        self.pool[declared].full_name = full_name.into();
        if self.pool[declared].values.is_empty() {
            self.pool.error(file, at, format!("enum \"{name}\" has no value"));
        }
        let mut seen = HashSet::new();
        for index in 0..self.pool[declared].values.len() {
            let value = &self.pool[declared].values[index];
            let (value, at) = (value.name.clone(), value.name_at);
            let is_added =
                self.add_symbol(file, parent, &value, Symbol::EnumValue(declared, index as u32), at);
            if seen.insert(value.clone()) && !is_added {
                let place = if outer.is_empty() { "the file".to_owned() } else { format!("\"{outer}\"") };
                let message = format!(
                    "enum values are siblings of their enum, not children: \"{value}\" must be unique in {place}, \
                     not just in \"{name}\""
                );
                self.pool.error(file, at, message);
            }
        }
        for range in self.pool[declared].reserved.clone() {
            if range.start > range.end {
                self.pool.error(file, range.at, "the end of a reserved range is before its start");
            }
        }
        self.add_symbol(file, parent, &name, Symbol::Enum(declared), at);
        self.check_reserved_values(file, declared);
    }

    fn declare_service(&mut self, file: FileId, service: ServiceId, parent: NodeId) {
        let (name, at) = (self.pool[service].name.clone(), self.pool[service].name_at);
        let node = self.pool.child(parent, &name);
        self.pool[service].node = Some(node);
        for index in 0..self.pool[service].methods.len() {
            let method = &self.pool[service].methods[index];
            let (name, at) = (method.name.clone(), method.name_at);
            self.add_symbol(file, node, &name, Symbol::Method, at);
        }
        self.add_symbol(file, parent, &name, Symbol::Service, at);
    }

    /// Adds a declaration's name. Returns `false` if the name is taken.
    fn add_symbol(
        &mut self,
        file: FileId,
        parent: NodeId,
        name: &Rc<str>,
        symbol: Symbol,
        at: Position,
    ) -> bool {
        let node = self.pool.child(parent, name);
        let taken = self.pool[node].entry.filter(|entry| !self.is_hidden(entry.file, file));
        let Some(Entry { file: other, .. }) = taken else {
            self.pool[node].entry = Some(Entry { symbol, file });
            return true;
        };
        let message = if other != file {
            format!(
                "\"{}\" is already defined in file \"{}\"",
                self.pool.node_path(node),
                self.pool[other].name
            )
        } else if self.pool[parent].parent.is_none() {
            format!("\"{name}\" is already defined")
        } else {
            format!("\"{name}\" is already defined in \"{}\"", self.pool.node_path(parent))
        };
        self.pool.error(file, at, message);
        false
    }

    /// `descriptor.proto` is always loaded, but other files may declare its names while no file imports it.
    fn is_hidden(&self, declared_in: FileId, file: FileId) -> bool {
        declared_in == self.descriptor && file != declared_in && !self.is_descriptor_imported
    }

    fn check_extension_numbers(&mut self, file: FileId, message: MessageId) {
        let ranges: Vec<NumberRange> =
            self.pool[message].extension_ranges.iter().map(|extension| extension.range).collect();
        let mut index: Vec<_> = (0..).zip(&ranges).map(|(index, range)| (range.start, index)).collect();
        index.sort_unstable();
        self.pool[message].range_index = index;
        for range in ranges {
            if range.start <= 0 {
                self.pool.error(file, range.at, "extension numbers must be positive");
            }
            if range.start >= range.end {
                self.pool.error(file, range.at, "the end of an extension range is before its start");
            }
        }
    }

    fn check_reserved_numbers(&mut self, file: FileId, message: MessageId) {
        for range in self.pool[message].reserved.clone() {
            if range.start <= 0 {
                self.pool.error(file, range.at, "reserved numbers must be positive");
            }
            if range.start >= range.end {
                self.pool.error(file, range.at, "the end of a reserved range is before its start");
            }
        }
    }
}
