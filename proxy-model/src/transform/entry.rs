//! One transform as a configuration writes it: a map with a key that selects the kind of transform, and
//! further keys.

use super::{OwnTransforms, SetOrAppend};
use crate::config::TransformConfig;
use crate::problem::{Problem, Problems, pointer_to};
use crate::suggest::{did_you_mean, listed, shortened};

/// Every transform, by the key that selects it, with its further keys.
///
/// The order is that in which YARP searches for them. If a map has two such keys, the first one here
/// decides.
const KINDS: [(&str, &[&str]); 25] = [
    ("PathSet", &[]),
    ("PathPrefix", &[]),
    ("PathRemovePrefix", &[]),
    ("PathPattern", &[]),
    ("RequestHeadersCopy", &[]),
    ("RequestHeaderOriginalHost", &[]),
    ("RequestHeader", &["Set", "Append"]),
    ("RequestHeaderRouteValue", &["Set", "Append"]),
    ("RequestHeaderRemove", &[]),
    ("RequestHeadersAllowed", &[]),
    ("ResponseHeadersCopy", &[]),
    ("ResponseTrailersCopy", &[]),
    ("ResponseHeader", &["Set", "Append", "When"]),
    ("ResponseTrailer", &["Set", "Append", "When"]),
    ("ResponseHeaderRemove", &["When"]),
    ("ResponseTrailerRemove", &["When"]),
    ("ResponseHeadersAllowed", &[]),
    ("ResponseTrailersAllowed", &[]),
    (
        "X-Forwarded",
        &["HeaderPrefix", "For", "Host", "Proto", "Prefix"],
    ),
    ("Forwarded", &["Action", "ForFormat", "ByFormat"]),
    ("ClientCert", &[]),
    ("HttpMethodChange", &["Set"]),
    ("QueryValueParameter", &["Set", "Append"]),
    ("QueryRouteParameter", &["Set", "Append"]),
    ("QueryRemoveParameter", &[]),
];

/// Returns true if a transform of the table is selected.
pub(super) fn is_built_in(map: &TransformConfig) -> bool {
    KINDS.iter().any(|(kind, _)| find(map, kind).is_some())
}

/// Maximum number of keys that are checked one by one.
const MAX_KEYS: usize = 32;

/// Returns all keys of transforms, each once.
#[cfg(feature = "schema")]
pub(crate) fn transform_keys() -> std::collections::BTreeSet<&'static str> {
    KINDS
        .iter()
        .flat_map(|(kind, partners)| std::iter::once(kind).chain(partners.iter()))
        .copied()
        .collect()
}

/// One transform while it is compiled.
pub(super) struct TransformEntry<'a> {
    map: &'a TransformConfig,
    pointer: String,
    kind: &'static str,
    value: &'a str,
}

impl<'a> TransformEntry<'a> {
    /// Determines the kind of the transform `map`, and rejects keys that do not belong to it.
    pub(super) fn read(
        map: &'a TransformConfig,
        pointer: String,
        own: &OwnTransforms,
        problems: &mut Problems,
    ) -> Option<Self> {
        let found = KINDS
            .iter()
            .find_map(|(kind, partners)| Some((*kind, *partners, find(map, kind)?)));
        let Some((kind, partners, value)) = found else {
            problems.push(unknown(map, pointer, own));
            return None;
        };
        // Each key is compared with all before it, so their number must be limited.
        if map.len() > MAX_KEYS {
            problems.push(Problem::error(
                pointer,
                "unexpected_transform_key",
                format!(
                    "`{kind}` has {} keys, far more than any transform takes",
                    map.len()
                ),
            ));
            return None;
        }
        for (i, key) in map.keys().enumerate() {
            let repeated = map
                .keys()
                .take(i)
                .any(|other| other.eq_ignore_ascii_case(key));
            let allowed = std::iter::once(&kind)
                .chain(partners)
                .any(|allowed| allowed.eq_ignore_ascii_case(key));
            if allowed && !repeated {
                continue;
            }
            let key_shown = shortened(key);
            let message = match (repeated, partners) {
                (true, _) => format!("`{key_shown}` is written twice"),
                (false, []) => format!("`{kind}` takes no other key, found `{key_shown}`"),
                (false, partners) => format!(
                    "`{key_shown}` does not go with `{kind}`, which takes {}",
                    listed(partners.iter().copied())
                ),
            };
            let mut problem = Problem::error(
                pointer_to(&pointer, key),
                "unexpected_transform_key",
                message,
            );
            problem.suggestion = did_you_mean(key, partners.iter().copied());
            problems.push(problem);
        }
        Some(Self {
            map,
            pointer,
            kind,
            value,
        })
    }

