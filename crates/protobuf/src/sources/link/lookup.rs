//! Resolves names in a file: its own declarations and those of its imports.

use super::{Linker, Scope};
use crate::sources::error::Position;
use crate::sources::ids::{FileId, NodeId};
use crate::sources::pool::Symbol;

/// An unresolved name, with possible reasons.
#[derive(Debug, Default)]
pub(in crate::sources) struct NotFound {
    /// A matching declaration in a file that is not imported.
    undeclared: Option<(NodeId, FileId)>,
    /// The full name it resolves to, because an inner scope declares its first part.
    pub(in crate::sources) resolved: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sources) enum SymbolFilter {
    Any,
    /// Messages and enums; other declarations of this name are skipped.
    Type,
}

impl Linker {
    /// Looks up a name in `from` and its enclosing scopes.
    pub(in crate::sources) fn lookup(
        &self,
        scope: &mut Scope,
        name: &str,
        from: NodeId,
        filter: SymbolFilter,
    ) -> Result<Symbol, NotFound> {
        let mut missing = NotFound::default();
        if let Some(absolute) = name.strip_prefix('.') {
            let node = self.pool.descend(scope.root, absolute);
            return node.and_then(|node| self.visible(scope, node, &mut missing)).ok_or(missing);
        }
        let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
        let mut next = Some(from);
        while let Some(current) = next {
            next = self.pool[current].parent;
            if next.is_none() {
                let node = self.pool.descend(current, name);
                return node.and_then(|node| self.visible(scope, node, &mut missing)).ok_or(missing);
            }
            let Some(&node) = self.pool[current].children.get(first) else { continue };
            let Some(symbol) = self.visible(scope, node, &mut missing) else { continue };
            match (rest, symbol) {
                (None, Symbol::Message(_) | Symbol::Enum(_)) => return Ok(symbol),
                (None, _) if filter == SymbolFilter::Any => return Ok(symbol),
                (Some(rest), Symbol::Package | Symbol::Message(_) | Symbol::Enum(_) | Symbol::Service) => {
                    // The innermost scope that declares the first part is decisive.
                    let found = self.pool.descend(node, rest);
                    let found = found.and_then(|node| self.visible(scope, node, &mut missing));
                    return found.ok_or_else(|| {
                        missing.resolved = Some(format!("{}.{rest}", self.pool.node_path(node)));
                        missing
                    });
                }
                _ => {}
            }
        }
        Err(missing)
    }

    /// Returns the symbol of a node, if the file can see it.
    fn visible(&self, scope: &mut Scope, node: NodeId, missing: &mut NotFound) -> Option<Symbol> {
        let entry = self.pool[node].entry?;
        if entry.symbol == Symbol::Package {
            if scope.packages.contains(&node) {
                return Some(entry.symbol);
            }
        } else if entry.file == scope.file || scope.imports.contains(&entry.file) {
            scope.used.insert(entry.file);
            return Some(entry.symbol);
        } else if scope.option_imports.contains(&entry.file) {
            scope.used.insert(entry.file);
            if matches!(entry.symbol, Symbol::Field(_)) {
                return Some(entry.symbol);
            }
        }
        missing.undeclared = Some((node, entry.file));
        None
    }

    pub(in crate::sources) fn not_found(
        &mut self,
        file: FileId,
        at: Position,
        name: &str,
        missing: NotFound,
    ) {
        let message = match (self.missing_reason(&missing), missing.resolved) {
            (Some(why), _) => why,
            (None, Some(resolved)) => format!(
                "\"{name}\" resolves to \"{resolved}\" here, which is not defined: use \".{name}\" to start from the \
                 outermost scope"
            ),
            (None, None) => format!("\"{name}\" is not defined"),
        };
        self.pool.error(file, at, message);
    }

    /// Names the file that declares it but is not imported.
    pub(in crate::sources) fn missing_reason(&self, missing: &NotFound) -> Option<String> {
        let (node, file) = missing.undeclared?;
        let (name, file) = (self.pool.node_path(node), &self.pool[file].name);
        Some(format!("\"{name}\" is declared in \"{file}\", which is not imported: add the import"))
    }
}
