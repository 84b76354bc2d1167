//! From descriptors to a [`Pool`]: names are declared, then fields, extensions and services are linked to them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::error::{Problem, SchemaError};
use super::features::{Edition, Features, FieldPresence, number};
use super::kind::{Cardinality, Kind, WellKnown};
use super::names::{Names, json_name, pascal_case_value};
use super::pool::{
    EnumData, EnumValueData, ExtensionRange, FieldData, FileData, MessageData, MethodData, NONE, OneofData,
    Pool, Preset, ServiceData, Symbol,
};
use super::table::{Table, spread_required};
use super::{defaults, raw};
use crate::wire::NUMBER_MAX;

/// Fields of one message, its extensions among them.
const FIELDS_MAX: usize = u16::MAX as usize - 1;
/// Messages, enums, fields … of one schema.
const ELEMENTS_MAX: usize = 1 << 24;
/// Bytes of a full name: each element keeps its own, so a long package would be multiplied.
const NAME_LEN_MAX: usize = 1024;

/// The message option that lets JSON names conflict: `deprecated_legacy_json_field_conflicts`.
const LEGACY_JSON_FIELD_CONFLICTS: u32 = 11;

/// Compiles the files, whose order does not matter.
pub(super) fn compile(files: &[&[u8]]) -> Result<Pool, SchemaError> {
    let mut read = Vec::with_capacity(files.len());
    for bytes in files {
        let name = raw::name_of_file(bytes);
        read.push(raw::File::read(bytes).map_err(|problem| at(name, "", problem))?);
    }
    let mut compiler = Compiler::default();
    let mut kept = HashMap::with_capacity(read.len());
    for (index, file) in read.iter().enumerate() {
        match kept.insert(file.name, index) {
            Some(earlier) if files[earlier] == files[index] => {}
            Some(_) => return Err(at(file.name, "", Problem::DuplicateFile)),
            None => compiler.declare(file)?,
        }
    }
    compiler.link()?;
    Ok(compiler.pool)
}

fn at(file: &str, element: &str, problem: Problem) -> SchemaError {
    SchemaError { file: file.to_owned(), element: element.to_owned(), problem }
}

/// Messages whose fields wait until all names are known.
struct Waiting<'a> {
    index: u32,
    message: &'a raw::Message<'a>,
    features: Features,
}

/// An extension, and where it is declared.
struct WaitingExtension<'a> {
    file: u32,
    scope: String,
    field: &'a raw::Field<'a>,
    features: Features,
}

#[derive(Default)]
struct Compiler<'a> {
    pool: Pool,
    messages: Vec<Waiting<'a>>,
    extensions: Vec<WaitingExtension<'a>>,
    services: Vec<(u32, &'a raw::Service<'a>)>,
}

/// What a declaration stands in.
#[derive(Clone, Copy)]
struct Scope<'s> {
    file: u32,
    edition: Edition,
    /// Of the package or message; may be empty.
    name: &'s str,
    message: u32,
    features: Features,
}

