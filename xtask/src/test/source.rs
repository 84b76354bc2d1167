//! A Rust file as its items: definitions, names used, and `cfg` conditions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, ImplItem, Item, Meta, Token, Type, UseTree, Visibility};

/// Content of one file of a crate, without its tests.
#[derive(Default)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The path of its module.
    pub(super) module: Vec<String>,
    /// Its inline modules.
    pub(super) inline: Vec<Vec<String>>,
    /// Child modules for tests.
    pub(super) test_modules: Vec<Vec<String>>,
    /// Imports by `use`: the module, the name or `*`, and the path as written.
    pub(super) imported_names: Vec<(Vec<String>, String, Vec<String>)>,
    /// Paths of several names in code, as written, with their module.
    pub(super) paths: Vec<(Vec<String>, Vec<String>)>,
    /// Names defined outside functions and impls, with their module.
    pub(super) defined: BTreeSet<(Vec<String>, String)>,
    pub(super) macros: Vec<String>,
    pub(super) blocks: Vec<Block>,
}

/// An `impl` block outside functions.
pub(super) struct Block {
    /// Its module.
    pub(super) here: Vec<String>,
    /// The type, without path and parameters.
    pub(super) name: String,
    pub(super) methods: Vec<String>,
    /// Methods that it calls on `self`.
    pub(super) calls: Vec<String>,
}

impl Source {
    /// Reads a file; `inside` is its path within the crate's source folder.
    pub(super) fn read(path: &Path, inside: &Path, text: &str) -> syn::Result<Self> {
        let mut source = Self { path: path.to_owned(), module: module_of(inside), ..Self::default() };
        let file = syn::parse_file(text)?;
        let mut reader =
            Reader { here: source.module.clone(), depth: 0, in_block: false, source: &mut source };
        for item in &file.items {
            reader.visit_item(item);
        }
        Ok(source)
    }

    /// The paths it uses, in `use` and in code.
    pub(super) fn named(&self) -> impl Iterator<Item = &[String]> {
        let imported_names = self.imported_names.iter().map(|(.., path)| path.as_slice());
        imported_names.chain(self.paths.iter().map(|(_, path)| path.as_slice()))
    }
}

struct Reader<'s> {
    source: &'s mut Source,
    here: Vec<String>,
    /// Number of open items that are not modules.
    depth: usize,
    /// Whether the last block is open.
    in_block: bool,
}

