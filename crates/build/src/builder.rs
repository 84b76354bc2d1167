//! Options, and code generation from files.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prost::Message as _;
use prost_build::Config;
use prost_types::FileDescriptorSet;
use thalweg_protobuf::sources::{Compiled, Compiler, Disk, FolderError, Folders};

use crate::aliases;
use crate::collisions;
use crate::descriptors;
use crate::editions;
use crate::error::{Error, SourceError};
use crate::service::ServiceOptions;
use crate::stubs::Stubs;

/// Starts from the default options: clients and servers, into `OUT_DIR`.
pub fn configure() -> Builder {
    let mut config = Config::new();
    config.prost_path("::thalweg::prost");
    Builder {
        config,
        services: ServiceOptions::default(),
        file_descriptor_set_path: None,
        descriptors: None,
        out_dir: None,
        include_file: None,
        includes: Vec::new(),
        // Outside cargo the lines would only clutter the output.
        emit_rerun_if_changed: env::var_os("CARGO").is_some(),
        paths: PathLists::default(),
        #[cfg(feature = "buffa")]
        buffa: false,
    }
}

/// Options of code generation; [`compile_protos`](Builder::compile_protos) runs it.
///
/// Paths of messages and fields (`path` below) are prost's: `.` is everything, `.package.Message.field`
/// is matched from the root, `Message.field` at the end.
///
/// ```no_run
/// fn main() -> Result<(), thalweg_build::Error> {
///     thalweg_build::configure()
///         .build_server(false)
///         .type_attribute(".shop.Order", "#[derive(serde::Serialize)]")
///         .bytes(".shop.Image.pixels")
///         .compile_protos(&["proto/shop.proto", "proto/stock.proto"], &["proto"])
/// }
/// ```
#[derive(Debug)]
#[must_use = "nothing is generated until `compile_protos` is called"]
pub struct Builder {
    config: Config,
    services: ServiceOptions,
    file_descriptor_set_path: Option<PathBuf>,
    /// The encoded descriptors of all files, if compiled from sources.
    descriptors: Option<Vec<u8>>,
    out_dir: Option<PathBuf>,
    include_file: Option<PathBuf>,
    /// The include directories, used in errors.
    includes: Vec<PathBuf>,
    emit_rerun_if_changed: bool,
    paths: PathLists,
    /// Generates buffa messages.
    #[cfg(feature = "buffa")]
    buffa: bool,
}

/// Options of prost-build that take all paths at once, whereas the builder takes one at a time.
#[derive(Debug, Default)]
struct PathLists {
    bytes: Vec<String>,
    btree_map: Vec<String>,
    skip_debug: Vec<String>,
    disable_comments: Vec<String>,
}

/// Output options.
impl Builder {
    /// Whether clients are generated. On by default.
    pub fn build_client(mut self, enable: bool) -> Self {
        self.services.client = enable;
        self
    }

    /// Whether servers are generated. On by default.
    pub fn build_server(mut self, enable: bool) -> Self {
        self.services.server = enable;
        self
    }