    /// The key that selects the kind of transform.
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The value of that key.
    pub(super) fn value(&self) -> &'a str {
        self.value
    }

    /// The value of a partner.
    pub(super) fn partner(&self, key: &str) -> Option<&'a str> {
        find(self.map, key)
    }

    /// Returns the pointer of the value of `key`.
    pub(super) fn place(&self, key: &str) -> String {
        match self.map.keys().find(|k| k.eq_ignore_ascii_case(key)) {
            Some(written) => pointer_to(&self.pointer, written),
            None => self.pointer.clone(),
        }
    }

    /// An error about the value of `key`.
    pub(super) fn invalid(&self, key: &str, message: String) -> Problem {
        Problem::error(self.place(key), "invalid_transform_value", message)
    }

    /// The value of a partner that must be there.
    pub(super) fn required(&self, key: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let value = self.partner(key);
        if value.is_none() {
            problems.push(
                Problem::error(
                    self.pointer.clone(),
                    "missing_transform_key",
                    format!("`{}` needs `{key}`", self.kind),
                )
                .with_suggestion(format!("add `\"{key}\": \"…\"`")),
            );
        }
        value
    }

    /// Returns the value of `Set` or of `Append`, one of which must be present.
    pub(super) fn set_or_append(
        &self,
        problems: &mut Problems,
    ) -> Option<(SetOrAppend, &'static str, &'a str)> {
        match (self.partner("Set"), self.partner("Append")) {
            (Some(value), None) => Some((SetOrAppend::Set, "Set", value)),
            (None, Some(value)) => Some((SetOrAppend::Append, "Append", value)),
            (Some(_), Some(_)) => {
                problems.push(Problem::error(
                    self.place("Append"),
                    "unexpected_transform_key",
                    format!("`{}` takes `Set` or `Append`, not both", self.kind),
                ));
                None
            }
            (None, None) => {
                problems.push(
                    Problem::error(
                        self.pointer.clone(),
                        "missing_transform_key",
                        format!("`{}` needs `Set` or `Append`", self.kind),
                    )
                    .with_suggestion("add `\"Set\": \"…\"`"),
                );
                None
            }
        }
    }
}

fn find<'a>(map: &'a TransformConfig, key: &str) -> Option<&'a str> {
    let (_, value) = map.iter().find(|(k, _)| k.eq_ignore_ascii_case(key))?;
    Some(value)
}

fn unknown(map: &TransformConfig, pointer: String, own: &OwnTransforms) -> Problem {
    let names = || KINDS.iter().map(|(kind, _)| *kind);
    if map.is_empty() {
        return Problem::error(pointer, "unknown_transform", "the transform is empty")
            .with_suggestion(format!("transforms are {}", listed(names())));
    }
    let keys = listed(map.keys().take(8).map(String::as_str));
    let mut problem = Problem::error(
        pointer,
        "unknown_transform",
        format!("no transform has the keys {}", shortened(&keys)),
    );
    problem.suggestion = map
        .keys()
        .take(8)
        .find_map(|key| did_you_mean(key, names()))
        .or_else(|| own.suggestion(map));
    problem
}
