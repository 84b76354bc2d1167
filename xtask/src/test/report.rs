//! The main job as a newcomer runs it: `thalweg lab --quick`, and its page in a real browser.

use std::fs;
use std::path::Path;

use crate::failure::Result;
use crate::job::Job;
use crate::test::rust;
use crate::{files, tools, workspace};

/// A desktop and a phone.
const WIDTHS: [u32; 2] = [1280, 390];
/// What the browser prefers, as its engine numbers it.
const THEMES: [(&str, &str); 2] = [("light", "1"), ("dark", "0")];
/// Goes before all else in the page: notes on its root the first error and, once it has drawn, how wide it is.
const PROBE: &str = "<script>
    addEventListener('error', ({ message }) => document.documentElement.dataset.error ??= message);
    addEventListener('load', () => setTimeout(() => {
        document.documentElement.dataset.width = document.documentElement.scrollWidth;
    }, 2000));
</script>";

pub(super) fn check() -> Result<String> {
    let browser = Job::new(tools::browser()?);
    let thalweg = rust::release_command()?;
    let folder = workspace::output().join("report");
    files::remove(&folder)?;
    // Quick is promised within 2 minutes on two cores; the rest is for machines that have other things to do.
    Job::new(thalweg).words("lab --quick --out").arg(&folder).minutes(4).run()?;

    let schema = &files::json(&folder.join("results.json"))?["schema"];
    ensure!(*schema == "thalweg.lab/5", "results.json has the schema {schema}");
    let rows = fs::read_to_string(folder.join("results.csv"))?.lines().count();
    ensure!(rows >= 2, "results.csv holds no row");
    let page = fs::read_to_string(folder.join("report.html"))?;
    is_self_contained(&page)?;
    fs::write(folder.join("probed.html"), page.replacen("<head>", &format!("<head>{PROBE}"), 1))?;
    let mut lines = 0;
    for width in WIDTHS {
        for (theme, number) in THEMES {
            lines = open(&browser, &folder, (width, theme, number))?;
        }
    }
    Ok(format!(
        "{lines} lines drawn, at {} px, both themes",
        WIDTHS.map(|width| width.to_string()).join(" and ")
    ))
}

/// Opens the page, keeps a picture of it for a person, and gives how many lines its charts drew.
fn open(browser: &Job, folder: &Path, (width, theme, theme_number): (u32, &str, &str)) -> Result<u32> {
    // Without --no-sandbox it does not start for root. Virtual time lets timers of the page run out at once.
    let browser = browser
        .clone()
        .words("--no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000")
        .words(&format!("--window-size={width},2400 --blink-settings=preferredColorScheme={theme_number}"));
    let page = |name| format!("file://{}", folder.join(name).display());
    let picture = format!("--screenshot={}", folder.join(format!("report-{width}-{theme}.png")).display());
    browser.clone().arg(picture).arg(page("report.html")).run()?;
    // Into a file, which takes all in one write: of what goes into a pipe, a browser under load has been seen to lose a
    // part.
    let dom = folder.join("dom.html");
    browser.arg("--dump-dom").arg(page("probed.html")).run_into(&dom)?;
    let dom = fs::read_to_string(&dom)?;
    let at = |why| failed!("{} at {width} px, {theme}: {why}", page("report.html"));
    fits(&dom, width).map_err(at)?;
    lines_drawn(&dom).map_err(at)
}

/// No error, and nothing that has to be scrolled to sideways.
fn fits(dom: &str, width: u32) -> Result<(), String> {
    let root = dom.split_once("<html").and_then(|(_, rest)| rest.split('>').next()).unwrap_or_default();
    if let Some(error) = attribute(root, "data-error") {
        return Err(format!("its script failed: {error}"));
    }
    match attribute(root, "data-width").and_then(|text| text.parse::<u32>().ok()) {
        Some(page_width) if page_width <= width => Ok(()),
        Some(page_width) => Err(format!("it is {page_width} px wide")),
        None => Err("it did not load".to_owned()),
    }
}

/// The page notes on its root that it is done, and on each chart how many lines it should show and how many left their
/// colour on the canvas. Lines that lie on one another hide each other, so with figures that are not known beforehand
/// only half of them must be seen; the lab's own test draws a known study, and asks for all.
fn lines_drawn(dom: &str) -> Result<u32, String> {
    if !dom.contains("data-plots=\"drawn\"") {
        return Err("the page's script did not come to its end".to_owned());
    }
    let charts: Vec<&str> = dom.split("<figure").skip(1).filter_map(|rest| rest.split('>').next()).collect();
    let charts: Vec<&&str> = charts.iter().filter(|tag| tag.contains("data-chart=")).collect();
    if charts.is_empty() {
        return Err("there is no chart".to_owned());
    }
    let mut lines = 0;
    for tag in charts {
        let name = attribute(tag, "data-chart").unwrap_or_default();
        let number =
            |attribute_name| attribute(tag, attribute_name).and_then(|text| text.parse::<u32>().ok());
        match (number("data-lines-shown"), number("data-lines-drawn")) {
            (Some(shown @ 1..), Some(drawn)) if drawn >= shown.div_ceil(2) => lines += drawn,
            (shown, drawn) => return Err(format!("chart {name}: {shown:?} lines to show, {drawn:?} drawn")),
        }
    }
    Ok(lines)
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.split_once(&format!("{name}=\""))?.1.split('"').next()
}

/// Nothing is loaded from elsewhere.
fn is_self_contained(page: &str) -> Result<()> {
    let loads = ["src=\"http", "src=\"//", "@import", "<link rel=\"stylesheet\"", "url(http", "fetch("];
    match loads.iter().find(|text| page.contains(*text)) {
        Some(text) => Err(failed!("report.html is not self-contained: it holds `{text}`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{fits, lines_drawn};

    #[test]
    fn a_page_that_is_too_wide_or_failed_is_found() {
        assert_eq!(fits("<html lang=\"en\" data-width=\"390\">", 390), Ok(()));
        assert!(fits("<html data-width=\"391\">", 390).is_err());
        assert!(fits("<html data-width=\"390\" data-error=\"x is not defined\">", 390).is_err());
        assert!(fits("<html>", 390).is_err());
    }

    #[test]
    fn a_chart_that_did_not_draw_is_found() {
        let page = |drawn: &str| {
            let figure =
                format!("<figure data-chart=\"rate\" data-lines-shown=\"2\"{drawn}><p></p></figure>");
            format!("<html data-plots=\"drawn\"><figure class=\"x\"></figure>{figure}</html>")
        };
        assert_eq!(lines_drawn(&page(" data-lines-drawn=\"2\"")), Ok(2));
        assert_eq!(lines_drawn(&page(" data-lines-drawn=\"1\"")), Ok(1));
        assert!(lines_drawn(&page(" data-lines-drawn=\"0\"")).is_err());
        assert!(lines_drawn(&page("")).is_err());
        assert!(lines_drawn("<html data-plots=\"drawn\"></html>").is_err());
        assert!(lines_drawn("<html></html>").is_err());
    }
}
