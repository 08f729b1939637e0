//! The middlewares of Traefik's routers, and their support here.
//!
//! | middleware | here |
//! |---|---|
//! | `stripprefix` with one prefix, `addprefix` | done; a prefix is one of whole segments |
//! | `chain` | each of its middlewares |
//! | `compress`, `contenttype`, `retry`, `circuitbreaker` | not done, which is a warning |
//! | any other, and one that these tags do not define | the router is left out |

use std::collections::{BTreeMap, BTreeSet};

/// Maximum depth of nested middlewares.
const DEEPEST: usize = 8;

/// The most middlewares of a router.
const MOST: usize = 64;

/// A tag: its key as written, and its value.
type Tag = (String, String);

/// The middlewares that the tags of a service define.
#[derive(Debug, Default)]
pub(super) struct Middlewares {
    /// The tags of each by its folded name, and by the rest of the folded key.
    defined: BTreeMap<String, BTreeMap<String, Tag>>,
    /// The tags that have an effect.
    done: BTreeSet<String>,
}

impl Middlewares {
    pub(super) fn add(&mut self, key: &str, name: &str, setting: &str, value: &str) {
        let settings = self.defined.entry(name.to_owned()).or_default();
        let tag = (key.to_owned(), value.trim().to_owned());
        settings.insert(setting.to_owned(), tag);
    }

    /// Returns the transforms of a router's list.
    ///
    /// # Errors
    ///
    /// Returns the reason why one of the middlewares is unsupported.
    pub(super) fn transforms(&mut self, list: &str) -> Result<Vec<(&'static str, String)>, String> {
        let mut found = Vec::new();
        let mut count = 0;
        self.apply(list, 0, &mut count, &mut found)?;
        Ok(found)
    }

    /// The keys of tags that have no effect.
    pub(super) fn without_effect(&self) -> impl Iterator<Item = &str> {
        let tags = self.defined.values().flat_map(BTreeMap::values);
        tags.map(|(key, _)| key.as_str())
            .filter(|key| !self.done.contains(*key))
    }

    fn apply(
        &mut self,
        list: &str,
        depth: usize,
        count: &mut usize,
        found: &mut Vec<(&'static str, String)>,
    ) -> Result<(), String> {
        let names = list.split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty()) {
            let shown = discovery_core::text::shortened(name, 40);
            *count += 1;
            if depth > DEEPEST || *count > MOST {
                return Err("it has too many middlewares".to_owned());
            }
            let folded = name.to_ascii_lowercase();
            let settings = match folded.split_once('@') {
                Some((own, "consulcatalog")) => self.defined.get(own),
                Some(_) => None,
                None => self.defined.get(&folded),
            };
            let Some(settings) = settings.cloned() else {
                return Err(format!(
                    "its middleware `{shown}` is not defined by these tags"
                ));
            };
            self.one(&settings, depth, count, found)
                .map_err(|reason| format!("its middleware `{shown}` cannot be done: {reason}"))?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        settings: &BTreeMap<String, Tag>,
        depth: usize,
        count: &mut usize,
        found: &mut Vec<(&'static str, String)>,
    ) -> Result<(), String> {
        let kind = |setting: &str| setting.split('.').next().unwrap_or_default().to_owned();
        let kinds: BTreeSet<String> = settings.keys().map(|setting| kind(setting)).collect();
        let mut only = kinds.iter();
        let (Some(kind), None) = (only.next(), only.next()) else {
            return Err("it is of several kinds".to_owned());
        };
        match kind.as_str() {
            "stripprefix" => {
                let known = ["stripprefix.prefixes", "stripprefix.prefixes[0]"];
                found.push(("PathRemovePrefix", self.path(settings, &known)?));
            }
            "addprefix" => {
                found.push(("PathPrefix", self.path(settings, &["addprefix.prefix"])?));
            }
            "chain" => {
                let (key, list) = only_tag(settings, &["chain.middlewares"])?;
                self.done.insert(key);
                self.apply(&list, depth + 1, count, found)?;
            }
            "compress" | "contenttype" | "retry" | "circuitbreaker" => {}
            other => {
                return Err(format!(
                    "there is no `{}` here",
                    discovery_core::text::shortened(other, 40)
                ));
            }
        }
        Ok(())
    }

    /// Returns the only path of a middleware.
    fn path(&mut self, settings: &BTreeMap<String, Tag>, known: &[&str]) -> Result<String, String> {
        let (key, path) = only_tag(settings, known)?;
        let is_plain = path.starts_with('/')
            && path.len() > 1
            && !path.contains(['{', '}', '*', '?', '#', '%', ',']);
        if !is_plain {
            let shown = discovery_core::text::shortened(&path, 40);
            return Err(format!("`{shown}` is not one path"));
        }
        self.done.insert(key);
        Ok(path.trim_end_matches('/').to_owned())
    }
}

/// The only tag of a middleware, if it is one of these.
fn only_tag(settings: &BTreeMap<String, Tag>, known: &[&str]) -> Result<Tag, String> {
    let mut tags = settings.iter();
    match (tags.next(), tags.next()) {
        (Some((setting, tag)), None) if known.contains(&setting.as_str()) => Ok(tag.clone()),
        _ => Err("its settings are not known".to_owned()),
    }
}
