//! HTTP/1.1 on the wire: what we accept, others must accept in the same sense.

mod chunked;
mod memory;
mod ours;
mod request;
mod response;
mod theirs;

pub use self::chunked::http1_chunked;
pub use self::request::http1_request;
pub use self::response::http1_response;

/// Lines of a head or of a trailer section: names in lower case and values. Those of one name keep their order; others
/// are sorted, since `HeaderMap` mixes them.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

fn sorted<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Fields {
    let mut fields: Fields = fields
        .map(|(name, value)| {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            (name, value.to_vec())
        })
        .collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

fn of_map(map: &http::HeaderMap) -> Fields {
    sorted(
        map.iter()
            .map(|(name, value)| (name.as_ref(), value.as_bytes())),
    )
}

/// A message that came through a parser, ours or theirs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// What the start line says.
    pub(crate) start: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
}
