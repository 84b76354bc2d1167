//! Both versions of the reflection service.

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg::bytes::Bytes;
use thalweg::server::{Methods, Service};
use thalweg::{Request, Response, ServiceOptions, Streaming};

use super::data::ReflectionData;
use super::descriptors::Descriptors;
use super::error::DescriptorError;
use super::pb::ServerReflectionRequest;
use super::responses::Responses;

/// `grpc.reflection.v1.ServerReflection`, and `grpc.reflection.v1alpha.ServerReflection` for older clients.
#[derive(Clone, Debug)]
pub struct Reflection {
    descriptors: Arc<Descriptors>,
    advertised: Option<Arc<BTreeSet<String>>>,
}

/// Builder of a [`Reflection`].
#[derive(Clone, Debug, Default)]
pub struct ReflectionBuilder {
    sets: Vec<Bytes>,
    advertised: Option<BTreeSet<String>>,
}

impl Reflection {
    /// Returns a builder with descriptors of this crate's services only.
    pub fn builder() -> ReflectionBuilder {
        ReflectionBuilder::default()
    }
}

impl ReflectionBuilder {
    /// Adds an encoded `google.protobuf.FileDescriptorSet` with imports, as written by
    /// `thalweg_build::Builder::file_descriptor_set_path` or `protoc --include_imports -o`. Static data is not copied.
    ///
    /// Sets may overlap. If several files have the same name, the first is used.
    pub fn descriptors(mut self, set: impl Into<Bytes>) -> Self {
        self.sets.push(set.into());
        self
    }

    /// Lists this service, `package.Service`, and only services named by this method. By default all services of the
    /// server are listed. Unlisted services are still described on request.
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.advertised.get_or_insert_default().insert(name.into());
        self
    }

    /// Reads the descriptors.
    ///
    /// # Errors
    /// Returns an error for an invalid set or a missing import.
    pub fn build(self) -> Result<Reflection, DescriptorError> {
        let builtin = Bytes::from_static(thalweg::include_file_descriptor_set!("services"));
        let descriptors = Descriptors::new(self.sets.into_iter().chain([builtin]))?;
        Ok(Reflection { descriptors: Arc::new(descriptors), advertised: self.advertised.map(Arc::new) })
    }
}

impl Service for Reflection {
    const NAME: &'static str = "grpc.reflection.v1.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        let Self { descriptors, advertised } = self;
        let data = Arc::new(ReflectionData { descriptors, advertised, server: methods.server() });
        register(&data, methods);
        methods.add_service(ReflectionV1Alpha(data));
    }
}

/// The older version, with the same messages.
struct ReflectionV1Alpha(Arc<ReflectionData>);

impl Service for ReflectionV1Alpha {
    const NAME: &'static str = "grpc.reflection.v1alpha.ServerReflection";

    fn register(self, methods: &mut Methods<'_>) {
        register(&self.0, methods);
    }
}

/// Maximum request size. Requests have one or two names and are echoed in responses.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

fn register(data: &Arc<ReflectionData>, methods: &mut Methods<'_>) {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = REQUEST_BYTES_MAX;
    methods.bidi_streaming(
        "ServerReflectionInfo",
        data,
        &options,
        |data: Arc<ReflectionData>, request: Request<Streaming<ServerReflectionRequest>>| async move {
            Ok(Response::new(Responses::new(data, request.into_inner())))
        },
    );
}
