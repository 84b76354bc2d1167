//! Prints the public items of a library, a line each, from rustdoc's JSON.
//!
//! A type has the traits that it implements in its own line, by name, if they are of the standard library and take no
//! arguments (`pub struct Channel: Clone, Debug, Send, Sync`). Functions of trait impls follow from the trait, and
//! generated code from its `.proto` files: the list leaves both out. Of a library that others are built of, it has what
//! these show under their own names.

mod shown;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use public_api::PublicItem;
use rustdoc_types::{
    Attribute, Crate, GenericArgs, GenericParamDefKind, Id, Impl, Item, ItemEnum, Path, Type,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: api-listing RUSTDOC.json [RUSTDOC-OF-ONE-THAT-SHOWS-IT.json]...");
        return ExitCode::from(2);
    };
    match list(&path, &arguments.collect::<Vec<_>>()) {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn list(path: &str, shown_by: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    // Lines of types name the auto traits that matter.
    let public = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    let library = read(path)?;
    let shown = match shown_by {
        [] => None,
        paths => {
            Some(shown::ids(&library, &paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?))
        }
    };
    let mut parents: HashMap<Id, Vec<Id>> = HashMap::new();
    for public in public.items() {
        parents.entry(public.id()).or_default().extend(public.parent_id());
    }
    let traits = short_traits(&library);
    let mut lines = Vec::new();
    for public in public.items() {
        let Some(item) = library.index.get(&public.id()) else { continue };
        let is_shown = shown.as_ref().is_none_or(|shown| is_within(public.id(), shown, &parents));
        if !is_shown || is_generated(item) || is_short(&library, item) || is_of_a_trait(&library, public) {
            continue;
        }
        let mut line = public.to_string();
        if let Some(traits) = traits.get(&public.id()) {
            line = format!("{line}: {}", traits.iter().copied().collect::<Vec<_>>().join(", "));
        }
        // An impl is found at its type, and again at its trait.
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn read(path: &str) -> Result<Crate, Box<dyn Error>> {
    Ok(serde_json::from_reader(BufReader::new(File::open(path)?))?)
}

/// Whether `id`, or one of those that it is in, is in `ids`.
fn is_within(id: Id, ids: &HashSet<Id>, parents: &HashMap<Id, Vec<Id>>) -> bool {
    ids.contains(&id) || parents.get(&id).is_some_and(|of| of.iter().any(|id| is_within(*id, ids, parents)))
}

/// Build scripts write to folders called `out`.
fn is_generated(item: &Item) -> bool {
    item.span.as_ref().is_some_and(|span| span.filename.iter().any(|part| part == "out"))
}

/// An item of a trait impl that the trait decides: all but its types.
fn is_of_a_trait(library: &Crate, public: &PublicItem) -> bool {
    let parent = public.parent_id().and_then(|id| library.index.get(&id));
    let is_type = |id| matches!(library.index.get(&id), Some(Item { inner: ItemEnum::AssocType { .. }, .. }));
    parent.is_some_and(|parent| matches!(&parent.inner, ItemEnum::Impl(Impl { trait_: Some(_), .. })))
        && !is_type(public.id())
}

/// The names of the traits that stand in the lines of types.
fn short_traits(library: &Crate) -> HashMap<Id, BTreeSet<&str>> {
    let mut traits: HashMap<Id, BTreeSet<&str>> = HashMap::new();
    for item in library.index.values().filter(|item| is_short(library, item)) {
        if let ItemEnum::Impl(Impl { for_: Type::ResolvedPath(of), trait_: Some(of_trait), .. }) = &item.inner
        {
            if !UNLISTED_TRAITS.contains(&name(of_trait)) {
                traits.entry(of.id).or_default().insert(name(of_trait));
            }
        }
    }
    traits
}

/// The last part of a trait's path.
fn name(of_trait: &Path) -> &str {
    of_trait.path.rsplit("::").next().unwrap_or_default()
}

/// Traits that a user of a type does not name.
const UNLISTED_TRAITS: &[&str] =
    &["Drop", "Freeze", "RefUnwindSafe", "StructuralPartialEq", "Unpin", "UnsafeUnpin", "UnwindSafe"];

/// Whether `item` is an impl for which a name in its type's line is enough. The bounds of a derived impl are known;
/// those of a handwritten one only if its type is not generic.
fn is_short(library: &Crate, item: &Item) -> bool {
    let ItemEnum::Impl(of) = &item.inner else { return false };
    let Impl { trait_: Some(of_trait), for_: Type::ResolvedPath(_), is_negative: false, generics, .. } = of
    else {
        return false;
    };
    let path = library.paths.get(&of_trait.id).map_or(&[][..], |summary| &summary.path);
    let is_standard = path.first().is_some_and(|name| ["alloc", "core", "std"].contains(&name.as_str()));
    let is_derived = item.attrs.contains(&Attribute::AutomaticallyDerived);
    let has_types =
        generics.params.iter().any(|param| matches!(param.kind, GenericParamDefKind::Type { .. }));
    let has_arguments = of_trait
        .args
        .as_ref()
        .is_some_and(|args| matches!(&**args, GenericArgs::AngleBracketed { args, .. } if !args.is_empty()));
    is_standard && !has_arguments && (is_derived || !has_types || UNLISTED_TRAITS.contains(&name(of_trait)))
}
