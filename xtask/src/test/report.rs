//! The main use case of a newcomer: `thalweg lab --quick`, and its page in a real browser.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::failure::Result;
use crate::files::{self, list, text};
use crate::job::Job;
use crate::test::rust;
use crate::{tools, workspace};

/// Widths of a desktop and a phone.
const WIDTHS: [u32; 2] = [1280, 390];
/// Colour schemes with their numbers in the browser's engine.
const THEMES: [(&str, &str); 2] = [("light", "1"), ("dark", "0")];
/// Inserted at the start of the page. After drawing, the page's title is JSON with the data attributes of its root and
/// charts, the first error, and the page's width.
const PROBE: &str = "<script>
    addEventListener('error', ({ message }) => document.documentElement.dataset.error ??= message);
    addEventListener('load', () => setTimeout(() => {
        const root = document.documentElement;
        const charts = [...document.querySelectorAll('figure[data-chart]')].map(({ dataset }) => ({ ...dataset }));
        document.title = JSON.stringify({ ...root.dataset, width: root.scrollWidth, charts });
    }, 2000));
</script>";

pub(super) fn check() -> Result<String> {
    let browser = Job::new(tools::browser()?);
    let thalweg = rust::release_command()?;
    let folder = workspace::output().join("report");
    files::remove(&folder)?;
    // The documented limit is 2 minutes on two cores; the rest is for busy machines.
    let captured = Job::new(thalweg).words("lab --quick --out").arg(&folder).minutes(4).output()?;
    // Other steps run at the same time: the study may report invalid windows, but must still write its report.
    let is_disturbed =
        captured.status.code() == Some(1) && captured.err.contains("the study is inconclusive");
    ensure!(captured.status.success() || is_disturbed, "`thalweg lab --quick` failed: {}", captured.status);

    let schema = &files::json(&folder.join("results.json"))?["schema"];
    ensure!(*schema == "thalweg.lab/5", "results.json has the schema {schema}");
    let rows = fs::read_to_string(folder.join("results.csv"))?.lines().count();
    ensure!(rows >= 2, "results.csv has no rows");
    let page = fs::read_to_string(folder.join("report.html"))?;
    is_self_contained(&page)?;
    fs::write(folder.join("probed.html"), page.replacen("<head>", &format!("<head>{PROBE}"), 1))?;
    let mut lines = 0;
    for width in WIDTHS {
        for (theme, number) in THEMES {
            lines = open(&browser, &folder, (width, theme, number))?;
        }
    }
    let widths = WIDTHS.map(|width| width.to_string()).join(" and ");
    let disturbed = if is_disturbed { "; other programs disturbed the study" } else { "" };
    Ok(format!("{lines} lines drawn, at {widths} px, both themes{disturbed}"))
}

/// Opens the page, saves a screenshot, and returns the number of lines drawn by its charts.
fn open(browser: &Job, folder: &Path, (width, theme, theme_number): (u32, &str, &str)) -> Result<u64> {
    // For root it starts only with --no-sandbox. Virtual time makes the page's timers fire at once.
    let browser = browser
        .clone()
        .words("--no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000")
        .words(&format!("--window-size={width},2400 --blink-settings=preferredColorScheme={theme_number}"));
    let page = |name| format!("file://{}", folder.join(name).display());
    let picture = format!("--screenshot={}", folder.join(format!("report-{width}-{theme}.png")).display());
    browser.clone().arg(picture).arg(page("report.html")).run()?;
    // Written to a file, which takes all in one write: a browser under load has lost a part of its output to a pipe.
    let dom = folder.join("dom.html");
    browser.arg("--dump-dom").arg(page("probed.html")).run_into(&dom)?;
    let dom = fs::read_to_string(&dom)?;
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split("</title>").next());
    let seen = serde_json::from_str(title.unwrap_or_default()).unwrap_or_default();
    let at = |why| failed!("{} at {width} px, {theme}: {why}", page("report.html"));
    lines_drawn(&seen, width).map_err(at)
}

/// Returns the lines drawn by all charts; fails if the probe found a script error or the page is wider than the window.
///
/// Each chart reports its number of lines and how many left their colour on the canvas. Lines on top of each other hide
/// one another, so with unknown figures only half of them must be visible. The lab's own test draws a known study and
/// expects all.
fn lines_drawn(seen: &Value, width: u32) -> Result<u64> {
    ensure!(seen.is_object(), "the page did not load");
    ensure!(seen["error"].is_null(), "its script failed: {}", seen["error"]);
    ensure!(seen["width"].as_u64().is_some_and(|it| it <= width.into()), "it is {} px wide", seen["width"]);
    ensure!(seen["plots"] == "drawn", "the page's script did not finish");
    let charts = list(&seen["charts"]);
    ensure!(!charts.is_empty(), "missing charts");
    let mut lines = 0;
    for chart in charts {
        let number = |key: &str| text(&chart[key]).parse::<u64>().ok();
        match (number("linesShown"), number("linesDrawn")) {
            (Some(shown @ 1..), Some(drawn)) if drawn >= shown.div_ceil(2) => lines += drawn,
            _ => bail!("a chart lacks lines: {chart}"),
        }
    }
    Ok(lines)
}

/// Checks that the page loads nothing from elsewhere.
fn is_self_contained(page: &str) -> Result<()> {
    let loads = ["src=\"http", "src=\"//", "@import", "<link rel=\"stylesheet\"", "url(http", "fetch("];
    match loads.iter().find(|text| page.contains(*text)) {
        Some(text) => Err(failed!("report.html is not self-contained: found `{text}`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::lines_drawn;

    #[test]
    fn failed_wide_or_empty_pages_are_reported() {
        let chart = |drawn: &str| json!([{"chart": "rate", "linesShown": "2", "linesDrawn": drawn}]);
        let page = json!({"plots": "drawn", "width": 390, "charts": chart("2")});
        let check = |key: &str, value: Value, lines: Option<u64>| {
            let mut page = page.clone();
            page[key] = value;
            assert_eq!(lines_drawn(&page, 390).ok(), lines, "{page}");
        };
        check("lang", json!("en"), Some(2));
        check("charts", chart("1"), Some(1));
        check("charts", chart("0"), None);
        check("charts", json!([{"chart": "rate", "linesShown": "2"}]), None);
        check("charts", json!([]), None);
        check("plots", json!(null), None);
        check("width", json!(391), None);
        check("error", json!("x is not defined"), None);
        assert!(lines_drawn(&json!(null), 390).is_err());
    }
}