impl Reader<'_> {
    fn module(&mut self, module: &syn::ItemMod) {
        let child = joined(&self.here, &module.ident.to_string());
        let Some((_, items)) = module.content.as_ref().filter(|_| module.ident != "tests") else { return };
        let parent = std::mem::replace(&mut self.here, child.clone());
        self.source.inline.push(child);
        for item in items {
            self.visit_item(item);
        }
        self.here = parent;
    }

    /// Records a path in code.
    fn path(&mut self, path: Vec<String>) {
        if let [own, name] = &path[..]
            && own == "Self"
        {
            self.call(name.clone());
        } else if path.len() > 1 {
            self.source.paths.push((self.here.clone(), path));
        }
    }

    fn call(&mut self, name: String) {
        if let Some(block) = self.source.blocks.last_mut().filter(|_| self.in_block) {
            block.calls.push(name);
        }
    }

    /// Records the paths among a macro's tokens. `$crate::a` is only needed in other crates.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut before) = (Vec::new(), Vec::<String>::new());
        for token in tokens {
            let text = if let TokenTree::Group(_) = token { String::new() } else { token.to_string() };
            let last = |back: usize| before.iter().rev().nth(back).map_or("", String::as_str);
            match token {
                TokenTree::Ident(_) if (last(1), last(0)) == (":", ":") => {
                    if !path.is_empty() {
                        path.push(text.clone());
                    }
                }
                TokenTree::Ident(_) => {
                    self.path(std::mem::take(&mut path));
                    path.extend((!matches!(last(0), "." | "$")).then(|| text.clone()));
                }
                TokenTree::Punct(_) if text == ":" => {}
                TokenTree::Group(group) => {
                    self.path(std::mem::take(&mut path));
                    if (last(2), last(1)) == ("self", ".") {
                        self.call(last(0).to_owned());
                    }
                    self.tokens(group.stream());
                }
                _ => self.path(std::mem::take(&mut path)),
            }
            before.push(text);
        }
        self.path(path);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let stays = is_kept(attributes(item), &Cfg::default());
        if let Item::Mod(module) = item
            && module.content.is_none()
            && !stays
        {
            self.source.test_modules.push(joined(&self.here, &module.ident.to_string()));
        }
        if !stays {
            return;
        }
        if self.depth == 0 {
            let name = name(item).map(|name| (self.here.clone(), name));
            self.source.defined.extend(name);
        }
        match item {
            Item::Mod(module) => self.module(module),
            Item::Use(item) => {
                let mut found = Vec::new();
                imported_names(&item.tree, &[], &mut found);
                let here = &self.here;
                self.source
                    .imported_names
                    .extend(found.into_iter().map(|(name, path)| (here.clone(), name, path)));
            }
            item => {
                if let Item::Macro(rules) = item {
                    self.source.macros.extend(rules.ident.as_ref().map(ToString::to_string));
                }
                let opens = self.depth == 0 && matches!(item, Item::Impl(_));
                if let (true, Item::Impl(block)) = (opens, item)
                    && let Some(name) = type_name(&block.self_ty)
                {
                    let kept = |it: &ImplItem| match it {
                        ImplItem::Fn(it) if is_kept(&it.attrs, &Cfg::default()) => {
                            Some(it.sig.ident.to_string())
                        }
                        _ => None,
                    };
                    let methods = block.items.iter().filter_map(kept).collect();
                    self.source.blocks.push(Block {
                        here: self.here.clone(),
                        name,
                        methods,
                        calls: Vec::new(),
                    });
                    self.in_block = true;
                }
                self.depth += 1;
                visit::visit_item(self, item);
                self.depth -= 1;
                self.in_block &= !opens;
            }
        }
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        if is_kept(&it.attrs, &Cfg::default()) {
            visit::visit_impl_item_fn(self, it);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if matches!(&*call.receiver, Expr::Path(receiver) if receiver.path.is_ident("self")) {
            self.call(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    /// Arguments of attributes: `value_parser = percent::parse`.
    fn visit_meta_list(&mut self, it: &'ast syn::MetaList) {
        self.tokens(it.tokens.clone());
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        self.visit_path(&it.path);
        self.tokens(it.tokens.clone());
    }
}

/// The name that an item defines.
fn name(item: &Item) -> Option<String> {
    match item {
        Item::Macro(it) => it.ident.as_ref(),
        item => declared(item).map(|(_, ident)| ident),
    }
    .map(ToString::to_string)
}

/// The visibility and name of an item that has both.
pub(super) fn declared(item: &Item) -> Option<(&Visibility, &Ident)> {
    macro_rules! of {
        ($($kind:ident)*) => {
            match item {
                Item::Fn(it) => Some((&it.vis, &it.sig.ident)),
                $(Item::$kind(it) => Some((&it.vis, &it.ident)),)*
                _ => None,
            }
        };
    }
    of!(Const Enum Mod Static Struct Trait Type Union)
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    macro_rules! of {
        ($($kind:ident)*) => { match item { $(Item::$kind(it) => &it.attrs,)* _ => &[] } };
    }
    of!(Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias Type Union Use)
}

/// The `cfg` conditions of a build.
#[derive(Clone, Debug, Default)]
pub(super) struct Cfg {
    /// The enabled features. Without them, a feature may be enabled or not.
    pub(super) features: Option<BTreeSet<String>>,
    /// Whether the sources use Thalweg's own types (`own_vocabulary`).
    pub(super) own_vocabulary: bool,
}

/// Whether an item with these attributes is kept: it is not for tests, and not behind a disabled feature.
pub(super) fn is_kept(attributes: &[Attribute], cfg: &Cfg) -> bool {
    let conditions = attributes.iter().filter(|it| it.path().is_ident("cfg"));
    let condition_holds =
        |it: &Attribute| it.parse_args::<Meta>().ok().and_then(|condition| condition_holds(&condition, cfg));
    conditions.map(condition_holds).all(|condition_holds| condition_holds != Some(false))
}

/// Whether a `cfg` condition holds; `None` if unknown.
fn condition_holds(condition: &Meta, cfg: &Cfg) -> Option<bool> {
    match condition {
        Meta::Path(path) if path.is_ident("own_vocabulary") => Some(cfg.own_vocabulary),
        Meta::Path(path) => path.is_ident("test").then_some(false),
        Meta::NameValue(pair) if pair.path.is_ident("feature") => {
            let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) = &pair.value else { return None };
            cfg.features.as_ref().map(|features| features.contains(&name.value()))
        }
        Meta::NameValue(_) => None,
        Meta::List(list) => {
            let all = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            let all: Vec<Option<bool>> = all.iter().map(|it| condition_holds(it, cfg)).collect();
            // A value that decides the result, and the result otherwise.
            let (decides, otherwise) = match () {
                () if list.path.is_ident("not") => {
                    return all.first().copied()?.map(|condition_holds| !condition_holds);
                }
                () if list.path.is_ident("any") => (true, false),
                () => (false, true),
            };
            let is_decided = all.contains(&Some(decides));
            is_decided.then_some(decides).or_else(|| (!all.contains(&None)).then_some(otherwise))
        }
    }
}

/// The names of a `use`, each with its path; `*` for a glob import.
pub(super) fn imported_names(tree: &UseTree, prefix: &[String], found: &mut Vec<(String, Vec<String>)>) {
    // `a::{self}` is `a`.
    let named = |name: &syn::Ident| match prefix {
        [.., last] if name == "self" => (last.clone(), prefix.to_vec()),
        _ => (name.to_string(), joined(prefix, &name.to_string())),
    };
    match tree {
        UseTree::Path(path) => imported_names(&path.tree, &joined(prefix, &path.ident.to_string()), found),
        UseTree::Name(name) => found.push(named(&name.ident)),
        UseTree::Rename(rename) => found.push((rename.rename.to_string(), named(&rename.ident).1)),
        UseTree::Glob(_) => found.push(("*".to_owned(), prefix.to_vec())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imported_names(tree, prefix, found)),
    }
}

/// The last name of a type, behind references.
pub(super) fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Reference(it) => type_name(&it.elem),
        Type::Paren(it) => type_name(&it.elem),
        _ => None,
    }
}

