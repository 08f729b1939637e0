//! The resources of a response as the bytes that follow each other in it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::fields::{Count, Sink, head, singular, text};
use crate::server::protocol::StreamProtocol;
use crate::snapshot::{Resource, ResourceType, Subscription};

/// The field `resources` of both kinds of response.
const RESOURCES: u32 = 2;

/// Resources, and how they are written.
#[derive(Clone, Copy)]
pub(super) struct Selection<'r> {
    pub(super) kind: Kind,
    pub(super) resources: &'r [Arc<Resource>],
}

/// The facts that determine the bytes of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) resource_type: ResourceType,
    pub(super) protocol: StreamProtocol,
    pub(super) subscription: Subscription,
}

impl Selection<'_> {
    /// Returns true if its messages, without their framing, have at least `bytes` bytes. Reads only as many
    /// of them as necessary.
    pub(super) fn has(&self, bytes: usize) -> bool {
        let subscription = self.kind.subscription;
        let mut lengths = self.resources.iter().scan(0, |sum, resource| {
            *sum += resource.body(subscription).len();
            Some(*sum)
        });
        lengths.any(|sum| sum >= bytes)
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        for resource in self.resources {
            match self.kind.protocol {
                StreamProtocol::Sotw => self.any(sink, RESOURCES, resource),
                StreamProtocol::Delta => {
                    let mut length = Count::default();
                    self.resource(&mut length, resource);
                    head(sink, RESOURCES, length.0);
                    self.resource(sink, resource);
                }
            }
        }
    }

    /// Writes an `envoy.service.discovery.v3.Resource`.
    fn resource(&self, sink: &mut impl Sink, resource: &Resource) {
        const VERSION: u32 = 1;
        const RESOURCE: u32 = 2;
        const NAME: u32 = 3;
        text(sink, VERSION, &resource.version().to_string());
        self.any(sink, RESOURCE, resource);
        singular(sink, NAME, resource.name().as_bytes());
    }

    /// Writes a `google.protobuf.Any`.
    fn any(&self, sink: &mut impl Sink, number: u32, resource: &Resource) {
        const TYPE_URL: u32 = 1;
        const VALUE: u32 = 2;
        let type_url = self.kind.resource_type.type_url();
        let body = resource.body(self.kind.subscription);
        let mut length = Count::default();
        text(&mut length, TYPE_URL, type_url);
        singular(&mut length, VALUE, body);
        head(sink, number, length.0);
        text(sink, TYPE_URL, type_url);
        singular(sink, VALUE, body);
    }

    fn encode(&self) -> Bytes {
        let mut length = Count::default();
        self.write(&mut length);
        let mut buffer = Vec::with_capacity(length.0);
        self.write(&mut buffer);
        buffer.into()
    }
}

/// A cache of recently encoded blocks of resources, so that each is encoded once for all streams that get
/// the same.
///
/// Blocks are found by identity: the same resources in the same order. So a new snapshot invalidates
/// nothing, and two streams with different resources do not disturb each other. An evicted block is freed
/// as soon as the last stream has sent it.
pub(crate) struct Blocks {
    /// The blocks, the last used one at the end.
    recent: Mutex<Vec<Block>>,
    most_bytes: usize,
}

struct Block {
    kind: Kind,
    resources: Vec<Arc<Resource>>,
    bytes: Arc<OnceLock<Bytes>>,
}

/// Maximum number of cached blocks, and of their bytes. The last requested block is always kept,
/// independent of its length. There is one for each type and subscription, and while a change is sent also
/// those from before.
const MOST_BLOCKS: usize = 32;
const MOST_BYTES: usize = 64 << 20;

impl Default for Blocks {
    fn default() -> Self {
        Self::keeping(MOST_BYTES)
    }
}

impl Block {
    fn is_of(&self, selection: &Selection<'_>) -> bool {
        let (ours, theirs) = (&self.resources, selection.resources);
        self.kind == selection.kind
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    fn len(&self) -> usize {
        self.bytes.get().map_or(0, Bytes::len)
    }
}

impl Blocks {
    fn keeping(most_bytes: usize) -> Self {
        Self {
            recent: Mutex::default(),
            most_bytes,
        }
    }

    /// Returns the bytes of a selection. Concurrent callers wait for the one that encodes them.
    pub(super) fn of(&self, selection: &Selection<'_>) -> Bytes {
        let place = self.place_of(selection);
        let mut is_new = false;
        let bytes = place.get_or_init(|| {
            is_new = true;
            selection.encode()
        });
        if is_new {
            self.trim();
        }
        bytes.clone()
    }

