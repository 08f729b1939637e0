//! Transforms that several routes have in common: most routes of a configuration change nothing, or the same.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::compiled::RouteSource;
use crate::config::TransformConfig;
use crate::transform::Transforms;

/// The transforms of the routes compiled so far, by their written form.
#[derive(Default)]
pub(super) struct SharedTransforms {
    state: RandomState,
    known: HashMap<u64, Vec<(RouteSource, Transforms)>>,
}

impl SharedTransforms {
    /// Returns the compiled transforms of an earlier route with the same written transforms. Without one, keeps
    /// `made`, compiled from `source`, and returns it.
    pub(super) fn share(&mut self, source: &RouteSource, made: Transforms) -> Transforms {
        let written = &source.config().transforms;
        let known = self.known.entry(self.hash(written.as_deref())).or_default();
        let same = |(first, _): &&(RouteSource, _)| first.config().transforms == *written;
        if let Some((_, shared)) = known.iter().find(same) {
            return shared.clone();
        }
        known.push((source.clone(), made.clone()));
        made
    }

    /// Hashes transforms as equality compares them: the order of the keys of a map does not count.
    fn hash(&self, written: Option<&[TransformConfig]>) -> u64 {
        let of_map = |map: &TransformConfig| {
            let pairs = map.iter().map(|pair| self.state.hash_one(pair));
            pairs.fold(0, u64::wrapping_add)
        };
        let maps = written.map(|maps| maps.iter().map(of_map).collect::<Vec<_>>());
        self.state.hash_one(maps)
    }
}
