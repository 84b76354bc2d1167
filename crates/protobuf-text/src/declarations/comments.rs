//! Comments of a file, by the source info path of their element.

use std::collections::HashMap;

use thalweg_protobuf::MessageRef;

use super::descriptor::{list, message, numbers, text};

/// Comments of a file.
#[derive(Debug, Default)]
pub(super) struct Comments<'a>(HashMap<Vec<i32>, Comment<'a>>);

/// The comments before and after a declaration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Comment<'a> {
    pub(super) leading: &'a str,
    pub(super) trailing: &'a str,
}

impl<'a> Comments<'a> {
    pub(super) fn of(file: MessageRef<'a>) -> Self {
        let info = message(file, "source_code_info");
        let locations = info.into_iter().flat_map(|info| list(info, "location"));
        let comments = locations.filter_map(|location| {
            let [leading, trailing] = ["leading_comments", "trailing_comments"].map(|it| text(location, it));
            let is_there = !leading.is_empty() || !trailing.is_empty();
            is_there.then(|| (numbers(location, "path"), Comment { leading, trailing }))
        });
        Self(comments.collect())
    }

    pub(super) fn get(&self, path: &[i32]) -> Comment<'a> {
        self.0.get(path).copied().unwrap_or_default()
    }
}

/// Returns the lines of a comment, each prefixed with `//`.
pub(super) fn lines(comment: &str) -> impl Iterator<Item = String> {
    comment.trim_end().lines().map(|line| format!("//{}", line.trim_end()))
}
