//! Names that differ in a `.proto` file but are equal in Rust.
//!
//! Protobuf distinguishes `GetURL` and `GetUrl`, or the message `v2.Cluster` and the package `v2.cluster`. In Rust both
//! methods are `get_url`, and the modules of the nested types and of the package are both `v2::cluster`. prost-build
//! panics for some of these and generates code that does not compile for others, so they are detected first.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_build::Config;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet, OneofDescriptorProto,
    ServiceDescriptorProto,
};

use crate::descriptors::DESCRIPTORS;
use crate::error::{Error, SourceError};
use crate::name::{client_name, response_stream};
use crate::service::ServiceOptions;

/// Types of this package always come from prost-types.
const WELL_KNOWN: &str = "google.protobuf";

/// Finds names that are equal in Rust. `includes` are the folders of the files, used in errors.
///
/// # Errors
/// [`Error::Source`] with all collisions.
pub(crate) fn check(
    set: &FileDescriptorSet,
    services: &ServiceOptions,
    messages: Option<&Config>,
    includes: &[PathBuf],
) -> Result<(), Error> {
    let mut names = NameChecker {
        messages: messages.map(MessageSettings::of),
        services,
        used: BTreeMap::new(),
        collisions: Vec::new(),
    };
    for file in &set.file {
        names.add_file(file);
    }
    let mut errors = names.collisions.into_iter().map(|collision| collision.into_error(&set.file, includes));
    let Some(mut first) = errors.next() else { return Ok(()) };
    first.add(errors);
    Err(Error::Source(Box::new(first)))
}

/// The settings of prost-build that names depend on.
struct MessageSettings {
    strips_enum_prefix: bool,
    config: String,
}

impl MessageSettings {
    /// prost-build exposes its settings only in `Debug`.
    fn of(config: &Config) -> Self {
        let config = format!("{config:?}");
        Self { strips_enum_prefix: config.contains("strip_enum_prefix: true"), config }
    }

    /// Returns whether `extern_path` names this type or package, or a parent of it.
    fn is_extern(&self, proto_path: &str) -> bool {
        let ends = proto_path.match_indices('.').map(|(end, _)| end).chain([proto_path.len()]);
        ends.filter(|end| *end > 0).any(|end| self.config.contains(&format!("(\"{}\", ", &proto_path[..end])))
    }
}

struct NameChecker<'a> {
    /// `None` if another generator makes the messages.
    messages: Option<MessageSettings>,
    services: &'a ServiceOptions,
    /// Used names by Rust path: module, or type and kind of name in it.
    used: BTreeMap<(String, String), UsedName>,
    collisions: Vec<Collision>,
}

/// An element of a `.proto` file.
#[derive(Clone)]
struct Element {
    /// For example `message` or `rpc`.
    kind: &'static str,
    name: String,
    file: String,
    /// Path of the element, in the form of `SourceCodeInfo.Location.path`.
    path: Vec<i32>,
}

struct UsedName {
    element: Element,
    /// Whether other elements of this kind may share the name, as files share their package.
    is_shared: bool,
}

struct Collision {
    element: Element,
    /// `None` if the element has no Rust name.
    other: Option<Element>,
    /// For example ``the module `v2::cluster` ``.
    rust: String,
    help: String,
}

/// Location of an element: its file, and the path of its parent.
#[derive(Clone, Copy)]
struct Scope<'a> {
    file: &'a FileDescriptorProto,
    /// The full name of the parent in Protobuf, with a leading dot.
    proto: &'a str,
    /// The Rust module.
    module: &'a str,
    path: &'a [i32],
}

impl Scope<'_> {
    fn element(&self, kind: &'static str, name: &str, field: i32, index: usize) -> Element {
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let path = [self.path, &[field, index]].concat();
        Element { kind, name: name.to_owned(), file: self.file.name().to_owned(), path }
    }
}

// Field numbers in `descriptor.proto`, for paths.
const FILE_PACKAGE: i32 = 2;
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const FILE_SERVICE: i32 = 6;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_ONEOF: i32 = 8;
const ENUM_VALUE: i32 = 2;
const SERVICE_METHOD: i32 = 2;

