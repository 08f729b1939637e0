//! The listener that receives an explained request.

use crate::connection::ListenerRules;

/// The listeners of a server: names, with their rules for requests.
#[derive(Clone, Debug, Default)]
pub struct Listeners(Vec<(String, ListenerRules)>);

impl Listeners {
    /// Returns the rules of the listener `name`. `None` is enough if all listeners have the same
    /// rules. Without any listener, returns default rules.
    ///
    /// # Errors
    ///
    /// Fails if there is no such listener, or if a name is needed: one sentence for the user.
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

    /// Returns true if the listeners have different rules, so that one must be named.
    pub(crate) fn differ(&self) -> bool {
        let first = self.0.first().map(|(_, rules)| *rules);
        self.0.iter().any(|(_, rules)| Some(*rules) != first)
    }

    /// Returns the names in the order of the listeners.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
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