    /// Sets the output folder, which must exist; `OUT_DIR` by default.
    pub fn out_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.out_dir = Some(path.as_ref().to_owned());
        self
    }

    /// Writes a file in the output folder with a module for each package, nested like the packages.
    pub fn include_file(mut self, path: impl AsRef<Path>) -> Self {
        self.include_file = Some(path.as_ref().to_owned());
        self
    }

    /// Writes the descriptors of all files to this file, with imports and comments, for server reflection and
    /// descriptor-driven clients.
    pub fn file_descriptor_set_path(mut self, path: impl AsRef<Path>) -> Self {
        self.file_descriptor_set_path = Some(path.as_ref().to_owned());
        self
    }

    /// Whether the descriptors of services, with imports, options and comments, are embedded in the program. Servers
    /// then have them at run time (`thalweg::server::Service::FILE_DESCRIPTOR_SET`), for JSON over HTTP, documentation
    /// pages and reflection.
    ///
    /// They are stored once per package, next to the code of its services, as the static `FILE_DESCRIPTOR_SET` of its
    /// module. Off by default.
    pub fn embed_descriptors(mut self, enable: bool) -> Self {
        self.services.embeds_descriptors = enable;
        self
    }

    /// Whether cargo reruns the build script when an input or an import changes. On by default if cargo runs it.
    pub fn emit_rerun_if_changed(mut self, enable: bool) -> Self {
        self.emit_rerun_if_changed = enable;
        self
    }

    /// Sets the path of prost in generated messages; `::thalweg::prost` by default. Use `::prost` in crates that depend
    /// on prost and generate neither clients nor servers.
    pub fn prost_path(mut self, path: impl Into<String>) -> Self {
        self.config.prost_path(path);
        self
    }

    /// Wraps all messages of services in a type whose `thalweg::Message` defines their encoding and content subtype.
    /// With `crate::Json`, clients and servers send and receive `crate::Json<Order>`. The type has one parameter, and
    /// its path starts with `::` or `crate::`.
    ///
    /// ```no_run
    /// fn main() -> Result<(), thalweg_build::Error> {
    ///     thalweg_build::configure()
    ///         .codec_path("crate::Json")
    ///         .message_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
    ///         .compile_protos(&["proto/shop.proto"], &["proto"])
    /// }
    /// ```
    pub fn codec_path(mut self, path: impl Into<String>) -> Self {
        self.services.codec = Some(path.into());
        self
    }

    /// Generates buffa messages instead of prost's. The crate then needs `buffa`, and `thalweg` with the feature
    /// `buffa`.
    ///
    /// Message options of prost-build have no effect; buffa's defaults apply.
    #[cfg(feature = "buffa")]
    pub fn buffa(mut self) -> Self {
        self.buffa = true;
        self
    }

    /// Generates buffa messages, and receives messages (a server's requests, a client's responses) as `thalweg::View`s,
    /// whose strings and bytes borrow the received data.
    #[cfg(feature = "buffa")]
    pub fn buffa_views(mut self) -> Self {
        self.services.receive_views = true;
        self.buffa()
    }

    /// Sets any other option of prost-build. A service generator set there is replaced.
    pub fn prost_config(mut self, configure: impl FnOnce(&mut Config)) -> Self {
        configure(&mut self.config);
        self
    }
}

/// Message options: the most used ones of prost-build.
impl Builder {
    /// Uses an existing type: `.google.protobuf.Timestamp`, `::chrono_proto::Timestamp`. The Rust path starts with `::`
    /// or `crate::`.
    pub fn extern_path(mut self, proto_path: impl Into<String>, rust_path: impl Into<String>) -> Self {
        self.config.extern_path(proto_path, rust_path);
        self
    }

    /// Generates the well-known types too, instead of using those of `prost-types`.
    pub fn compile_well_known_types(mut self, enable: bool) -> Self {
        if enable {
            self.config.compile_well_known_types();
        }
        self
    }

    /// Adds an attribute to messages, enums and oneofs.
    pub fn type_attribute(mut self, path: impl AsRef<str>, attribute: impl AsRef<str>) -> Self {
        self.config.type_attribute(path, attribute);
        self
    }

    /// Adds an attribute to messages.
    pub fn message_attribute(mut self, path: impl AsRef<str>, attribute: impl AsRef<str>) -> Self {
        self.config.message_attribute(path, attribute);
        self
    }

    /// Adds an attribute to enums and oneofs.
    pub fn enum_attribute(mut self, path: impl AsRef<str>, attribute: impl AsRef<str>) -> Self {
        self.config.enum_attribute(path, attribute);
        self
    }

    /// Adds an attribute to fields.
    pub fn field_attribute(mut self, path: impl AsRef<str>, attribute: impl AsRef<str>) -> Self {
        self.config.field_attribute(path, attribute);
        self
    }

    /// Boxes a field.
    pub fn boxed(mut self, path: impl AsRef<str>) -> Self {
        self.config.boxed(path);
        self
    }

    /// Uses `bytes::Bytes`, which shares memory, for `bytes` fields.
    pub fn bytes(mut self, path: impl AsRef<str>) -> Self {
        self.paths.bytes.push(path.as_ref().to_owned());
        self
    }

    /// Uses the ordered `BTreeMap` for `map` fields.
    pub fn btree_map(mut self, path: impl AsRef<str>) -> Self {
        self.paths.btree_map.push(path.as_ref().to_owned());
        self
    }

