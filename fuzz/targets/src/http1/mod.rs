//! HTTP/1.1 on the wire: peers must accept what we accept, with the same meaning.

mod chunked;
mod memory;
mod ours;
mod request;
mod response;
mod theirs;

pub use self::chunked::http1_chunked;
pub use self::request::http1_request;
pub use self::response::http1_response;

/// Lines of a head or of a trailer section: lower-case names and values. Lines of the same name
/// keep their order; others are sorted, since `HeaderMap` does not keep their order.
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

/// A message that a parser returned, ours or hyper's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The start line in a common form.
    pub(crate) start: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
}
