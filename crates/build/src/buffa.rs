//! Code whose messages are buffa's: buffa-codegen makes them, prost-build only reads the services.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use buffa::Message as _;
use buffa_codegen::generated::descriptor::FileDescriptorSet as BuffaDescriptors;
use buffa_codegen::{CodeGenConfig, IncludeMode};
use prost::Message as _;
use prost_build::{Config, Module, Service, ServiceGenerator};
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::error::Error;
use crate::service::ServiceOptions;
use crate::stubs::Stubs;

/// Types that buffa-types has, so that nobody generates them.
const WELL_KNOWN: &str = "google.protobuf";
const WELL_KNOWN_PATH: &str = "::buffa_types::google::protobuf";

/// Writes a file for each package, as prost-build does: messages, their implementations of the stack's traits, and
/// services. `include_file` is the path of the file with all packages as modules, and whether they are in `OUT_DIR`.
pub(crate) fn compile(
    descriptors: &FileDescriptorSet,
    config: Config,
    services: ServiceOptions,
    folder: &Path,
    include_file: Option<(&Path, bool)>,
) -> Result<(), Error> {
    let views = services.receive_views;
    let mut packages = service_code(descriptors, config, services)?;
    let mut written = Vec::new();
    for generated in messages(descriptors, views)? {
        let package = generated.package;
        let types: Vec<String> = descriptors
            .file
            .iter()
            .filter(|file| file.package() == package)
            .flat_map(|file| type_paths("", &file.message_type))
            .collect();
        let code = packages.remove(&package).unwrap_or_default();
        let content =
            format!("{}\nthalweg::buffa_messages!({});\n{code}", generated.content, types.join(", "));
        let name = if package.is_empty() { "_.rs".to_owned() } else { format!("{package}.rs") };
        write(folder.join(&name), &content)?;
        written.push((name, package));
    }
    if let Some((path, is_in_out_dir)) = include_file {
        let mode = if is_in_out_dir { IncludeMode::OutDir } else { IncludeMode::Relative("") };
        write(folder.join(path), &buffa_codegen::generate_module_tree(&written, mode, false))?;
    }
    Ok(())
}

fn write(path: PathBuf, content: &str) -> Result<(), Error> {
    fs::write(&path, content).map_err(|cause| Error::Io { action: "write", path, cause })
}

/// Whose package is buffa-types'.
fn is_well_known(file: &FileDescriptorProto) -> bool {
    file.package() == WELL_KNOWN
}

/// One file for each package.
fn messages(
    descriptors: &FileDescriptorSet,
    views: bool,
) -> Result<Vec<buffa_codegen::GeneratedFile>, Error> {
    let other = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
    let set =
        BuffaDescriptors::decode_from_slice(&descriptors.encode_to_vec()).map_err(|error| other(&error))?;
    let generated = descriptors.file.iter().filter(|file| !is_well_known(file));
    let names: Vec<String> = generated.map(|file| file.name().to_owned()).collect();
    let mut config = CodeGenConfig::default();
    config.file_per_package = true;
    config.generate_views = views;
    buffa_codegen::generate(&set.file, &names, &config).map_err(|error| other(&error))
}

/// Code of the services, by package.
fn service_code(
    descriptors: &FileDescriptorSet,
    mut config: Config,
    services: ServiceOptions,
) -> Result<BTreeMap<String, String>, Error> {
    let written = Written::default();
    if services.client || services.server {
        config.service_generator(Box::new(Apart { stubs: Stubs::new(services), written: written.clone() }));
    }
    config.compile_well_known_types().extern_path(format!(".{WELL_KNOWN}"), WELL_KNOWN_PATH);
    let files = descriptors.file.iter().filter(|file| !is_well_known(file));
    let requests =
        files.map(|file| (Module::from_protobuf_package_name(file.package()), services_of(file))).collect();
    config.generate(requests).map_err(|error| Error::Other(error.to_string()))?;
    let mut written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *written))
}

/// A file without its messages and enums, for whose names prost has rules of its own.
fn services_of(file: &FileDescriptorProto) -> FileDescriptorProto {
    FileDescriptorProto { message_type: Vec::new(), enum_type: Vec::new(), ..file.clone() }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<BTreeMap<String, String>>>);

/// Keeps the services' code away from that of prost's messages, which nobody wants.
struct Apart {
    stubs: Stubs,
    written: Written,
}

impl ServiceGenerator for Apart {
    fn generate(&mut self, service: Service, buffer: &mut String) {
        // prost-build 0.14 panics on a package whose only services leave no code.
        buffer.push('\n');
        let mut written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        let code = written.entry(service.package.clone()).or_default();
        self.stubs.generate(service, code);
    }
}

/// `Outer` and `outer::Inner`; entries of maps are no types in Rust.
fn type_paths(module: &str, messages: &[DescriptorProto]) -> Vec<String> {
    let is_type = |message: &&DescriptorProto| {
        !message.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry)
    };
    let paths = |message: &DescriptorProto| {
        let inner = format!("{module}{}::", snake_case(message.name()));
        let mut paths = vec![format!("{module}{}", message.name())];
        paths.extend(type_paths(&inner, &message.nested_type));
        paths
    };
    messages.iter().filter(is_type).flat_map(paths).collect()
}

/// As buffa names the module of a message's nested types.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before_is_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && before_is_lower {
            snake.push('_');
        }
        before_is_lower = letter.is_lowercase() || letter.is_ascii_digit();
        snake.extend(letter.to_lowercase());
    }
    snake
}
