//! Comments as summaries and descriptions.

/// Maximum length of a summary, in characters.
const SUMMARY_LEN_MAX: usize = 120;

/// Returns the first sentence as summary, and the whole comment as description if it has more. Either may be missing.
pub(super) fn summary_and_description(comment: &str) -> (Option<String>, Option<String>) {
    if comment.is_empty() {
        return (None, None);
    }
    let paragraph = comment.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    let sentence = &paragraph[..end];
    if sentence.chars().count() > SUMMARY_LEN_MAX {
        return (None, Some(comment.to_owned()));
    }
    let is_all = sentence.len() == comment.len();
    (Some(sentence.to_owned()), (!is_all).then(|| comment.to_owned()))
}

/// Appends a paragraph.
pub(super) fn add_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

#[cfg(test)]
mod tests {
    use super::summary_and_description;

    #[test]
    fn the_first_sentence_is_the_summary() {
        let check = |comment: &str, summary: Option<&str>, description: Option<&str>| {
            let (found, rest) = summary_and_description(comment);
            assert_eq!((found.as_deref(), rest.as_deref()), (summary, description), "{comment}");
        };
        check("", None, None);
        check("Gets a book.", Some("Gets a book."), None);
        check("Gets\na book.", Some("Gets a book."), None);
        check("Gets a book. By name.", Some("Gets a book."), Some("Gets a book. By name."));
        check("Gets a book\n\nBy name.", Some("Gets a book"), Some("Gets a book\n\nBy name."));
        let long = "x".repeat(121);
        check(&long, None, Some(&long));
    }
}
