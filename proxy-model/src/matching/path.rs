//! A request's path, decoded and cut into segments.

use std::borrow::Cow;

use super::percent::{self, Part};
use super::template::MAX_SEGMENTS;

/// Room for one segment more than a template can have, to see that a path is longer.
const CAPACITY: usize = MAX_SEGMENTS + 1;

/// A request's path, decoded, without its first `/`, and where its segments are.
///
/// A `/` at the end does not begin another segment. A path that does not begin with `/`, such as the `*` of `OPTIONS *`,
/// has no segments.
#[derive(Debug)]
pub(super) struct DecodedPath<'a> {
    encoded: &'a str,
    text: Cow<'a, str>,
    bounds: [(usize, usize); CAPACITY],
    count: usize,
}

impl<'a> DecodedPath<'a> {
    /// Cuts off the first `limit` segments; at most one more than a template can have.
    pub(super) fn new(path: &'a str, limit: usize) -> Self {
        let encoded = path.strip_prefix('/').unwrap_or("");
        let text = percent::decode(encoded, Part::Path);
        let mut bounds = [(0, 0); CAPACITY];
        let mut count = 0;
        let mut start = 0;
        for bound in bounds.iter_mut().take(limit) {
            if start >= text.len() {
                break;
            }
            let end = text.as_bytes()[start..]
                .iter()
                .position(|b| *b == b'/')
                .map_or(text.len(), |length| start + length);
            *bound = (start, end);
            count += 1;
            start = end + 1;
        }
        Self {
            encoded,
            text,
            bounds,
            count,
        }
    }

    /// How many segments there are, up to the limit.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One segment. Empty between two `/`.
    pub(super) fn segment(&self, index: usize) -> &str {
        let (start, end) = self.bounds[index];
        &self.text[start..end]
    }

    /// Everything from the start of a segment, with a `/` at the end if there is one.
    pub(super) fn rest(&self, index: usize) -> &str {
        &self.text[self.bounds[index].0..]
    }

    /// The same as [`rest`](Self::rest), as it was sent.
    ///
    /// Decoding neither adds nor removes a `/`, so segments have the same positions in both forms.
    pub(super) fn encoded_rest(&self, index: usize) -> &'a str {
        let mut rest = self.encoded;
        for _ in 0..index {
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        let path = DecodedPath::new(path, CAPACITY);
        (0..path.count()).map(|i| path.segment(i).into()).collect()
    }

    #[test]
    fn segments_are_cut_as_asp_net_core_cuts_them() {
        for (path, expected) in [
            ("", &[] as &[&str]),
            ("*", &[]),
            ("/", &[]),
            ("//", &[""]),
            ("/a", &["a"]),
            ("/a/", &["a"]),
            ("/a//", &["a", ""]),
            ("/a//b", &["a", "", "b"]),
            ("/a%2Fb/%20", &["a%2Fb", " "]),
        ] {
            assert_eq!(segments(path), expected, "{path}");
        }
        assert_eq!(segments(&"/x".repeat(100)).len(), CAPACITY);
    }

    #[test]
    fn the_rest_keeps_its_slashes() {
        let path = DecodedPath::new("/a//%20/", 3);
        assert_eq!(path.rest(1), "/ /");
        assert_eq!(path.encoded_rest(1), "/%20/");
        assert_eq!(path.encoded_rest(2), "%20/");
    }
}
