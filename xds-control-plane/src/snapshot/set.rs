use std::cmp::Ordering;
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

    /// Returns all resources, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Resource>> {
        self.by_name.values()
    }

    /// Number of resources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if there are no resources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The hash of all names and versions.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The names that are only here, only in `older`, or in both with different content, in order.
    #[must_use]
    pub fn changed_since(&self, older: &Self) -> Vec<Arc<str>> {
        if std::ptr::eq(self, older) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        let (mut here, mut there) = (self.iter().peekable(), older.iter().peekable());
        loop {
            let order = match (here.peek(), there.peek()) {
                (None, None) => return changed,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(new), Some(old)) => new.name().cmp(old.name()),
            };
            match order {
                Ordering::Less => changed.extend(here.next().map(|new| Arc::clone(new.name()))),
                Ordering::Greater => changed.extend(there.next().map(|old| Arc::clone(old.name()))),
                Ordering::Equal => {
                    if let (Some(new), Some(old)) = (here.next(), there.next())
                        && !Arc::ptr_eq(new, old)
                        && new.version() != old.version()
                    {
                        changed.push(Arc::clone(new.name()));
                    }
                }
            }
        }
    }
}

impl FromIterator<Arc<Resource>> for ResourceSet {
    /// Collects resources. If two have the same name, the later one stays.
    fn from_iter<I: IntoIterator<Item = Arc<Resource>>>(resources: I) -> Self {
        let by_name: BTreeMap<_, _> = resources
            .into_iter()
            .map(|resource| (Arc::clone(resource.name()), resource))
            .collect();
        let version = by_name
            .values()
            .fold(Version::default(), |version, resource| {
                version.with(resource.name(), resource.version())
            });
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
    #[test]
    fn the_difference_names_what_came_went_and_changed() {
        let set = |resources: &[(&str, &'static str)]| -> ResourceSet {
            resources
                .iter()
                .map(|(name, body)| resource(name, body))
                .collect()
        };
        let older = set(&[("a", "1"), ("b", "1"), ("d", "1"), ("f", "1")]);
        let newer = set(&[("b", "1"), ("c", "1"), ("d", "2"), ("f", "1"), ("g", "1")]);
        let names = |changed: Vec<Arc<str>>| changed.join(" ");
        assert_eq!(names(newer.changed_since(&older)), "a c d g");
        assert_eq!(names(older.changed_since(&newer)), "a c d g");
        assert_eq!(names(older.changed_since(&older.clone())), "");
        assert_eq!(names(older.changed_since(&set(&[]))), "a b d f");
    }
}
