//! The partition that a request belongs to.

use proxy_model::RequestHead;
use proxy_model::compiled::Partitions;
use serde::Serialize;

/// The partition key of a request, and its partition.
///
/// Numbers are text, since many JSON parsers lose digits of large numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedPartition {
    /// The part of a request that holds the key: `the header x-tenant`.
    pub source: String,
    /// The decoded key. Bytes that are not UTF-8 appear as `U+FFFD`.
    pub key: Option<String>,
    /// The number that is looked up in ranges: the key itself, or its hash.
    pub number: Option<String>,
    /// The keys of the partition: `0 to 9`, or a name.
    pub keys: Option<String>,
    /// The reason why the request belongs to no partition.
    pub why: Option<String>,
}

pub(super) fn explained_partition<H: RequestHead>(
    partitions: &Partitions,
    head: &H,
) -> ExplainedPartition {
    let shown = |key: &[u8]| {
        let number = partitions.number(key).ok().flatten();
        (
            String::from_utf8_lossy(key).into_owned(),
            number.map(|number| number.to_string()),
        )
    };
    let (key, number) = partitions.key().with_key(head, shown).ok().unzip();
    let found = partitions.find(head);
    ExplainedPartition {
        source: partitions.key().to_string(),
        key,
        number: number.flatten(),
        keys: found.ok().map(|target| target.keys().to_string()),
        why: found.err().map(|rejection| rejection.to_string()),
    }
}
