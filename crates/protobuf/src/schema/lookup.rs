//! Lookup of handles by name.

use super::handles::{EnumType, Field, File, MessageId, MessageType, Method, Service};
use super::pool::Symbol;
use super::shared::Schema;

impl Schema {
    /// Returns the message with this full name, without a leading dot.
    pub fn message(&self, full_name: &str) -> Option<MessageType<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Message(index)) => Some(MessageType::new(self, index)),
            _ => None,
        }
    }

    /// Returns the message named by the type URL of a `google.protobuf.Any`, after its last slash. Returns `None` for
    /// a URL without a slash.
    pub fn message_by_url(&self, type_url: &str) -> Option<MessageType<'_>> {
        self.pool().message_of_url(type_url).map(|index| self.message_at(index))
    }

    /// Returns the message with this [`id`](MessageType::id).
    ///
    /// # Panics
    ///
    /// May panic if the id belongs to another schema.
    pub fn message_by_id(&self, id: MessageId) -> MessageType<'_> {
        assert!((id.0 as usize) < self.pool().messages.len(), "the id belongs to another schema");
        MessageType::new(self, id.0)
    }

    /// Returns the enum with this full name.
    pub fn enumeration(&self, full_name: &str) -> Option<EnumType<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Enum(index)) => Some(EnumType::new(self, index)),
            _ => None,
        }
    }

    /// Returns the extension with this full name: the name of its scope, not of the extended message, and its own.
    pub fn extension(&self, full_name: &str) -> Option<Field<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Extension(index)) => Some(Field::new(self, index)),
            _ => None,
        }
    }

    /// Returns the service with this full name.
    pub fn service(&self, full_name: &str) -> Option<Service<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Service(index)) => Some(Service::new(self, index)),
            _ => None,
        }
    }

    /// Returns a method by path: `pkg.Service/Method`, `/pkg.Service/Method` or `pkg.Service.Method`.
    pub fn method(&self, path: &str) -> Option<Method<'_>> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (service, method) = path.rsplit_once('/').or_else(|| path.rsplit_once('.'))?;
        self.service(service)?.method(method)
    }

    /// Returns all messages, including nested ones and map entries.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = MessageType<'_>> {
        (0..self.pool().messages.len() as u32).map(|index| MessageType::new(self, index))
    }

    /// Returns all enums.
    pub fn enumerations(&self) -> impl ExactSizeIterator<Item = EnumType<'_>> {
        (0..self.pool().enums.len() as u32).map(|index| EnumType::new(self, index))
    }

    /// Returns all services.
    pub fn services(&self) -> impl ExactSizeIterator<Item = Service<'_>> {
        (0..self.pool().services.len() as u32).map(|index| Service::new(self, index))
    }

    /// Returns all files.
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'_>> {
        (0..self.pool().files.len() as u32).map(|index| File::new(self, index))
    }

    pub(crate) fn message_at(&self, index: u32) -> MessageType<'_> {
        MessageType::new(self, index)
    }
}