    /// Does not derive `Debug` for messages, so that it can be implemented manually.
    pub fn skip_debug(mut self, path: impl AsRef<str>) -> Self {
        self.paths.skip_debug.push(path.as_ref().to_owned());
        self
    }

    /// Omits comments of messages, fields, services and methods, for example if rustdoc would run indented text as a
    /// test.
    pub fn disable_comments(mut self, path: impl AsRef<str>) -> Self {
        self.paths.disable_comments.push(path.as_ref().to_owned());
        self
    }
}

/// Attributes of services. Paths are those of a package or a service: `.`, `.shop`, `shop.v1`, `shop.v1.Orders`,
/// `Orders`.
impl Builder {
    /// Adds an attribute to the client's module: `#[cfg(feature = "client")]`.
    pub fn client_mod_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.services.client_module_attributes.push(path, attribute);
        self
    }

    /// Adds an attribute to the client.
    pub fn client_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.services.client_attributes.push(path, attribute);
        self
    }

    /// Adds an attribute to the server's module: `#[cfg(feature = "server")]`.
    pub fn server_mod_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.services.server_module_attributes.push(path, attribute);
        self
    }

    /// Adds an attribute to the server.
    pub fn server_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.services.server_attributes.push(path, attribute);
        self
    }

    /// Adds an attribute to the trait that the server's service implements.
    pub fn trait_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.services.trait_attributes.push(path, attribute);
        self
    }
}

impl Builder {
    /// Compiles files. They and their imports must be in the include directories; the well-known types need none.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] for an error in a `.proto` file, with its position; other variants for missing files and
    /// output that cannot be written.
    pub fn compile_protos(
        mut self,
        protos: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
    ) -> Result<(), Error> {
        let Compiled { set, paths, .. } = parse(protos, includes)?;
        self.includes = includes.iter().map(|include| include.as_ref().to_owned()).collect();
        if self.emit_rerun_if_changed {
            // A closed stdout does not matter.
            let _ = write_rerun_lines(&mut io::stdout(), &paths);
        }
        if let Some(path) = &self.file_descriptor_set_path {
            // These bytes keep custom options, which prost's types would drop.
            fs::write(path, &set).map_err(|cause| Error::Io {
                action: "write",
                path: path.clone(),
                cause,
            })?;
        }
        self.compile_encoded_fds(&set)
    }

    /// Generates code for an encoded `google.protobuf.FileDescriptorSet`, as written by `protoc --include_imports
    /// --include_source_info -o`. Custom options stay in [embedded](Self::embed_descriptors) descriptors.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] if `encoded` is not a valid set; otherwise those of [`compile_fds`](Self::compile_fds).
    pub fn compile_encoded_fds(mut self, encoded: &[u8]) -> Result<(), Error> {
        let mut set = FileDescriptorSet::decode(encoded)
            .map_err(|error| Error::Other(format!("invalid FileDescriptorSet: {error}")))?;
        editions::lower(&mut set, encoded)?;
        if self.services.embeds_descriptors {
            self.descriptors = Some(encoded.to_vec());
        }
        self.compile_fds(set)
    }

