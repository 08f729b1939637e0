//! The parts of a request that routing and transforms read, independent of its representation.

use std::net::IpAddr;

/// A read-only view of a request's head.
///
/// Matching, balancing and affinity are written against this view, so that requests in `http` types and raw HTTP/1.1
/// heads share one implementation of the semantics. Nothing here allocates.
pub trait RequestHead {
    /// The method, as sent.
    fn method(&self) -> &str;

    /// The path, percent-encoded as sent: begins with `/`, without the query.
    fn path(&self) -> &str;

    /// The [path](Self::path), if it is known to be ASCII without `%`, so that it needs no decoding. `None`
    /// if that was not checked.
    fn plain_path(&self) -> Option<&[u8]> {
        None
    }

    /// The query, as sent, without the `?`. `None` if there is no `?`.
    fn query(&self) -> Option<&str>;

    /// Host and port as the client named them: `:authority` of HTTP/2, else the target's authority, else `Host`.
    /// Empty when the client named none.
    fn authority(&self) -> &str;

    /// Returns true if the request came over TLS, or if a trusted proxy reported that it did.
    fn is_https(&self) -> bool;

    /// The address by which policies know the client; `None` if it is unknown.
    fn client_address(&self) -> Option<IpAddr> {
        None
    }

    /// Calls `each` with every value of the header `name` (in lower case), in order, until it returns
    /// `false`.
    ///
    /// Values are bytes, since HTTP does not promise UTF-8.
    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool);
}
