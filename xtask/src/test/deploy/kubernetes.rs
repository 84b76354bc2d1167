//! The manifests of `deploy/kubernetes`: validated like by an API server, and their commands run here like by kubelets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::files::{self, list, text};
use crate::job::Job;
use crate::test::cases::check_output;
use crate::test::rust;
use crate::{tools, workspace};

/// A kustomization, the rate and duration of the load run here in its place, and the resulting number of calls.
const DEPLOYED: &[(&str, &str, &str, u64)] =
    &[("base", "1000", "1s", 1000), ("overlays/ramp", "100..700/1s,700", "2s", 1100)];

/// Delay between starting the parts and the start of the load.
const LEAD: Duration = Duration::from_secs(5);

pub(super) fn check() -> Result<String> {
    // Validates manifests like Kubernetes 1.36.3. Kubernetes pins its dependencies.
    let manifests = tools::go_program("manifests", ".", "kubernetes")?;
    let mut parts = 0;
    for &(folder, rate, duration, calls) in DEPLOYED {
        let objects = Job::new(&manifests).arg(manifests_folder().join(folder)).json()?;
        let ran =
            DeployedJob { objects, folder: workspace::output().join("deployed") }.run(rate, duration, calls);
        parts += ran.map_err(|failure| failed!("deploy/kubernetes/{folder}: {failure}"))?;
    }
    // Damaged manifests with the expected messages show that the validator finds errors.
    let damages = files::json(&workspace::suites().join("kubernetes/damages.json"))?;
    for damage in list(&damages) {
        is_found(damage, &manifests)?;
    }
    let (folders, damages) = (DEPLOYED.len(), list(&damages).len());
    ensure!(damages > 0, "nothing was damaged");
    Ok(format!(
        "Kubernetes: {folders} kustomizations are valid and their {parts} parts run; {damages} kinds of damage found"
    ))
}

fn manifests_folder() -> PathBuf {
    workspace::root().join("deploy/kubernetes")
}

fn is_found(damage: &Value, manifests: &Path) -> Result<()> {
    let [file, from, to, says] = ["file", "from", "to", "says"].map(|key| text(&damage[key]));
    let folder = files::create_empty(workspace::output().join("damaged"))?;
    files::copy(&manifests_folder().join("base"), &folder)?;
    let whole = fs::read_to_string(folder.join(file))?;
    ensure!(whole.contains(from), "{file} no longer has `{from}`");
    fs::write(folder.join(file), whole.replace(from, to))?;
    let captured = Job::new(manifests).arg(&folder).output()?;
    let expected = serde_json::json!({"exit_code": 1, "says": [says]});
    check_output(&expected, &captured).map_err(|why| failed!("`{to}` in {file} was not detected: {why}"))
}

/// The objects of a kustomization, and a folder for their volumes.
struct DeployedJob {
    objects: Value,
    folder: PathBuf,
}

type Variables = BTreeMap<String, String>;

impl DeployedJob {
    fn of(&self, kind: &str, name: &str) -> Result<&Value> {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        list(&self.objects).iter().find(is_it).ok_or_else(|| failed!("missing {kind} {name}"))
    }

