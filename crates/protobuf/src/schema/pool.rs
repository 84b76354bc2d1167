//! What a compiled schema consists of. Handles in [`super::handles`] are the way to look at it from outside.

use std::ops::Range;

use super::features::Edition;
use super::key::Key;
use super::name_index::{NameIndex, Names};
use super::table::{Entry, Table};

/// No message, no oneof: where an index is optional.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) files: Vec<FileData>,
    pub(crate) messages: Vec<MessageData>,
    pub(crate) enums: Vec<EnumData>,
    /// Those of a message stand together; extensions stand behind.
    pub(crate) fields: Vec<FieldData>,
    pub(crate) services: Vec<ServiceData>,
    /// By full name; fields of messages are not in it.
    pub(crate) names: Names<Symbol>,
    /// One for each message.
    pub(crate) tables: Vec<Table>,
}

#[derive(Debug)]
pub(crate) struct FileData {
    pub(crate) name: Box<str>,
    pub(crate) package: Box<str>,
    pub(crate) edition: Edition,
    pub(crate) dependencies: Vec<Box<str>>,
    pub(crate) options: Box<[u8]>,
}

#[derive(Debug)]
pub(crate) struct MessageData {
    /// In full.
    pub(crate) name: Box<str>,
    pub(crate) file: u32,
    pub(crate) parent: u32,
    pub(crate) map_entry: bool,
    pub(crate) message_set: bool,
    pub(crate) extension_ranges: Vec<ExtensionRange>,
    pub(crate) reserved_names: Vec<Box<str>>,
    pub(crate) options: Box<[u8]>,
    /// As they are declared.
    pub(crate) fields: Range<u32>,
    pub(crate) extensions: Vec<u32>,
    pub(crate) oneofs: Vec<OneofData>,
    /// Positions in `fields`, by their own names and by those that they have in JSON.
    pub(crate) by_name: NameIndex,
    pub(crate) by_json_name: NameIndex,
}

/// Numbers for extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtensionRange {
    pub(crate) start: u32,
    /// Not in it.
    pub(crate) end: u32,
}

#[derive(Debug)]
pub(crate) struct OneofData {
    pub(crate) name: Box<str>,
    pub(crate) fields: Vec<u32>,
    /// Made by the compiler for proto3's `optional`.
    pub(crate) synthetic: bool,
}

/// A field, as far as loops over records do not need it. What they need, its number and kind first of all, is in its
/// [`Entry`]; no fact is in both.
#[derive(Debug)]
pub(crate) struct FieldData {
    /// Its own; of an extension `[full.name]`, which is its key in JSON too.
    pub(crate) name: Key,
    /// In JSON; mostly the same, and then shared.
    pub(crate) json_name: Key,
    /// That it belongs to, or extends.
    pub(crate) message: u32,
    /// The index of its oneof in the message.
    pub(crate) oneof: u32,
    pub(crate) file: u32,
    /// The index of its [`Entry`] in the message's [`Table`].
    pub(crate) entry: u16,
    pub(crate) default: Preset,
    pub(crate) options: Box<[u8]>,
}

impl FieldData {
    /// The full name of an extension.
    pub(crate) fn extension_name(&self) -> Option<&str> {
        self.name.text().strip_prefix('[')?.strip_suffix(']')
    }

    pub(crate) fn own_name(&self) -> &str {
        match self.extension_name() {
            Some(name) => name.rsplit('.').next().unwrap_or(name),
            None => self.name.text(),
        }
    }
}

/// What a field holds that was not set.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Preset {
    /// Of a number, boolean or enum, as its slot would have it; of all others 0.
    Word(u64),
    /// Of a string or of bytes.
    Bytes(Box<[u8]>),
}

#[derive(Debug)]
pub(crate) struct EnumData {
    /// In full.
    pub(crate) name: Box<str>,
    pub(crate) file: u32,
    pub(crate) parent: u32,
    pub(crate) closed: bool,
    pub(crate) values: Vec<EnumValueData>,
    /// Numbers in order, with the first value of each.
    pub(crate) by_number: Vec<(i32, u32)>,
    /// Positions in `values`.
    pub(crate) by_name: NameIndex,
    pub(crate) options: Box<[u8]>,
}

impl EnumData {
    /// Whether it is the one whose only value JSON writes as null.
    #[inline]
    pub(crate) fn is_null(&self) -> bool {
        *self.name == *"google.protobuf.NullValue"
    }

    pub(crate) fn value_named(&self, name: &str) -> Option<&EnumValueData> {
        let position = self.by_name.get(name, |position| &self.values[position as usize].name)?;
        Some(&self.values[position as usize])
    }

    pub(crate) fn value(&self, number: i32) -> Option<&EnumValueData> {
        // Most enums count from 0, so that the number is the position.
        if let Some(&(found, index)) = self.by_number.get(number as usize)
            && found == number
        {
            return Some(&self.values[index as usize]);
        }
        let position = self.by_number.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(&self.values[self.by_number[position].1 as usize])
    }
}

