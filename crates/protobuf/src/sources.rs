//! Compiles `.proto` files to descriptors: proto2, proto3, and editions 2023 and 2024.
//!
//! [`compile`] returns what `protoc --include_imports --include_source_info -o` writes, byte for byte. It rejects what
//! protoc rejects, at the same line and column.
//!
//! `load` loads each file after its imports. Files are parsed (`parse`), named and linked (`link`), their options
//! interpreted (`options`), then checked (`validate`) and encoded (`encode`). A name resolves only to declarations of
//! the file and its imports, whatever else was loaded.
//!
//! A [`SourceTree`] supplies the texts; [`Folders`] is one for include folders. Protobuf's own files,
//! `google/protobuf/*.proto`, are built in, in their current version. They take precedence over copies in include
//! folders, which tend to be old.

mod builtin;
mod comments;
mod edition;
mod encode;
mod error;
mod features;
mod folders;
mod ids;
mod lex;
mod link;
mod literal;
mod load;
mod locations;
mod option_value;
mod options;
mod owner;
mod parse;
mod pool;
#[cfg(test)]
mod tests;
mod tree;
mod validate;

use std::collections::HashSet;

pub use error::{Diagnostic, SourceError};
pub use folders::{Disk, FolderError, Folders};
pub use tree::{SourceFile, SourceTree};

use ids::FileId;
use load::Loader;
use pool::{ImportKind, Pool};

/// Compiles `files`, named as in imports, and all their imports. Returns the bytes of a
/// `google.protobuf.FileDescriptorSet` for [`Schema::from_descriptor_set`](crate::Schema::from_descriptor_set). `read`
/// returns the text of a file; it need not know `google/protobuf/*.proto`.
///
/// ```
/// use thalweg_protobuf::{Schema, sources};
///
/// let point = "syntax = 'proto3'; message Point { int32 x = 1; }";
/// let set = sources::compile(&["point.proto"], |name| (name == "point.proto").then(|| point.to_owned()))?;
/// assert!(Schema::from_descriptor_set(&set)?.message("Point").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error if a file does not exist, or if protoc would reject it.
pub fn compile(files: &[&str], read: impl Fn(&str) -> Option<String>) -> Result<Vec<u8>, SourceError> {
    Compiler::new(&read).compile(files).map(|compiled| compiled.set)
}

/// Compiles `.proto` files. By default the result includes imports and source info.
#[derive(Clone, Copy)]
#[must_use = "nothing is compiled until `compile` is called"]
pub struct Compiler<'t> {
    tree: &'t dyn SourceTree,
    include_imports: bool,
    include_source_info: bool,
}

/// The result of compiling `.proto` files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Encoded `google.protobuf.FileDescriptorSet`. Each file comes after its imports.
    pub set: Vec<u8>,
    /// Names of the given files in the set, in the given order.
    pub names: Vec<String>,
    /// Paths of all files that were read, imports included, if the [`SourceTree`] provided them.
    pub paths: Vec<String>,
    /// Likely mistakes that are not errors, such as unused imports.
    pub warnings: Vec<Diagnostic>,
}

impl<'t> Compiler<'t> {
    /// Creates a compiler for the files of a tree.
    pub fn new(tree: &'t dyn SourceTree) -> Self {
        Compiler { tree, include_imports: true, include_source_info: true }
    }

    /// Sets whether the result includes imported files. Default: true.
    pub fn include_imports(mut self, include: bool) -> Self {
        self.include_imports = include;
        self
    }

    /// Sets whether the result includes positions and comments. Default: true.
    pub fn include_source_info(mut self, include: bool) -> Self {
        self.include_source_info = include;
        self
    }

    /// Compiles files, named as in imports.
    ///
    /// # Errors
    ///
    /// Returns an error if a file does not exist, or if protoc would reject it.
    pub fn compile(&self, files: &[&str]) -> Result<Compiled, SourceError> {
        let mut loader = Loader::new(self.tree, self.include_source_info);
        let requested = loader.load_all(files);
        let pool = loader.into_pool();
        if !pool.errors.is_empty() {
            return Err(SourceError { diagnostics: pool.errors });
        }
        let order = order(&pool, &requested);
        let paths = order.iter().filter_map(|&file| pool[file].path.clone()).collect();
        let names = requested.iter().map(|&file| pool[file].name.to_string()).collect();
        Ok(Compiled { set: self.set(&pool, &order, &requested), names, paths, warnings: pool.warnings })
    }

    fn set(&self, pool: &Pool, order: &[FileId], requested: &[FileId]) -> Vec<u8> {
        let mut set = Vec::new();
        for &file in order {
            if self.include_imports || requested.contains(&file) {
                let encoded = &pool[file].encoded;
                set.push(0x0a);
                let mut len = encoded.len();
                while len >= 0x80 {
                    set.push(len as u8 | 0x80);
                    len >>= 7;
                }
                set.push(len as u8);
                set.extend_from_slice(encoded);
            }
        }
        set
    }
}

impl std::fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Compiler { include_imports, include_source_info, .. } = self;
        f.debug_struct("Compiler")
            .field("include_imports", include_imports)
            .field("include_source_info", include_source_info)
            .finish_non_exhaustive()
    }
}

/// Returns the files that were used, each after its imports.
fn order(pool: &Pool, requested: &[FileId]) -> Vec<FileId> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for &file in requested {
        // Include option imports of given files only, after the other imports.
        let imports = &pool[file].imports;
        let (options, others): (Vec<_>, Vec<_>) =
            imports.iter().partition(|import| import.kind == ImportKind::Option);
        let imports = others.into_iter().chain(options).filter_map(|import| import.file);
        for file in imports.chain([file]) {
            append_after_imports(pool, file, &mut seen, &mut order);
        }
    }
    order
}

/// Appends a file after its imports. Iterative, because a chain of imports may be long.
fn append_after_imports(pool: &Pool, file: FileId, seen: &mut HashSet<FileId>, order: &mut Vec<FileId>) {
    if !seen.insert(file) {
        return;
    }
    let mut stack = vec![(file, 0)];
    while let Some((file, next)) = stack.last_mut() {
        let Some(import) = pool[*file].imports.get(*next) else {
            order.push(*file);
            stack.pop();
            continue;
        };
        *next += 1;
        if let Some(imported) = import.file.filter(|_| import.kind != ImportKind::Option)
            && seen.insert(imported)
        {
            stack.push((imported, 0));
        }
    }
}
