//! The length of tags in the gossip.
//!
//! A node's tags travel as its "meta" data: a byte that says "tags", and a MessagePack map of strings in
//! MessagePack's format before 2013, without the short form for strings of 32 to 255 bytes. memberlist gives that
//! 512 bytes.

use crate::Tags;

/// The most bytes that a node's tags may take: 512, with all that is around them.
pub const MAX_ENCODED_TAGS: usize = 512;

/// Returns the number of bytes that these tags take in the gossip. An agent accepts at most
/// [`MAX_ENCODED_TAGS`].
///
/// ```
/// use discovery_serf::Tags;
/// use discovery_serf::registration::{MAX_ENCODED_TAGS, encoded_len};
///
/// // The most that fits beside a key of one character.
/// let tags = Tags::from([("k", "v".repeat(505))]);
/// assert_eq!(encoded_len(&tags), MAX_ENCODED_TAGS);
/// ```
pub fn encoded_len(tags: &Tags) -> usize {
    const MARK: usize = 1;
    let map = match tags.len() {
        0..16 => 1,
        16..0x1_0000 => 3,
        _ => 5,
    };
    let entries = tags.iter().map(|(key, value)| encoded_tag(key, value));
    MARK + map + entries.sum::<usize>()
}

/// Returns the number of bytes of one tag.
pub(super) fn encoded_tag(key: &[u8], value: &[u8]) -> usize {
    raw(key) + raw(value)
}

fn raw(bytes: &[u8]) -> usize {
    let header = match bytes.len() {
        0..32 => 1,
        32..0x1_0000 => 3,
        _ => 5,
    };
    header + bytes.len()
}
