//! What is counted: the requests that the gate is about.

use std::path::{Path, PathBuf};

use crate::origin::Resource;
use crate::proxies::Kind;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// What its baseline is called.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What forwards.
    pub(super) kind: Kind,
    pub(super) resource: Resource,
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "get-128",
        title: "128 B GET",
        kind: Kind::Gateway,
        resource: Resource::Bytes128,
    },
    Row {
        name: "layered",
        title: "128 B GET of a route with a tower layer",
        kind: Kind::GatewayLayered,
        resource: Resource::Bytes128,
    },
    Row {
        name: "chunks",
        title: "reply of 16 chunks of 1 KiB",
        kind: Kind::Gateway,
        resource: Resource::Chunks16,
    },
];

impl Row {
    /// The file with what was measured before.
    pub(super) fn baseline(&self, directory: &Path) -> PathBuf {
        directory.join(self.name).with_extension("toml")
    }
}
