//! Resolves the types of fields and methods, and the messages that extensions extend.

use std::fmt::Write as _;
use std::rc::Rc;

use super::lookup::SymbolFilter;
use super::{Linker, Scope};
use crate::sources::error::Position;
use crate::sources::features::{number as feature, value as feature_value};
use crate::sources::ids::{FieldId, FileId, MessageId, NodeId, ServiceId};
use crate::sources::parse::FIELD_NUMBER_MAX;
use crate::sources::pool::{Field, FieldKind, MethodType, Pool, Symbol, TypeRef, Visibility};

/// Maximum number of errors that suggest a free number, which requires a scan of the message's numbers.
const SUGGESTIONS_MAX: usize = 20;

impl Linker {
    pub(in crate::sources) fn resolve(&mut self, scope: &mut Scope) {
        let file = &self.pool[scope.file];
        let (messages, services, extensions) =
            (file.messages.clone(), file.services.clone(), file.extensions.clone());
        for message in messages {
            self.resolve_message(scope, message);
        }
        for extension in extensions {
            self.resolve_field(scope, extension, scope.package);
        }
        for service in services {
            self.resolve_service(scope, service);
        }
    }

    fn resolve_message(&mut self, scope: &mut Scope, message: MessageId) {
        // Without a node, its name was rejected.
        let Some(node) = self.pool[message].node else { return };
        for index in 0..self.pool[message].messages.len() {
            self.resolve_message(scope, self.pool[message].messages[index]);
        }
        for index in 0..self.pool[message].fields.len() {
            self.resolve_field(scope, self.pool[message].fields[index], node);
        }
        for index in 0..self.pool[message].extensions.len() {
            self.resolve_field(scope, self.pool[message].extensions[index], node);
        }
        self.check_oneofs(scope.file, message);
    }

    /// Checks that each oneof has fields, and that they are consecutive.
    fn check_oneofs(&mut self, file: FileId, message: MessageId) {
        let declared = &self.pool[message];
        let mut errors = Vec::new();
        let mut seen = vec![false; declared.oneofs.len()];
        let mut before = None;
        for &field in &declared.fields {
            let oneof = self.pool[field].oneof;
            if let Some(index) = oneof {
                let index = index as usize;
                if seen[index]
                    && let Some(before) = before.filter(|&before: &FieldId| self.pool[before].oneof != oneof)
                {
                    let message = format!(
                        "\"{}\" cannot be between the fields of the oneof \"{}\"",
                        self.pool[before].name, declared.oneofs[index].name
                    );
                    errors.push((self.pool[before].at.kind, message));
                }
                seen[index] = true;
            }
            before = Some(field);
        }
        for (oneof, seen) in declared.oneofs.iter().zip(seen) {
            if !seen {
                errors.push((oneof.name_at, format!("oneof \"{}\" has no field", oneof.name)));
            }
        }
        for (at, message) in errors {
            self.pool.error(file, at, message);
        }
    }

    fn resolve_field(&mut self, scope: &mut Scope, field: FieldId, from: NodeId) {
        if let Some(extendee) = self.pool[field].extendee.clone()
            && self.resolve_extendee(scope, field, &extendee, from).is_none()
        {
            return;
        }
        let type_name = self.pool[field].type_name.clone();
        if !type_name.is_empty() && self.resolve_type(scope, field, &type_name, from).is_none() {
            return;
        }
        self.check_number(scope, field);
    }

    /// Returns `None` after an error.
    fn resolve_extendee(
        &mut self,
        scope: &mut Scope,
        field: FieldId,
        extendee: &str,
        from: NodeId,
    ) -> Option<()> {
        let at = self.pool[field].at;
        let symbol = match self.lookup(scope, extendee, from, SymbolFilter::Any) {
            Ok(symbol) => symbol,
            Err(missing) => {
                self.not_found(scope.file, at.extendee, extendee, missing);
                return None;
            }
        };
        let Symbol::Message(message) = symbol else {
            self.pool.error(scope.file, at.extendee, format!("\"{extendee}\" is not a message"));
            return None;
        };
        self.check_visible(scope, symbol, at.extendee)?;
        let number = self.pool[field].number;
        self.pool[field].message = Some(message);
        if self.pool[message].extension_range(number).is_none() {
            let name = &self.pool[message].full_name;
            let message = format!("\"{name}\" does not declare {number} as an extension number");
            self.pool.error(scope.file, at.number, message);
        }
        Some(())
    }

    fn resolve_type(
        &mut self,
        scope: &mut Scope,
        field: FieldId,
        name: &Rc<str>,
        from: NodeId,
    ) -> Option<()> {
        let at = self.pool[field].at;
        let symbol = match self.lookup(scope, name, from, SymbolFilter::Type) {
            Ok(symbol) => symbol,
            Err(missing) => {
                self.not_found(scope.file, at.kind, name, missing);
                return None;
            }
        };
        self.check_visible(scope, symbol, at.kind)?;
        let is_group = self.pool[field].kind == Some(FieldKind::Group);
        match symbol {
            Symbol::Message(message) => {
                let declared = &mut self.pool[field];
                declared.type_ref = TypeRef::Message(message);
                declared.kind.get_or_insert(FieldKind::Message);
                if declared.default.is_some() {
                    self.pool.error(scope.file, at.default, "a message has no default value");
                }
            }
            Symbol::Enum(declared) if !is_group => {
                self.pool[field].type_ref = TypeRef::Enum(declared);
                self.pool[field].kind = Some(FieldKind::Enum);
                self.check_enum_default(scope.file, field);
            }
            _ => {
                self.pool.error(scope.file, at.kind, format!("\"{name}\" is not a type"));
                return None;
            }
        }
        Some(())
    }

