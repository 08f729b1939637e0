//! Strategies for configurations and for documents that look like some.

pub(crate) mod config;
pub(crate) mod document;