#[derive(Debug)]
pub(crate) struct EnumValueData {
    pub(crate) name: Box<str>,
    pub(crate) number: i32,
    pub(crate) options: Box<[u8]>,
}

#[derive(Debug)]
pub(crate) struct ServiceData {
    /// In full.
    pub(crate) name: Box<str>,
    pub(crate) file: u32,
    pub(crate) methods: Vec<MethodData>,
    pub(crate) options: Box<[u8]>,
}

#[derive(Debug)]
pub(crate) struct MethodData {
    pub(crate) name: Box<str>,
    pub(crate) input: u32,
    pub(crate) output: u32,
    pub(crate) client_streaming: bool,
    pub(crate) server_streaming: bool,
    pub(crate) options: Box<[u8]>,
}

/// What a full name stands for, with its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Symbol {
    Message(u32),
    Enum(u32),
    Extension(u32),
    Service(u32),
}

impl Symbol {
    pub(crate) fn index(self) -> u32 {
        match self {
            Symbol::Message(index)
            | Symbol::Enum(index)
            | Symbol::Extension(index)
            | Symbol::Service(index) => index,
        }
    }
}

impl Pool {
    /// A half of a field: see [`FieldData`].
    #[inline(always)]
    pub(crate) fn field(&self, entry: &Entry) -> &FieldData {
        &self.fields[entry.field as usize]
    }

    /// The other half.
    #[inline(always)]
    pub(crate) fn entry(&self, field: &FieldData) -> &Entry {
        &self.tables[field.message as usize].entries()[usize::from(field.entry)]
    }

    /// The table of the messages, or of the map entries, that a field holds.
    #[inline(always)]
    pub(crate) fn table(&self, entry: &Entry) -> &Table {
        &self.tables[entry.type_index as usize]
    }

    /// The field of a message that has this name of its own.
    pub(crate) fn field_named(&self, message: u32, name: &str) -> Option<u32> {
        let MessageData { fields, by_name, .. } = &self.messages[message as usize];
        let position =
            by_name.get(name, |position| self.fields[(fields.start + position) as usize].name.text())?;
        Some(fields.start + position)
    }

    /// The field of a message that a key of a JSON object means: by its JSON name, or by its own.
    pub(crate) fn field_of_key(&self, message: u32, key: &str) -> Option<u32> {
        let MessageData { fields, by_json_name, .. } = &self.messages[message as usize];
        let name_of = |position: u32| self.fields[(fields.start + position) as usize].json_name.text();
        match by_json_name.get(key, name_of) {
            Some(position) => Some(fields.start + position),
            None => self.field_named(message, key),
        }
    }

    /// The message that an Any names: behind the last slash, of which there must be one.
    pub(crate) fn message_of_url(&self, type_url: &str) -> Option<u32> {
        let (_, name) = type_url.rsplit_once('/')?;
        match self.names.get(name)? {
            Symbol::Message(index) => Some(*index),
            _ => None,
        }
    }

    /// The extension with this full name, if it is one of the message.
    pub(crate) fn extension_of(&self, message: u32, full_name: &str) -> Option<u32> {
        match self.names.get(full_name)? {
            Symbol::Extension(index) if self.fields[*index as usize].message == message => Some(*index),
            _ => None,
        }
    }

    /// The file that `symbol` is declared in; an extension that is being linked may not be there yet.
    pub(crate) fn file_of(&self, symbol: Symbol) -> u32 {
        match symbol {
            Symbol::Message(index) => self.messages[index as usize].file,
            Symbol::Enum(index) => self.enums[index as usize].file,
            Symbol::Extension(index) => self.fields.get(index as usize).map_or(0, |field| field.file),
            Symbol::Service(index) => self.services[index as usize].file,
        }
    }

    /// What the slot of a number or enum has that was not set; 0 for all others.
    pub(crate) fn preset_word(&self, entry: &Entry) -> u64 {
        match self.field(entry).default {
            Preset::Word(word) => word,
            Preset::Bytes(_) => 0,
        }
    }

    /// The full name of a field or extension.
    pub(crate) fn full_name(&self, field: &FieldData) -> String {
        match field.extension_name() {
            Some(name) => name.to_owned(),
            None => format!("{}.{}", self.messages[field.message as usize].name, field.name.text()),
        }
    }

    /// What `name` means in `scope`: with a dot in front it is a full name, else the innermost scope that has it
    /// counts.
    pub(crate) fn resolve(&self, scope: &str, name: &str) -> Option<Symbol> {
        if let Some(name) = name.strip_prefix('.') {
            return self.names.get(name).copied();
        }
        let mut scope = scope;
        while !scope.is_empty() {
            if let Some(&symbol) = self.names.get(format!("{scope}.{name}").as_str()) {
                return Some(symbol);
            }
            scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        self.names.get(name).copied()
    }
}
