//! Loads files with all their imports, and compiles each after its imports.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use super::builtin;
use super::error::{Diagnostic, Position};
use super::ids::FileId;
use super::link::Linker;
use super::locations::Locations;
use super::pool::{File, Pool};
use super::tree::{SourceFile, SourceTree};
use super::{encode, options, parse, validate};

/// Maximum size of a file: 16 MiB. The largest file of googleapis has less than 2 MiB.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Maximum number of files per compilation. All of googleapis has 7,000.
const FILES_MAX: usize = 200_000;

pub(super) struct Loader<'t> {
    linker: Linker,
    tree: &'t dyn SourceTree,
    /// By the name used in imports.
    states: HashMap<Rc<str>, FileState>,
    identities: HashMap<String, FileId>,
    with_source_info: bool,
}

#[derive(Clone)]
enum FileState {
    Found(FileId),
    /// The reason.
    NotFound(Rc<str>),
}

/// A file being loaded.
struct LoadFrame {
    file: FileId,
    next_import: usize,
}

impl<'t> Loader<'t> {
    pub(super) fn new(tree: &'t dyn SourceTree, with_source_info: bool) -> Self {
        let mut loader = Loader {
            linker: Linker::new(),
            tree,
            states: HashMap::new(),
            identities: HashMap::new(),
            with_source_info,
        };
        // It needs no other file, and the options of all files depend on it.
        loader.load(builtin::DESCRIPTOR);
        loader
    }

    /// Returns the loaded files.
    pub(super) fn into_pool(self) -> Pool {
        self.linker.pool
    }

    /// Loads files with all their imports. Errors are recorded in the pool.
    pub(super) fn load_all(&mut self, names: &[&str]) -> Vec<FileId> {
        self.linker.requested = names.iter().map(|&name| name.into()).collect();
        names.iter().filter_map(|name| self.load(name)).collect()
    }

    /// Loads a file with all its imports. Returns `None` if it does not exist; errors are recorded in the pool.
    fn load(&mut self, name: &str) -> Option<FileId> {
        let mut stack = Vec::new();
        if self.state(name).is_none() {
            self.start(&name.into(), &mut stack);
        }
        while let Some(frame) = stack.last_mut() {
            let file = frame.file;
            let index = frame.next_import;
            let Some(import) = self.linker.pool[file].imports.get(index) else {
                stack.pop();
                self.finish(file);
                continue;
            };
            let name = import.name.clone();
            match self.state(&name) {
                None => {
                    self.start(&name, &mut stack);
                    continue;
                }
                Some(FileState::Found(imported)) if self.linker.pool[imported].is_done => {
                    self.linker.pool[file].imports[index].file = Some(imported);
                    if self.linker.pool[imported].failed {
                        // Its own error has been reported.
                        self.linker.pool[file].failed = true;
                    }
                }
                // Reported in `finish`, so that the errors of other imports come first.
                Some(FileState::NotFound(_)) => {}
                Some(FileState::Found(imported)) => self.recursive_import(&stack, imported, &name),
            }
            if let Some(frame) = stack.last_mut() {
                frame.next_import += 1;
            }
        }
        match self.state(name) {
            Some(FileState::Found(file)) => Some(file),
            Some(FileState::NotFound(why)) => {
                self.linker.pool.errors.push(Diagnostic::of_file(name, &why));
                None
            }
            _ => None,
        }
    }

    fn state(&self, name: &str) -> Option<FileState> {
        self.states.get(name).cloned()
    }

    /// Reads and parses a file.
    fn start(&mut self, name: &Rc<str>, stack: &mut Vec<LoadFrame>) {
        let source = match self.source(name) {
            Ok(source) => source,
            Err(why) => {
                self.states.insert(name.clone(), FileState::NotFound(why.into()));
                return;
            }
        };
        if let Some(identity) = &source.identity
            && let Some(&file) = self.identities.get(identity)
        {
            // The same file under another name: it keeps its first name.
            self.states.insert(name.clone(), FileState::Found(file));
            return;
        }
        let text: Rc<str> = source.text.into();
        let file = self.linker.pool.add_file(File {
            name: name.clone(),
            path: source.path,
            text: text.clone(),
            syntax_at: Position::WHOLE_FILE,
            ..File::default()
        });
        if **name == *builtin::DESCRIPTOR {
            self.linker.descriptor = file;
        }
        if let Some(identity) = source.identity {
            self.identities.insert(identity, file);
        }
        self.states.insert(name.clone(), FileState::Found(file));
        if text.len() > FILE_BYTES_MAX || self.states.len() > FILES_MAX {
            self.linker.pool.error(
                file,
                Position::WHOLE_FILE,
                format!("more than {FILE_BYTES_MAX} bytes or {FILES_MAX} files"),
            );
        } else {
            parse::parse(&mut self.linker.pool, file, &text);
        }
        if self.linker.pool[file].failed {
            self.linker.pool[file].imports.clear();
        }
        stack.push(LoadFrame { file, next_import: 0 });
    }

    fn source(&self, name: &str) -> Result<SourceFile, String> {
        if let Some(text) = builtin::source(name) {
            return Ok(SourceFile::new(text));
        }
        if name.contains('\\') || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("a file name cannot have a backslash, \".\", \"..\" or an empty part".to_owned());
        }
        self.tree.open(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "file not found".to_owned(),
            _ => error.to_string(),
        })
    }

    /// Finishes a file whose imports are all loaded or have failed.
    fn finish(&mut self, file: FileId) {
        let missing =
            self.linker.pool[file].imports.iter().filter_map(|import| match self.states.get(&import.name) {
                Some(FileState::NotFound(why)) => Some((import.at, import.name.clone(), why.clone())),
                _ => None,
            });
        for (at, name, why) in missing.collect::<Vec<_>>() {
            self.linker.pool.error(file, at, format!("failed to import \"{name}\": {why}"));
        }
        if !self.linker.pool[file].failed {
            self.compile(file);
        }
        let file = &mut self.linker.pool[file];
        file.is_done = true;
        file.text = "".into();
        file.lines = OnceCell::default();
    }

    fn recursive_import(&mut self, stack: &[LoadFrame], imported: FileId, name: &str) {
        let Some(start) = stack.iter().position(|frame| frame.file == imported) else { return };
        let cycle = &stack[start..];
        let mut path = String::new();
        for frame in cycle {
            path.push_str(&self.linker.pool[frame.file].name);
            path.push_str(" -> ");
        }
        path.push_str(name);
        let first = &self.linker.pool[imported].imports[cycle[0].next_import];
        let at = first.at;
        self.linker.pool.error(imported, at, format!("file imports itself: {path}"));
        for frame in cycle {
            self.linker.pool[frame.file].failed = true;
        }
    }

    fn compile(&mut self, file: FileId) {
        let mut scope = self.linker.scope(file);
        self.linker.declare(&mut scope);
        self.linker.resolve(&mut scope);
        if !self.linker.pool[file].failed {
            options::interpret(&mut self.linker, &mut scope);
        }
        if !self.linker.pool[file].failed {
            validate::validate(&mut self.linker, &mut scope);
        }
        if self.linker.pool[file].failed {
            return;
        }
        if self.linker.is_requested(file) {
            self.linker.warn_unused_imports(&scope);
        }
        let with_source_info = self.with_source_info;
        let encoded = encode::file(&mut self.linker.pool, file, with_source_info);
        let file = &mut self.linker.pool[file];
        file.encoded = encoded;
        file.locations = Locations::default();
    }
}
