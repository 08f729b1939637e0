//! A request's path, decoded and cut into segments.

use std::borrow::Cow;

use super::percent::{self, Part};
use super::template::MAX_SEGMENTS;

/// Room for one segment more than a template can have, to see that a path is longer.
const CAPACITY: usize = MAX_SEGMENTS + 1;

/// The part of a path that is matched: without its first `/`, still encoded.
///
/// A path that does not begin with `/`, such as the `*` of `OPTIONS *`, counts as an empty one, as in
/// ASP.NET Core. A path of 4 GiB, which no server accepts, does so too.
pub(super) fn relevant(path: &str) -> &str {
    path.strip_prefix('/')
        .filter(|rest| u32::try_from(rest.len()).is_ok())
        .unwrap_or("")
}

/// Returns the relevant part of a path that is given as bytes.
#[inline]
pub(super) fn relevant_bytes(path: &[u8]) -> &[u8] {
    path.strip_prefix(b"/")
        .filter(|rest| u32::try_from(rest.len()).is_ok())
        .unwrap_or_default()
}

/// Decodes the [`relevant`] part of a path.
pub(super) fn decode(relevant: &str) -> Cow<'_, str> {
    percent::decode(relevant, Part::Path)
}

/// Splits a path that is not empty into its first segment and the rest after the next `/`.
#[inline]
pub(super) fn first_segment(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, b""),
    }
}

/// A request's path and where its segments are.
///
/// A `/` at the end does not begin another segment.
#[derive(Debug)]
pub(super) struct DecodedPath<'a> {
    encoded: &'a str,
    text: &'a str,
    ends: [u32; CAPACITY],
    count: usize,
}

impl<'a> DecodedPath<'a> {
    /// Cuts off the first `limit` segments; at most one more than a template can have.
    ///
    /// `text` is what `encoded`, the [`relevant`] part of a path, [decodes](decode) to.
    pub(super) fn new(encoded: &'a str, text: &'a str, limit: usize) -> Self {
        let mut path = Self {
            encoded,
            text,
            ends: [0; CAPACITY],
            count: 0,
        };
        let mut start = 0;
        for end in path.ends.iter_mut().take(limit) {
            let Some(rest) = text.as_bytes().get(start..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            start += rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            // Decoding makes nothing longer, so this is never too long.
            *end = u32::try_from(start).unwrap_or(u32::MAX);
            path.count += 1;
            start += 1;
        }
        path
    }

    /// Number of segments, up to the limit.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One segment. Empty between two `/`.
    pub(super) fn segment(&self, index: usize) -> &'a str {
        &self.text[self.start(index)..self.ends[index] as usize]
    }

    /// Returns the text from the start of a segment to the end, including a trailing `/`.
    pub(super) fn rest(&self, index: usize) -> &'a str {
        &self.text[self.start(index)..]
    }

    /// Returns the same as [`rest`](Self::rest), as it was sent.
    ///
    /// Decoding neither adds nor removes a `/`, so segments have the same positions in both forms.
    pub(super) fn encoded_rest(&self, index: usize) -> &'a str {
        let mut rest = self.encoded;
        for _ in 0..index {
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        rest
    }

    fn start(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.ends[before] as usize + 1,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        let encoded = relevant(path);
        let text = decode(encoded);
        let path = DecodedPath::new(encoded, &text, CAPACITY);
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
        let path = DecodedPath::new("a//%20/", "a// /", 3);
        assert_eq!(path.rest(1), "/ /");
        assert_eq!(path.encoded_rest(1), "/%20/");
        assert_eq!(path.encoded_rest(2), "%20/");
    }
}
