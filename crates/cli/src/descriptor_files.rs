//! Descriptor files as arguments.

use std::path::PathBuf;

use clap::Args;
use thalweg_dynamic::{Catalogue, files};

use crate::failure::Failure;
use crate::output::OutputFile;

/// Descriptor files.
#[derive(Clone, Debug, Args)]
pub(crate) struct FilesArgs {
    /// .proto file with the declarations; repeatable
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
}

impl FilesArgs {
    /// Reads the named files. Returns `None` if no file is named.
    pub(crate) fn read(&self) -> Result<Option<files::Compiled>, Failure> {
        Ok(match (&self.proto[..], &self.protoset[..]) {
            ([], []) => None,
            ([], sets) => Some(files::descriptor_sets(sets)?),
            (protos, _) => {
                let compiled = files::compile(protos, &self.import_path);
                Some(compiled.map_err(|error| self.explained(error.into()))?)
            }
        })
    }

    /// Adds the searched folders and a hint.
    fn explained(&self, mut failure: Failure) -> Failure {
        if ["not found", "No such file"].iter().any(|what| failure.message.contains(what)) {
            let given: String =
                self.import_path.iter().map(|path| path.display().to_string() + ", ").collect();
            failure.message.extend(["; searched ", &given, "the folder of each --proto and the current one"]);
            failure.message += "; add folders with -i, or use a descriptor set with --protoset";
        }
        failure
    }
}

/// Descriptor files that replace reflection.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Descriptors (default: server reflection)")]
pub(crate) struct DescriptorFiles {
    #[command(flatten)]
    files: FilesArgs,

    /// Write the descriptors that were used to a file
    #[arg(long, value_name = "FILE")]
    protoset_out: Option<PathBuf>,
}

impl DescriptorFiles {
    /// Reads the named files. Returns `None` if no file is named.
    pub(crate) fn read(&self) -> Result<Option<Catalogue>, Failure> {
        Ok(self.files.read()?.map(|files| Catalogue::Files { schema: files.schema, set: files.set }))
    }

    /// Returns whether the descriptors used are to be written.
    pub(crate) fn saves_descriptors(&self) -> bool {
        self.protoset_out.is_some()
    }

    /// Writes the descriptors used, if requested.
    pub(crate) fn write(&self, catalogue: &Catalogue) -> Result<(), Failure> {
        let Some(path) = &self.protoset_out else { return Ok(()) };
        OutputFile::additional(path)?.write_bytes(&catalogue.descriptor_set())
    }
}
