//! [`Comments`]: the comments of `.proto` files, which a schema does not keep.

use std::collections::HashMap;

use crate::records::{Record, Records};

/// Maximum nesting depth of declared messages.
const NESTING_MAX: usize = 64;

/// Comments above or after the declarations of `.proto` files. They are keyed by the full names of services, methods,
/// messages, fields, oneofs, enums and enum values.
///
/// They come from the `SourceCodeInfo` of a descriptor set, as written by `protoc --include_source_info` and
/// `thalweg-build`. Descriptors from reflection and most other sources have none.
///
/// ```
/// use thalweg_openapi::Comments;
///
/// # let source = "syntax = 'proto3'; package shop;
/// #     // What is for sale.
/// #     message Item { string name = 1; // For people.
/// #     }";
/// # let set = thalweg_protobuf::sources::compile(&["shop.proto"], |_| Some(source.to_owned()))?;
/// let comments = Comments::from_descriptor_set(&set);
/// assert_eq!(comments.get("shop.Item"), Some("What is for sale."));
/// assert_eq!(comments.get("shop.Item.name"), Some("For people."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments(HashMap<Box<str>, Box<str>>);

impl Comments {
    /// Reads the comments of a `google.protobuf.FileDescriptorSet`. The result is empty if the set has no comments or
    /// is invalid.
    pub fn from_descriptor_set(set: &[u8]) -> Comments {
        let mut comments = Comments::default();
        comments.add_descriptor_set(set);
        comments
    }

    /// Adds the comments of another set.
    pub fn add_descriptor_set(&mut self, set: &[u8]) {
        for (number, record) in Records::of(set) {
            if let (1, Record::Len(file)) = (number, record) {
                self.add_file(file);
            }
        }
    }

    /// Returns the comment of a declaration by its full name: `package.Service.Method`, `package.Enum.VALUE`.
    pub fn get(&self, full_name: &str) -> Option<&str> {
        self.0.get(full_name).map(AsRef::as_ref)
    }

    /// Whether there are no comments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add_file(&mut self, file: &[u8]) {
        let mut names = HashMap::new();
        collect_names(file, DeclarationKind::File, "", &mut Vec::new(), &mut names);
        let infos = Records::of(file).filter(|(number, _)| *number == 9);
        for (_, info) in infos {
            let Record::Len(info) = info else { continue };
            for (number, location) in Records::of(info) {
                if let (1, Record::Len(location)) = (number, location) {
                    let Location { path, comment } = Location::read(location);
                    if let (Some(name), Some(comment)) = (names.get(&path), comment) {
                        self.0.insert(name.as_str().into(), comment.into());
                    }
                }
            }
        }
    }
}

/// `SourceCodeInfo.Location`: the path of a declaration (field numbers and indexes), and its comment.
struct Location {
    path: Vec<u64>,
    comment: Option<String>,
}

impl Location {
    fn read(bytes: &[u8]) -> Location {
        let (mut path, mut leading, mut trailing) = (Vec::new(), None, None);
        for (number, record) in Records::of(bytes) {
            match number {
                1 => path.extend(record.numbers()),
                3 => leading = record.text().and_then(clean),
                4 => trailing = record.text().and_then(clean),
                _ => {}
            }
        }
        Location { path, comment: leading.or(trailing) }
    }
}

/// A kind of declaration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeclarationKind {
    File,
    Message,
    Enum,
    Service,
    /// A field, oneof, enum value or method, which contains no declarations.
    Part,
}

impl DeclarationKind {
    /// Returns the numbers of the fields that contain nested declarations.
    fn nested_kinds(self) -> &'static [(u32, DeclarationKind)] {
        match self {
            DeclarationKind::File => {
                &[(4, DeclarationKind::Message), (5, DeclarationKind::Enum), (6, DeclarationKind::Service)]
            }
            DeclarationKind::Message => &[
                (2, DeclarationKind::Part),
                (3, DeclarationKind::Message),
                (4, DeclarationKind::Enum),
                (8, DeclarationKind::Part),
            ],
            DeclarationKind::Enum | DeclarationKind::Service => &[(2, DeclarationKind::Part)],
            DeclarationKind::Part => &[],
        }
    }

    /// Returns the number of the field with its name; for a file, with its package.
    fn name_field(self) -> u32 {
        if self == DeclarationKind::File { 2 } else { 1 }
    }
}

