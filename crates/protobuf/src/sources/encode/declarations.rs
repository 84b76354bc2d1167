//! Encodes files, messages, fields, enums and services.

use super::options::{StrippedPaths, options};
use super::writer::Writer;
use crate::sources::edition::Edition;
use crate::sources::ids::{EnumId, FieldId, FileId, MessageId, ServiceId};
use crate::sources::literal;
use crate::sources::parse::path;
use crate::sources::pool::{
    Enum, EnumValue, Field, FieldKind, ImportKind, Label, Method, NumberRange, Oneof, Options, Pool, TypeRef,
    Visibility,
};

pub(super) struct Encoder<'p> {
    pool: &'p Pool,
    writer: Writer,
    stripped: StrippedPaths,
}

/// Writes the fields that follow the source info.
pub(super) fn tail(pool: &Pool, file: FileId, writer: &mut Writer) {
    let file = &pool[file];
    let edition = file.edition;
    let plain = file.imports.iter().filter(|import| import.kind != ImportKind::Option).enumerate();
    for (number, kind) in [(10, ImportKind::Public), (11, ImportKind::Weak)] {
        for (index, _) in plain.clone().filter(|(_, import)| import.kind == kind) {
            writer.int(number, index as i32);
        }
    }
    if edition == Edition::PROTO3 {
        writer.text(12, "proto3");
    } else if !edition.is_legacy() {
        writer.text(12, "editions");
        writer.int(14, edition.0);
    }
    for import in file.imports.iter().filter(|import| import.kind == ImportKind::Option) {
        writer.text(15, import.file.map_or(&import.name, |file| &pool[file].name));
    }
}

impl<'p> Encoder<'p> {
    pub(super) fn new(pool: &'p Pool) -> Self {
        Encoder { pool, writer: Writer::default(), stripped: StrippedPaths::new() }
    }

    /// Returns the writer, and the paths of the options that were stripped.
    pub(super) fn finish(self) -> (Writer, Vec<Vec<i32>>) {
        (self.writer, self.stripped.finish())
    }

    pub(super) fn file(&mut self, file: FileId) {
        let file = &self.pool[file];
        self.writer.text(1, &file.name);
        if !file.package.is_empty() {
            self.writer.text(2, &file.package);
        }
        for import in file.imports.iter().filter(|import| import.kind != ImportKind::Option) {
            self.writer.text(3, import.file.map_or(&import.name, |file| &self.pool[file].name));
        }
        self.each(path::file::MESSAGE, &file.messages, Self::message);
        self.each(path::file::ENUM, &file.enums, Self::enumeration);
        self.each(path::file::SERVICE, &file.services, Self::service);
        self.each(path::file::EXTENSION, &file.extensions, Self::field);
        self.options(path::file::OPTIONS, &file.options);
    }

    /// Writes a list of declarations, each with its index in the path.
    fn each<T: Copy>(&mut self, number: i32, list: &[T], write: impl Fn(&mut Self, T)) {
        for (index, &item) in list.iter().enumerate() {
            self.stripped.enter(&[number, index as i32]);
            self.nested(number, |encoder| write(encoder, item));
            self.stripped.leave(2);
        }
    }

    fn nested(&mut self, number: i32, write: impl FnOnce(&mut Self)) {
        self.writer.tag(number, 2);
        let start = self.writer.begin();
        write(self);
        self.writer.end(start);
    }

    fn options(&mut self, number: i32, set: &Options) {
        if let Some(set) = set {
            options(self.pool, number, &set.value, &mut self.writer, &mut self.stripped);
        }
    }

    fn message(&mut self, message: MessageId) {
        let declared = &self.pool[message];
        self.writer.text(1, &declared.name);
        self.each(path::message::FIELD, &declared.fields, Self::field);
        self.each(path::message::MESSAGE, &declared.messages, Self::message);
        self.each(path::message::ENUM, &declared.enums, Self::enumeration);
        for (index, extension) in declared.extension_ranges.iter().enumerate() {
            self.stripped.enter(&[path::message::EXTENSION_RANGE, index as i32]);
            self.nested(path::message::EXTENSION_RANGE, |encoder| {
                encoder.range(extension.range);
                encoder.options(3, &extension.options);
            });
            self.stripped.leave(2);
        }
        self.each(path::message::EXTENSION, &declared.extensions, Self::field);
        if declared.is_map_entry {
            self.nested(path::message::OPTIONS, |encoder| encoder.writer.varint(7, 1));
        } else {
            self.options(path::message::OPTIONS, &declared.options);
        }
        for (index, oneof) in declared.oneofs.iter().enumerate() {
            self.stripped.enter(&[path::message::ONEOF, index as i32]);
            self.nested(path::message::ONEOF, |encoder| encoder.oneof(oneof));
            self.stripped.leave(2);
        }
        for &range in &declared.reserved {
            self.nested(path::message::RESERVED_RANGE, |encoder| encoder.range(range));
        }
        for name in &declared.reserved_names {
            self.writer.text(path::message::RESERVED_NAME, name);
        }
        self.visibility(11, declared.visibility);
    }

