//! Clusters that each have a part of a key space.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use http::HeaderName;

use super::route::Targets;
use super::{Scope, filled};
use crate::compiled::{PartitionKeySource, PartitionKeys, PartitionTarget, Partitions};
use crate::config::{PartitionHash, PartitionKey, PartitionedCluster, PartitionedClusters};
use crate::matching::PathTemplate;
use crate::problem::Problem;
use crate::suggest::{did_you_mean, listed, shortened};

/// Compiles the partitions of a route. `scope` collects problems of the partitions; `template` is the route's path
/// template, `None` if it has errors.
pub(super) fn compile(
    config: &PartitionedClusters,
    template: Option<&PathTemplate>,
    targets: &mut Targets<'_>,
    scope: &mut Scope<'_>,
) -> Option<Partitions> {
    let key = key(&config.key, template, &mut scope.below("Key"));
    let partitions = &config.partitions;
    if partitions.is_empty() {
        let message = "there are no partitions, so no cluster gets requests";
        scope.error("Partitions", "no_partitions", message);
    }
    let compiled: Vec<_> = partitions
        .iter()
        .enumerate()
        .map(|(i, partition)| target(i, partition, targets, scope))
        .collect();
    let keys: Vec<_> = partitions.iter().map(Keys::of).collect();
    check_hash(config.hash, &keys, scope);
    check_not_mixed(&keys, scope);
    check_ranges(config, scope);
    check_names(partitions, scope);
    let compiled: Option<Vec<_>> = compiled.into_iter().collect();
    Some(Partitions::new(key?, config.hash, compiled?))
}

/// The kinds of keys that a partition lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Nothing,
    Range,
    Name,
    Both,
}

impl Keys {
    fn of(partition: &PartitionedCluster) -> Self {
        let has_range = partition.low_key.is_some() || partition.high_key.is_some();
        match (has_range, filled(partition.name.as_ref())) {
            (false, None) => Self::Nothing,
            (true, None) => Self::Range,
            (false, Some(_)) => Self::Name,
            (true, Some(_)) => Self::Both,
        }
    }
}

fn key(
    config: &PartitionKey,
    template: Option<&PathTemplate>,
    scope: &mut Scope<'_>,
) -> Option<PartitionKeySource> {
    let header = filled(config.header.as_ref());
    let query_parameter = filled(config.query_parameter.as_ref());
    let route_value = filled(config.route_value.as_ref());
    let sources = [
        ("Header", header),
        ("QueryParameter", query_parameter),
        ("RouteValue", route_value),
    ];
    let written = sources.iter().filter(|(_, name)| name.is_some());
    let written: Vec<&str> = written.map(|(source, _)| *source).collect();
    if written.len() > 1 {
        let message = format!("the key is in one place, not in {}", listed(written));
        let problem = Problem::error(scope.pointer(), "conflicting_key_sources", message);
        scope
            .problems
            .push(problem.with_suggestion("keep one of them"));
    } else if written.is_empty() {
        let message = "nothing says where requests have their key";
        let problem = Problem::error(scope.pointer(), "missing_partition_key", message);
        let suggestion = "write a `Header`, a `QueryParameter` or a `RouteValue`";
        scope.problems.push(problem.with_suggestion(suggestion));
    }
    // The problems of each name are reported even if one is too many.
    let header = header.map(|name| header_source(name, scope));
    let route_value = route_value.map(|name| route_source(name, template, scope));
    let query_parameter = query_parameter.map(PartitionKeySource::query_parameter);
    header.or(route_value).unwrap_or(query_parameter)
}

fn header_source(name: &str, scope: &mut Scope<'_>) -> Option<PartitionKeySource> {
    let Ok(name) = name.parse::<HeaderName>() else {
        let message = format!("`{}` is not the name of a header", shortened(name));
        scope.error("Header", "invalid_header_name", message);
        return None;
    };
    Some(PartitionKeySource::header(name))
}

fn route_source(
    name: &str,
    template: Option<&PathTemplate>,
    scope: &mut Scope<'_>,
) -> Option<PartitionKeySource> {
    let template = template?;
    let source = PartitionKeySource::route_value(template, name);
    if source.is_none() {
        let known = match template.parameter_names().next() {
            Some(_) => format!("it has {}", listed(template.parameter_names())),
            None => "it has none".to_owned(),
        };
        let message = format!(
            "the route's path has no parameter `{}`; {known}",
            shortened(name)
        );
        let place = scope.place("RouteValue");
        let mut problem = Problem::error(place, "unknown_route_parameter", message);
        problem.suggestion = did_you_mean(name, template.parameter_names());
        scope.problems.push(problem);
    }
    source
}

/// Compiles the partition at a position, as far as this is possible independent of the others.
fn target(
    position: usize,
    partition: &PartitionedCluster,
    targets: &mut Targets<'_>,
    scope: &mut Scope<'_>,
) -> Option<PartitionTarget> {
    let keys = keys(
        partition,
        &mut scope.below(&format!("Partitions/{position}")),
    );
    let id = &partition.cluster_id;
    let place = format!("Partitions/{position}/ClusterId");
    if id.as_str().is_empty() {
        let message = "the partition names no cluster";
        scope.error(&place, "missing_cluster_id", message);
        return None;
    }
    let cluster = targets.find(id, &place, scope);
    Some(PartitionTarget {
        id: id.clone(),
        cluster,
        keys: keys?,
    })
}

