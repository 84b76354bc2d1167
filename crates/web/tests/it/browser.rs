//! Runs a browser, and collects the results of a script in its page.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Response;
use thalweg_web::body::Body;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const SCRIPT_TIMEOUT: Duration = Duration::from_secs(120);

/// Results of a script, sent by `POST /told` as one `name: value` each until it is done.
pub(crate) struct ScriptResults {
    facts: mpsc::UnboundedSender<String>,
    is_done: watch::Sender<bool>,
}

impl ScriptResults {
    pub(crate) fn new() -> (ScriptResults, mpsc::UnboundedReceiver<String>) {
        let (sender, facts) = mpsc::unbounded_channel();
        (ScriptResults { facts: sender, is_done: watch::Sender::default() }, facts)
    }

    /// Responds to a request to `/told`.
    pub(crate) fn record(&self, fact: &str) -> Response<Body> {
        if fact.starts_with("done") || fact.starts_with("fault") {
            self.is_done.send_replace(true);
        }
        // The reader may be gone.
        let _ = self.facts.send(fact.to_owned());
        Response::new(Body::empty())
    }

    /// Responds to a request to `/held` when the script is done. Until then the page is not loaded, and the browser
    /// keeps running.
    pub(crate) async fn wait_until_done(&self) -> Response<Body> {
        let mut is_done = self.is_done.subscribe();
        let _ = timeout(SCRIPT_TIMEOUT, is_done.wait_for(|is_done| *is_done)).await;
        Response::new(Body::empty())
    }
}

/// Reads the results of the page until it is done.
pub(crate) async fn read(results: &mut mpsc::UnboundedReceiver<String>) -> HashMap<String, String> {
    let mut facts = HashMap::new();
    loop {
        let fact = timeout(SCRIPT_TIMEOUT, results.recv()).await.ok().flatten();
        let fact = fact.unwrap_or_else(|| panic!("the page did not come to its end: {facts:#?}"));
        let (name, value) = fact.split_once(": ").unwrap();
        assert_ne!(name, "fault", "{value}; {facts:#?}");
        if name == "done" {
            return facts;
        }
        facts.insert(name.to_owned(), value.to_owned());
    }
}

pub(crate) struct Browser {
    process: Child,
    profile: PathBuf,
}

impl Browser {
    pub(crate) fn open(name: &str, url: &str, width: u32, is_dark: bool) -> Browser {
        let profile =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}-{}", std::process::id()));
        fs::create_dir_all(&profile).unwrap();
        // It ends on its own when the page has loaded, which an image delays until the script is done.
        let process = Command::new(chromium())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--dump-dom", &format!("--window-size={width},900")])
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark)))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("the browser was found a moment ago");
        Browser { process, profile }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already. It has child processes, and may be the child of a script.
        let group = format!("kill -KILL -- -{}", self.process.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

fn chromium() -> PathBuf {
    let names =
        ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| candidates.into_iter().find(|path| path.is_file())).expect(
        "Chromium is needed to look at the page, and there is none on the PATH. On Debian: `apt-get install \
         chromium-headless-shell`. One elsewhere can be named by the environment variable CHROMIUM.",
    )
}
