use std::path::{Path, PathBuf};

use super::report::Report;
use crate::bench::pair::CLIENT;
use crate::bench::valgrind::at_h2load;
use crate::failure::Result;
use crate::job::Job;
use crate::{proc, tools};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generator {
    Thalweg,
    /// Told that requests are no templates, which ours detects.
    Ghz,
    /// By default ghz fills templates for each call, even without placeholders.
    GhzWithTemplates,
    H2load,
}

impl Generator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Thalweg => "`thalweg load`",
            Self::Ghz => "ghz",
            Self::GhzWithTemplates => "ghz with template expansion",
            Self::H2load => "h2load",
        }
    }
}

/// The method, with an empty message each way.
const CALL: &str = "--call grpc.testing.BenchmarkService/UnaryCall -d {} --connections 1";

/// All generators, against one server.
pub(super) struct Generators {
    thalweg: PathBuf,
    ghz: PathBuf,
    port: u16,
    /// `ghz 0.121.0, h2load of nghttp2 1.52.0`
    pub(super) versions: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) report: Report,
    /// User and kernel CPU time of the whole process, in seconds.
    pub(super) cpu_s: [f64; 2],
}

impl Generators {
    pub(super) fn get(thalweg: &Path, port: u16) -> Result<Self> {
        let ghz = tools::ghz()?;
        tools::debian("nghttp2-client", &["h2load"])?;
        // `h2load nghttp2/1.52.0`
        let h2load = Job::new("h2load").arg("--version").text()?.trim().replace("h2load nghttp2/", "");
        let versions =
            format!("ghz {}, h2load of nghttp2 {h2load}", tools::GHZ_VERSION.trim_start_matches('v'));
        Ok(Self { thalweg: thalweg.to_owned(), ghz, port, versions })
    }

    /// Makes unary calls over one connection, with server reflection and additional `flags`.
    pub(super) fn run(&self, generator: Generator, flags: &str) -> Result<Run> {
        let address = format!("127.0.0.1:{}", self.port);
        let ghz = || Job::new(&self.ghz).words(&format!("--insecure {CALL}"));
        let ours = || Job::new(&self.thalweg).words(&format!("load {address} {CALL} --warmup 0s -O json"));
        let (job, read): (Job, fn(&str) -> Option<Report>) = match generator {
            Generator::Thalweg => (ours(), Report::of_thalweg),
            Generator::Ghz => {
                let words = "--disable-template-functions --disable-template-data";
                (ghz().words(words).arg(&address), Report::of_ghz)
            }
            Generator::GhzWithTemplates => (ghz().arg(&address), Report::of_ghz),
            Generator::H2load => (at_h2load(self.port)?.words("-t 1 -c 1"), Report::of_h2load),
        };
        let job = job.words(flags).under(CLIENT);
        // The generator is the only child process that ends meanwhile.
        let before = proc::cpu_time("self")?;
        let text = job.text()?;
        let after = proc::cpu_time("self")?;
        let report = read(&text).ok_or_else(|| failed!("`{job}` did not print all figures"))?;
        let [user, system] =
            [(after.children_user, before.children_user), (after.children_system, before.children_system)]
                .map(|(after, before)| after.saturating_sub(before).as_secs_f64());
        Ok(Run { report, cpu_s: [user, system] })
    }
}
