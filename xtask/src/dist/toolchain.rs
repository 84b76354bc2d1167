//! The code that compiler and linker add to a program, and its licences.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::licences::rule;
use crate::failure::Result;
use crate::job::Job;
use crate::tools;

/// File name of the notices of Rust's standard library, as published by the Rust project.
pub(crate) const NOTICES: &str = "RUST-STANDARD-LIBRARY.html";

/// Replaces `libgcc_s`.
const UNWIND: &str = "LLVM's libunwind (Apache-2.0 WITH LLVM-exception)";

/// The licences that follow those of the packages.
pub(super) fn licences() -> Result<String> {
    let rust = Job::new(rustc()).arg("--version").quiet_text()?;
    let zig = zig()?;
    let mut all = format!(
        "{}Rust's standard library, {}, MIT OR Apache-2.0: {NOTICES} has its notices, and those of what it is made \
         of.\n",
        rule(),
        rust.trim()
    );
    let of_zig = [("Zig's compiler runtime (MIT)", "LICENSE"), (UNWIND, "lib/libunwind/LICENSE.TXT")];
    for (name, file) in of_zig {
        let _ = writeln!(all, "{}{name}\n\n{}", rule(), read(&zig.join(file))?.trim_end());
    }
    Ok(all)
}

/// Path of the notices of Rust's standard library.
pub(super) fn notices() -> Result<PathBuf> {
    let sysroot = Job::new(rustc()).words("--print sysroot").quiet_text()?;
    let path = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    if !path.is_file() {
        return Err(missing!(
            "{}: install Rust 1.84 or later with rustup; distributed builds need it",
            path.display()
        ));
    }
    Ok(path)
}

/// The compiler of the cargo that runs this program.
fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The folder of the Zig that links the program.
fn zig() -> Result<PathBuf> {
    let python = tools::zigbuild()?.join("python");
    let script = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
    Ok(PathBuf::from(Job::new(python).arg("-c").arg(script).text()?.trim()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| failed!("{}: {error}", path.display()))
}
