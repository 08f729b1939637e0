use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Resource, Version};

/// The resources of one type by name, with one version for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceSet {
    version: Version,
    by_name: BTreeMap<Arc<str>, Arc<Resource>>,
}

impl ResourceSet {
    /// The resource of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Resource>> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Resource>> {
        self.by_name.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The hash of all names and versions.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl FromIterator<Arc<Resource>> for ResourceSet {
    /// Of two resources with one name the later stays.
    fn from_iter<I: IntoIterator<Item = Arc<Resource>>>(resources: I) -> Self {
        let by_name: BTreeMap<_, _> = resources
            .into_iter()
            .map(|resource| (Arc::clone(resource.name()), resource))
            .collect();
        let versions: Vec<_> = by_name
            .values()
            .map(|resource| resource.version().to_bytes())
            .collect();
        let version = Version::of(
            by_name
                .keys()
                .zip(&versions)
                .flat_map(|(name, version)| [name.as_bytes(), version.as_slice()]),
        );
        Self { version, by_name }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::Bodies;
    use super::*;

    fn resource(name: &str, body: &'static str) -> Arc<Resource> {
        Arc::new(Resource::new(
            name,
            Bodies::Same(Bytes::from_static(body.as_bytes())),
        ))
    }

    #[test]
    fn the_version_depends_on_content_and_not_on_order() {
        let one: ResourceSet = [resource("a", "1"), resource("b", "2")]
            .into_iter()
            .collect();
        let other: ResourceSet = [resource("b", "2"), resource("a", "1")]
            .into_iter()
            .collect();
        let changed: ResourceSet = [resource("a", "1"), resource("b", "3")]
            .into_iter()
            .collect();
        let moved: ResourceSet = [resource("a", "2"), resource("b", "1")]
            .into_iter()
            .collect();
        assert_eq!(one.version(), other.version());
        assert_ne!(one.version(), changed.version());
        assert_ne!(one.version(), moved.version());
    }
}
