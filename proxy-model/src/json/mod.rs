//! The reader of JSON in the form of .NET's configuration. It reports all problems of a document.
//!
//! A document becomes a [`Node`] first ([`parse_document`]): a tree that keeps the order of keys and knows
//! the duplicate ones. Comments and trailing commas are allowed, as in ASP.NET's `appsettings.json`.
//! [`ObjectReader`] then reads typed values. It finds keys ignoring case and converts values as .NET's
//! binder does: `"10"` for a number, `"true"` for a switch, a list as an object with the keys `"0"`, `"1"`,
//! …. It reports each problem with its JSON pointer, and unknown keys with the nearest known one. One
//! problem does not keep the rest from being read.
//!
//! [`read_config`] reads the section `ReverseProxy`. Other crates read the other sections of a document,
//! with the same reader:
//!
//! ```
//! use proxy_model::Problems;
//! use proxy_model::json::{ObjectReader, parse_document};
//!
//! let document = parse_document(r#"{ "Admin": { "Port": "9000", "Pulbic": true } }"#)?;
//! let admin = document.get("admin").expect("keys ignore case");
//! let mut problems = Problems::new();
//! let port = ObjectReader::read(admin, "/Admin", &mut problems, |admin| {
//!     admin.boolean("Public");
//!     admin.integer("Port", 1..=65535_u16)
//! });
//!
//! assert_eq!(port, Some(Some(9000)));
//! assert_eq!(
//!     problems.to_string(),
//!     "error at /Admin/Pulbic: unknown key; known here are `Public` and `Port` (did you mean `Public`?)"
//! );
//! # Ok::<(), Problems>(())
//! ```

mod cluster;
mod config;
mod flat;
mod layered;
mod lenient;
mod node;
mod overlay;
mod places;
mod reader;
mod route;
mod scalar;
mod shape;
mod speller;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use self::config::read_section;
pub use self::config::{read_cluster, read_config, read_reverse_proxy, read_route};
pub use self::layered::{Layer, Layered, OriginatedValue, Origins, Setting};
pub use self::node::{MAX_DOCUMENT_BYTES, Node, Object, parse_document};
pub use self::reader::ObjectReader;
pub(crate) use self::speller::Speller;
