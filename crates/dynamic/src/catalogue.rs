//! What can be called: from files, or from the server.

use thalweg_protobuf::Schema;

use crate::reflection::{Reflection, ReflectionError};

/// Descriptors, wherever they come from.
#[derive(Debug)]
pub enum Catalogue {
    /// From files: all of them are there.
    Files {
        /// What they declare.
        schema: Schema,
        /// A `google.protobuf.FileDescriptorSet`, encoded.
        set: Vec<u8>,
    },
    /// From the server: they are fetched when something is asked for.
    Server(Box<Reflection>),
}

impl Catalogue {
    /// The full names of all services, by the alphabet.
    ///
    /// # Errors
    ///
    /// If the server does not say.
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

    /// A schema that has `symbol`, the full name of a service, message, enum, extension or method, if there is one.
    ///
    /// # Errors
    ///
    /// If the server does not say.
    pub async fn schema_of(&mut self, symbol: &str) -> Result<Option<Schema>, ReflectionError> {
        match self {
            Self::Files { schema, .. } => Ok(declares(schema, symbol).then(|| schema.clone())),
            Self::Server(reflection) => {
                if reflection.fetch(symbol).await? {
                    return Ok(Some(reflection.schema()?));
                }
                // Some servers, such as grpcio's, do not know methods, but the service around one.
                let Some((outer, _)) = symbol.rsplit_once('.') else { return Ok(None) };
                if !reflection.fetch(outer).await? {
                    return Ok(None);
                }
                let schema = reflection.schema()?;
                Ok(declares(&schema, symbol).then_some(schema))
            }
        }
    }

    /// Whether there is `symbol`, the full name of a service, message, enum or extension. A server's descriptors of it
    /// are fetched.
    ///
    /// # Errors
    ///
    /// If the server does not say.
    pub async fn has(&mut self, symbol: &str) -> Result<bool, ReflectionError> {
        match self {
            Self::Files { schema, .. } => Ok(declares(schema, symbol)),
            Self::Server(reflection) => reflection.fetch(symbol).await,
        }
    }

    /// All descriptors that are there by now, as an encoded `google.protobuf.FileDescriptorSet`.
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