const RENAME: &str = "rename one of them";

impl NameChecker<'_> {
    fn add_file(&mut self, file: &FileDescriptorProto) {
        let package = file.package();
        if package == WELL_KNOWN {
            return;
        }
        let proto = if package.is_empty() { String::new() } else { format!(".{package}") };
        let module = self.add_package(file, &proto);
        let scope = Scope { file, proto: &proto, module: &module, path: &[] };
        if self.messages.is_some() {
            self.add_types(scope, FILE_MESSAGE, &file.message_type, FILE_ENUM, &file.enum_type);
        }
        for (index, service) in file.service.iter().enumerate() {
            self.add_service(scope, index, service);
        }
        if self.services.server && self.services.embeds_descriptors && !file.service.is_empty() {
            let mut element = scope.element("package", package, FILE_PACKAGE, 0);
            element.path.truncate(1);
            // Each package has one, in its own file.
            let key = (module.clone(), DESCRIPTORS.to_owned());
            let is_other = self.used.get(&key).is_some_and(|taken| taken.element.name != package);
            if is_other || !self.used.contains_key(&key) {
                self.take(element, &module, DESCRIPTORS, "the static", RENAME, false);
            }
        }
    }

    /// Adds the modules of a package, and returns the innermost.
    fn add_package(&mut self, file: &FileDescriptorProto, proto: &str) -> String {
        let mut module = String::new();
        let mut end = 1;
        for part in file.package().split('.').filter(|part| !part.is_empty()) {
            end += part.len();
            let name = proto.get(1..end).unwrap_or_default();
            end += 1;
            let element = Element {
                kind: "package",
                name: name.to_owned(),
                file: file.name().to_owned(),
                path: vec![FILE_PACKAGE],
            };
            let rust = part.to_snake_case();
            let is_extern = self.messages.as_ref().is_some_and(|messages| messages.is_extern(proto));
            if !is_extern {
                let help = package_help(name);
                self.take(element, &module, &rust, "the module", &help, true);
            }
            module = join(&module, &rust);
        }
        module
    }

    fn add_types(
        &mut self,
        scope: Scope<'_>,
        message_field: i32,
        messages: &[DescriptorProto],
        enum_field: i32,
        enums: &[EnumDescriptorProto],
    ) {
        for (index, message) in messages.iter().enumerate().filter(|(_, message)| !is_map_entry(message)) {
            let element = scope.element("message", message.name(), message_field, index);
            self.add_message(scope, element, message);
        }
        for (index, r#enum) in enums.iter().enumerate() {
            let element = scope.element("enum", r#enum.name(), enum_field, index);
            self.add_enum(scope, element, r#enum);
        }
    }

    fn add_message(&mut self, scope: Scope<'_>, element: Element, message: &DescriptorProto) {
        let proto = format!("{}.{}", scope.proto, message.name());
        if self.is_extern(&proto) {
            return;
        }
        let path = element.path.clone();
        let camel = message.name().to_upper_camel_case();
        self.take(element.clone(), scope.module, &camel, "the type", &type_help(&proto), false);
        let module = join(scope.module, &message.name().to_snake_case());
        let inside = Scope { proto: &proto, module: &module, path: &path, ..scope };
        let oneofs: Vec<_> =
            message.oneof_decl.iter().enumerate().filter(|(at, _)| is_declared(message, *at)).collect();
        let nested = message.nested_type.iter().filter(|nested| !is_map_entry(nested)).count();
        if nested + message.enum_type.len() + oneofs.len() > 0 {
            let help = type_help(&proto);
            let name = message.name().to_snake_case();
            self.take(element, scope.module, &name, "the module", &help, false);
        }
        let fields = join(scope.module, &format!("{camel}'s fields"));
        for (index, field) in message.field.iter().enumerate() {
            let element = inside.element("field", field.name(), MESSAGE_FIELD, index);
            if let Some(oneof) = field.oneof_index.filter(|_| !field.proto3_optional()) {
                let oneof = usize::try_from(oneof).ok().and_then(|oneof| message.oneof_decl.get(oneof));
                let enum_type = oneof.map_or(String::new(), |oneof| oneof_type(message, oneof));
                let variants = join(&module, &format!("{enum_type}'s variants"));
                let name = field.name().to_upper_camel_case();
                self.take(element, &variants, &name, "the variant", RENAME, false);
            } else {
                self.take(element, &fields, &field.name().to_snake_case(), "the field", RENAME, false);
            }
        }
        for (index, oneof) in oneofs {
            let element = inside.element("oneof", oneof.name(), MESSAGE_ONEOF, index);
            self.take(element.clone(), &fields, &oneof.name().to_snake_case(), "the field", RENAME, false);
            self.take(element, &module, &oneof_type(message, oneof), "the type", RENAME, false);
        }
        self.add_types(inside, MESSAGE_NESTED, &message.nested_type, MESSAGE_ENUM, &message.enum_type);
    }

    fn add_enum(&mut self, scope: Scope<'_>, element: Element, r#enum: &EnumDescriptorProto) {
        let proto = format!("{}.{}", scope.proto, r#enum.name());
        if self.is_extern(&proto) {
            return;
        }
        let camel = r#enum.name().to_upper_camel_case();
        let path = element.path.clone();
        self.take(element, scope.module, &camel, "the type", &type_help(&proto), false);
        let inside = Scope { path: &path, ..scope };
        let variants = join(scope.module, &format!("{camel}'s variants"));
        let strips = self.messages.as_ref().is_some_and(|messages| messages.strips_enum_prefix);
        let mut numbers = HashSet::new();
        // prost uses the first value of each number.
        let values = r#enum.value.iter().enumerate().filter(|(_, value)| numbers.insert(value.number()));
        for (index, value) in values {
            let full_name = value.name().to_upper_camel_case();
            let name = if strips { strip_prefix(&camel, &full_name) } else { &full_name };
            let help = if strips {
                "rename one of them, or keep the prefixes: \
                 `.prost_config(|config| { config.retain_enum_prefix(); })`"
            } else {
                RENAME
            };
            let element = inside.element("value", value.name(), ENUM_VALUE, index);
            self.take(element, &variants, name, "the variant", help, false);
        }
    }

    fn add_service(&mut self, scope: Scope<'_>, index: usize, service: &ServiceDescriptorProto) {
        let element = scope.element("service", service.name(), FILE_SERVICE, index);
        let path = element.path.clone();
        let inside = Scope { path: &path, ..scope };
        let snake = service.name().to_upper_camel_case().to_snake_case();
        let sides = [(self.services.client, "client"), (self.services.server, "server")];
        for side in sides.into_iter().filter_map(|(is_made, side)| is_made.then_some(side)) {
            let module = format!("{snake}_{side}");
            let is_taken = self.take(element.clone(), scope.module, &module, "the module", RENAME, false);
            if is_taken {
                return;
            }
            let module = join(scope.module, &module);
            for (index, method) in service.method.iter().enumerate() {
                let element = inside.element("rpc", method.name(), SERVICE_METHOD, index);
                let snake = method.name().to_snake_case();
                let name = if side == "client" { client_name(&snake) } else { snake };
                let is_taken = self.take(element.clone(), &module, &name, "the function", RENAME, false);
                if !is_taken && side == "server" && method.server_streaming() {
                    let stream = response_stream(method.name());
                    self.take(element, &module, &stream, "the type", RENAME, false);
                }
            }
        }
    }

    fn is_extern(&self, proto_path: &str) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.is_extern(proto_path))
    }

    /// Gives `element` a name in a module or type. Returns whether the name is missing or already taken, which is an
    /// error.
    fn take(
        &mut self,
        element: Element,
        scope: &str,
        name: &str,
        what: &str,
        help: &str,
        is_shared: bool,
    ) -> bool {
        let rust = format!("{what} `{}`", join(scope.split('\'').next().unwrap_or(scope), name));
        let collision = |element, other: Option<&UsedName>| {
            // The fix for a package is to omit it, whichever element comes first.
            let is_package = |other: &&UsedName| other.element.kind == "package" && !is_shared;
            let help =
                other.filter(is_package).map_or(help.to_owned(), |other| package_help(&other.element.name));
            Collision { element, other: other.map(|other| other.element.clone()), rust, help }
        };
        if name.is_empty() {
            self.collisions.push(collision(element, None));
            return true;
        }
        match self.used.entry((scope.to_owned(), name.to_owned())) {
            Entry::Vacant(entry) => {
                entry.insert(UsedName { element, is_shared });
                false
            }
            Entry::Occupied(taken) if taken.get().is_shared && is_shared => false,
            Entry::Occupied(taken) => {
                self.collisions.push(collision(element, Some(taken.get())));
                true
            }
        }
    }
}

