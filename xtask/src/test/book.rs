//! The guides: their links, and the mdBook built from them.

use std::fs;

use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

/// Checks the links of all pages to each other and to their anchors; external links are not followed.
pub(super) fn links() -> Result<String> {
    let pages = Job::new("git").words("ls-files -- *.md").quiet_text()?;
    let lychee = Job::new(tools::compiled("lychee")?).words("--offline --include-fragments --no-progress");
    lychee.args(pages.lines()).run()?;
    Ok(format!("the links of {} pages", pages.lines().count()))
}

/// Builds the book.
pub(super) fn check() -> Result<String> {
    let mdbook = tools::mdbook()?;
    let folder = files::create_empty(workspace::target().join("book"))?;
    let docs = workspace::root().join("docs");
    for path in files::below(&docs)? {
        let inside = path.strip_prefix(&docs).unwrap_or(&path);
        let mut contents = fs::read(&path)?;
        if files::has_extension(&path, "md") {
            let depth = inside.components().count() - 1;
            contents = with_external_links(&String::from_utf8_lossy(&contents), depth).into_bytes();
        }
        files::write(&folder.join("docs").join(inside), contents)?;
    }
    fs::copy(workspace::root().join("book.toml"), folder.join("book.toml"))?;
    let build = Job::new(mdbook).arg("build").arg(&folder).arg("--dest-dir").arg(folder.join("pages"));
    let captured = build.output()?;
    let is_clean =
        captured.status.success() && !captured.err.contains("WARN") && !captured.err.contains("ERROR");
    ensure!(is_clean, "mdBook warns: {}", captured.err.trim());
    let pages =
        files::below(&folder.join("pages"))?.into_iter().filter(|path| files::has_extension(path, "html"));
    Ok(format!("{} pages", pages.count()))
}

/// Turns links that leave `docs` into links to the repository, for a page `depth` folders deep.
fn with_external_links(text: &str, depth: usize) -> String {
    let outside = format!("]({}", "../".repeat(depth + 1));
    text.replace(&outside, concat!("](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/"))
}

#[cfg(test)]
mod tests {
    use super::with_external_links;

    #[test]
    fn links_out_of_the_book_point_to_the_repository() {
        let check = |text: &str, depth, expected: &str| {
            let repository = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");
            assert_eq!(with_external_links(text, depth), expected.replace("REPOSITORY", repository));
        };
        check("[a](lab.md) [b](../README.md#c)", 0, "[a](lab.md) [b](REPOSITORY/README.md#c)");
        check("[a](../lab.md)", 1, "[a](../lab.md)");
        check("[a](../../README.md), [b](x)", 1, "[a](REPOSITORY/README.md), [b](x)");
    }
}
