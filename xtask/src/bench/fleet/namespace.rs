//! A network namespace, in which a server can fall silent: neither its kernel nor the client's learns of it.

use std::path::Path;
use std::process;

use crate::failure::Result;
use crate::job::Job;
use crate::tools;

/// Addresses of the two ends, in the range for benchmarks of networks (RFC 2544).
const OUTSIDE: &str = "198.18.77.1";
pub(super) const INSIDE: &str = "198.18.77.2";

/// A network namespace, connected to this machine. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    /// The end of the veth pair that is outside.
    link: String,
}

impl Namespace {
    /// Creates it; needs root and iproute2.
    pub(super) fn create() -> Result<Self> {
        if !tools::is_root() {
            return Err(missing!("a network namespace needs root; run this as root"));
        }
        tools::debian("iproute2", &["ip"])?;
        remove_abandoned()?;
        let name = format!("thalweg-{}", process::id());
        let link = format!("tw{}", process::id());
        ip(&format!("netns add {name}"))?;
        let namespace = Self { name, link };
        let Self { name, link } = &namespace;
        ip(&format!("link add {link} type veth peer name inside netns {name}"))?;
        ip(&format!("address add {OUTSIDE}/30 dev {link}"))?;
        ip(&format!("link set {link} up"))?;
        ip(&format!("-netns {name} address add {INSIDE}/30 dev inside"))?;
        ip(&format!("-netns {name} link set inside up"))?;
        Ok(namespace)
    }

    /// The wrapper for a program that runs inside.
    pub(super) fn wrapper(&self) -> String {
        format!("ip netns exec {}", self.name)
    }

    /// Drops all packets that leave it.
    pub(super) fn silence(&self) -> Result<()> {
        ip(&format!("-netns {} route add blackhole {OUTSIDE}/32", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel removes the namespace later, and the pair with it; the next one has the same names.
        let _ = ip(&format!("link delete {}", self.link));
        let _ = ip(&format!("netns delete {}", self.name));
    }
}

/// Removes namespaces of processes that were killed: their addresses are the same.
fn remove_abandoned() -> Result<()> {
    let listed = Job::new("ip").words("netns list").quiet_text()?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let is_abandoned =
        |name: &&str| name.strip_prefix("thalweg-").is_some_and(|id| !Path::new("/proc").join(id).exists());
    names.filter(is_abandoned).try_for_each(|name| ip(&format!("netns delete {name}")))
}

fn ip(words: &str) -> Result<()> {
    Job::new("ip").words(words).run()
}
