//! Renders pages in a browser. Tests of other crates also include this file.

use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const BROWSER_PATIENCE: Duration = Duration::from_secs(120);

/// Script that tests append to a page: records how far content overflows the window, and what the page loaded.
pub(crate) const PROBE: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const root = document.documentElement;
    root.dataset.sticksOut = root.scrollWidth - root.clientWidth;
    root.dataset.width = innerWidth;
    root.dataset.loaded = performance.getEntriesByType('resource').length;
}, 50))</script>";

/// Without a charset the browser guesses the encoding from the bytes read so far, and has guessed wrong.
const FRAME_HEAD: &str = "<meta charset=\"utf-8\">";

/// Replaces the frame's page with the framed page's elements after its scripts have run. Also records the number of
/// UTF-16 units of their text.
const UNFRAME: &str =
    "<style>iframe { border: 0 }</style><script>addEventListener('load', () => setTimeout(() => {
    const framed = document.querySelector('iframe').contentDocument.documentElement;
    document.replaceChild(document.importNode(framed, true), document.documentElement);
    const root = document.documentElement;
    root.dataset.units = '00000000';
    root.dataset.units = String(root.outerHTML.length).padStart(8, '0');
}, 1000))</script>";

/// Returns the page's elements after its scripts have run, in a window of this width.
pub(crate) fn shown_page(name: &str, width: u32, page: &str) -> String {
    let directory = env::temp_dir().join(format!("thalweg-page-{name}-{}", process::id()));
    fs::create_dir_all(&directory).unwrap();
    // A browser's smallest window is wider than a telephone's, so the page is shown in a frame. Its elements then
    // replace the frame's page, which the browser prints.
    let frame = directory.join("frame.html");
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    let framed = format!("{FRAME_HEAD}<iframe width={width} height=900 srcdoc=\"{page}\"></iframe>{UNFRAME}");
    fs::write(&frame, framed).unwrap();
    // A browser under load has been seen to print an incomplete page.
    let mut doms = (0..3).map(|_| dump_dom(&frame, &directory));
    let dom = doms.find(|dom| is_whole(dom)).expect("a whole page of three");
    fs::remove_dir_all(&directory).unwrap();
    dom
}

fn is_whole(dom: &str) -> bool {
    let units = attribute(dom, "<html", "data-units").and_then(|units| units.parse::<usize>().ok());
    units == Some(dom.trim_end().encode_utf16().count())
}

fn dump_dom(page: &Path, directory: &Path) -> String {
    // Writes to a file in one write, because output through a pipe was sometimes incomplete.
    let dom = directory.join("dom.html");
    let mut browser = Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .stdout(fs::File::create(&dom).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser was found a moment ago");
    let deadline = Instant::now() + BROWSER_PATIENCE;
    while browser.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            browser.kill().unwrap();
            panic!("the browser did not end within {BROWSER_PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    fs::read_to_string(&dom).expect("the DOM is UTF-8")
}

fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let named = env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| candidates.into_iter().find(|path| path.is_file())).expect(
        "Chromium is needed to look at the report, and there is none on the PATH. On Debian: `apt-get install \
         chromium`. One elsewhere can be named by the environment variable CHROMIUM.",
    )
}

/// Returns an attribute's value in the first tag that contains `tag`.
pub(crate) fn attribute(dom: &str, tag: &str, name: &str) -> Option<String> {
    let rest = &dom[dom.find(tag)?..];
    let rest = &rest[..rest.find('>')?];
    let value = &rest[rest.find(&format!("{name}=\""))? + name.len() + 2..];
    value.split('"').next().map(str::to_owned)
}
