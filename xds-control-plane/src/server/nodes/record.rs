//! The record that one stream keeps about itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};

use super::status::LISTED_NAMES;
use super::{NodeIdentity, Nodes, Rejection, StreamStatus, TooManyNames, TypeStatus};
use crate::server::protocol::{Heard, Reply};
use crate::snapshot::ResourceType;

/// The entry of an open stream; it is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Record {
    nodes: Nodes,
    number: u64,
    address: Option<IpAddr>,
    status: Arc<Mutex<StreamStatus>>,
    /// Names that are subscribed to, of all types.
    names: usize,
}

impl Record {
    pub(super) fn new(
        nodes: Nodes,
        number: u64,
        address: Option<IpAddr>,
        status: Arc<Mutex<StreamStatus>>,
    ) -> Self {
        Self {
            nodes,
            number,
            address,
            status,
            names: 0,
        }
    }

    /// Records the number of subscribed names of the stream, over all types. All streams of the address
    /// together may have `limit`.
    pub(crate) fn count_names(&mut self, names: usize, limit: usize) -> Result<(), TooManyNames> {
        let before = std::mem::replace(&mut self.names, names);
        match before == names {
            true => Ok(()),
            false => (self.nodes).count_names(self.address, before, names, limit),
        }
    }

    /// Records the identity of the client. Only the first call has an effect.
    pub(crate) fn identify(&self, node: impl FnOnce() -> NodeIdentity) {
        read(&self.status).node.get_or_insert_with(node);
    }

    /// The client's node id, for log lines.
    pub(crate) fn node_id(&self) -> String {
        let status = read(&self.status);
        let node = status.node.as_ref();
        node.map(|node| node.id.clone()).unwrap_or_default()
    }

    /// Records a received request.
    pub(crate) fn heard<'a>(
        &self,
        resource_type: ResourceType,
        heard: &Heard,
        wildcard: bool,
        names: impl Iterator<Item = &'a Arc<str>>,
    ) {
        const LONGEST_MESSAGE: usize = 2048;
        const LONGEST_NAME: usize = 256;
        let mut name_count = 0;
        let mut listed = Vec::new();
        for name in names {
            if listed.len() < LISTED_NAMES {
                listed.push(clean(name, LONGEST_NAME));
            }
            name_count += 1;
        }
        self.with(resource_type, |status| {
            status.wildcard = wildcard;
            status.name_count = name_count;
            status.names = listed;
            match heard {
                Heard::Asked | Heard::Stale => {}
                Heard::Acknowledged(version) => {
                    status.acknowledged = Some(*version);
                    status.acknowledged_at = Some(SystemTime::now());
                }
                Heard::Rejected(version, message) => {
                    status.rejected = Some(Rejection {
                        version: *version,
                        message: clean(message, LONGEST_MESSAGE),
                        at: SystemTime::now(),
                    });
                }
            }
        });
    }

    /// Records a response that is being sent.
    pub(crate) fn sent(&self, reply: &Reply) {
        self.with(reply.resource_type, |status| {
            status.responses += 1;
            status.sent = Some(reply.version);
        });
    }

    fn with(&self, resource_type: ResourceType, change: impl FnOnce(&mut TypeStatus)) {
        let mut status = read(&self.status);
        let place = status
            .types
            .iter()
            .position(|of| of.resource_type == resource_type);
        let place = place.unwrap_or_else(|| {
            status.types.push(TypeStatus::new(resource_type));
            status.types.len() - 1
        });
        if let Some(of) = status.types.get_mut(place) {
            change(of);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.nodes.close(self.number, self.address, self.names);
    }
}

pub(super) fn read(status: &Mutex<StreamStatus>) -> MutexGuard<'_, StreamStatus> {
    status.lock()
}

/// The text of a stranger, as it may be shown: not too long, and without characters that a terminal obeys.
pub(crate) fn clean(text: &str, longest: usize) -> String {
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = text.get(..end).unwrap_or_default();
    shown
        .chars()
        .map(|character| match character {
            '\n' => character,
            _ if character.is_control() => '\u{fffd}',
            _ => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strangers_are_cut_between_characters_and_cannot_command() {
        assert_eq!(clean("a\u{1b}[2Jb\nc", 100), "a\u{fffd}[2Jb\nc");
        assert_eq!(clean("äää", 3), "ä");
    }
}
