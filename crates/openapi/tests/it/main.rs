//! Rules, documents and the page's parts: one binary for all modules.

mod declared;
mod library;
mod openapi;
mod page;
mod rules;
