//! Embedded descriptors: a file for each package with services.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use proc_macro2::TokenStream;
use prost::Message;
use prost_types::FileDescriptorSet;
use quote::{format_ident, quote};

use crate::error::Error;

/// Name of the static with the descriptors, in the module of their package.
pub(crate) const DESCRIPTORS: &str = "FILE_DESCRIPTOR_SET";

/// Includes the file of a package in its code, once for all its services.
pub(crate) fn item(package: &str) -> TokenStream {
    let (name, file) = (format_ident!("{DESCRIPTORS}"), file_name(package));
    quote! {
        /// The descriptors of this package's services, and of all that they import: an encoded
        /// `google.protobuf.FileDescriptorSet`.
        #[allow(dead_code)]
        pub static #name: &[u8] = include_bytes!(#file);
    }
}

/// Writes a file for each package with services. `encoded` is `set` with custom options, which the types of `set` drop.
pub(crate) fn write(set: &FileDescriptorSet, encoded: &[u8], folder: &Path) -> Result<(), Error> {
    let files = EncodedSet::decode(encoded).map_err(|error| Error::Other(error.to_string()))?.file;
    let with_services = set.file.iter().filter(|file| !file.service.is_empty());
    let packages: BTreeSet<&str> = with_services.map(prost_types::FileDescriptorProto::package).collect();
    for package in packages {
        let required_files = required_files(set, package);
        let selected = set.file.iter().zip(&files).filter(|(file, _)| required_files.contains(file.name()));
        let selected = EncodedSet { file: selected.map(|(_, encoded)| encoded.clone()).collect() };
        let path = folder.join(file_name(package));
        fs::write(&path, selected.encode_to_vec()).map_err(|cause| Error::Io {
            action: "write",
            path,
            cause,
        })?;
    }
    Ok(())
}

/// A set whose files stay encoded.
#[derive(Clone, PartialEq, Message)]
struct EncodedSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// Returns the file name, which corresponds to that of the package's code.
fn file_name(package: &str) -> String {
    let package = if package.is_empty() { "_" } else { package };
    format!("{package}.descriptors.bin")
}

/// Returns the names of the files with a package's services, and of all their imports.
fn required_files<'s>(set: &'s FileDescriptorSet, package: &str) -> HashSet<&'s str> {
    let has_services =
        |file: &&prost_types::FileDescriptorProto| file.package() == package && !file.service.is_empty();
    let mut required_files: HashSet<&str> =
        set.file.iter().filter(has_services).map(prost_types::FileDescriptorProto::name).collect();
    // Files come after their imports.
    for file in set.file.iter().rev() {
        if required_files.contains(file.name()) {
            required_files.extend(file.dependency.iter().map(String::as_str));
        }
    }
    required_files
}