    /// Generates code for descriptors from elsewhere. Imports must be included and come before the files that import
    /// them, as written by `protoc --include_imports --include_source_info -o`.
    ///
    /// The types of `descriptors` drop features and custom options such as `google.api.http`. So
    /// [embedded](Self::embed_descriptors) descriptors have no options, and files of editions are refused.
    /// [`compile_encoded_fds`](Self::compile_encoded_fds) keeps both.
    pub fn compile_fds(mut self, mut descriptors: FileDescriptorSet) -> Result<(), Error> {
        if let Some(file) = descriptors.file.iter().find(|file| file.syntax() == "editions") {
            return Err(Error::Edition { file: file.name().to_owned() });
        }
        #[cfg(feature = "buffa")]
        let messages = (!self.buffa).then_some(&self.config);
        #[cfg(not(feature = "buffa"))]
        let messages = Some(&self.config);
        collisions::check(&descriptors, &self.services, messages, &self.includes)?;
        #[cfg(feature = "buffa")]
        let is_in_out_dir = self.out_dir.is_none();
        let folder = match (self.out_dir, env::var_os("OUT_DIR")) {
            (Some(folder), _) => {
                self.config.out_dir(&folder);
                folder
            }
            (None, Some(folder)) => folder.into(),
            (None, None) => return Err(Error::NoOutDir),
        };
        if self.services.embeds_descriptors && self.services.server {
            let encoded = self.descriptors.take().unwrap_or_else(|| descriptors.encode_to_vec());
            descriptors::write(&descriptors, &encoded, &folder)?;
        }
        self.paths.apply(&mut self.config);
        self.services.disable_comments = self.paths.disable_comments;
        #[cfg(feature = "buffa")]
        if self.buffa {
            let include_file = self.include_file.as_deref().map(|path| (path, is_in_out_dir));
            return crate::buffa::compile(&descriptors, self.config, self.services, &folder, include_file);
        }
        if let Some(path) = self.include_file {
            self.config.include_file(path);
        }
        if self.services.client || self.services.server {
            self.config.service_generator(Box::new(Stubs::new(self.services)));
        }
        aliases::resolve(&mut descriptors);
        self.config.compile_fds(descriptors).map_err(|cause| match cause.raw_os_error() {
            Some(_) => Error::Io { action: "write", path: folder, cause },
            // Not from the operating system, but prost-build's own text.
            None => Error::Other(cause.to_string()),
        })
    }
}

impl PathLists {
    /// Sets the lists that have paths; each call replaces prost-build's previous list.
    fn apply(&self, config: &mut Config) {
        if !self.bytes.is_empty() {
            config.bytes(&self.bytes);
        }
        if !self.btree_map.is_empty() {
            config.btree_map(&self.btree_map);
        }
        if !self.skip_debug.is_empty() {
            config.skip_debug(&self.skip_debug);
        }
        if !self.disable_comments.is_empty() {
            config.disable_comments(&self.disable_comments);
        }
    }
}

/// Reads the files and all their imports.
fn parse(protos: &[impl AsRef<Path>], includes: &[impl AsRef<Path>]) -> Result<Compiled, Error> {
    let includes: Vec<PathBuf> = includes.iter().map(|include| include.as_ref().to_owned()).collect();
    let disk = Disk { read: |path| fs::read(path), canonicalize: |path| fs::canonicalize(path) };
    let mut folders = Folders::new(disk);
    for include in &includes {
        folders.push(include);
    }
    let names = protos.iter().map(AsRef::as_ref).map(|proto| {
        folders.name(proto).map_err(|error| match error {
            FolderError::NotFound(_) => Error::NotFound { path: proto.to_owned() },
            FolderError::Outside => Error::NotIncluded { path: proto.to_owned(), includes: includes.clone() },
            error => Error::Other(format!("{}: {error}", proto.display())),
        })
    });
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let compiled = Compiler::new(&folders).compile(&names);
    compiled.map_err(|error| Error::Source(Box::new(SourceError::new(&error, &includes))))
}

/// Writes one line per input; built-in well-known types have no path.
fn write_rerun_lines(out: &mut impl Write, paths: &[String]) -> io::Result<()> {
    paths.iter().try_for_each(|input| writeln!(out, "cargo:rerun-if-changed={input}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_reruns_on_changes_of_files_and_imports() {
        let check = |protos: &[&str], expected: &[&str]| {
            let compiled = parse(protos, &["tests/proto"]).expect("the files are right");
            let mut printed = Vec::new();
            write_rerun_lines(&mut printed, &compiled.paths).expect("writing to a Vec does not fail");
            let printed = String::from_utf8(printed).expect("text");
            let watched: Vec<&str> = printed
                .lines()
                .map(|line| {
                    line.strip_prefix("cargo:rerun-if-changed=tests/proto/").expect("a line for cargo")
                })
                .collect();
            assert_eq!(watched, expected);
        };
        check(&["rootless.proto"], &["rootless.proto"]);
        check(&["common/size.proto"], &["common/size.proto"]);
        // Including indirect imports, except google's, which are not files.
        check(&["shapes.proto"], &["common/size.proto", "common/page.proto", "shapes.proto"]);
        check(
            &["rootless.proto", "type.proto", "shapes.proto"],
            &["rootless.proto", "common/size.proto", "common/page.proto", "shapes.proto", "type.proto"],
        );
    }
}
