//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod matching_table;
mod matching_templates;
mod properties;
mod revision_order;
mod sample;
#[cfg(feature = "schema")]
mod schema;
mod support;
