//! Completions for `thalweg call`.

use thalweg_dynamic::{NameKind, completions};
use thalweg_measure::target;

use super::arguments::CallArgs;
use super::catalogue;
use super::connecting::Connecting;

/// Returns candidates for the argument `here` that start with `typed`.
pub(crate) async fn complete(args: &CallArgs, here: &str, typed: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let (target, kind) = match words[..] {
        [only] if only == here => (None, None),
        ["list", word] if word == here => (None, Some(NameKind::Service)),
        ["describe", word] if word == here => (None, Some(NameKind::Symbol)),
        [target, word] if word == here => (Some(target), Some(NameKind::Method)),
        [target, "list", word] if word == here => (Some(target), Some(NameKind::Service)),
        [target, "describe", word] if word == here => (Some(target), Some(NameKind::Symbol)),
        _ => return None,
    };
    let mut candidates: Vec<String> = match words.len() {
        // `list` and `describe` may come first or after a target.
        1 => vec!["list".to_owned(), "describe".to_owned()],
        2 if target.is_some() => vec!["list".to_owned(), "describe".to_owned()],
        _ => Vec::new(),
    };
    candidates.retain(|word| word.starts_with(typed));
    let files = args.files.read().ok()?;
    let balancing = args.balancing.checked().ok()?;
    let connecting =
        target.and_then(|target| Some(Connecting::new(&target::parse(target).ok()?, args, &balancing)));
    if let Some(kind) = kind
        && let Ok(mut catalogue) = catalogue::of(files, connecting, args).await
    {
        candidates.extend(completions(&mut catalogue, kind, typed).await);
    }
    Some(candidates)
}
