//! Selects Thalweg's own vocabulary in the sources that this package shares with `thalweg-tonic`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=own_vocabulary");
}