pub(super) fn joined(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

/// The module path of a file below `src`: `server/dispatch.rs` is `server::dispatch`.
pub(super) fn module_of(file: &Path) -> Vec<String> {
    let without_extension = file.with_extension("");
    let mut path: Vec<String> =
        without_extension.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Source, module_of};

    #[test]
    fn comments_and_strings_are_ignored() {
        let check = |text: &str, named: &[&str]| {
            let source = Source::read(Path::new("a.rs"), Path::new("a.rs"), text).unwrap();
            let found: Vec<String> = source.named().map(|path| path.join("::")).collect();
            assert_eq!(found, named, "{text}");
        };
        check("// use crate::b;\n/* crate::c /* crate::d */ */ use crate::e;", &["crate::e"]);
        check("const S: &str = \"\\\" crate::b\n\"; use e;", &["e"]);
        check("#[cfg(test)] mod tests { use b; mod c { } use d; } use e;", &["e"]);
        check("#[cfg(all(test, unix))] use b; #[cfg(any(test, feature = \"x\"))] use c;", &["c"]);
        check("fn f() { m!(a, crate::b::c(), x.d::e(), $crate::g) }", &["crate::b::c"]);
        check("struct A { #[arg(value_parser = b::parse)] b: u8 }", &["b::parse"]);
    }

    #[test]
    fn files_have_module_paths() {
        let check =
            |file: &str, path: &str| assert_eq!(module_of(Path::new(file)).join("::"), path, "{file}");
        check("server/dispatch.rs", "server::dispatch");
        check("server/mod.rs", "server");
        check("server.rs", "server");
        check("lib.rs", "");
    }
}
