//! The options, and the way from files to code.

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
        // Outside cargo, the lines would only be in the way.
        emit_rerun_if_changed: env::var_os("CARGO").is_some(),
        paths: PathLists::default(),
        #[cfg(feature = "buffa")]
        buffa: false,
    }
}

/// Options, then [`compile_protos`](Builder::compile_protos).
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
#[must_use = "nothing is generated before `compile_protos`"]
pub struct Builder {
    config: Config,
    services: ServiceOptions,
    file_descriptor_set_path: Option<PathBuf>,
    /// The descriptors of all files, encoded, where they have come from sources.
    descriptors: Option<Vec<u8>>,
    out_dir: Option<PathBuf>,
    include_file: Option<PathBuf>,
    /// The include directories, for the lines of errors.
    includes: Vec<PathBuf>,
    emit_rerun_if_changed: bool,
    paths: PathLists,
    /// Messages are buffa's.
    #[cfg(feature = "buffa")]
    buffa: bool,
}

/// Options of prost-build that take all their paths at once, while the builder takes one at a time.
#[derive(Debug, Default)]
struct PathLists {
    bytes: Vec<String>,
    btree_map: Vec<String>,
    skip_debug: Vec<String>,
    disable_comments: Vec<String>,
}

/// Where code goes and what is made.
impl Builder {
    /// Whether clients are generated.
    pub fn build_client(mut self, enable: bool) -> Self {
        self.services.client = enable;
        self
    }

    /// Whether servers are generated.
    pub fn build_server(mut self, enable: bool) -> Self {
        self.services.server = enable;
        self
    }

    /// Writes the code to this folder, which exists, in place of `OUT_DIR`.
    pub fn out_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.out_dir = Some(path.as_ref().to_owned());
        self
    }

    /// Writes a file in the output folder with a module for each package, nested as the packages are.
    pub fn include_file(mut self, path: impl AsRef<Path>) -> Self {
        self.include_file = Some(path.as_ref().to_owned());
        self
    }

    /// Writes the descriptors of all files, imports and comments included, to this file: what server
    /// reflection and descriptor-driven clients read.
    pub fn file_descriptor_set_path(mut self, path: impl AsRef<Path>) -> Self {
        self.file_descriptor_set_path = Some(path.as_ref().to_owned());
        self
    }

    /// Whether the descriptors of services, with all that they import, their options and their comments, become a part
    /// of the program. Servers then have them with them (`thalweg::server::Service::FILE_DESCRIPTOR_SET`), for what
    /// wants to know at run time what messages look like: JSON over HTTP, pages that describe a service, reflection.
    ///
    /// They are there once for a package, beside the code of its services, and as the static `FILE_DESCRIPTOR_SET` of
    /// its module. Off by default.
    pub fn embed_descriptors(mut self, enable: bool) -> Self {
        self.services.embeds_descriptors = enable;
        self
    }

    /// Whether cargo is told to run the build script again when an input changes, imports included. On
    /// by default where cargo runs it.
    pub fn emit_rerun_if_changed(mut self, enable: bool) -> Self {
        self.emit_rerun_if_changed = enable;
        self
    }

    /// Where the generated messages find prost: `::thalweg::prost` by default. `::prost` for crates that
    /// have it themselves and build neither clients nor servers.
    pub fn prost_path(mut self, path: impl Into<String>) -> Self {
        self.config.prost_path(path);
        self
    }

    /// Puts a type around all messages of services, whose `thalweg::Message` then says how they are encoded, and
    /// what content types call it: `crate::Json` has clients and servers send and receive `crate::Json<Order>`. It has
    /// one parameter, and a path that starts with `::` or `crate::`.
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

    /// Messages are buffa's in place of prost's. The crate then needs `buffa`, and `thalweg` with its feature of that
    /// name.
    ///
    /// Of the options for messages, those of prost-build have no effect: buffa's own defaults hold.
    #[cfg(feature = "buffa")]
    pub fn buffa(mut self) -> Self {
        self.buffa = true;
        self
    }

    /// Messages are buffa's, and those that are received (a server's requests, a client's answers) come as
    /// `thalweg::View`s, whose strings and bytes lie in what the network brought.
    #[cfg(feature = "buffa")]
    pub fn buffa_views(mut self) -> Self {
        self.services.receive_views = true;
        self.buffa()
    }

    /// Any other option of prost-build. The service generator set there is replaced.
    pub fn prost_config(mut self, configure: impl FnOnce(&mut Config)) -> Self {
        configure(&mut self.config);
        self
    }
}

