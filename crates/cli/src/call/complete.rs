//! What may come next on the command line of `thalweg call`.

use thalweg_measure::target;

use super::arguments::CallArgs;
use super::catalogue;
use super::connecting::Connecting;
use crate::names::{self, Place};

/// What takes the place of `here`, one of the arguments, and begins with `typed`.
pub(crate) async fn complete(args: &CallArgs, here: &str, typed: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let (target, place) = match words[..] {
        [only] if only == here => (None, None),
        ["list", word] if word == here => (None, Some(Place::Service)),
        ["describe", word] if word == here => (None, Some(Place::Symbol)),
        [target, word] if word == here => (Some(target), Some(Place::Method)),
        [target, "list", word] if word == here => (Some(target), Some(Place::Service)),
        [target, "describe", word] if word == here => (Some(target), Some(Place::Symbol)),
        _ => return None,
    };
    let mut candidates: Vec<String> = match words.len() {
        // Of a target, what is wanted of it; of none, what needs none.
        1 => vec!["list".to_owned(), "describe".to_owned()],
        2 if target.is_some() => vec!["list".to_owned(), "describe".to_owned()],
        _ => Vec::new(),
    };
    candidates.retain(|word| word.starts_with(typed));
    let files = args.files.read().ok()?;
    let connecting = target.and_then(|target| Some(Connecting::new(&target::parse(target).ok()?, args)));
    if let Some(place) = place
        && let Ok(mut catalogue) = catalogue::of(files, connecting, args).await
    {
        candidates.extend(names::beginning(&mut catalogue, place, typed).await);
    }
    Some(candidates)
}
