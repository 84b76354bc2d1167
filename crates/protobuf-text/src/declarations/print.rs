//! Prints descriptors as text.

use std::fmt::Write;

use thalweg_protobuf::{MessageRef, Value};

use super::comments::{Comment, Comments, lines};
use super::descriptor::{Declared, Found, flag, joined, list, message, number, numbers, text, texts};
use super::names::Names;
use super::options::{OptionText, options};

/// End of the field number range (2^29), written as `max`.
const FIELD_NUMBERS_END: i32 = 1 << 29;
/// Maximum length of a line with options in brackets.
const LINE_LEN_MAX: usize = 100;

/// Prints declarations of one file.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    file: MessageRef<'a>,
    comments: Comments<'a>,
    is_proto3: bool,
    /// Needed to find names that require a leading dot.
    names: &'a Names,
    out: String,
    indent: usize,
}

/// The context of a field declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldPlace {
    Message,
    Oneof,
}

const TYPE_GROUP: i32 = 10;
const LABEL_REQUIRED: i32 = 2;
const LABEL_REPEATED: i32 = 3;

impl<'a> Printer<'a> {
    pub(super) fn new(file: MessageRef<'a>, names: &'a Names) -> Self {
        let is_proto3 = text(file, "syntax") == "proto3";
        Self { file, comments: Comments::of(file), is_proto3, names, out: String::new(), indent: 0 }
    }

    pub(super) fn file(mut self) -> String {
        let file = self.file;
        self.comment(&[12]);
        match (text(file, "syntax"), number(file, "edition")) {
            (_, edition @ 1000..) => self.line(&format!("edition = \"{}\";", edition + 1023)),
            ("", _) => self.line("syntax = \"proto2\";"),
            (syntax, _) => self.line(&format!("syntax = \"{syntax}\";")),
        }
        if file.has("package") {
            self.blank();
            self.comment(&[2]);
            self.line(&format!("package {};", text(file, "package")));
        }
        self.imports();
        let options = options(self.names, text(file, "package"), file);
        if !options.is_empty() {
            self.blank();
            self.option_lines(&options);
        }
        self.declared_in(Declared::File, file, text(file, "package"), &[]);
        self.out
    }

    pub(super) fn declaration(mut self, found: &Found<'a>) -> String {
        let Found { declared, descriptor, scope, path } = found;
        match declared {
            Declared::File => {}
            Declared::Message => self.message(*descriptor, scope, path),
            Declared::Enum => self.enumeration(*descriptor, scope, path),
            Declared::Service => self.service(*descriptor, path),
            Declared::Method => self.method(*descriptor, scope, path),
            Declared::Extension => self.extend(&[(*descriptor, path.clone())], scope, &[]),
        }
        self.out
    }

    fn imports(&mut self) {
        let file = self.file;
        let (public, weak) = (numbers(file, "public_dependency"), numbers(file, "weak_dependency"));
        let imports: Vec<String> = (0..)
            .zip(texts(file, "dependency"))
            .map(|(index, name)| {
                let kind = match index {
                    index if public.contains(&index) => "public ",
                    index if weak.contains(&index) => "weak ",
                    _ => "",
                };
                format!("import {kind}\"{name}\";")
            })
            .chain(texts(file, "option_dependency").map(|name| format!("import option \"{name}\";")))
            .collect();
        if !imports.is_empty() {
            self.blank();
        }
        for import in &imports {
            self.line(import);
        }
    }

    /// Prints the messages, enums, services and extensions of a file. For a message, only those that none of its
    /// fields declares.
    fn declared_in(&mut self, declared: Declared, of: MessageRef<'a>, scope: &str, path: &[i32]) {
        let groups: Vec<&str> = list(of, "extension").filter_map(group_name).collect();
        for &(field, tag, part) in declared.parts() {
            if part == Declared::Extension {
                self.extensions(of, tag, scope, path);
                continue;
            }
            // A message's nested messages are printed with its fields.
            if declared == Declared::Message && part == Declared::Message {
                continue;
            }
            for (index, descriptor) in (0..).zip(list(of, field)) {
                let path = [path, &[tag, index]].concat();
                if part == Declared::Message && groups.contains(&text(descriptor, "name")) {
                    continue;
                }
                self.blank();
                match part {
                    Declared::Message => self.message(descriptor, scope, &path),
                    Declared::Enum => self.enumeration(descriptor, scope, &path),
                    _ => self.service(descriptor, &path),
                }
            }
        }
    }

    fn message(&mut self, of: MessageRef<'a>, scope: &str, path: &[i32]) {
        self.comment(path);
        let visibility = visibility(of);
        self.open(&format!("{visibility}message {}", text(of, "name")), path);
        self.message_body(of, &joined(scope, text(of, "name")), path);
        self.close();
    }