fn package_help(package: &str) -> String {
    format!(
        "generate the package `{package}` in another build script or module, and map it with \
         `.extern_path(\".{package}\", \"crate::…\")`"
    )
}

fn type_help(proto: &str) -> String {
    format!("rename one of them, or use a type of your own: `.extern_path(\"{proto}\", \"crate::…\")`")
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry)
}

/// Returns whether a oneof is in the source, and not that of a proto3 `optional`.
fn is_declared(message: &DescriptorProto, oneof: usize) -> bool {
    message.field.iter().any(|field| {
        let is_member = field.oneof_index.is_some_and(|index| usize::try_from(index) == Ok(oneof));
        is_member && !field.proto3_optional()
    })
}

/// prost-build's name for the enum of a oneof.
fn oneof_type(message: &DescriptorProto, oneof: &OneofDescriptorProto) -> String {
    let name = oneof.name().to_upper_camel_case();
    let messages = message.nested_type.iter().map(DescriptorProto::name);
    let enums = message.enum_type.iter().map(EnumDescriptorProto::name);
    if messages.chain(enums).any(|nested| nested.to_upper_camel_case() == name) {
        name + "OneOf"
    } else {
        name
    }
}

/// Strips the name of an enum from that of a value, as prost-build does.
fn strip_prefix<'n>(prefix: &str, name: &'n str) -> &'n str {
    match name.strip_prefix(prefix) {
        Some(stripped) if stripped.starts_with(char::is_uppercase) => stripped,
        _ => name,
    }
}

