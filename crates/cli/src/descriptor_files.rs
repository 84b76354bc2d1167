//! Files with descriptors, in place of the server's own.

use std::path::PathBuf;

use clap::Args;
use thalweg_dynamic::{Catalogue, files};

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::schema::check_sources;

/// Files with descriptors.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Descriptors (default: server reflection)")]
pub(crate) struct DescriptorFiles {
    /// .proto file that declares the service; repeatable
    ///
    /// Imports are looked up in --import-path, in the folder of the file, and in the current folder.
    #[arg(long, value_name = "FILE", conflicts_with = "protoset")]
    proto: Vec<PathBuf>,

    /// Directory to search for imports; repeatable
    #[arg(short = 'i', long, visible_alias = "import-paths", value_name = "DIRECTORY", requires = "proto")]
    import_path: Vec<PathBuf>,

    /// Descriptor set of `protoc --include_imports -o FILE`; repeatable
    #[arg(long, visible_alias = "descriptor-set", value_name = "FILE")]
    protoset: Vec<PathBuf>,

    /// Write the descriptors that were used to a file
    #[arg(long, value_name = "FILE")]
    protoset_out: Option<PathBuf>,
}

impl DescriptorFiles {
    /// What the files declare; none if none are named.
    pub(crate) fn read(&self) -> Result<Option<Catalogue>, Failure> {
        if !self.proto.is_empty() {
            check_sources(&self.proto)?;
            let compiled = files::compile(&self.proto, &self.import_path).map_err(Failure::failed)?;
            return Ok(Some(Catalogue::Files { schema: compiled.schema, set: compiled.set }));
        }
        if !self.protoset.is_empty() {
            let (schema, set) = files::descriptor_sets(&self.protoset).map_err(Failure::failed)?;
            return Ok(Some(Catalogue::Files { schema, set }));
        }
        Ok(None)
    }

    /// Adds the folders that were searched, and what may help, to a failure of [`read`](Self::read).
    pub(crate) fn explain(&self, mut failure: Failure) -> Failure {
        let is_missing = ["not found", "No such file"].iter().any(|what| failure.message.contains(what));
        if is_missing && !self.proto.is_empty() {
            let given: Vec<String> = self
                .import_path
                .iter()
                .map(|path| path.display().to_string())
                .chain([String::new()])
                .collect();
            let given = given.join(", ");
            let searched = format!(
                "; searched {given}the folder of each --proto and the current one: add folders by -i, or give a \
                 descriptor set by --protoset"
            );
            failure.message.push_str(&searched);
        }
        failure
    }

    /// Whether what is used is to be written.
    pub(crate) fn are_kept(&self) -> bool {
        self.protoset_out.is_some()
    }

    /// Writes what was used, if it is to be.
    pub(crate) fn write(&self, catalogue: &Catalogue) -> Result<(), Failure> {
        let Some(path) = &self.protoset_out else { return Ok(()) };
        OutputFile::beside(path)?.write_bytes(&catalogue.descriptor_set())
    }
}
