//! The book of the guides: mdBook makes it of `docs`, and each of its links leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::job::{Failure, Job, Log};
use crate::{files, tools, workspace};

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let pages = build(log)?;
    let mut found = BTreeMap::new();
    for path in files::below(&pages)? {
        if files::has_extension(&path, "html") {
            found.insert(path.clone(), Page::read(&fs::read_to_string(&path)?));
        }
    }
    let mut wrong = Vec::new();
    let mut links = 0;
    for (path, page) in &found {
        for link in &page.links {
            links += 1;
            if let Some(why) = leads_nowhere(&pages, path, link, &found) {
                let from = path.strip_prefix(&pages).unwrap_or(path).display();
                wrong.push(format!("{from}: {link}: {why}"));
            }
        }
    }
    for line in &wrong {
        log.line(line)?;
    }
    match (wrong.len(), links) {
        (0, 1..) => Ok(format!("{} pages, {links} links within the book", found.len())),
        (0, _) => Err(Failure::failed("the book has no links: it is no book")),
        (count, _) => Err(Failure::failed(format!("{count} of {links} links lead nowhere"))),
    }
}

/// Makes the book; the folder with its pages.
fn build(log: &Log) -> Result<PathBuf, Failure> {
    let mdbook = tools::mdbook(log)?;
    let folder = workspace::target().join("book");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let docs = workspace::root().join("docs");
    for path in files::below(&docs)? {
        let inside = path.strip_prefix(&docs).unwrap_or(&path);
        let copy = folder.join("docs").join(inside);
        fs::create_dir_all(copy.parent().unwrap_or(&folder))?;
        if files::has_extension(&path, "md") {
            let depth = inside.components().count() - 1;
            fs::write(copy, with_links_out(&fs::read_to_string(&path)?, depth, &repository(log)?))?;
        } else {
            fs::copy(&path, copy)?;
        }
    }
    fs::copy(workspace::root().join("book.toml"), folder.join("book.toml"))?;
    let output =
        Job::new(mdbook).arg("build").arg(&folder).arg("--dest-dir").arg(folder.join("pages")).output(log)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() || said.contains("WARN") || said.contains("ERROR") {
        return Err(Failure::failed(format!("mdBook is not content: {}", said.trim())));
    }
    Ok(folder.join("pages"))
}

/// Where the sources are shown.
fn repository(log: &Log) -> Result<String, Failure> {
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    let repository = line.and_then(|line| line.strip_suffix('"'));
    log.line(format_args!("links out of the book lead to {}", repository.unwrap_or("nowhere")))?;
    repository.map(str::to_owned).ok_or_else(|| Failure::failed("Cargo.toml names no repository"))
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

/// What links of a page lead to, and what others may lead to in it.
#[derive(Debug, Default)]
struct Page {
    links: BTreeSet<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(html: &str) -> Self {
        let mut page = Self::default();
        for tag in html.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap_or_default();
            for name in ["href", "src"] {
                page.links.extend(attribute(tag, name).map(|value| value.replace("&amp;", "&")));
            }
            for name in ["id", "name"] {
                page.anchors.extend(attribute(tag, name).map(str::to_owned));
            }
        }
        page.links.retain(|link| is_within(link));
        page
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// It leads to no other place.
fn is_within(link: &str) -> bool {
    !link.is_empty()
        && !["http:", "https:", "mailto:", "data:", "javascript:"]
            .iter()
            .any(|scheme| link.starts_with(scheme))
}

/// Why a link of a page leads nowhere, if it does not.
fn leads_nowhere(pages: &Path, from: &Path, link: &str, found: &BTreeMap<PathBuf, Page>) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let to = match path {
        "" => from.to_owned(),
        path if path.starts_with('/') => pages.join(path.trim_start_matches('/')),
        path => plain(&from.parent().unwrap_or(pages).join(path)),
    };
    if !to.starts_with(pages) {
        return Some("it leaves the book".to_owned());
    }
    if !to.exists() {
        return Some("there is no such file".to_owned());
    }
    let is_there = |page: &Page| anchor.is_empty() || page.anchors.contains(anchor);
    let is_wrong = found.get(&to).is_some_and(|page| !is_there(page));
    is_wrong.then(|| format!("that page has no `{anchor}`"))
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_leads_nowhere_is_found() {
        let page = Page::read(
            "<a href=\"#there\">x</a><h2 id=\"there\">y</h2><a href=\"https://x.test\">z</a><a href=\"#gone\">w</a>",
        );
        assert_eq!(page.links, BTreeSet::from(["#there".to_owned(), "#gone".to_owned()]));
        let (pages, from) = (Path::new("/"), PathBuf::from("/proc/self/status"));
        let found = BTreeMap::from([(from.clone(), page)]);
        let check = |link: &str, is_right: bool| {
            let why = leads_nowhere(pages, &from, link, &found);
            assert_eq!(why.is_none(), is_right, "{link}: {why:?}");
        };
        check("#there", true);
        check("#gone", false);
        check("../self/status#there", true);
        check("nothing.html", false);
        check("/proc/version", true);
    }
}
