//! Declarations of all files of a compilation, by index, and the tree of their names.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use super::edition::Edition;
use super::error::{Diagnostic, ERRORS_MAX, Lines, Position, SourceExcerpt};
use super::features::Features;
use super::ids::{EnumId, FieldId, FileId, MessageId, NodeId, ServiceId};
use super::lex::Token;
use super::locations::Locations;
use super::option_value::OptionMessage;

#[derive(Debug, Default)]
pub(super) struct Pool {
    files: Vec<File>,
    messages: Vec<Message>,
    enums: Vec<Enum>,
    fields: Vec<Field>,
    services: Vec<Service>,
    nodes: Vec<Node>,
    /// By extended message and number.
    pub(super) extensions: HashMap<(MessageId, i32), FieldId>,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

macro_rules! lists {
    ($($id:ident $list:ident $declaration:ident $add:ident;)*) => {$(
        impl Index<$id> for Pool {
            type Output = $declaration;

            fn index(&self, id: $id) -> &$declaration {
                &self.$list[id.0 as usize]
            }
        }

        impl IndexMut<$id> for Pool {
            fn index_mut(&mut self, id: $id) -> &mut $declaration {
                &mut self.$list[id.0 as usize]
            }
        }

        impl Pool {
            pub(super) fn $add(&mut self, declaration: $declaration) -> $id {
                let id = $id(self.$list.len() as u32);
                self.$list.push(declaration);
                id
            }
        }
    )*};
}

lists! {
    FileId files File add_file;
    MessageId messages Message add_message;
    EnumId enums Enum add_enum;
    FieldId fields Field add_field;
    ServiceId services Service add_service;
    NodeId nodes Node add_node;
}

#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) name: Rc<str>,
    pub(super) path: Option<String>,
    /// Dropped once the file has been compiled.
    pub(super) text: Rc<str>,
    pub(super) lines: OnceCell<Lines>,
    pub(super) package: Rc<str>,
    pub(super) package_at: Position,
    pub(super) syntax_at: Position,
    pub(super) edition: Edition,
    pub(super) imports: Vec<Import>,
    pub(super) messages: Vec<MessageId>,
    pub(super) enums: Vec<EnumId>,
    pub(super) services: Vec<ServiceId>,
    pub(super) extensions: Vec<FieldId>,
    pub(super) options: Options,
    pub(super) features: Features,
    pub(super) locations: Locations,
    /// The package's node.
    pub(super) node: Option<NodeId>,
    pub(super) failed: bool,
    /// Whether it and all its imports have been compiled or have failed.
    pub(super) is_done: bool,
    /// Encoded `google.protobuf.FileDescriptorProto`.
    pub(super) encoded: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Import {
    pub(super) name: Rc<str>,
    pub(super) kind: ImportKind,
    pub(super) at: Position,
    /// `None` until it has been compiled without errors.
    pub(super) file: Option<FileId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ImportKind {
    Plain,
    Public,
    Weak,
    Option,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    /// Name with package and enclosing messages.
    pub(super) full_name: Rc<str>,
    pub(super) file: FileId,
    pub(super) parent: Option<MessageId>,
    pub(super) node: Option<NodeId>,
    pub(super) fields: Vec<FieldId>,
    pub(super) extensions: Vec<FieldId>,
    pub(super) messages: Vec<MessageId>,
    pub(super) enums: Vec<EnumId>,
    pub(super) oneofs: Vec<Oneof>,
    pub(super) extension_ranges: Vec<ExtensionRange>,
    /// Sorted starts of the extension ranges, each with its index.
    pub(super) range_index: Vec<(i32, u32)>,
    /// Its required fields.
    pub(super) required: Vec<FieldId>,
    pub(super) reserved: Vec<NumberRange>,
    pub(super) reserved_names: Vec<Rc<str>>,
    pub(super) options: Options,
    pub(super) features: Features,
    pub(super) visibility: Visibility,
    pub(super) is_map_entry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Visibility {
    #[default]
    Unset = 0,
    Local = 1,
    Export = 2,
}

#[derive(Debug)]
pub(super) struct Oneof {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    pub(super) options: Options,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NumberRange {
    pub(super) start: i32,
    /// Exclusive for a message, inclusive for an enum.
    pub(super) end: i32,
    pub(super) at: Position,
}

#[derive(Debug)]
pub(super) struct ExtensionRange {
    pub(super) range: NumberRange,
    pub(super) options: Options,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Rc<str>,
    pub(super) file: FileId,
    /// The message that declares it.
    pub(super) parent: Option<MessageId>,
    pub(super) number: i32,
    pub(super) label: Label,
    /// `None` until the type name is resolved.
    pub(super) kind: Option<FieldKind>,
    /// The name as written.
    pub(super) type_name: Rc<str>,
    pub(super) type_ref: TypeRef,
    /// Name of the extended message, as written; `None` if it is not an extension.
    pub(super) extendee: Option<Rc<str>>,
    /// The message it belongs to. For an extension, set when it is resolved.
    pub(super) message: Option<MessageId>,
    pub(super) default: Option<Vec<u8>>,
    pub(super) json_name: Option<Rc<str>>,
    pub(super) oneof: Option<u32>,
    pub(super) is_proto3_optional: bool,
    pub(super) options: Options,
    pub(super) features: Features,
    pub(super) at: FieldPositions,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldPositions {
    pub(super) name: Position,
    pub(super) number: Position,
    pub(super) kind: Position,
    pub(super) extendee: Position,
    pub(super) default: Position,
    pub(super) json_name: Position,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    Optional = 1,
    Required = 2,
    Repeated = 3,
}

/// `google.protobuf.FieldDescriptorProto.Type`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldKind {
    Double = 1,
    Float = 2,
    Int64 = 3,
    Uint64 = 4,
    Int32 = 5,
    Fixed64 = 6,
    Fixed32 = 7,
    Bool = 8,
    String = 9,
    Group = 10,
    Message = 11,
    Bytes = 12,
    Uint32 = 13,
    Enum = 14,
    Sfixed32 = 15,
    Sfixed64 = 16,
    Sint32 = 17,
    Sint64 = 18,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TypeRef {
    None,
    Message(MessageId),
    Enum(EnumId),
}

#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    pub(super) full_name: Rc<str>,
    pub(super) file: FileId,
    pub(super) parent: Option<MessageId>,
    pub(super) values: Vec<EnumValue>,
    pub(super) reserved: Vec<NumberRange>,
    pub(super) reserved_names: Vec<Rc<str>>,
    pub(super) options: Options,
    pub(super) features: Features,
    pub(super) visibility: Visibility,
}

#[derive(Debug)]
pub(super) struct EnumValue {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    pub(super) number: i32,
    pub(super) number_at: Position,
    pub(super) options: Options,
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    pub(super) node: Option<NodeId>,
    pub(super) methods: Vec<Method>,
    pub(super) options: Options,
}

#[derive(Debug, Default)]
pub(super) struct Method {
    pub(super) name: Rc<str>,
    pub(super) name_at: Position,
    pub(super) input: MethodType,
    pub(super) output: MethodType,
    pub(super) options: Options,
}

#[derive(Debug, Default)]
pub(super) struct MethodType {
    /// The name as written.
    pub(super) name: Rc<str>,
    pub(super) at: Position,
    pub(super) is_stream: bool,
    pub(super) message: Option<MessageId>,
}

/// Options of a declaration; `None` if it has none.
pub(super) type Options = Option<Box<OptionSet>>;

#[derive(Debug, Default)]
pub(super) struct OptionSet {
    pub(super) uninterpreted: Vec<Uninterpreted>,
    /// The interpreted options.
    pub(super) value: OptionMessage,
    /// Features set on this declaration, not inherited.
    pub(super) explicit: Features,
}

/// An option as written.
#[derive(Clone, Debug)]
pub(super) struct Uninterpreted {
    pub(super) name: Vec<NamePart>,
    pub(super) name_at: Position,
    pub(super) value: RawValue,
    pub(super) value_at: Position,
    /// Its locations: its own, then those of its parts. Empty for a copy.
    pub(super) locations: std::ops::Range<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct NamePart {
    pub(super) name: Rc<str>,
    pub(super) is_extension: bool,
}

#[derive(Clone, Debug)]
pub(super) enum RawValue {
    Identifier(Rc<str>),
    Positive(u64),
    Negative(i64),
    Double(f64),
    String(Rc<[u8]>),
    /// The tokens between the braces.
    Aggregate(Rc<[Token]>),
}

/// A part of a full name, with the symbol it names.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<NodeId>,
    pub(super) name: Rc<str>,
    pub(super) entry: Option<Entry>,
    pub(super) children: BTreeMap<Rc<str>, NodeId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) symbol: Symbol,
    /// The file that declares it; for a package, the first such file.
    pub(super) file: FileId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Symbol {
    Package,
    Message(MessageId),
    Enum(EnumId),
    EnumValue(EnumId, u32),
    Field(FieldId),
    Oneof,
    Service,
    Method,
}

impl Pool {
    /// Returns the child of a node, creating it if absent.
    pub(super) fn child(&mut self, parent: NodeId, name: &Rc<str>) -> NodeId {
        if let Some(&child) = self[parent].children.get(name) {
            return child;
        }
        let node = Node { parent: Some(parent), name: name.clone(), entry: None, children: BTreeMap::new() };
        let child = self.add_node(node);
        self[parent].children.insert(name.clone(), child);
        child
    }

    pub(super) fn root(&mut self) -> NodeId {
        if self.nodes.is_empty() {
            self.add_node(Node { parent: None, name: "".into(), entry: None, children: BTreeMap::new() });
        }
        NodeId(0)
    }

    /// Returns the node at the end of a path of names below `from`.
    pub(super) fn descend(&self, from: NodeId, path: &str) -> Option<NodeId> {
        path.split('.').try_fold(from, |node, name| self[node].children.get(name).copied())
    }

    pub(super) fn node_path(&self, mut node: NodeId) -> String {
        let mut names = Vec::new();
        while let Some(parent) = self[node].parent {
            names.push(self[node].name.clone());
            node = parent;
        }
        names.reverse();
        names.join(".")
    }

    pub(super) fn error(&mut self, file: FileId, at: Position, message: impl Into<String>) {
        self[file].failed = true;
        if self.errors.len() < ERRORS_MAX {
            let diagnostic = self.diagnostic(file, at, message.into());
            self.errors.push(diagnostic);
        }
    }

    pub(super) fn warning(&mut self, file: FileId, at: Position, message: impl Into<String>) {
        if self.warnings.len() < ERRORS_MAX {
            let diagnostic = self.diagnostic(file, at, message.into());
            self.warnings.push(diagnostic);
        }
    }

    fn diagnostic(&self, file: FileId, at: Position, message: String) -> Diagnostic {
        let File { name, path, text, lines, .. } = &self[file];
        let lines = lines.get_or_init(|| Lines::new(text));
        Diagnostic {
            file: name.to_string(),
            path: path.clone(),
            excerpt: SourceExcerpt::find(text, lines, at),
            message,
        }
    }

    /// Returns the full name of a field, which starts with the scope that declares it.
    pub(super) fn field_full_name(&self, field: FieldId) -> String {
        let Field { name, parent, file, .. } = &self[field];
        match parent {
            Some(parent) => format!("{}.{name}", self[*parent].full_name),
            None => qualified(&self[*file].package, name),
        }
    }

    /// Returns the value of an enum with this name. Values are siblings of their enum.
    pub(super) fn value_named(&self, declared: EnumId, name: &str) -> Option<&EnumValue> {
        let Enum { parent, file, values, .. } = &self[declared];
        let scope = match parent {
            Some(parent) => self[*parent].node,
            None => self[*file].node,
        };
        let node = *self[scope?].children.get(name)?;
        match self[node].entry?.symbol {
            Symbol::EnumValue(other, index) if other == declared => values.get(index as usize),
            _ => None,
        }
    }

    /// Returns the field of a message with this name; not an extension.
    pub(super) fn field_named(&self, message: MessageId, name: &str) -> Option<FieldId> {
        let node = *self[self[message].node?].children.get(name)?;
        match self[node].entry?.symbol {
            Symbol::Field(field) if self[field].extendee.is_none() => Some(field),
            _ => None,
        }
    }
}

/// Joins a name to a scope, which may be empty.
pub(super) fn qualified(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

impl Message {
    /// Returns the extension range that contains a number.
    pub(super) fn extension_range(&self, number: i32) -> Option<&ExtensionRange> {
        let before = self.range_index.partition_point(|&(start, _)| start <= number);
        let &(_, index) = self.range_index.get(before.checked_sub(1)?)?;
        let found = &self.extension_ranges[index as usize];
        (number < found.range.end).then_some(found)
    }
}

impl Field {
    pub(super) fn is_extension(&self) -> bool {
        self.extendee.is_some()
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.label == Label::Repeated
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind, Some(FieldKind::Message | FieldKind::Group))
    }

    /// Whether its values may be packed.
    pub(super) fn is_packable(&self) -> bool {
        let is_scalar = !matches!(
            self.kind,
            Some(FieldKind::Message | FieldKind::Group | FieldKind::String | FieldKind::Bytes) | None
        );
        self.is_repeated() && is_scalar
    }
}

impl FieldKind {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            FieldKind::Double => "double",
            FieldKind::Float => "float",
            FieldKind::Int64 => "int64",
            FieldKind::Uint64 => "uint64",
            FieldKind::Int32 => "int32",
            FieldKind::Fixed64 => "fixed64",
            FieldKind::Fixed32 => "fixed32",
            FieldKind::Bool => "bool",
            FieldKind::String => "string",
            FieldKind::Group => "group",
            FieldKind::Message => "message",
            FieldKind::Bytes => "bytes",
            FieldKind::Uint32 => "uint32",
            FieldKind::Enum => "enum",
            FieldKind::Sfixed32 => "sfixed32",
            FieldKind::Sfixed64 => "sfixed64",
            FieldKind::Sint32 => "sint32",
            FieldKind::Sint64 => "sint64",
        }
    }

    pub(super) fn from_keyword(keyword: &[u8]) -> Option<FieldKind> {
        Some(match keyword {
            b"double" => FieldKind::Double,
            b"float" => FieldKind::Float,
            b"int64" => FieldKind::Int64,
            b"uint64" => FieldKind::Uint64,
            b"int32" => FieldKind::Int32,
            b"fixed64" => FieldKind::Fixed64,
            b"fixed32" => FieldKind::Fixed32,
            b"bool" => FieldKind::Bool,
            b"string" => FieldKind::String,
            b"group" => FieldKind::Group,
            b"bytes" => FieldKind::Bytes,
            b"uint32" => FieldKind::Uint32,
            b"sfixed32" => FieldKind::Sfixed32,
            b"sfixed64" => FieldKind::Sfixed64,
            b"sint32" => FieldKind::Sint32,
            b"sint64" => FieldKind::Sint64,
            _ => return None,
        })
    }
}