impl<'a> Compiler<'a> {
    fn declare(&mut self, file: &'a raw::File<'a>) -> Result<(), SchemaError> {
        let here = |problem| at(file.name, "", problem);
        let edition = Edition::of(file).map_err(here)?;
        let features = Features::of(edition).with(edition, &file.options, number::FILE).map_err(here)?;
        if features.presence == FieldPresence::Required {
            return Err(here(Problem::Invalid("a file cannot make all fields required")));
        }
        if file.package.len() > NAME_LEN_MAX {
            return Err(here(Problem::TooMany { what: "bytes in a full name", max: NAME_LEN_MAX }));
        }
        if !file.package.is_empty() && !file.package.split('.').all(is_identifier) {
            return Err(here(Problem::Name(file.package.to_owned())));
        }
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

    /// Recursion ends: [`raw`] has bounded how deep messages are declared in each other.
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
                return Err(here(Problem::Invalid("an extension range is empty or begins below 1")));
            }
            ranges.push(ExtensionRange { start: start as u32, end: end as u32 });
        }
        let data = MessageData {
            name: name.as_str().into(),
            file: scope.file,
            parent: scope.message,
            map_entry: flag(7)?,
            message_set: flag(1)?,
            well_known: WellKnown::of(&name),
            extension_ranges: ranges,
            options: message.options.as_slice().into(),
            fields: 0..0,
            extensions: Vec::new(),
            oneofs: Vec::new(),
            by_name: Names::default(),
            by_json_name: Names::default(),
        };
        self.pool.messages.push(data);
        self.messages.push(Waiting { index, message, features });
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
        self.extensions.extend(extensions.iter().map(|field| WaitingExtension {
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

    /// Enters a full name, whose last part is `own`.
    fn declare_name(&mut self, symbol: Symbol, name: &str, own: &str, file: u32) -> Result<(), SchemaError> {
        let here = |problem| at(&self.pool.files[file as usize].name, name, problem);
        if !is_identifier(own) {
            return Err(here(Problem::Name(own.to_owned())));
        }
        if name.len() > NAME_LEN_MAX {
            return Err(here(Problem::TooMany { what: "bytes in a full name", max: NAME_LEN_MAX }));
        }
        if symbol.index() as usize >= ELEMENTS_MAX {
            return Err(here(Problem::TooMany { what: "elements", max: ELEMENTS_MAX }));
        }
        if let Some(&other) = self.pool.names.get(name) {
            let other = self.pool.files[self.pool.file_of(other) as usize].name.to_string();
            return Err(here(Problem::DuplicateName { other }));
        }
        self.pool.names.insert(name.into(), symbol);
        Ok(())
    }

    fn link(&mut self) -> Result<(), SchemaError> {
        for waiting in std::mem::take(&mut self.messages) {
            self.link_message(&waiting)?;
        }
        for waiting in std::mem::take(&mut self.extensions) {
            self.link_extension(&waiting)?;
        }
        for message in 0..self.pool.messages.len() {
            self.check_message(message)?;
        }
        for (index, service) in std::mem::take(&mut self.services) {
            self.link_service(index, service)?;
        }
        let tables = (0..self.pool.messages.len()).map(|index| Table::new(&mut self.pool, index as u32));
        let mut tables: Vec<Table> = tables.collect();
        spread_required(&mut tables);
        self.pool.tables = tables;
        Ok(())
    }

    fn link_message(&mut self, waiting: &Waiting<'a>) -> Result<(), SchemaError> {
        let Waiting { index, message, features } = waiting;
        let data = &self.pool.messages[*index as usize];
        let (file, name) = (data.file, data.name.to_string());
        let edition = self.pool.files[file as usize].edition;
        let here = |pool: &Pool, element: &str, problem| {
            at(&pool.files[file as usize].name, &join(&name, element), problem)
        };
        let mut oneofs = Vec::with_capacity(message.oneofs.len());
        let mut oneof_features = Vec::with_capacity(message.oneofs.len());
        for oneof in &message.oneofs {
            let checked = if is_identifier(oneof.name) {
                features.with(edition, &oneof.options, number::ONEOF)
            } else {
                Err(Problem::Name(oneof.name.to_owned()))
            };
            oneof_features.push(checked.map_err(|problem| here(&self.pool, oneof.name, problem))?);
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
                self.field(field, *index, file, &name, features)
            })();
            let data = linked.map_err(|problem| here(&self.pool, field.name, problem))?;
            self.pool.fields.push(data);
        }
        let fields = start..self.pool.fields.len() as u32;
        let (mut by_name, mut by_json_name) = (Names::default(), Names::default());
        for index in fields.clone() {
            let field = &self.pool.fields[index as usize];
            if by_name.insert(field.own_name().into(), index).is_some() {
                let other = self.pool.files[file as usize].name.to_string();
                return Err(here(&self.pool, field.own_name(), Problem::DuplicateName { other }));
            }
            by_json_name.entry(field.json_name.clone()).or_insert(index);
        }
        let may_conflict = raw::option(&message.options, LEGACY_JSON_FIELD_CONFLICTS)
            .map_err(|problem| here(&self.pool, "", problem))?
            .is_some_and(|option| option != 0);
        if !may_conflict {
            self.check_json_names(fields.clone(), file, features.loose_json)?;
        }
        for oneof in &oneofs {
            if oneof.fields.is_empty() {
                return Err(here(&self.pool, &oneof.name, Problem::EmptyOneof));
            }
            if oneof.synthetic && oneof.fields.len() > 1 {
                let problem = Problem::Invalid("proto3's optional needs a oneof of its own");
                return Err(here(&self.pool, &oneof.name, problem));
            }
        }
        // Original names are accepted too, wherever they are no JSON names.
        for index in fields.clone() {
            let name = self.pool.fields[index as usize].own_name();
            by_json_name.entry(name.into()).or_insert(index);
        }
        let data = &mut self.pool.messages[*index as usize];
        (data.fields, data.oneofs, data.by_name, data.by_json_name) = (fields, oneofs, by_name, by_json_name);
        Ok(())
    }

    /// As protoc has it: without `json_name`, which is how field masks are written, and with it. Where names may conflict,
    /// those that `json_name` says must not do so all the same.
    fn check_json_names(&self, fields: Range<u32>, file: u32, is_loose: bool) -> Result<(), SchemaError> {
        let fields = &self.pool.fields[fields.start as usize..fields.end as usize];
        let check = |which, names: Vec<(&FieldData, String)>| {
            let mut known = HashMap::with_capacity(names.len());
            for (field, name) in names {
                if let Some(other) = known.insert(name.clone(), field) {
                    let problem = Problem::JsonName { which, name, other: self.pool.full_name(other) };
                    let file = &self.pool.files[file as usize].name;
                    return Err(at(file, &self.pool.full_name(field), problem));
                }
            }
            Ok(())
        };
        let default = |field: &FieldData| json_name(&field.name);
        let own = |field: &FieldData| field.json_name.to_string();
        if is_loose {
            let said = fields.iter().filter(|field| own(field) != default(field));
            return check("JSON name", said.map(|field| (field, own(field))).collect());
        }
        check("default JSON name", fields.iter().map(|field| (field, default(field))).collect())?;
        check("JSON name", fields.iter().map(|field| (field, own(field))).collect())
    }

    fn link_extension(&mut self, waiting: &WaitingExtension<'a>) -> Result<(), SchemaError> {
        let WaitingExtension { file, scope, field, features } = waiting;
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
            let data = self.field(field, message, *file, scope, *features)?;
            let target = &self.pool.messages[message as usize];
            if !target.extension_ranges.iter().any(|range| (range.start..range.end).contains(&data.number)) {
                return Err(Problem::ExtensionRange {
                    extendee: target.name.to_string(),
                    number: field.number,
                });
            }
            if field.oneof.is_some() {
                return Err(Problem::Invalid("an extension cannot be member of a oneof"));
            }
            Ok((message, FieldData { extension: true, ..data }))
        })();
        let (message, data) =
            linked.map_err(|problem| at(&self.pool.files[*file as usize].name, &name, problem))?;
        self.pool.fields.push(data);
        self.pool.messages[message as usize].extensions.push(index);
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
            if !is_identifier(method.name) {
                return Err(here(Problem::Name(method.name.to_owned())));
            }
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

    /// A field or extension of `message`, declared in `scope`.
    fn field(
        &self,
        field: &raw::Field<'_>,
        message: u32,
        file: u32,
        scope: &str,
        inherited: Features,
    ) -> Result<FieldData, Problem> {
        let edition = self.pool.files[file as usize].edition;
        let features = inherited.with(edition, &field.options, number::FIELD)?;
        if !is_identifier(field.name) {
            return Err(Problem::Name(field.name.to_owned()));
        }
        let number = field.number;
        let set = self.pool.messages[message as usize].message_set;
        // A message set has type ids for numbers, which may be larger.
        let most = if set { i32::MAX - 1 } else { NUMBER_MAX as i32 };
        if !(1..=most).contains(&number) || (19_000..20_000).contains(&number) {
            return Err(Problem::Number(number));
        }
        let cardinality = match (field.label, features.presence) {
            (3, _) => Cardinality::Repeated,
            (2, _) | (0 | 1, FieldPresence::Required) => Cardinality::Required,
            (0 | 1, _) => Cardinality::Optional,
            (label, _) => return Err(Problem::Label(label)),
        };
        let (kind, type_index) = self.kind(field, scope)?;
        let repeated = cardinality == Cardinality::Repeated;
        let map = kind.is_message() && self.pool.messages[type_index as usize].map_entry;
        if map && !(repeated && kind == Kind::Message) {
            return Err(Problem::MapEntry);
        }
        if field.oneof.is_some() && cardinality != Cardinality::Optional {
            return Err(Problem::Oneof(field.oneof.unwrap_or(0)));
        }
        if set && (field.extendee.is_none() || kind != Kind::Message || cardinality != Cardinality::Optional)
        {
            return Err(Problem::Invalid("a message set has only extensions that are optional messages"));
        }
        let in_entry = self.pool.messages[message as usize].map_entry;
        let delimited = features.delimited && kind == Kind::Message && !map && !in_entry;
        let packed = match raw::option(&field.options, 2)? {
            Some(packed) => packed != 0,
            None => features.packed,
        };
        let explicit = !repeated
            && (kind.is_message()
                || field.oneof.is_some()
                || field.extendee.is_some()
                || field.proto3_optional
                || features.presence != FieldPresence::Implicit);
        let default = match field.default {
            Some(_) if repeated || kind.is_message() => {
                return Err(Problem::Invalid("only singular fields that are no messages have defaults"));
            }
            Some(_) if !explicit => {
                return Err(Problem::Invalid("a field without presence cannot have a default"));
            }
            Some(text) => defaults::parse(&self.pool, kind, type_index, text)
                .ok_or_else(|| Problem::Default(text.to_owned()))?,
            None if kind == Kind::Enum => {
                Preset::Word(i64::from(self.pool.enums[type_index as usize].values[0].number) as u64)
            }
            None => Preset::Word(0),
        };
        if kind == Kind::Enum
            && !explicit
            && !repeated
            && self.pool.enums[type_index as usize].values[0].number != 0
        {
            return Err(Problem::Invalid("a field without presence needs an enum whose first value is 0"));
        }
        Ok(FieldData {
            name: if field.extendee.is_some() { join(scope, field.name).into() } else { field.name.into() },
            json_name: field.json_name.map_or_else(|| json_name(field.name).into(), Into::into),
            number: number as u32,
            kind: if delimited { Kind::Group } else { kind },
            cardinality,
            explicit,
            packed: packed && repeated && kind.is_packable(),
            utf8: features.utf8 && kind == Kind::String,
            map,
            extension: false,
            oneof: field.oneof.map_or(NONE, |oneof| oneof as u32),
            type_index,
            message,
            file,
            default,
            options: field.options.as_slice().into(),
            entry: 0,
        })
    }

    /// The type of a field, and the index of the message or enum.
    fn kind(&self, field: &raw::Field<'_>, scope: &str) -> Result<(Kind, u32), Problem> {
        let kind = match field.kind {
            Some(number) => Some(Kind::from_number(number).ok_or(Problem::FieldType(number))?),
            None => None,
        };
        if let Some(kind) = kind.filter(|kind| !kind.is_message() && *kind != Kind::Enum) {
            return Ok((kind, NONE));
        }
        let name = field.type_name.ok_or(Problem::Invalid("the field has no type"))?;
        match (self.pool.resolve(scope, name), kind) {
            (None, _) => Err(Problem::NotFound(name.to_owned())),
            (Some(Symbol::Message(index)), None) => Ok((Kind::Message, index)),
            (Some(Symbol::Message(index)), Some(kind)) if kind.is_message() => Ok((kind, index)),
            (Some(Symbol::Enum(index)), None | Some(Kind::Enum)) => Ok((Kind::Enum, index)),
            (_, Some(Kind::Enum)) => Err(not_a(name, "an enum")),
            _ => Err(not_a(name, "a message")),
        }
    }

    /// Checks that need all fields and extensions: numbers, and the form of map entries.
    fn check_message(&self, index: usize) -> Result<(), SchemaError> {
        let data = &self.pool.messages[index];
        let all = || data.fields.clone().chain(data.extensions.iter().copied());
        let file = &self.pool.files[data.file as usize].name;
        if all().count() > FIELDS_MAX {
            return Err(at(file, &data.name, Problem::TooMany { what: "fields", max: FIELDS_MAX }));
        }
        let mut by_number: Vec<u32> = all().collect();
        by_number.sort_by_key(|&field| (self.pool.fields[field as usize].number, field));
        for pair in by_number.windows(2) {
            let [first, second] = [pair[0], pair[1]].map(|field| &self.pool.fields[field as usize]);
            if first.number == second.number {
                let problem =
                    Problem::DuplicateNumber { number: first.number, other: self.pool.full_name(first) };
                let name = self.pool.full_name(second);
                return Err(at(&self.pool.files[second.file as usize].name, &name, problem));
            }
        }
        if data.map_entry {
            let fields: Vec<&FieldData> =
                by_number.iter().map(|&field| &self.pool.fields[field as usize]).collect();
            let right = match fields.as_slice() {
                [key, value] => {
                    (key.number, value.number) == (1, 2)
                        && key.kind.is_map_key()
                        && value.kind != Kind::Group
                        && !value.map
                        && [key, value].iter().all(|field| field.cardinality == Cardinality::Optional)
                        && data.oneofs.is_empty()
                }
                _ => false,
            };
            if !right {
                return Err(at(file, &data.name, Problem::MapEntry));
            }
        }
        Ok(())
    }
}