    /// Runs the load, merges it, and returns the number of parts.
    fn run(&self, rate: &str, duration: &str, expected_calls: u64) -> Result<u64> {
        files::remove(&self.folder)?;
        let server = rust::serve("--threads 1")?;
        let thalweg = rust::command()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_at = (now + LEAD).as_secs().to_string();
        let settings = [
            ("TARGET", &*server.address()),
            ("RATE", rate),
            ("DURATION", duration),
            ("WARMUP", "500ms"),
            ("PATIENCE", "1m"),
            ("START_AT", &start_at),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let pod = |pod: &Value, container: &Value, index: Option<u64>| {
            let index = index.map(|index| ("JOB_COMPLETION_INDEX".to_owned(), index.to_string()));
            let words = self.words(pod, container, settings.iter().cloned().chain(index))?;
            Ok::<_, Failure>(Job::new(&thalweg).args(words))
        };
        let job = self.of("Job", "thalweg-load")?;
        let (load, parts) = (&job["spec"]["template"]["spec"], job["spec"]["completions"].as_u64());
        let (parts, one) = (parts.unwrap_or_default(), &load["containers"][0]);
        let are_equal = job["spec"]["parallelism"] == parts
            && self.environment(one)?.get("PARTS") == Some(&parts.to_string());
        ensure!(are_equal, "completions, parallelism and PARTS differ");
        let merge = &self.of("Job", "thalweg-merge")?["spec"]["template"]["spec"];
        let (first, later) =
            list(&merge["initContainers"]).split_first().ok_or_else(|| failed!("no results were joined"))?;
        let mut jobs = vec![pod(merge, first, None)?];
        for index in 0..parts {
            jobs.push(pod(load, one, Some(index))?);
        }
        thread::scope(|scope| {
            let running: Vec<_> = jobs.iter().map(|job| scope.spawn(|| job.run())).collect();
            running.into_iter().try_for_each(|one| one.join().expect("the thread does not panic"))
        })?;
        // The containers after the first run sequentially.
        later.iter().try_for_each(|container| pod(merge, container, None)?.run())?;
        let shown = pod(merge, &merge["containers"][0], None)?.text()?;
        server.stop()?;
        let results = self.folder.join("results").join(start_at);
        let page = fs::read_to_string(results.join("merged.html"))?;
        let merged = files::json(&results.join("merged.json"))?;
        if let Some(missing) = missing(&page, &shown, &merged) {
            bail!("the page of the joined run lacks `{missing}`");
        }
        // Calls may be dropped at the end for lack of CPU time.
        let calls = merged["ok"].as_u64().unwrap_or(0) + merged["dropped"].as_u64().unwrap_or(0);
        let is_whole = calls == expected_calls
            && merged["failed"] == 0
            && merged["schedule"] == rate
            && !merged["notes"].to_string().contains("missing")
            && merged["connections_established"] == 2 * parts
            && shown.contains("grpc.testing.TestService/UnaryCall");
        ensure!(is_whole, "{calls} of {expected_calls} calls: {}", merged["notes"]);
        Ok(parts)
    }

    /// The words of a container's command as a kubelet passes them, with its volumes in the folder.
    fn words(
        &self,
        pod: &Value,
        container: &Value,
        settings: impl Iterator<Item = (String, String)>,
    ) -> Result<Vec<String>> {
        let mut environment = self.environment(container)?;
        environment.extend(settings);
        let mut words = Vec::new();
        for word in list(&container["args"]) {
            let mut word = expand_variables(word, &environment)?;
            for mount in list(&container["volumeMounts"]) {
                let place =
                    self.volume(pod, mount)?.join(expand_variables(&mount["subPathExpr"], &environment)?);
                fs::create_dir_all(&place)?;
                let (at, path) = word.split_at(usize::from(word.starts_with('@')));
                if let Some(rest) = path.strip_prefix(text(&mount["mountPath"])) {
                    word = format!("{at}{}{rest}", place.display());
                }
            }
            words.push(word);
        }
        Ok(words)
    }

    /// The container's environment, without the map created when the load starts.
    fn environment(&self, container: &Value) -> Result<Variables> {
        let mut environment = Variables::new();
        for source in list(&container["envFrom"]) {
            let name = text(&source["configMapRef"]["name"]);
            if name != "thalweg-load-start" {
                environment.extend(self.config(name)?);
            }
        }
        for variable in list(&container["env"]) {
            let value = match variable["valueFrom"]["resourceFieldRef"]["resource"].as_str() {
                Some("limits.cpu") => &container["resources"]["limits"]["cpu"],
                _ => &variable["value"],
            };
            let name = text(&variable["name"]);
            let value = value.as_str().ok_or_else(|| failed!("the variable {name} has no value"))?;
            environment.insert(name.to_owned(), value.to_owned());
        }
        Ok(environment)
    }

    /// Entries of a ConfigMap.
    fn config(&self, name: &str) -> Result<impl Iterator<Item = (String, String)>> {
        let data = self.of("ConfigMap", name)?["data"].as_object().into_iter().flatten();
        Ok(data.map(|(name, value)| (name.clone(), text(value).to_owned())))
    }

    /// A folder in place of a volume, with the files of its ConfigMap.
    fn volume(&self, pod: &Value, mount: &Value) -> Result<PathBuf> {
        let volume = list(&pod["volumes"]).iter().find(|volume| volume["name"] == mount["name"]);
        let volume = volume.ok_or_else(|| failed!("missing volume {}", mount["name"]))?;
        let place = self.folder.join(text(&volume["name"]));
        fs::create_dir_all(&place)?;
        if let Some(name) = volume["configMap"]["name"].as_str() {
            for (file, text) in self.config(name)? {
                fs::write(place.join(file), text)?;
            }
        }
        Ok(place)
    }
}

/// Returns the first expected text missing on the page of a run: method, schedule, number of calls, and the p99 of its
/// text report. Spaces are ignored: the page uses non-breaking ones between figures and units.
fn missing(page: &str, text: &str, run: &Value) -> Option<String> {
    let compact = |text: &str| text.split_whitespace().collect::<String>();
    let page = compact(page);
    let p99 =
        text.lines().find(|line| line.starts_with("latency ")).and_then(|line| line.split("p99 ").nth(1));
    let p99 = p99.and_then(|rest| rest.split(',').next()).unwrap_or("a latency in the text");
    let calls = run["ok"].as_u64().unwrap_or(0) + run["failed"].as_u64().unwrap_or(0);
    let schedule = run["schedule"].as_str().unwrap_or("a schedule");
    let page_parts = [
        "<code>grpc.testing.TestService/UnaryCall</code>".to_owned(),
        format!("schedule <code>{schedule}</code>"),
        format!("{} of {calls} calls", run["failed"]),
        format!("p99 {p99}</h1>"),
    ];
    page_parts.into_iter().find(|part| !page.contains(&compact(part)))
}

/// Replaces the variables that `value` refers to.
fn expand_variables(value: &Value, environment: &Variables) -> Result<String> {
    let mut text = text(value).to_owned();
    for (name, value) in environment {
        text = text.replace(&format!("$({name})"), value);
    }
    ensure!(!text.contains("$("), "`{text}` has an unknown variable");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::missing;

    #[test]
    fn page_names_calls_schedule_and_p99() {
        let page = "<h1>p50 1.00\u{a0}ms, p99 4.20\u{a0}ms</h1><code>grpc.testing.TestService/UnaryCall</code>, \
                    schedule <code>1000</code>; <p>0 of 1\u{202f}000 calls</p>";
        let text = "latency       mean 1.00 ms, p50 1.00 ms, p90 2.00 ms, p99 4.20 ms, p99.9 9.00 ms";
        let run = |ok: u64, schedule: &str| json!({"ok": ok, "failed": 0, "schedule": schedule});
        assert_eq!(missing(page, text, &run(1000, "1000")), None);
        assert_eq!(missing(page, text, &run(999, "1000")).as_deref(), Some("0 of 999 calls"));
        let other = missing(page, text, &run(1000, "2000"));
        assert_eq!(other.as_deref(), Some("schedule <code>2000</code>"));
        let later = missing(page, &text.replace("4.20", "4.30"), &run(1000, "1000"));
        assert_eq!(later.as_deref(), Some("p99 4.30 ms</h1>"));
    }
}
