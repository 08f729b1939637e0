//! The listener that a request would come to.

use crate::connection::ListenerRules;

/// The listeners of a server, by name, with what they ask of requests.
#[derive(Clone, Debug, Default)]
pub struct Listeners(Vec<(String, ListenerRules)>);

impl Listeners {
    /// Returns the rules of the listener of this name, or those of all if no name is needed: there is one listener, or all have the
    /// same rules. Without any listener, they are the rules of one that has none of its own.
    ///
    /// # Errors
    ///
    /// There is no such listener, or a name is needed, in one sentence for the person who asks.
    pub fn rules(&self, name: Option<&str>) -> Result<ListenerRules, String> {
        let Some(name) = name else {
            return match self.0.first() {
                _ if self.differ() => Err(format!(
                    "the listeners have different rules for requests: name one of {}",
                    self.listed()
                )),
                Some((_, rules)) => Ok(*rules),
                None => Ok(ListenerRules::default()),
            };
        };
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, rules)| *rules).ok_or_else(|| {
            let name = name.escape_debug();
            match self.0.is_empty() {
                true => format!("there is no listener `{name}`"),
                false => format!(
                    "there is no listener `{name}`: name one of {}",
                    self.listed()
                ),
            }
        })
    }

    /// Returns whether a listener has to be named.
    pub fn differ(&self) -> bool {
        let first = self.0.first().map(|(_, rules)| *rules);
        self.0.iter().any(|(_, rules)| Some(*rules) != first)
    }

    /// Returns the names, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    fn listed(&self) -> String {
        let names: Vec<_> = self
            .names()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        names.join(", ")
    }
}

impl FromIterator<(String, ListenerRules)> for Listeners {
    fn from_iter<I: IntoIterator<Item = (String, ListenerRules)>>(listeners: I) -> Self {
        Self(listeners.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(strict_paths: bool) -> ListenerRules {
        ListenerRules {
            strict_paths,
            ..ListenerRules::default()
        }
    }

    fn listeners(of: &[(&str, bool)]) -> Listeners {
        of.iter()
            .map(|(name, strict)| ((*name).to_owned(), rules(*strict)))
            .collect()
    }

    #[test]
    fn a_name_is_needed_where_rules_differ() {
        let strict = rules(true);
        let open = ListenerRules::default();
        assert_eq!(listeners(&[]).rules(None), Ok(open));
        assert_eq!(listeners(&[("a", true)]).rules(None), Ok(strict));
        assert_eq!(
            listeners(&[("a", true), ("b", true)]).rules(None),
            Ok(strict)
        );
        let both = listeners(&[("a", true), ("b", false)]);
        let error = both.rules(None).unwrap_err();
        assert!(error.contains("`a`, `b`"), "{error}");
        assert_eq!(both.rules(Some("a")), Ok(strict));
        assert_eq!(both.rules(Some("b")), Ok(open));
        assert_eq!(both.names().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_name_that_is_not_there_is_a_mistake() {
        for known in [listeners(&[]), listeners(&[("web", true)])] {
            let error = known.rules(Some("wep\n")).unwrap_err();
            assert!(error.contains("`wep\\n`"), "{error}");
        }
    }
}
