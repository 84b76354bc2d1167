//! Builds for other platforms, with the Rust of another Debian. That has the standard library for 64-bit ARM, and the
//! sources from which cargo builds it for any target.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian::{Debian, FORKY};
use crate::failure::Result;
use crate::files;
use crate::job::Job;
use crate::workspace;

const PACKAGES: &str = "ca-certificates cargo rustc rust-src libstd-rust-dev:arm64 gcc-aarch64-linux-gnu \
                        g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user cmake";
const ARM: &str = "aarch64-unknown-linux-gnu";
/// Runs its programs here.
const EMULATED: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";
/// Packages that depend on the processor: byte order, memory order, and instructions.
const TESTED_PACKAGES: &str = "--package thalweg-http2 --package thalweg-protobuf --package thalweg-protobuf-text \
                      --package thalweg-engine --lib --tests";
/// Tests that rely on a processor's speed, on features missing in the emulated kernel (`TCP_INFO`), or on Go.
const SKIPPED_TESTS: &str = "--skip handler_cost --skip round_trip --skip hpack_peer";
/// Type checking only: it needs no linker and no C library of the target.
const CHECKED_TARGETS: &[&str] = &[
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "aarch64-linux-android",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-unknown-freebsd",
];
/// Packages that compile there.
const LIBRARIES: &str = "--package thalweg --package thalweg-tonic --package thalweg-services --package thalweg-web \
                         --package thalweg-build --package thalweg-protobuf --package thalweg-protobuf-text";
/// Without Unix only these compile: the protocol, the codec, and the stubs.
const WINDOWS: &str = "x86_64-pc-windows-msvc";
const LIBRARIES_WITHOUT_UNIX: &str = "--package thalweg-http2 --package thalweg-lanes --package thalweg-protobuf \
                                      --package thalweg-protobuf-text --package thalweg-build";
/// All features except those that build C code.
const FEATURES: &str = "thalweg/brotli,thalweg/buffa,thalweg/opentelemetry,thalweg/tower,thalweg/web";

pub(super) fn check() -> Result<String> {
    let folder = workspace::target().join("platforms");
    let other =
        OtherDebian { debian: Debian::get(&FORKY, &folder, PACKAGES)?, target: folder.join("target") };
    fs::create_dir_all(&other.target)?;
    fetch(&other, &folder.join("library"))?;
    other.cargo(&format!("build --package thalweg-cli --target {ARM}")).run()?;
    other.calls()?;
    other.cargo(&format!("test --no-fail-fast {TESTED_PACKAGES} --target {ARM} -- {SKIPPED_TESTS}")).run()?;
    let check = |what: &str, target: &str| {
        let check = other.cargo(&format!("check -Zbuild-std=std,panic_unwind {what} --target {target}"));
        // Building the standard library from source is an unstable feature.
        check.env("RUSTC_BOOTSTRAP", "1").run()
    };
    for target in CHECKED_TARGETS {
        check(&format!("{LIBRARIES} --features {FEATURES}"), target)?;
    }
    check(LIBRARIES_WITHOUT_UNIX, WINDOWS)?;
    Ok(format!(
        "{ARM} is built, tested and called; the libraries are compiled for {}; what needs no Unix for {WINDOWS}",
        CHECKED_TARGETS.join(", ")
    ))
}

/// Fetches all dependencies into cargo's folders: the build inside has no network.
fn fetch(other: &OtherDebian, copy: &Path) -> Result<()> {
    Job::cargo("fetch --locked").builds(10).run()?;
    // Leave out Debian's vendored dependencies of the library and their configuration, which would apply to ours, too.
    let library = other.debian.root().join("usr/lib/rustlib/src/rust/library");
    files::copy_if(&library, copy, |folder| !folder.ends_with(".cargo") && !folder.ends_with("vendor"))?;
    let fetch = Job::cargo("fetch --locked").directory(copy).env("RUSTC_BOOTSTRAP", "1");
    fetch.builds(10).run()
}

/// The other Debian, and the target folder of its builds.
struct OtherDebian {
    debian: Debian,
    target: PathBuf,
}

impl OtherDebian {
    /// Runs a script inside, in the workspace.
    fn job(&self, script: &str) -> Job {
        let cargo = workspace::cargo_home();
        let folders = [(&*cargo, "/cargo"), (&*self.target, "/target")];
        let job = self.debian.shell(&folders, &format!("cd /workspace && {script}"));
        let job = job.env("HOME", "/root").env("CARGO_HOME", "/cargo").env("CARGO_TARGET_DIR", "/target");
        job.env("CARGO_NET_OFFLINE", "true").env("CARGO_INCREMENTAL", "0")
    }

    fn cargo(&self, words: &str) -> Job {
        let variable = |name: &str| format!("CARGO_TARGET_{}_{name}", ARM.to_uppercase().replace('-', "_"));
        let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
        let job = self.job(&format!("exec cargo {command} --locked --quiet {rest}"));
        let job = job.env(&variable("LINKER"), "aarch64-linux-gnu-gcc").env(&variable("RUNNER"), EMULATED);
        job.builds(60)
    }

    /// Runs the emulated command as server and client, with calls of all four types.
    fn calls(&self) -> Result<()> {
        let program = format!("{EMULATED} /target/{ARM}/debug/thalweg");
        let script = format!(
            "set -e; {program} serve --listen unix:/tmp/served & serves=$!; trap 'kill $serves' EXIT; \
             until test -S /tmp/served; do sleep 0.1; done; \
             for call in unary client-stream server-stream bidi-stream; do \
                 {program} load unix:/tmp/served --call $call -n 200 --size 1KiB --quiet; \
             done"
        );
        self.job(&script).minutes(5).run()
    }
}