    fn check_enum_default(&mut self, file: FileId, field: FieldId) {
        let (TypeRef::Enum(declared), Some(default)) = (self.pool[field].type_ref, &self.pool[field].default)
        else {
            return;
        };
        let default = String::from_utf8_lossy(default);
        if self.pool.value_named(declared, &default).is_some() {
            return;
        }
        let declared = &self.pool[declared];
        let message = format!("enum \"{}\" has no value \"{default}\"", declared.full_name);
        let at = self.pool[field].at.default;
        self.pool.error(file, at, message);
    }

    /// Checks that the number is unique among the fields and extensions of the message.
    fn check_number(&mut self, scope: &mut Scope, field: FieldId) {
        let Field { number, message: Some(message), .. } = self.pool[field] else { return };
        let at = self.pool[field].at.number;
        let name = self.pool[message].full_name.clone();
        if let Some(&other) = scope.numbers.get(&(message, number)) {
            let what = if self.pool[field].is_extension() { "extension" } else { "field" };
            let mut text = format!(
                "{what} number {number} of \"{name}\" is already used by \"{}\"",
                self.pool[other].name
            );
            if self.pool.errors.len() < SUGGESTIONS_MAX
                && let Some(next) = self.next_number(message)
            {
                let _ = write!(text, ": the next free number is {next}");
            }
            self.pool.error(scope.file, at, text);
            return;
        }
        scope.numbers.insert((message, number), field);
        if self.pool[field].is_extension() {
            match self.pool.extensions.get(&(message, number)) {
                Some(&other) => {
                    let other = self.pool.field_full_name(other);
                    let text =
                        format!("extension number {number} of \"{name}\" is already used by \"{other}\"");
                    self.pool.warning(scope.file, at, text);
                }
                None => {
                    self.pool.extensions.insert((message, number), field);
                }
            }
        }
    }

    fn next_number(&self, message: MessageId) -> Option<i32> {
        let declared = &self.pool[message];
        let fields = declared.fields.iter().map(|&field| (self.pool[field].number, self.pool[field].number));
        let ranges = declared.extension_ranges.iter().map(|extension| extension.range);
        let ranges = ranges.chain(declared.reserved.iter().copied());
        let mut used: Vec<_> =
            fields.chain(ranges.map(|range| (range.start, range.end.saturating_sub(1)))).collect();
        used.sort_unstable();
        let mut next = 1;
        for (start, end) in used {
            if start > next {
                break;
            }
            next = next.max(end.saturating_add(1));
        }
        (next <= FIELD_NUMBER_MAX).then_some(next)
    }

    fn resolve_service(&mut self, scope: &mut Scope, service: ServiceId) {
        let Some(node) = self.pool[service].node else { return };
        for index in 0..self.pool[service].methods.len() {
            for is_output in [false, true] {
                let named = method_type(&mut self.pool, service, index, is_output);
                let (name, at) = (named.name.clone(), named.at);
                let message = match self.lookup(scope, &name, node, SymbolFilter::Any) {
                    Ok(symbol @ Symbol::Message(message)) => {
                        self.check_visible(scope, symbol, at).map(|()| message)
                    }
                    Ok(_) => {
                        self.pool.error(scope.file, at, format!("\"{name}\" is not a message"));
                        None
                    }
                    Err(missing) => {
                        self.not_found(scope.file, at, &name, missing);
                        None
                    }
                };
                method_type(&mut self.pool, service, index, is_output).message = message;
            }
        }
    }

    /// Checks that a type is not `local` to another file.
    fn check_visible(&mut self, scope: &Scope, symbol: Symbol, at: Position) -> Option<()> {
        let (file, visibility, is_nested, features, name) = match symbol {
            Symbol::Message(message) => {
                let declared = &self.pool[message];
                let is_nested = declared.parent.is_some();
                (declared.file, declared.visibility, is_nested, declared.features, declared.full_name.clone())
            }
            Symbol::Enum(declared) => {
                let declared = &self.pool[declared];
                let is_nested = declared.parent.is_some();
                (declared.file, declared.visibility, is_nested, declared.features, declared.full_name.clone())
            }
            _ => return Some(()),
        };
        let by_default = match features.get(feature::DEFAULT_SYMBOL_VISIBILITY) {
            feature_value::EXPORT_TOP_LEVEL => !is_nested,
            feature_value::LOCAL_ALL | feature_value::STRICT => false,
            _ => true,
        };
        let is_exported = match visibility {
            Visibility::Export => true,
            Visibility::Local => false,
            Visibility::Unset => by_default,
        };
        if file == scope.file || is_exported {
            return Some(());
        }
        let declared_in = self.pool[file].name.clone();
        let why = if visibility == Visibility::Local {
            "it is marked \"local\""
        } else {
            "it is local by features.default_symbol_visibility: mark it \"export\""
        };
        self.pool.error(
            scope.file,
            at,
            format!("\"{name}\" of \"{declared_in}\" is not visible here: {why}"),
        );
        None
    }
}

fn method_type(pool: &mut Pool, service: ServiceId, index: usize, is_output: bool) -> &mut MethodType {
    let method = &mut pool[service].methods[index];
    if is_output { &mut method.output } else { &mut method.input }
}
