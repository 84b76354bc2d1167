//! What a compiled schema consists of. Handles in [`super::handles`] are the way to look at it from outside.

use std::ops::Range;
use std::sync::OnceLock;

use super::features::Edition;
use super::kind::{Cardinality, Kind, WellKnown};
use super::names::Names;
use super::table::{Entry, Table};
use crate::transcode::Tables;

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
    /// For JSON and MessagePack: made when they are first asked for.
    transcode: OnceLock<Tables>,
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
    pub(crate) well_known: Option<WellKnown>,
    pub(crate) extension_ranges: Vec<ExtensionRange>,
    pub(crate) options: Box<[u8]>,
    /// As they are declared.
    pub(crate) fields: Range<u32>,
    pub(crate) extensions: Vec<u32>,
    pub(crate) oneofs: Vec<OneofData>,
    pub(crate) by_name: Names<u32>,
    /// JSON names, and original names where they are none.
    pub(crate) by_json_name: Names<u32>,
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

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are what a descriptor says")]
pub(crate) struct FieldData {
    /// Its own; of an extension in full.
    pub(crate) name: Box<str>,
    pub(crate) json_name: Box<str>,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) cardinality: Cardinality,
    /// Whether it knows that it was set.
    pub(crate) explicit: bool,
    pub(crate) packed: bool,
    /// Whether a string must be UTF-8.
    pub(crate) utf8: bool,
    pub(crate) map: bool,
    pub(crate) extension: bool,
    /// The index of its oneof in the message.
    pub(crate) oneof: u32,
    /// Of its message or enum.
    pub(crate) type_index: u32,
    /// That it belongs to, or extends.
    pub(crate) message: u32,
    pub(crate) file: u32,
    pub(crate) default: Preset,
    pub(crate) options: Box<[u8]>,
    /// Its place in the message's [`Table`].
    pub(crate) entry: u16,
}

impl FieldData {
    pub(crate) fn own_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
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
    pub(crate) by_name: Names<u32>,
    pub(crate) options: Box<[u8]>,
}

impl EnumData {
    pub(crate) fn value(&self, number: i32) -> Option<&EnumValueData> {
        // Most enums count from 0, so that the number is the place.
        if let Some(&(found, index)) = self.by_number.get(number as usize)
            && found == number
        {
            return Some(&self.values[index as usize]);
        }
        let place = self.by_number.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(&self.values[self.by_number[place].1 as usize])
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
    #[inline]
    pub(crate) fn transcode_tables(&self) -> &Tables {
        self.transcode.get_or_init(|| Tables::new(self))
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
        match self.fields[entry.field as usize].default {
            Preset::Word(word) => word,
            Preset::Bytes(_) => 0,
        }
    }

    /// The full name of a field or extension.
    pub(crate) fn full_name(&self, field: &FieldData) -> String {
        if field.extension {
            field.name.to_string()
        } else {
            format!("{}.{}", self.messages[field.message as usize].name, field.name)
        }
    }

    /// What `name` means in `scope`: with a dot in front it is a full name, else the innermost scope that has it counts.
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