/// Messages: the options of prost-build that are used most.
impl Builder {
    /// Uses a type from elsewhere: `.google.protobuf.Timestamp`, `::chrono_proto::Timestamp`. The Rust
    /// path starts with `::` or `crate::`.
    pub fn extern_path(mut self, proto_path: impl Into<String>, rust_path: impl Into<String>) -> Self {
        self.config.extern_path(proto_path, rust_path);
        self
    }

    /// Generates the well-known types as well, in place of those of `prost-types`.
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

    /// Uses `bytes::Bytes`, which shares its memory, for `bytes` fields.
    pub fn bytes(mut self, path: impl AsRef<str>) -> Self {
        self.paths.bytes.push(path.as_ref().to_owned());
        self
    }

    /// Uses `BTreeMap`, which is in order, for `map` fields.
    pub fn btree_map(mut self, path: impl AsRef<str>) -> Self {
        self.paths.btree_map.push(path.as_ref().to_owned());
        self
    }

    /// Derives no `Debug` for messages, for those who write it by hand.
    pub fn skip_debug(mut self, path: impl AsRef<str>) -> Self {
        self.paths.skip_debug.push(path.as_ref().to_owned());
        self
    }

    /// Leaves comments out of the code, of messages and fields as of services and methods: for indented
    /// text in them, which rustdoc takes for a test.
    pub fn disable_comments(mut self, path: impl AsRef<str>) -> Self {
        self.paths.disable_comments.push(path.as_ref().to_owned());
        self
    }
}

/// Attributes of services. Their paths are those of a package or of a service: `.`, `.shop`, `shop.v1`,
/// `shop.v1.Orders`, `Orders`.
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
    /// Compiles files, which are in one of the include directories, as are their imports. The well-known
    /// types need no directory.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] for an error in a `.proto` file, with its position; others for what is not there or
    /// cannot be written.
    pub fn compile_protos(
        mut self,
        protos: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
    ) -> Result<(), Error> {
        let Compiled { set, paths, .. } = parse(protos, includes)?;
        self.includes = includes.iter().map(|include| include.as_ref().to_owned()).collect();
        if self.emit_rerun_if_changed {
            // Without a listener on stdout there is nobody to tell.
            let _ = write_rerun_lines(&mut io::stdout(), &paths);
        }
        if let Some(path) = &self.file_descriptor_set_path {
            // These bytes have custom options, which prost's types would drop.
            fs::write(path, &set).map_err(|cause| Error::Io {
                action: "write",
                path: path.clone(),
                cause,
            })?;
        }
        self.compile_encoded_fds(&set)
    }

    /// Generates code for an encoded `google.protobuf.FileDescriptorSet`, as `protoc --include_imports
    /// --include_source_info -o` writes it. Custom options stay in what is [embedded](Self::embed_descriptors).
    ///
    /// # Errors
    ///
    /// [`Error::Other`] if `encoded` is no such set; otherwise those of [`compile_fds`](Self::compile_fds).
    pub fn compile_encoded_fds(mut self, encoded: &[u8]) -> Result<(), Error> {
        let mut set = FileDescriptorSet::decode(encoded)
            .map_err(|error| Error::Other(format!("invalid FileDescriptorSet: {error}")))?;
        editions::lower(&mut set, encoded)?;
        if self.services.embeds_descriptors {
            self.descriptors = Some(encoded.to_vec());
        }
        self.compile_fds(set)
    }

    /// Generates code for descriptors that come from elsewhere, imports included and sorted after what
    /// they import, as `protoc --include_imports --include_source_info -o` writes them.
    ///
    /// The types of `descriptors` drop custom options, such as `google.api.http`, and features, so what is
    /// [embedded](Self::embed_descriptors) has no options, and files of editions are refused.
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
    /// Sets those that have paths; prost-build forgets what was set before.
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

/// Reads the files and all that they import.
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

/// One line for each input; the well-known types, which are built in, have no path.
fn write_rerun_lines(out: &mut impl Write, paths: &[String]) -> io::Result<()> {
    paths.iter().try_for_each(|input| writeln!(out, "cargo:rerun-if-changed={input}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_watches_the_files_and_their_imports() {
        let check = |protos: &[&str], expected: &[&str]| {
            let compiled = parse(protos, &["tests/proto"]).expect("the files are right");
            let mut printed = Vec::new();
            write_rerun_lines(&mut printed, &compiled.paths).expect("a Vec takes all");
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
        // Imports of imports, too; google's are not files.
        check(&["shapes.proto"], &["common/size.proto", "common/page.proto", "shapes.proto"]);
        check(
            &["rootless.proto", "type.proto", "shapes.proto"],
            &["rootless.proto", "common/size.proto", "common/page.proto", "shapes.proto", "type.proto"],
        );
    }
}
