//! Assigns comments to declarations.

/// The comments between two tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Comments {
    /// Comment of the declaration that ended before them.
    pub(super) trailing: String,
    pub(super) detached: Vec<String>,
    /// Comment of the declaration that starts after them.
    pub(super) leading: String,
}

/// Classifies comments as they are read.
#[derive(Debug, Default)]
pub(super) struct CommentCollector {
    found: Comments,
    pending: Option<Pending>,
    flushed: usize,
    has_trailing: bool,
    detached_from_previous: bool,
}

#[derive(Debug)]
struct Pending {
    text: String,
    is_line: bool,
}

impl CommentCollector {
    /// Returns the text to append the next line comment to; adjacent line comments are merged.
    pub(super) fn line_comment(&mut self) -> &mut String {
        if self.pending.as_ref().is_some_and(|pending| !pending.is_line) {
            self.flush();
        }
        &mut self.pending.get_or_insert(Pending { text: String::new(), is_line: true }).text
    }

    pub(super) fn block_comment(&mut self) -> &mut String {
        self.flush();
        &mut self.pending.insert(Pending { text: String::new(), is_line: false }).text
    }

    /// Ends the pending comment as trailing or detached, not leading.
    pub(super) fn flush(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        if self.detached_from_previous {
            self.found.detached.push(pending.text);
        } else {
            self.found.trailing.push_str(&pending.text);
            self.has_trailing = true;
            self.detached_from_previous = true;
        }
        self.flushed += 1;
    }

    pub(super) fn detach_from_previous(&mut self) {
        self.detached_from_previous = true;
    }

    /// A single comment with tokens directly before and after it belongs to neither.
    pub(super) fn detach_ambiguous(&mut self) {
        if self.flushed + usize::from(self.pending.is_some()) == 1 {
            if self.has_trailing {
                let trailing = std::mem::take(&mut self.found.trailing);
                self.found.detached.insert(0, trailing);
            }
            self.flush();
        }
    }

    pub(super) fn finish(mut self) -> Comments {
        if let Some(pending) = self.pending {
            self.found.leading = pending.text;
        }
        self.found
    }
}