fn enum_data(declared: &raw::Enum<'_>, name: &str, scope: Scope<'_>) -> Result<EnumData, Problem> {
    let features = scope.features.with(scope.edition, &declared.options, number::ENUM)?;
    let alias = raw::option(&declared.options, 2)?.unwrap_or(0) != 0;
    let first = declared.values.first().ok_or(Problem::EmptyEnum)?;
    if !features.closed_enum && first.number != 0 {
        return Err(Problem::FirstValue(first.number));
    }
    if declared.values.len() > ELEMENTS_MAX {
        return Err(Problem::TooMany { what: "values", max: ELEMENTS_MAX });
    }
    let mut data = EnumData {
        name: name.into(),
        file: scope.file,
        parent: scope.message,
        closed: features.closed_enum,
        values: Vec::with_capacity(declared.values.len()),
        by_number: Vec::new(),
        by_name: Names::default(),
        options: declared.options.as_slice().into(),
    };
    for (index, value) in declared.values.iter().enumerate() {
        if !is_identifier(value.name) {
            return Err(Problem::Name(value.name.to_owned()));
        }
        if data.by_name.insert(value.name.into(), index as u32).is_some() {
            return Err(Problem::Invalid("two values of the enum have one name"));
        }
        data.values.push(EnumValueData {
            name: value.name.into(),
            number: value.number,
            options: value.options.as_slice().into(),
        });
        data.by_number.push((value.number, index as u32));
    }
    // Stable, so that the first of the aliases comes first, and is the one that a number stands for.
    data.by_number.sort_by_key(|&(number, _)| number);
    if !alias && let Some(pair) = data.by_number.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let other = data.values[pair[0].1 as usize].name.to_string();
        return Err(Problem::Alias { number: pair[0].0, other });
    }
    data.by_number.dedup_by_key(|&mut (number, _)| number);
    // Of proto2's protoc only warned for long, so there are some.
    if scope.edition != Edition::Proto2 {
        check_value_names(declared)?;
    }
    Ok(data)
}

/// As protoc has it: aliases of one number may be one name.
fn check_value_names(declared: &raw::Enum<'_>) -> Result<(), Problem> {
    let mut known: HashMap<String, &raw::EnumValue<'_>> = HashMap::with_capacity(declared.values.len());
    for value in &declared.values {
        let name = pascal_case_value(declared.name, value.name);
        if let Some(other) = known.get(&name)
            && other.number != value.number
        {
            let (value, other) = (value.name.to_owned(), other.name.to_owned());
            return Err(Problem::ValueName { value, name, other });
        }
        known.entry(name).or_insert(value);
    }
    Ok(())
}

fn not_a(name: &str, expected: &'static str) -> Problem {
    Problem::NotA { name: name.to_owned(), expected }
}

fn join(scope: &str, name: &str) -> String {
    match (scope.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => scope.to_owned(),
        _ => format!("{scope}.{name}"),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
