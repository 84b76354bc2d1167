//! Descriptors that become a part of the program: a file for each package that has services.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use proc_macro2::TokenStream;
use prost::Message;
use prost_types::FileDescriptorSet;
use quote::{format_ident, quote};

use crate::error::Error;

/// The static that has them, in the module of their package.
pub(crate) const DESCRIPTORS: &str = "FILE_DESCRIPTOR_SET";

/// Brings the file of a package into its code, once for all its services.
pub(crate) fn item(package: &str) -> TokenStream {
    let (name, file) = (format_ident!("{DESCRIPTORS}"), file_name(package));
    quote! {
        /// The descriptors of this package's services, and of all that they import: an encoded
        /// `google.protobuf.FileDescriptorSet`.
        #[allow(dead_code)]
        pub static #name: &[u8] = include_bytes!(#file);
    }
}

/// Writes a file for each package with services. `encoded` is all of `set`, and has more: custom options, which the
/// types of `set` don't know.
pub(crate) fn write(set: &FileDescriptorSet, encoded: &[u8], folder: &Path) -> Result<(), Error> {
    let files = Encoded::decode(encoded).map_err(|error| Error::Other(error.to_string()))?.file;
    let with_services = set.file.iter().filter(|file| !file.service.is_empty());
    let packages: BTreeSet<&str> = with_services.map(prost_types::FileDescriptorProto::package).collect();
    for package in packages {
        let wanted = wanted(set, package);
        let kept = set.file.iter().zip(&files).filter(|(file, _)| wanted.contains(file.name()));
        let kept = Encoded { file: kept.map(|(_, encoded)| encoded.clone()).collect() };
        let path = folder.join(file_name(package));
        fs::write(&path, kept.encode_to_vec()).map_err(|cause| Error::Io { action: "write", path, cause })?;
    }
    Ok(())
}

/// A set whose files are left as they are.
#[derive(Clone, PartialEq, Message)]
struct Encoded {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// As the package's code is named.
fn file_name(package: &str) -> String {
    let package = if package.is_empty() { "_" } else { package };
    format!("{package}.descriptors.bin")
}

/// The names of the files that have a package's services, and of all that they import.
fn wanted<'s>(set: &'s FileDescriptorSet, package: &str) -> HashSet<&'s str> {
    let is_own =
        |file: &&prost_types::FileDescriptorProto| file.package() == package && !file.service.is_empty();
    let mut wanted: HashSet<&str> =
        set.file.iter().filter(is_own).map(prost_types::FileDescriptorProto::name).collect();
    // Files come behind what they import.
    for file in set.file.iter().rev() {
        if wanted.contains(file.name()) {
            wanted.extend(file.dependency.iter().map(String::as_str));
        }
    }
    wanted
}
