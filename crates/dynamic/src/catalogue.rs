//! Sources of descriptors: files or server reflection.

use thalweg_protobuf::Schema;

use crate::reflection::{Reflection, ReflectionError};

/// Descriptors of services and types.
#[derive(Debug)]
pub enum Catalogue {
    /// Complete descriptors from files.
    Files {
        /// Declared services and types.
        schema: Schema,
        /// Encoded `google.protobuf.FileDescriptorSet`.
        set: Vec<u8>,
    },
    /// Descriptors from a server, fetched on demand.
    Server(Box<Reflection>),
}

impl Catalogue {
    /// Returns the full names of all services in alphabetical order.
    ///
    /// # Errors
    ///
    /// Returns an error if reflection fails.
    pub async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let mut names = match self {
            Self::Files { schema, .. } => {
                schema.services().map(|service| service.full_name().to_owned()).collect()
            }
            Self::Server(reflection) => reflection.services().await?,
        };
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns a schema with `symbol`, the full name of a service, message, enum, extension or method, or `None` if
    /// unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if reflection fails.
    pub async fn schema_of(&mut self, symbol: &str) -> Result<Option<Schema>, ReflectionError> {
        match self {
            Self::Files { schema, .. } => Ok(declares(schema, symbol).then(|| schema.clone())),
            Self::Server(reflection) => {
                if reflection.fetch(symbol).await? {
                    return Ok(Some(reflection.schema()?));
                }
                // Some servers, such as grpcio's, find only the enclosing service, not the method.
                let Some((outer, _)) = symbol.rsplit_once('.') else { return Ok(None) };
                if !reflection.fetch(outer).await? {
                    return Ok(None);
                }
                let schema = reflection.schema()?;
                Ok(declares(&schema, symbol).then_some(schema))
            }
        }
    }

    /// Returns whether `symbol` exists, the full name of a service, message, enum or extension. Fetches its descriptors
    /// from a server.
    ///
    /// # Errors
    ///
    /// Returns an error if reflection fails.
    pub async fn has(&mut self, symbol: &str) -> Result<bool, ReflectionError> {
        match self {
            Self::Files { schema, .. } => Ok(declares(schema, symbol)),
            Self::Server(reflection) => reflection.fetch(symbol).await,
        }
    }

    /// Returns all descriptors known so far as an encoded `google.protobuf.FileDescriptorSet`.
    pub fn descriptor_set(&self) -> Vec<u8> {
        match self {
            Self::Files { set, .. } => set.clone(),
            Self::Server(reflection) => reflection.descriptor_set(),
        }
    }
}

fn declares(schema: &Schema, symbol: &str) -> bool {
    let is_method = || {
        let (service, method) = symbol.rsplit_once(['.', '/'])?;
        schema.service(service)?.method(method)
    };
    schema.message(symbol).is_some()
        || schema.service(symbol).is_some()
        || schema.enumeration(symbol).is_some()
        || schema.extension(symbol).is_some()
        || is_method().is_some()
}
