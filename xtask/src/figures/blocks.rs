//! The marked parts of a page.

/// Why a page cannot be rendered.
#[derive(Debug, PartialEq)]
pub(super) enum Broken<E> {
    /// The marks make no sense.
    Marks(String),
    /// The caller could not make a part.
    Figure(E),
}

const OPEN: &str = "<!-- figures: ";
const CLOSE: &str = "<!-- /figures -->";

/// `text` with each marked part as `part(name, what is there now)` gives it, marks aside.
pub(super) fn replaced<E>(
    text: &str,
    mut part: impl FnMut(&str, &str) -> Result<String, E>,
) -> Result<String, Broken<E>> {
    let mut fresh = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let (before, marked) = rest.split_at(start);
        let marks =
            |why: &str| Broken::Marks(format!("{why}: {}", marked.lines().next().unwrap_or_default()));
        let (mark, _) = marked.split_once('\n').ok_or_else(|| marks("nothing follows"))?;
        let name = mark.strip_prefix(OPEN).and_then(|name| name.strip_suffix(" -->"));
        let name = name.ok_or_else(|| marks("a mark is `<!-- figures: NAME -->`"))?;
        let end = marked.find(CLOSE).ok_or_else(|| marks("no `<!-- /figures -->` follows"))?;
        let body = marked[mark.len()..end].trim_matches('\n');
        if body.contains(OPEN) {
            return Err(marks("another one begins before its end"));
        }
        let body = part(name, body).map_err(Broken::Figure)?;
        fresh.push_str(before);
        fresh.push_str(mark);
        fresh.push_str("\n\n");
        fresh.push_str(body.trim_matches('\n'));
        fresh.push_str("\n\n");
        fresh.push_str(CLOSE);
        rest = &marked[end + CLOSE.len()..];
    }
    fresh.push_str(rest);
    Ok(fresh)
}

#[cfg(test)]
mod tests {
    use super::{Broken, replaced};

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = replaced(text, |name, body| match name {
            "bad" => Err("a bad one"),
            _ => Ok(format!("{name} was {body}")),
        });
        let found = found.map_err(|why| match why {
            Broken::Marks(why) => why,
            Broken::Figure(why) => why.to_owned(),
        });
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn marked_parts_are_replaced_and_nothing_else() {
        check("no marks\n", Ok("no marks\n"));
        check(
            "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n<!-- figures: y -->\n<!-- /figures -->",
            Ok("a\n<!-- figures: x -->\n\nx was old\n\n<!-- /figures -->\nb\n\
                <!-- figures: y -->\n\ny was \n\n<!-- /figures -->"),
        );
    }

    #[test]
    fn marks_that_make_no_sense_are_told() {
        check("<!-- figures: x -->\nold\n", Err("no `<!-- /figures -->` follows: <!-- figures: x -->"));
        check(
            "<!-- figures: x -->\n<!-- figures: y -->\n<!-- /figures -->",
            Err("another one begins before its end: <!-- figures: x -->"),
        );
        check("<!-- figures: bad -->\n<!-- /figures -->", Err("a bad one"));
    }
}