impl Collision {
    fn into_error(self, files: &[FileDescriptorProto], includes: &[PathBuf]) -> SourceError {
        let Self { element, other, rust, help } = self;
        let Element { kind, name, file, .. } = &element;
        let (path, span) = locate(&element, files, includes);
        let message = match &other {
            None => format!("{kind} `{name}` has no letter or digit, so it has no name in Rust"),
            Some(other) => {
                let (path, span) = locate(other, files, includes);
                let line = span.map_or(String::new(), |(line, _)| format!(":{}", line + 1));
                let location = format!("{}{line}", path.display());
                let location = if other.file == *file {
                    span.map_or(location, |(line, _)| format!("line {}", line + 1))
                } else {
                    location
                };
                format!(
                    "{kind} `{name}` becomes {rust} in Rust, as does {} `{}` ({location})",
                    other.kind, other.name
                )
            }
        };
        let help = if other.is_some() { help } else { "rename it".to_owned() };
        SourceError::at(path, span, message, help)
    }
}

/// Returns the file of an element, with its 0-based line and column if the descriptors have them.
fn locate(
    element: &Element,
    files: &[FileDescriptorProto],
    includes: &[PathBuf],
) -> (PathBuf, Option<(usize, usize)>) {
    let path = includes.iter().map(|include| include.join(&element.file)).find(|path| path.exists());
    let path = path.unwrap_or_else(|| Path::new(&element.file).to_owned());
    let file = files.iter().find(|file| file.name() == element.file);
    let mut locations =
        file.and_then(|file| file.source_code_info.as_ref()).into_iter().flat_map(|info| &info.location);
    let span =
        locations.find(|location| location.path == element.path).and_then(
            |location| match location.span[..] {
                [line, column, ..] => Some((usize::try_from(line).ok()?, usize::try_from(column).ok()?)),
                _ => None,
            },
        );
    (path, span)
}
