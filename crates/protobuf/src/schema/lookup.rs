//! From names to handles.

use super::handles::{EnumType, Field, File, MessageId, MessageType, Method, Service};
use super::pool::Symbol;
use super::shared::Schema;

impl Schema {
    /// The message with this full name, without a dot in front.
    pub fn message(&self, full_name: &str) -> Option<MessageType<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Message(index)) => Some(MessageType::new(self, index)),
            _ => None,
        }
    }

    /// Returns the message that the type URL of a `google.protobuf.Any` names, behind its last slash. A URL without a
    /// slash names none.
    pub fn message_by_url(&self, type_url: &str) -> Option<MessageType<'_>> {
        self.pool().message_of_url(type_url).map(|index| self.message_at(index))
    }

    /// The message that had this [`id`](MessageType::id) in this schema.
    ///
    /// # Panics
    ///
    /// It may, if it was in another.
    pub fn message_by_id(&self, id: MessageId) -> MessageType<'_> {
        assert!((id.0 as usize) < self.pool().messages.len(), "the id is of another schema");
        MessageType::new(self, id.0)
    }

    /// The enum with this full name.
    pub fn enumeration(&self, full_name: &str) -> Option<EnumType<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Enum(index)) => Some(EnumType::new(self, index)),
            _ => None,
        }
    }

    /// The extension with this full name: that of its scope and its own, not that of the message it extends.
    pub fn extension(&self, full_name: &str) -> Option<Field<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Extension(index)) => Some(Field::new(self, index)),
            _ => None,
        }
    }

    /// The service with this full name.
    pub fn service(&self, full_name: &str) -> Option<Service<'_>> {
        match self.pool().names.get(full_name) {
            Some(&Symbol::Service(index)) => Some(Service::new(self, index)),
            _ => None,
        }
    }

    /// A method by its service and name: `pkg.Service/Method`, `/pkg.Service/Method` or `pkg.Service.Method`.
    pub fn method(&self, path: &str) -> Option<Method<'_>> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (service, method) = path.rsplit_once('/').or_else(|| path.rsplit_once('.'))?;
        self.service(service)?.method(method)
    }

    /// All messages, those declared in others and map entries among them.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = MessageType<'_>> {
        (0..self.pool().messages.len() as u32).map(|index| MessageType::new(self, index))
    }

    /// All enums.
    pub fn enumerations(&self) -> impl ExactSizeIterator<Item = EnumType<'_>> {
        (0..self.pool().enums.len() as u32).map(|index| EnumType::new(self, index))
    }

    /// All services.
    pub fn services(&self) -> impl ExactSizeIterator<Item = Service<'_>> {
        (0..self.pool().services.len() as u32).map(|index| Service::new(self, index))
    }

    /// All files.
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'_>> {
        (0..self.pool().files.len() as u32).map(|index| File::new(self, index))
    }

    pub(crate) fn message_at(&self, index: u32) -> MessageType<'_> {
        MessageType::new(self, index)
    }
}
