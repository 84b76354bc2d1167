//! Reflection as a server has it, both versions of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg::bytes::Bytes;
use thalweg::server::{Methods, Service};
use thalweg::{Request, Response, ServiceOptions, Streaming};

use super::answers::Answers;
use super::descriptors::Descriptors;
use super::error::DescriptorError;
use super::known::Known;
use super::pb::ServerReflectionRequest;

/// `grpc.reflection.v1.ServerReflection`, and `grpc.reflection.v1alpha.ServerReflection`, which older clients ask.
#[derive(Clone, Debug)]
pub struct Reflection {
    descriptors: Arc<Descriptors>,
    advertised: Option<Arc<BTreeSet<String>>>,
}

/// How a [`Reflection`] is set up.
#[derive(Clone, Debug, Default)]
pub struct ReflectionBuilder {
    sets: Vec<Bytes>,
    advertised: Option<BTreeSet<String>>,
}

impl Reflection {
    /// Begins without descriptors but those of this crate's own services.
    pub fn builder() -> ReflectionBuilder {
        ReflectionBuilder::default()
    }
}

impl ReflectionBuilder {
    /// Adds an encoded `google.protobuf.FileDescriptorSet`, imports included, as
    /// `thalweg_build::Builder::file_descriptor_set_path` and `protoc --include_imports -o` write it. What is `'static`
    /// is not copied.
    ///
    /// Files may be in several sets. Of those with the same name the first counts.
    pub fn descriptors(mut self, set: impl Into<Bytes>) -> Self {
        self.sets.push(set.into());
        self
    }

    /// Lists this service, `package.Service`, and no others but those that are named so too. Without it, all services
    /// of the server are listed. What is not listed is described all the same to those who know its name.
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.advertised.get_or_insert_default().insert(name.into());
        self
    }

    /// Reads the descriptors.
    ///
    /// # Errors
    /// Says which set cannot be read, or which import is in none.
    pub fn build(self) -> Result<Reflection, DescriptorError> {
        let own = Bytes::from_static(thalweg::include_file_descriptor_set!("services"));
        let descriptors = Descriptors::new(self.sets.into_iter().chain([own]))?;
        Ok(Reflection { descriptors: Arc::new(descriptors), advertised: self.advertised.map(Arc::new) })
    }
}

impl Service for Reflection {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        let Self { descriptors, advertised } = self;
        let known = Arc::new(Known { descriptors, advertised, server: methods.server() });
        register(&known, methods);
        methods.add_service(Alpha(known));
    }
}

/// The older version, whose messages are the same.
struct Alpha(Arc<Known>);

impl Service for Alpha {
    const NAME: &'static str = "grpc.reflection.v1alpha.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

/// Requests hold a name or two, and are sent back with their answers.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

fn register(known: &Arc<Known>, methods: &mut Methods<'_>) {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = REQUEST_BYTES_MAX;
    methods.bidi_streaming(
        "ServerReflectionInfo",
        known,
        &options,
        |known: Arc<Known>, request: Request<Streaming<ServerReflectionRequest>>| async move {
            Ok(Response::new(Answers::new(known, request.into_inner())))
        },
    );
}
