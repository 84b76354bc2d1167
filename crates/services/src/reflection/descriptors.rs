//! Known files, and where symbols are declared: [`Descriptors`].

use std::collections::{BTreeMap, HashMap, VecDeque};

use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use thalweg::bytes::Bytes;
use thalweg::prost::{self, Message};

use super::error::DescriptorError;

/// Files by name and by declared symbols. They stay encoded to keep unknown options.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    files: Vec<File>,
    by_name: HashMap<String, usize>,
    /// Full names of messages, fields, oneofs, enums, enum values, extensions, services and methods.
    symbols: HashMap<String, Symbol>,
    /// Files of extensions by the full name of the extended message and field number.
    extensions: HashMap<String, BTreeMap<i32, usize>>,
}

#[derive(Debug)]
struct File {
    encoded: Bytes,
    imports: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    file: usize,
    is_message: bool,
}

/// `google.protobuf.FileDescriptorSet` with encoded files, because decoding and encoding would lose custom options.
#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "prost")]
struct EncodedSet {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

/// Files already sent to a client.
#[derive(Debug)]
pub(super) struct SentFiles(Vec<bool>);

impl Descriptors {
    /// Reads the sets. If several files or symbols have the same name, the first is used.
    pub(super) fn new(sets: impl IntoIterator<Item = Bytes>) -> Result<Self, DescriptorError> {
        let mut descriptors = Self::default();
        let mut files = Vec::new();
        for (set, encoded) in (1..).zip(sets) {
            let decoded =
                EncodedSet::decode(encoded).map_err(|source| DescriptorError::Set { set, source })?;
            for (file, encoded) in (1..).zip(decoded.file) {
                let decoded = FileDescriptorProto::decode(&*encoded)
                    .map_err(|source| DescriptorError::File { set, file, source })?;
                if decoded.name().is_empty() {
                    return Err(DescriptorError::NoName { set, file });
                }
                if descriptors.by_name.contains_key(decoded.name()) {
                    continue;
                }
                descriptors.by_name.insert(decoded.name().to_owned(), files.len());
                files.push((encoded, decoded));
            }
        }
        for (index, (encoded, file)) in files.into_iter().enumerate() {
            let imports = descriptors.imports(&file)?;
            descriptors.files.push(File { encoded, imports });
            Declarations { descriptors: &mut descriptors, file: index }.add_file(&file);
        }
        Ok(descriptors)
    }

    fn imports(&self, file: &FileDescriptorProto) -> Result<Vec<usize>, DescriptorError> {
        let index = |import: &String| {
            self.by_name.get(import).copied().ok_or_else(|| DescriptorError::MissingImport {
                file: file.name().to_owned(),
                import: import.clone(),
            })
        };
        file.dependency.iter().map(index).collect()
    }

    /// Returns the file of this name.
    pub(super) fn file(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the file that declares this symbol.
    pub(super) fn declaring(&self, symbol: &str) -> Option<usize> {
        self.symbols.get(symbol).map(|symbol| symbol.file)
    }

    /// Returns the file that declares this extension.
    pub(super) fn extending(&self, message: &str, number: i32) -> Option<usize> {
        self.extensions.get(message)?.get(&number).copied()
    }

    /// Returns the extension numbers of a message in ascending order, or `None` if the message is unknown.
    pub(super) fn extension_numbers(&self, message: &str) -> Option<Vec<i32>> {
        // An extended message is always in a set, because imports of the extending file are.
        let is_message = self.symbols.get(message).is_some_and(|symbol| symbol.is_message);
        let numbers = || self.extensions.get(message).into_iter().flat_map(BTreeMap::keys).copied().collect();
        is_message.then(numbers)
    }

    /// Returns the state of a client before any response.
    pub(super) fn none_sent(&self) -> SentFiles {
        SentFiles(vec![false; self.files.len()])
    }

    /// Returns a file and those of its imports not sent before. The file itself is sent again.
    pub(super) fn with_imports(&self, file: usize, sent_files: &mut SentFiles) -> Vec<Bytes> {
        let mut encoded = vec![self.files[file].encoded.clone()];
        sent_files.0[file] = true;
        let mut seen = vec![false; self.files.len()];
        seen[file] = true;
        let mut next = VecDeque::from([file]);
        while let Some(file) = next.pop_front() {
            for &import in &self.files[file].imports {
                if std::mem::replace(&mut seen[import], true) {
                    continue;
                }
                next.push_back(import);
                if !std::mem::replace(&mut sent_files.0[import], true) {
                    encoded.push(self.files[import].encoded.clone());
                }
            }
        }
        encoded
    }
}

/// Adds the declarations of one file.
struct Declarations<'a> {
    descriptors: &'a mut Descriptors,
    file: usize,
}

impl Declarations<'_> {
    fn add_file(&mut self, file: &FileDescriptorProto) {
        let scope = file.package();
        file.message_type.iter().for_each(|message| self.message(scope, message));
        file.enum_type.iter().for_each(|declared| self.enumeration(scope, declared));
        file.extension.iter().for_each(|field| self.extension(scope, field));
        for service in &file.service {
            let name = self.symbol(scope, service.name());
            service.method.iter().for_each(|method| drop(self.symbol(&name, method.name())));
        }
    }

    fn message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = self.declare(scope, message.name(), true);
        message.field.iter().for_each(|field| drop(self.symbol(&name, field.name())));
        message.oneof_decl.iter().for_each(|oneof| drop(self.symbol(&name, oneof.name())));
        message.nested_type.iter().for_each(|nested| self.message(&name, nested));
        message.enum_type.iter().for_each(|declared| self.enumeration(&name, declared));
        message.extension.iter().for_each(|field| self.extension(&name, field));
    }

    fn enumeration(&mut self, scope: &str, declared: &EnumDescriptorProto) {
        self.symbol(scope, declared.name());
        // Enum values are siblings of their enum, as in C++.
        declared.value.iter().for_each(|value| drop(self.symbol(scope, value.name())));
    }

    fn extension(&mut self, scope: &str, field: &FieldDescriptorProto) {
        self.symbol(scope, field.name());
        let extended = field.extendee().trim_start_matches('.').to_owned();
        self.descriptors.extensions.entry(extended).or_default().entry(field.number()).or_insert(self.file);
    }

    fn symbol(&mut self, scope: &str, name: &str) -> String {
        self.declare(scope, name, false)
    }

    /// Adds a symbol and returns its full name.
    fn declare(&mut self, scope: &str, name: &str, is_message: bool) -> String {
        let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
        let symbol = Symbol { file: self.file, is_message };
        self.descriptors.symbols.entry(full.clone()).or_insert(symbol);
        full
    }
}
