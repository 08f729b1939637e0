//! The versions and regions of a service, each with the instances that serve it.

use std::collections::BTreeMap;

use proxy_model::config::{HeaderMatchMode, RouteHeader};
use proxy_model::{Problem, Problems};

use super::GenerateOptions;
use crate::catalog::shown::shown;
use crate::catalog::{Service, ServiceInstance, tags};

/// Maximum number of versions, and of regions, of one service that requests can select.
const MOST_VALUES: usize = 64;

/// A part of a service that requests can select.
pub(super) struct Variant {
    /// The suffix of the service's ids: `@version=v2`.
    pub(super) suffix: String,
    /// The header conditions of its requests.
    pub(super) headers: Vec<RouteHeader>,
    /// Positions of its instances.
    pub(super) instances: Vec<usize>,
}

/// The parts of a service that requests can select.
#[derive(Default)]
pub(super) struct Variants(Vec<Variant>);

impl Variants {
    /// Returns the variants of a service. Versions come before regions: a request that selects both, where
    /// no instance has both, gets the version.
    pub(super) fn of(service: &Service, options: &GenerateOptions, said: &mut Problems) -> Self {
        let instances = &service.instances;
        let versions = Kind {
            tag: tags::VERSION,
            header: options.usable_version_header(),
            label: |instance| instance.version.as_deref(),
        };
        let regions = Kind {
            tag: tags::REGION,
            header: options.usable_region_header(),
            label: |instance| instance.region.as_deref(),
        };
        let (by_version, by_region) = (
            versions.values(instances, said),
            regions.values(instances, said),
        );
        let mut variants: Vec<_> = versions.variants(&by_version).collect();
        variants.extend(regions.variants(&by_region));
        let mut both: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (version, value) in &by_version {
            for &position in &value.instances {
                let region = (regions.label)(&instances[position]).map(str::to_ascii_lowercase);
                let region = region.and_then(|region| by_region.get_key_value(&region));
                if let Some((region, _)) = region {
                    both.entry((version, region)).or_default().push(position);
                }
            }
        }
        for ((version, region), instances) in both {
            let (version, region) = (&by_version[version], &by_region[region]);
            variants.push(Variant {
                suffix: format!("@version={},region={}", version.spelling, region.spelling),
                headers: versions
                    .asked(version)
                    .into_iter()
                    .chain(regions.asked(region))
                    .collect(),
                instances,
            });
        }
        Self(variants)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Variant> {
        self.0.iter()
    }
}

/// Versions or regions.
struct Kind<'o> {
    tag: &'static str,
    header: Option<&'o str>,
    label: fn(&ServiceInstance) -> Option<&str>,
}

/// A version or region that some instances have.
struct Value {
    /// The spelling of the first instance.
    spelling: String,
    instances: Vec<usize>,
}

impl Kind<'_> {
    /// Returns the values that requests can select, by their lower case: headers and ids are compared
    /// ignoring it.
    fn values(
        &self,
        instances: &[ServiceInstance],
        said: &mut Problems,
    ) -> BTreeMap<String, Value> {
        let mut values: BTreeMap<String, Value> = BTreeMap::new();
        let mut rejected: Option<(&str, usize)> = None;
        if self.header.is_none() {
            return values;
        }
        let some_weigh = instances.iter().any(|instance| instance.weight > 0);
        // A drained instance gets no new requests by any header; where all are drained, none is.
        let is_drained = |instance: &ServiceInstance| instance.weight == 0 && some_weigh;
        for (position, instance) in instances.iter().enumerate() {
            let Some(label) = (self.label)(instance).filter(|_| !is_drained(instance)) else {
                continue;
            };
            if !tags::can_be_asked_for(label) {
                let (_, count) = rejected.get_or_insert((label, 0));
                *count += 1;
                continue;
            }
            let value = values
                .entry(label.to_ascii_lowercase())
                .or_insert_with(|| Value {
                    spelling: label.to_owned(),
                    instances: Vec::new(),
                });
            value.instances.push(position);
        }
        if let Some((first, count)) = rejected {
            let message = format!(
                "requests cannot select the `{}` `{}` of {count} instances; expected at most 64 \
                 letters, digits, `.`, `_`, `~`, \
                 `+` or `-`, all ASCII",
                self.tag,
                shown(first.as_bytes()),
            );
            said.push(Problem::warning("", "invalid_variant", message));
        }
        if values.len() > MOST_VALUES {
            let message = format!(
                "the service has {} values of `{}`; requests can select the first {MOST_VALUES} only",
                values.len(),
                self.tag,
            );
            said.push(Problem::warning("", "too_many_variants", message));
            values = values.into_iter().take(MOST_VALUES).collect();
        }
        values
    }

    fn variants<'v>(
        &'v self,
        values: &'v BTreeMap<String, Value>,
    ) -> impl Iterator<Item = Variant> + 'v {
        values.values().map(|value| Variant {
            suffix: format!("@{}={}", self.tag, value.spelling),
            headers: self.asked(value).into_iter().collect(),
            instances: value.instances.clone(),
        })
    }

    /// Returns the header condition for a value.
    fn asked(&self, value: &Value) -> Option<RouteHeader> {
        Some(RouteHeader {
            name: self.header?.to_owned(),
            values: Some(vec![value.spelling.clone()]),
            mode: HeaderMatchMode::ExactHeader,
            is_case_sensitive: false,
        })
    }
}