fn keys(partition: &PartitionedCluster, scope: &mut Scope<'_>) -> Option<PartitionKeys> {
    match Keys::of(partition) {
        Keys::Name => filled(partition.name.as_ref()).map(|name| PartitionKeys::Name(name.into())),
        Keys::Nothing => {
            let message = "the partition has neither a range nor a name";
            let problem = Problem::error(scope.pointer(), "missing_partition_range", message);
            let suggestion = "write `LowKey` and `HighKey`, or a `Name`";
            scope.problems.push(problem.with_suggestion(suggestion));
            None
        }
        Keys::Both => {
            let message = "the partition has both a range and a name";
            scope.error_with(
                "Name",
                "conflicting_partition_keys",
                message,
                "keep one of them",
            );
            None
        }
        Keys::Range => match (partition.low_key, partition.high_key) {
            (Some(low), Some(high)) if low <= high => Some(PartitionKeys::Range { low, high }),
            (Some(low), Some(high)) => {
                let message = format!("the range ends at {high}, before it begins at {low}");
                scope.error("HighKey", "invalid_range", message);
                None
            }
            (low, _) => {
                let (place, code, message) = match low {
                    None => ("LowKey", "missing_low_key", "the range has no beginning"),
                    Some(_) => ("HighKey", "missing_high_key", "the range has no end"),
                };
                scope.error(place, code, message);
                None
            }
        },
    }
}

fn check_hash(hash: PartitionHash, keys: &[Keys], scope: &mut Scope<'_>) {
    let has_ranges = || {
        keys.iter()
            .any(|keys| matches!(keys, Keys::Range | Keys::Both))
    };
    if hash == PartitionHash::None || !keys.contains(&Keys::Name) || has_ranges() {
        return;
    }
    let message = "a name is compared with the key itself, so there is nothing to hash";
    scope.error_with("Hash", "unexpected_hash", message, "remove it");
}

fn check_not_mixed(keys: &[Keys], scope: &mut Scope<'_>) {
    let range = keys.iter().position(|keys| *keys == Keys::Range);
    let name = keys.iter().position(|keys| *keys == Keys::Name);
    let (Some(range), Some(name)) = (range, name) else {
        return;
    };
    let (place, message) = if range < name {
        (
            format!("Partitions/{name}/Name"),
            format!("the partition has a name, and partition {range} has a range"),
        )
    } else {
        (
            format!("Partitions/{range}/LowKey"),
            format!("the partition has a range, and partition {name} has a name"),
        )
    };
    let suggestion = "give all of them ranges, or all of them names";
    scope.error_with(&place, "mixed_partitions", message, suggestion);
}

/// Reports ranges that overlap, and numbers that a hash can give and no range has.
fn check_ranges(config: &PartitionedClusters, scope: &mut Scope<'_>) {
    let mut ranges: Vec<(RangeInclusive<i64>, usize)> = Vec::new();
    for (position, partition) in config.partitions.iter().enumerate() {
        if let (Keys::Range, Some(low), Some(high)) =
            (Keys::of(partition), partition.low_key, partition.high_key)
            && low <= high
        {
            ranges.push((low..=high, position));
        }
    }
    ranges.sort_by_key(|(range, position)| (*range.start(), *position));
    let is_whole = ranges.len() == config.partitions.len();
    let mut furthest: Option<&(RangeInclusive<i64>, usize)> = None;
    let mut gap = None;
    for next in &ranges {
        if let Some(before) = furthest {
            if next.0.start() <= before.0.end() {
                overlap(before, next, &config.partitions, scope);
            } else if before.0.end().checked_add(1) != Some(*next.0.start()) {
                gap.get_or_insert_with(|| (*before.0.end(), *next.0.start()));
            }
        }
        if furthest.is_none_or(|before| before.0.end() < next.0.end()) {
            furthest = Some(next);
        }
    }
    let Some((end, start)) = gap.filter(|_| is_whole && config.hash != PartitionHash::None) else {
        return;
    };
    let message = format!(
        "no range has the numbers between {end} and {start}; requests whose key is hashed to one get 400"
    );
    scope.warning("Partitions", "partition_gap", message);
}

fn overlap(
    one: &(RangeInclusive<i64>, usize),
    two: &(RangeInclusive<i64>, usize),
    partitions: &[PartitionedCluster],
    scope: &mut Scope<'_>,
) {
    // The later in the configuration is the one to blame.
    let (first, second) = if one.1 < two.1 {
        (one, two)
    } else {
        (two, one)
    };
    let shown = |(range, position): &(RangeInclusive<i64>, usize)| {
        let id = partitions[*position].cluster_id.as_str();
        let (low, high) = (range.start(), range.end());
        format!("{low} to {high} (`{}`)", shortened(id))
    };
    let message = format!(
        "the range {} overlaps with that of partition {}, {}",
        shown(second),
        first.1,
        shown(first)
    );
    let place = format!("Partitions/{}/LowKey", second.1);
    scope.error(&place, "overlapping_ranges", message);
}

fn check_names(partitions: &[PartitionedCluster], scope: &mut Scope<'_>) {
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(partitions.len());
    for (position, partition) in partitions.iter().enumerate() {
        let Some(name) = filled(partition.name.as_ref()) else {
            continue;
        };
        let first = *seen.entry(name).or_insert(position);
        if first != position {
            let message = format!(
                "the name `{}` is that of partition {first} already",
                shortened(name)
            );
            let place = format!("Partitions/{position}/Name");
            scope.error(&place, "duplicate_partition_name", message);
        }
    }
}