    fn message_body(&mut self, of: MessageRef<'a>, scope: &str, path: &[i32]) {
        let options = options(self.names, scope, of);
        self.option_lines(&options);
        self.reserved(of, |end| end - 1, FIELD_NUMBERS_END - 1);
        for range in list(of, "extension_range") {
            self.extension_range(range, scope);
        }
        // Types of maps and groups are printed with their fields, preserving the order of types.
        let fields: Vec<MessageRef<'a>> = list(of, "field").collect();
        let groups: Vec<&str> = list(of, "extension").filter_map(group_name).collect();
        let mut next = 0;
        for (index, nested) in (0..).zip(list(of, "nested_type")) {
            let full_name = joined(scope, text(nested, "name"));
            let is_its = |field: &MessageRef<'_>| {
                let is_own = group_name(*field).is_some() || is_map_entry(nested);
                is_own && text(*field, "type_name").trim_start_matches('.') == full_name
            };
            if let Some(at) = fields.iter().position(is_its) {
                while next <= at {
                    next = self.field_at(of, &fields, next, scope, path);
                }
            } else if !groups.contains(&text(nested, "name")) {
                self.blank();
                self.message(nested, scope, &[path, &[3, index]].concat());
            }
        }
        self.declared_in(Declared::Message, of, scope, path);
        if !fields.is_empty() && next < fields.len() && next == 0 {
            self.blank();
        }
        while next < fields.len() {
            next = self.field_at(of, &fields, next, scope, path);
        }
    }

    /// Prints the field at an index, or the oneof that starts there. Returns the index of the next field.
    fn field_at(
        &mut self,
        of: MessageRef<'a>,
        fields: &[MessageRef<'a>],
        at: usize,
        scope: &str,
        path: &[i32],
    ) -> usize {
        let in_oneof = |field: &MessageRef<'_>| {
            let is_member = field.has("oneof_index") && !flag(*field, "proto3_optional");
            is_member.then(|| number(*field, "oneof_index"))
        };
        let Some(index) = in_oneof(&fields[at]) else {
            self.field(fields[at], of, scope, &[path, &[2, at as i32]].concat(), FieldPlace::Message);
            return at + 1;
        };
        let end = fields[at..].iter().position(|field| in_oneof(field) != Some(index));
        let end = end.map_or(fields.len(), |count| at + count);
        let Some(oneof) = list(of, "oneof_decl").nth(index as usize) else { return end };
        let oneof_path = [path, &[8, index]].concat();
        self.comment(&oneof_path);
        self.open(&format!("oneof {}", text(oneof, "name")), &oneof_path);
        let options = options(self.names, scope, oneof);
        self.option_lines(&options);
        for (at, field) in (at..end).zip(&fields[at..end]) {
            self.field(*field, of, scope, &[path, &[2, at as i32]].concat(), FieldPlace::Oneof);
        }
        self.close();
        end
    }

    /// Prints a field; `within` contains the types of groups and maps.
    fn field(
        &mut self,
        field: MessageRef<'a>,
        within: MessageRef<'a>,
        scope: &str,
        path: &[i32],
        place: FieldPlace,
    ) {
        self.comment(path);
        // The type of a map or group is declared in the same scope as its field.
        let nested = [("nested_type", 3), ("message_type", 4)].into_iter().find_map(|(types, tag)| {
            let is_its = |(_, nested): &(i32, MessageRef<'_>)| {
                let full_name = joined(scope, text(*nested, "name"));
                full_name == text(field, "type_name").trim_start_matches('.')
            };
            let (index, nested) = (0..).zip(list(within, types)).find(is_its)?;
            // Path of the enclosing scope.
            let outer = path.len().saturating_sub(2);
            Some((nested, [&path[..outer], &[tag, index]].concat()))
        });
        let of_field = nested.as_ref().map(|(nested, _)| *nested);
        let map = of_field.filter(|nested| is_map_entry(*nested));
        let (name, tag) = (text(field, "name"), number(field, "number"));
        let label = match number(field, "label") {
            _ if place == FieldPlace::Oneof || map.is_some() => "",
            LABEL_REPEATED => "repeated ",
            LABEL_REQUIRED => "required ",
            _ if flag(field, "proto3_optional") => "optional ",
            _ if self.is_proto3 || number(self.file, "edition") >= 1000 => "",
            _ => "optional ",
        };
        let options = self.field_options(field, scope);
        if let Some((_, (group, group_path))) = group_name(field).zip(nested) {
            // Compilers disagree about the owner of this comment.
            self.comment(&group_path);
            let head = format!("{label}group {} = {tag}", text(group, "name"));
            let head = self.with_options(head, &options);
            self.open(&head, path);
            self.message_body(group, &joined(scope, text(group, "name")), &group_path);
            self.close();
            return;
        }
        let kind = match map {
            Some(entry) => {
                let mut kinds = list(entry, "field").map(|field| self.type_name(field, scope));
                let (key, value) = (kinds.next().unwrap_or_default(), kinds.next().unwrap_or_default());
                format!("map<{key}, {value}>")
            }
            None => self.type_name(field, scope),
        };
        let declared = self.with_options(format!("{label}{kind} {name} = {tag}"), &options);
        self.line_with_comment(&format!("{declared};"), path);
    }

    fn field_options(&self, field: MessageRef<'_>, scope: &str) -> Vec<OptionText> {
        let mut texts = Vec::new();
        if field.has("default_value") {
            let default = text(field, "default_value");
            let value = match number(field, "type") {
                9 => quoted(default),
                // Already escaped.
                12 => format!("\"{default}\""),
                _ => default.to_owned(),
            };
            texts.push(OptionText::new("default", value));
        }
        let json_name = text(field, "json_name");
        if field.has("json_name")
            && !field.has("extendee")
            && json_name != default_json_name(text(field, "name"))
        {
            texts.push(OptionText::new("json_name", quoted(json_name)));
        }
        texts.extend(options(self.names, scope, field));
        texts
    }

    fn type_name(&self, field: MessageRef<'_>, scope: &str) -> String {
        const SCALARS: [&str; 19] = [
            "", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "",
            "", "bytes", "uint32", "", "sfixed32", "sfixed64", "sint32", "sint64",
        ];
        match SCALARS.get(number(field, "type") as usize) {
            Some(&scalar) if !scalar.is_empty() => scalar.to_owned(),
            _ => self.names.reference(scope, text(field, "type_name")),
        }
    }

    fn extensions(&mut self, of: MessageRef<'a>, tag: i32, scope: &str, path: &[i32]) {
        let mut run: Vec<(MessageRef<'a>, Vec<i32>)> = Vec::new();
        let mut all = (0..).zip(list(of, "extension")).peekable();
        while let Some((index, extension)) = all.next() {
            run.push((extension, [path, &[tag, index]].concat()));
            let extendee = text(extension, "extendee");
            if all.peek().is_none_or(|(_, next)| text(*next, "extendee") != extendee) {
                self.blank();
                self.extend(&run, scope, &[of]);
                run.clear();
            }
        }
    }

    /// Prints the extensions of one message; `within` contains the types of groups.
    fn extend(&mut self, run: &[(MessageRef<'a>, Vec<i32>)], scope: &str, within: &[MessageRef<'a>]) {
        let Some((first, _)) = run.first() else { return };
        let extendee = self.names.reference(scope, text(*first, "extendee"));
        self.open(&format!("extend {extendee}"), &[-1]);
        for (extension, path) in run {
            let within = within.first().copied().unwrap_or(self.file);
            self.field(*extension, within, scope, path, FieldPlace::Message);
        }
        self.close();
    }

    fn extension_range(&mut self, range: MessageRef<'_>, scope: &str) {
        let (start, end) = (number(range, "start"), number(range, "end") - 1);
        let range_text = range_text(start, end, FIELD_NUMBERS_END - 1);
        let options = options(self.names, scope, range);
        let line = self.with_options(format!("extensions {range_text}"), &options);
        self.line(&format!("{line};"));
    }

    fn reserved(&mut self, of: MessageRef<'_>, last: impl Fn(i32) -> i32, max: i32) {
        let ranges: Vec<String> = list(of, "reserved_range")
            .map(|range| range_text(number(range, "start"), last(number(range, "end")), max))
            .collect();
        if !ranges.is_empty() {
            self.line(&format!("reserved {};", ranges.join(", ")));
        }
        let is_edition = number(self.file, "edition") >= 1000;
        let names: Vec<String> = texts(of, "reserved_name")
            .map(|name| if is_edition { name.to_owned() } else { quoted(name) })
            .collect();
        if !names.is_empty() {
            self.line(&format!("reserved {};", names.join(", ")));
        }
    }

    fn enumeration(&mut self, of: MessageRef<'a>, scope: &str, path: &[i32]) {
        self.comment(path);
        self.open(&format!("{}enum {}", visibility(of), text(of, "name")), path);
        let own_options = options(self.names, scope, of);
        self.option_lines(&own_options);
        self.reserved(of, |end| end, i32::MAX);
        for (index, value) in (0..).zip(list(of, "value")) {
            let path = [path, &[2, index]].concat();
            self.comment(&path);
            let options = options(self.names, scope, value);
            let line = format!("{} = {}", text(value, "name"), number(value, "number"));
            let line = self.with_options(line, &options);
            self.line_with_comment(&format!("{line};"), &path);
        }
        self.close();
    }

    fn service(&mut self, of: MessageRef<'a>, path: &[i32]) {
        let scope = joined(text(self.file, "package"), text(of, "name"));
        self.comment(path);
        self.open(&format!("service {}", text(of, "name")), path);
        let options = options(self.names, &scope, of);
        self.option_lines(&options);
        for (index, method) in (0..).zip(list(of, "method")) {
            self.method(method, &scope, &[path, &[2, index]].concat());
        }
        self.close();
    }

    fn method(&mut self, of: MessageRef<'a>, scope: &str, path: &[i32]) {
        self.comment(path);
        let side = |name: &str, is_stream: &str| {
            let stream = if flag(of, is_stream) { "stream " } else { "" };
            format!("{stream}{}", self.names.reference(scope, text(of, name)))
        };
        let [input, output] =
            [side("input_type", "client_streaming"), side("output_type", "server_streaming")];
        let head = format!("rpc {}({input}) returns ({output})", text(of, "name"));
        let options = options(self.names, scope, of);
        if options.is_empty() {
            self.line_with_comment(&format!("{head};"), path);
            return;
        }
        self.open(&head, path);
        self.option_lines(&options);
        self.close();
    }

    fn option_lines(&mut self, options: &[OptionText]) {
        for OptionText { name, value } in options {
            self.line(&format!("option {name} = {value};"));
        }
    }

    /// Appends options in brackets to a declaration.
    fn with_options(&self, declared: String, options: &[OptionText]) -> String {
        let texts: Vec<String> =
            options.iter().map(|OptionText { name, value }| format!("{name} = {value}")).collect();
        if texts.is_empty() {
            return declared;
        }
        let one_line = format!("{declared} [{}]", texts.join(", "));
        if !one_line.contains('\n') && one_line.len() + 2 * self.indent <= LINE_LEN_MAX {
            return one_line;
        }
        let texts: Vec<String> =
            texts.iter().map(|text| format!("  {}", text.replace('\n', "\n  "))).collect();
        format!("{declared} [\n{}\n]", texts.join(",\n"))
    }

    fn open(&mut self, head: &str, path: &[i32]) {
        self.line_with_comment(&format!("{head} {{"), path);
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        // An empty block: `message Empty {}`.
        if self.out.ends_with("{\n") {
            self.out.truncate(self.out.len() - 1);
            self.out.push_str("}\n");
        } else {
            self.line("}");
        }
    }

    fn comment(&mut self, path: &[i32]) {
        let Comment { leading, .. } = self.comments.get(path);
        if !leading.is_empty() {
            lines(leading).for_each(|line| self.line(&line));
        }
    }

    /// Prints a line with its trailing comment, which goes below if it has several lines.
    fn line_with_comment(&mut self, line: &str, path: &[i32]) {
        let Comment { trailing, .. } = self.comments.get(path);
        let mut comment = lines(trailing);
        match (comment.next(), comment.next()) {
            (Some(only), None) if !trailing.is_empty() => self.line(&format!("{line} {only}")),
            (Some(_), Some(_)) => {
                self.line(line);
                lines(trailing).for_each(|line| self.line(&line));
            }
            _ => self.line(line),
        }
    }

    /// Prints lines at the current indentation.
    fn line(&mut self, text: &str) {
        for line in text.lines() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(self.out, "{:1$}{line}", "", 2 * self.indent);
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("{\n") {
            self.out.push('\n');
        }
    }
}

/// Returns the name of the type that a proto2 group declares.
fn group_name(field: MessageRef<'_>) -> Option<&str> {
    (number(field, "type") == TYPE_GROUP)
        .then(|| text(field, "type_name").rsplit('.').next().unwrap_or_default())
}

fn is_map_entry(of: MessageRef<'_>) -> bool {
    message(of, "options").is_some_and(|options| flag(options, "map_entry"))
}

/// Returns the visibility of a type (since edition 2024).
fn visibility(of: MessageRef<'_>) -> &'static str {
    match of.get("visibility") {
        Some(Value::Enum(1)) => "local ",
        Some(Value::Enum(2)) => "export ",
        _ => "",
    }
}

fn range_text(start: i32, last: i32, max: i32) -> String {
    match last {
        last if last == start => start.to_string(),
        last if last >= max => format!("{start} to max"),
        last => format!("{start} to {last}"),
    }
}

/// Returns the default JSON name of a field.
fn default_json_name(name: &str) -> String {
    let mut json_name = String::new();
    let mut is_upper = false;
    for c in name.chars() {
        match c {
            '_' => is_upper = true,
            c => {
                json_name.push(if is_upper { c.to_ascii_uppercase() } else { c });
                is_upper = false;
            }
        }
    }
    json_name
}

/// Returns a string literal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Escape each byte of the character in octal.
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a `String` cannot fail.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
