//! From the text of `.proto` files to descriptors: proto2, proto3, and the editions 2023 and 2024.
//!
//! [`compile`] gives what `protoc --include_imports --include_source_info -o` writes, byte for byte, and refuses what
//! protoc refuses, at the same line and column. The files are parsed (`parse`), named and linked (`link`), their
//! options are interpreted (`options`), checked (`validate`) and encoded (`encode`), each file after its imports
//! (`load`). A name means what the file itself or its imports declare, whatever else was loaded.
//!
//! A [`SourceTree`] supplies the texts; [`Folders`] is one for include folders. The files of Protobuf itself,
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

/// Compiles `files`, named as imports name them, and all that they import, to the bytes of a
/// `google.protobuf.FileDescriptorSet` for [`Schema::from_descriptor_set`](crate::Schema::from_descriptor_set).
/// `read` gives the text of a file; `google/protobuf/*.proto` need not be among them.
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
/// For files that are not there or that protoc would refuse.
pub fn compile(files: &[&str], read: impl Fn(&str) -> Option<String>) -> Result<Vec<u8>, SourceError> {
    Compiler::new(&read).compile(files).map(|compiled| compiled.set)
}

/// Compiles `.proto` files. By default the result includes imports and source info.
#[derive(Clone, Copy)]
#[must_use = "nothing is compiled before `compile`"]
pub struct Compiler<'t> {
    tree: &'t dyn SourceTree,
    include_imports: bool,
    include_source_info: bool,
}

/// What `.proto` files were compiled to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// A `google.protobuf.FileDescriptorSet`, encoded. Each file comes after its imports.
    pub set: Vec<u8>,
    /// The names that the given files have in the set, in the order in which they were given.
    pub names: Vec<String>,
    /// The paths of all files that were read, imports included, where the [`SourceTree`] gave them.
    pub paths: Vec<String>,
    /// What compiles, but is likely a mistake, such as unused imports.
    pub warnings: Vec<Diagnostic>,
}

impl<'t> Compiler<'t> {
    /// A compiler of the files in a tree.
    pub fn new(tree: &'t dyn SourceTree) -> Self {
        Compiler { tree, include_imports: true, include_source_info: true }
    }

    /// Whether the result has the imports of the files, too. On by default.
    pub fn include_imports(mut self, include: bool) -> Self {
        self.include_imports = include;
        self
    }

    /// Whether the result has positions and comments. On by default.
    pub fn include_source_info(mut self, include: bool) -> Self {
        self.include_source_info = include;
        self
    }

    /// Compiles files, named as imports name them.
    ///
    /// # Errors
    ///
    /// For files that are not there or that protoc would refuse.
    pub fn compile(&self, files: &[&str]) -> Result<Compiled, SourceError> {
        let mut loader = Loader::new(self.tree, self.include_source_info);
        let given = loader.load_all(files);
        let pool = loader.into_pool();
        if !pool.errors.is_empty() {
            return Err(SourceError { diagnostics: pool.errors });
        }
        let order = order(&pool, &given);
        let paths = order.iter().filter_map(|&file| pool[file].path.clone()).collect();
        let names = given.iter().map(|&file| pool[file].name.to_string()).collect();
        Ok(Compiled { set: self.set(&pool, &order, &given), names, paths, warnings: pool.warnings })
    }

    fn set(&self, pool: &Pool, order: &[FileId], given: &[FileId]) -> Vec<u8> {
        let mut set = Vec::new();
        for &file in order {
            if self.include_imports || given.contains(&file) {
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

/// The files that were used, each after its imports.
fn order(pool: &Pool, given: &[FileId]) -> Vec<FileId> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for &file in given {
        // Option imports of given files only, behind the others.
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

/// Without recursion: a chain of imports may be long.
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