    fn place_of(&self, selection: &Selection<'_>) -> Arc<OnceLock<Bytes>> {
        let mut recent = self.lock();
        let known = recent.iter().rposition(|block| block.is_of(selection));
        let block = match known {
            Some(known) => recent.remove(known),
            None => Block {
                kind: selection.kind,
                resources: selection.resources.to_vec(),
                bytes: Arc::default(),
            },
        };
        let place = Arc::clone(&block.bytes);
        recent.push(block);
        place
    }

    fn trim(&self) {
        let mut recent = self.lock();
        let mut bytes = 0;
        let fit = recent.iter().rev().take_while(|block| {
            bytes += block.len();
            bytes <= self.most_bytes
        });
        let kept = fit.count().clamp(1, MOST_BLOCKS);
        let forgotten = recent.len().saturating_sub(kept);
        recent.drain(..forgotten);
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Block>> {
        self.recent.lock()
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recent = self.lock();
        formatter
            .debug_struct("Blocks")
            .field("blocks", &recent.len())
            .field("bytes", &recent.iter().map(Block::len).sum::<usize>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::fixtures::resource;

    const KIND: Kind = Kind {
        resource_type: ResourceType::Endpoint,
        protocol: StreamProtocol::Delta,
        subscription: Subscription::Aggregated,
    };

    fn of(blocks: &Blocks, resources: &[Arc<Resource>]) -> Bytes {
        blocks.of(&Selection {
            kind: KIND,
            resources,
        })
    }

    fn is_same(one: &Bytes, other: &Bytes) -> bool {
        one.as_ptr() == other.as_ptr()
    }

    #[test]
    fn who_is_told_the_same_gets_the_same_bytes() {
        let blocks = Blocks::default();
        let (a, b) = (resource("a", "1"), resource("b", "2"));
        let both = [a.clone(), b.clone()];
        let first = of(&blocks, &both);
        assert!(is_same(&first, &of(&blocks, &both)));
        let turned = of(&blocks, &[b, a.clone()]);
        assert_ne!(first, turned);
        assert!(!is_same(&first, &of(&blocks, &[a, resource("b", "2")])));
        for kind in [
            Kind {
                protocol: StreamProtocol::Sotw,
                ..KIND
            },
            Kind {
                resource_type: ResourceType::Cluster,
                ..KIND
            },
        ] {
            let other = Selection {
                kind,
                resources: &both,
            };
            assert_ne!(blocks.of(&other), first, "{kind:?}");
        }
        assert!(is_same(&first, &of(&blocks, &both)));
    }

    #[test]
    fn what_was_not_asked_for_of_late_is_forgotten() {
        let blocks = Blocks::default();
        let resources: Vec<_> = (0..=MOST_BLOCKS)
            .map(|n| resource(&n.to_string(), "1"))
            .collect();
        let all: Vec<_> = (resources.chunks(1))
            .map(|one| {
                // The first is requested repeatedly.
                of(&blocks, &resources[..1]);
                of(&blocks, one)
            })
            .collect();
        assert_eq!(blocks.lock().len(), MOST_BLOCKS);
        assert!(is_same(&all[0], &of(&blocks, &resources[..1])));
        assert!(!is_same(&all[1], &of(&blocks, &resources[1..2])));
    }

    #[test]
    fn no_more_bytes_are_kept_than_may_be_but_for_the_newest() {
        let blocks = Blocks::keeping(1_000);
        let large = "x".repeat(501);
        let resources = [resource("a", &large), resource("b", &large)];
        for one in resources.chunks(1) {
            of(&blocks, one);
            assert_eq!(blocks.lock().len(), 1);
        }
        let all = of(&blocks, &resources);
        assert!(all.len() > 1_000);
        assert_eq!(blocks.lock().len(), 1);
        assert!(is_same(&all, &of(&blocks, &resources)));
    }

    #[test]
    fn those_who_ask_at_the_same_time_share_as_well() {
        let blocks = Blocks::default();
        let resources: Vec<_> = (0..2000).map(|n| resource(&n.to_string(), "1")).collect();
        let barrier = std::sync::Barrier::new(8);
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        of(&blocks, &resources)
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        });
        assert!(all.iter().all(|bytes| is_same(bytes, &all[0])));
    }

    #[test]
    fn the_length_is_looked_at_as_far_as_it_has_to_be() {
        let resources = [resource("a", "123"), resource("b", "45")];
        let selection = Selection {
            kind: KIND,
            resources: &resources,
        };
        for (bytes, has) in [(1, true), (3, true), (5, true), (6, false)] {
            assert_eq!(selection.has(bytes), has, "{bytes}");
        }
    }
}
