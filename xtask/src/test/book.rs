//! The guides: their links, and the book that mdBook makes of them.

use std::fs;

use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::{files, tools, workspace};

/// The links of all pages to each other and to places in them; links to other hosts are not followed.
pub(super) fn links() -> Result<String> {
    let pages = Job::new("git").words("ls-files -- *.md").quiet_text()?;
    let lychee = Job::new(tools::compiled("lychee")?).words("--offline --include-fragments --no-progress");
    lychee.args(pages.lines()).run()?;
    Ok(format!("the links of {} pages", pages.lines().count()))
}

/// Makes the book.
pub(super) fn check() -> Result<String> {
    let mdbook = tools::mdbook()?;
    let folder = files::emptied(workspace::target().join("book"))?;
    let (docs, repository) = (workspace::root().join("docs"), repository()?);
    for path in files::below(&docs)? {
        let inside = path.strip_prefix(&docs).unwrap_or(&path);
        let mut contents = fs::read(&path)?;
        if files::has_extension(&path, "md") {
            let depth = inside.components().count() - 1;
            contents = with_links_out(&String::from_utf8_lossy(&contents), depth, &repository).into_bytes();
        }
        files::write(&folder.join("docs").join(inside), contents)?;
    }
    fs::copy(workspace::root().join("book.toml"), folder.join("book.toml"))?;
    let build = Job::new(mdbook).arg("build").arg(&folder).arg("--dest-dir").arg(folder.join("pages"));
    let said = build.output()?;
    let is_well = said.status.success() && !said.err.contains("WARN") && !said.err.contains("ERROR");
    ensure!(is_well, "mdBook warns: {}", said.err.trim());
    let pages =
        files::below(&folder.join("pages"))?.into_iter().filter(|path| files::has_extension(path, "html"));
    Ok(format!("{} pages", pages.count()))
}

/// Where the sources are shown.
fn repository() -> Result<String> {
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    let repository = line.and_then(|line| line.strip_suffix('"'));
    log::line(format_args!("links out of the book lead to {}", repository.unwrap_or("nowhere")))?;
    repository.map(str::to_owned).ok_or_else(|| failed!("Cargo.toml names no repository"))
}

/// What is not in the book is in the repository: a link that leaves `docs`, of a page so many folders deep in it.
fn with_links_out(text: &str, depth: usize, repository: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, behind) = rest.split_at(at + 2);
        out.push_str(before);
        let ups = behind.split('/').take_while(|part| *part == "..").count();
        if ups > depth {
            out.push_str(repository);
            out.push_str("/blob/main/");
            // Past `docs` there is the root.
            rest = &behind[3 * ups..];
        } else {
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::with_links_out;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let check = |text: &str, depth, expected: &str| {
            assert_eq!(with_links_out(text, depth, "https://r.test/t"), expected);
        };
        check(
            "[a](lab.md) [b](../README.md#c)",
            0,
            "[a](lab.md) [b](https://r.test/t/blob/main/README.md#c)",
        );
        check("[a](../lab.md)", 1, "[a](../lab.md)");
        check("[a](../../README.md), [b](x)", 1, "[a](https://r.test/t/blob/main/README.md), [b](x)");
    }
}