    fn visibility(&mut self, number: i32, visibility: Visibility) {
        if visibility != Visibility::Unset {
            self.writer.int(number, visibility as i32);
        }
    }

    fn range(&mut self, range: NumberRange) {
        self.writer.int(1, range.start);
        self.writer.int(2, range.end);
    }

    fn oneof(&mut self, oneof: &Oneof) {
        self.writer.text(1, &oneof.name);
        self.options(2, &oneof.options);
    }

    fn field(&mut self, field: FieldId) {
        let pool = self.pool;
        let declared = &pool[field];
        let is_legacy = pool[declared.file].edition.is_legacy();
        self.writer.text(1, &declared.name);
        if let (true, Some(message)) = (declared.is_extension(), declared.message) {
            self.writer.text(2, &format!(".{}", pool[message].full_name));
        }
        self.writer.int(3, declared.number);
        let label = match declared.label {
            Label::Required if !is_legacy => Label::Optional,
            label => label,
        };
        self.writer.int(4, label as i32);
        if let Some(kind) = declared.kind {
            let kind = if kind == FieldKind::Group && !is_legacy { FieldKind::Message } else { kind };
            self.writer.int(5, kind as i32);
        }
        match declared.type_ref {
            TypeRef::None => {}
            TypeRef::Message(message) => self.writer.text(6, &format!(".{}", pool[message].full_name)),
            TypeRef::Enum(declared) => self.writer.text(6, &format!(".{}", pool[declared].full_name)),
        }
        if let Some(default) = &declared.default {
            self.writer.bytes(7, &default_value(declared, default));
        }
        self.options(8, &declared.options);
        if let Some(oneof) = declared.oneof.filter(|_| !declared.is_extension()) {
            self.writer.int(9, oneof as i32);
        }
        let json_name =
            declared.json_name.as_deref().map_or_else(|| json_name(&declared.name), str::to_owned);
        self.writer.text(10, &json_name);
        if declared.is_proto3_optional {
            self.writer.varint(17, 1);
        }
    }

    fn enumeration(&mut self, declared: EnumId) {
        let Enum { name, values, options, reserved, reserved_names, visibility, .. } = &self.pool[declared];
        self.writer.text(1, name);
        for (index, value) in values.iter().enumerate() {
            self.stripped.enter(&[2, index as i32]);
            self.nested(2, |encoder| {
                let EnumValue { name, number, options, .. } = value;
                encoder.writer.text(1, name);
                encoder.writer.int(2, *number);
                encoder.options(3, options);
            });
            self.stripped.leave(2);
        }
        self.options(3, options);
        for &range in reserved {
            self.nested(4, |encoder| encoder.range(range));
        }
        for name in reserved_names {
            self.writer.text(5, name);
        }
        self.visibility(6, *visibility);
    }

    fn service(&mut self, service: ServiceId) {
        let declared = &self.pool[service];
        self.writer.text(1, &declared.name);
        for (index, method) in declared.methods.iter().enumerate() {
            self.stripped.enter(&[2, index as i32]);
            self.nested(2, |encoder| encoder.method(method));
            self.stripped.leave(2);
        }
        self.options(3, &declared.options);
    }

    fn method(&mut self, method: &Method) {
        self.writer.text(1, &method.name);
        for (number, named) in [(2, &method.input), (3, &method.output)] {
            if let Some(message) = named.message {
                self.writer.text(number, &format!(".{}", self.pool[message].full_name));
            }
        }
        self.options(4, &method.options);
        for (number, named) in [(5, &method.input), (6, &method.output)] {
            if named.is_stream {
                self.writer.varint(number, 1);
            }
        }
    }
}

/// Reformats a default value as protoc does after parsing it.
fn default_value(field: &Field, default: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(default).unwrap_or_default();
    match field.kind {
        Some(FieldKind::Float) => {
            literal::float_text(text.parse::<f64>().unwrap_or_default() as f32).into_bytes()
        }
        Some(FieldKind::Double) => literal::double_text(text.parse().unwrap_or_default()).into_bytes(),
        _ => default.to_vec(),
    }
}

/// Returns the JSON name: `fooBar` for the field `foo_bar`.
pub(in crate::sources) fn json_name(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut starts_word = false;
    for c in field.chars() {
        if c == '_' {
            starts_word = true;
        } else {
            name.push(if starts_word { c.to_ascii_uppercase() } else { c });
            starts_word = false;
        }
    }
    name
}