/// Records the full names of a descriptor and all nested declarations, by path.
fn collect_names(
    bytes: &[u8],
    kind: DeclarationKind,
    scope: &str,
    path: &mut Vec<u64>,
    names: &mut HashMap<Vec<u64>, String>,
) {
    if path.len() > 2 * NESTING_MAX {
        return;
    }
    let is_name = |(number, _): &(u32, Record<'_>)| *number == kind.name_field();
    let name = Records::of(bytes).filter(is_name).last().and_then(|(_, record)| record.text());
    let name = name.unwrap_or_default();
    let full_name = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
    let mut counts = HashMap::new();
    for (number, record) in Records::of(bytes) {
        let part = kind.nested_kinds().iter().find(|(of, _)| *of == number);
        let (Some((_, part)), Record::Len(bytes)) = (part, record) else { continue };
        let index: &mut u64 = counts.entry(number).or_default();
        path.extend([u64::from(number), *index]);
        collect_names(bytes, *part, &full_name, path, names);
        path.truncate(path.len() - 2);
        *index += 1;
    }
    if kind != DeclarationKind::File {
        names.insert(path.clone(), full_name);
    }
}

/// Removes the leading space of each line, and comments for linters: `(-- … --)`.
fn clean(text: &str) -> Option<String> {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.strip_prefix("*\n").unwrap_or(text);
    while let Some((before, from)) = rest.split_once("(--") {
        cleaned.push_str(before);
        rest = from.split_once("--)").map_or("", |(_, rest)| rest);
    }
    cleaned.push_str(rest);
    let lines = cleaned.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    let lines: Vec<&str> = lines.collect();
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::sources;

    use super::{Comments, clean};

    #[test]
    fn each_declaration_has_its_comment() {
        let source = r#"
            syntax = "proto3";
            package a.b;
            // A service.
            service S {
                // A method.
                // On two lines.
                rpc M(Outer) returns (Outer.Inner);
            }
            /* Outer. */
            message Outer {
                string bare = 1;
                int32 behind = 2; // Behind it.
                // Inner.
                message Inner {
                    // Deep.
                    int32 x = 1;
                    // Inner enum.
                    enum E { 
                        // Zero.
                        ZERO = 0; 
                    }
                }
                // A choice.
                oneof choice {
                    // Left.
                    string left = 3;
                }
            }
            // An enum.
            enum Color {
                RED = 0;
                GREEN = 1; // Green.
            }
        "#;
        let set = sources::compile(&["a.proto"], |_| Some(source.to_owned())).unwrap();
        let comments = Comments::from_descriptor_set(&set);
        for (name, comment) in [
            ("a.b.S", Some("A service.")),
            ("a.b.S.M", Some("A method.\nOn two lines.")),
            ("a.b.Outer", Some("Outer.")),
            ("a.b.Outer.bare", None),
            ("a.b.Outer.behind", Some("Behind it.")),
            ("a.b.Outer.Inner", Some("Inner.")),
            ("a.b.Outer.Inner.x", Some("Deep.")),
            ("a.b.Outer.Inner.E", Some("Inner enum.")),
            ("a.b.Outer.Inner.E.ZERO", Some("Zero.")),
            ("a.b.Outer.choice", Some("A choice.")),
            ("a.b.Outer.left", Some("Left.")),
            ("a.b.Color", Some("An enum.")),
            ("a.b.Color.GREEN", Some("Green.")),
            ("a.b.Color.RED", None),
        ] {
            assert_eq!(comments.get(name), comment, "{name}");
        }
    }

    #[test]
    fn invalid_set_has_no_comments() {
        for set in [&b""[..], b"\x0a\x05a", b"no set at all", b"\x0a\x00"] {
            assert!(Comments::from_descriptor_set(set).is_empty());
        }
        // Nested messages, deeper than any stack.
        let deep = (0..20_000).fold(Vec::new(), |inner: Vec<u8>, _| {
            let mut wire = vec![0x1a];
            thalweg_protobuf::wire::put_varint(&mut wire, inner.len() as u64);
            [wire, inner].concat()
        });
        let mut file = vec![0x22];
        thalweg_protobuf::wire::put_varint(&mut file, deep.len() as u64);
        let mut comments = Comments::default();
        comments.add_file(&[file, deep].concat());
        assert!(comments.is_empty());
    }

    #[test]
    fn comments_are_cleaned() {
        for (text, expected) in [
            (" One.\n Two.\n", Some("One.\nTwo.")),
            (" One.\n   - deeper\n\n Two.", Some("One.\n  - deeper\n\nTwo.")),
            ("*\n One.\n", Some("One.")),
            (" One.\n (-- api-linter: x\n disabled --)\n", Some("One.")),
            ("  \n", None),
            (" (-- never closed", None),
        ] {
            assert_eq!(clean(text).as_deref(), expected, "{text:?}");
        }
    }
}
