//! The marked parts of a page.

use crate::failure::Result;

const OPEN: &str = "<!-- figures: ";
const CLOSE: &str = "<!-- /figures -->";

/// Replaces each marked part of `text` by the result of `part(name, current)`; the marks stay.
pub(super) fn replace_blocks(
    text: &str,
    mut part: impl FnMut(&str, &str) -> Result<String>,
) -> Result<String> {
    let mut fresh = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let (before, marked) = rest.split_at(start);
        let marks = |why: &str| failed!("{why}: {}", marked.lines().next().unwrap_or_default());
        let (mark, _) = marked.split_once('\n').ok_or_else(|| marks("missing block"))?;
        let name = mark.strip_prefix(OPEN).and_then(|name| name.strip_suffix(" -->"));
        let name = name.ok_or_else(|| marks("expected `<!-- figures: NAME -->`"))?;
        let end = marked.find(CLOSE).ok_or_else(|| marks("missing `<!-- /figures -->`"))?;
        let body = marked[mark.len()..end].trim_matches('\n');
        if body.contains(OPEN) {
            return Err(marks("nested block"));
        }
        let body = part(name, body)?;
        for piece in [before, mark, "\n\n", body.trim_matches('\n'), "\n\n", CLOSE] {
            fresh.push_str(piece);
        }
        rest = &marked[end + CLOSE.len()..];
    }
    fresh.push_str(rest);
    Ok(fresh)
}

#[cfg(test)]
mod tests {
    use super::replace_blocks;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = replace_blocks(text, |name, body| match name {
            "bad" => Err(failed!("a bad one")),
            _ => Ok(format!("{name} was {body}")),
        });
        let found = found.map_err(|why| why.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn only_marked_parts_are_replaced() {
        check("no marks\n", Ok("no marks\n"));
        check(
            "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n<!-- figures: y -->\n<!-- /figures -->",
            Ok("a\n<!-- figures: x -->\n\nx was old\n\n<!-- /figures -->\nb\n\
                <!-- figures: y -->\n\ny was \n\n<!-- /figures -->"),
        );
    }

    #[test]
    fn invalid_marks_are_reported() {
        check("<!-- figures: x -->\nold\n", Err("missing `<!-- /figures -->`: <!-- figures: x -->"));
        check(
            "<!-- figures: x -->\n<!-- figures: y -->\n<!-- /figures -->",
            Err("nested block: <!-- figures: x -->"),
        );
        check("<!-- figures: bad -->\n<!-- /figures -->", Err("a bad one"));
    }
}
