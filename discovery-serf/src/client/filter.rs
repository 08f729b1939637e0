//! Which members are listed, and which events are told.

use std::collections::BTreeMap;

use super::MemberEventKind;

/// Which members an agent lists. Patterns are regular expressions in the syntax of RE2, and match a text as a whole.
///
/// An agent closes the connection when a pattern is none.
///
/// ```
/// use discovery_serf::client::MemberFilter;
///
/// let filter = MemberFilter::new().with_status("alive").with_tag("service", "orders|payments");
/// # drop(filter);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFilter {
    pub(super) name: Option<String>,
    pub(super) status: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
}

impl MemberFilter {
    /// All members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only nodes whose name matches.
    #[must_use]
    pub fn with_name(mut self, pattern: &str) -> Self {
        self.name = Some(whole(pattern));
        self
    }

    /// Only members whose [status](crate::MemberStatus) matches.
    #[must_use]
    pub fn with_status(mut self, pattern: &str) -> Self {
        self.status = Some(whole(pattern));
        self
    }

    /// Only members with a value of a tag that matches. A pattern that matches the empty text also matches those that do not
    /// have the tag. Several tags must all match; the later pattern for a tag replaces the earlier.
    #[must_use]
    pub fn with_tag(mut self, key: impl Into<String>, pattern: &str) -> Self {
        self.tags.insert(key.into(), whole(pattern));
        self
    }
}

/// Agents put `^` and `$` around a pattern and no parentheses, so that of `a|b` each would hold for one half only.
fn whole(pattern: &str) -> String {
    format!("(?:{pattern})")
}

/// Which events an agent tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    tokens: Vec<String>,
}

impl EventFilter {
    /// Everything that happens to members, and nothing else: other events would take room from them in the agent's queue.
    pub fn members() -> Self {
        Self::member_events(MemberEventKind::ALL)
    }

    /// Some of what happens to members.
    pub fn member_events(kinds: impl IntoIterator<Item = MemberEventKind>) -> Self {
        let words = kinds.into_iter().map(MemberEventKind::as_str);
        Self {
            tokens: words.map(str::to_owned).collect(),
        }
    }

    /// User events of any name.
    pub fn user_events() -> Self {
        Self::one("user".to_owned())
    }

    /// User events of one name.
    pub fn user_event(name: &str) -> Self {
        Self::one(format!("user:{name}"))
    }

    /// Queries of any name.
    pub fn queries() -> Self {
        Self::one("query".to_owned())
    }

    /// Queries of one name.
    pub fn query(name: &str) -> Self {
        Self::one(format!("query:{name}"))
    }

    /// Everything.
    pub fn all() -> Self {
        Self::one("*".to_owned())
    }

    /// What either filter lets through.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.tokens.extend(other.tokens);
        self
    }

    fn one(token: String) -> Self {
        let tokens = vec![token];
        Self { tokens }
    }

    /// As agents read it; `None` if it cannot be said: nothing at all, which they read as everything, or a name with a comma.
    pub(super) fn encoded(&self) -> Option<String> {
        let can_be_said = |token: &String| !token.contains(',');
        (!self.tokens.is_empty() && self.tokens.iter().all(can_be_said))
            .then(|| self.tokens.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_events_of_members_are_asked_for_without_blanks() {
        let expected = "member-join,member-leave,member-failed,member-update,member-reap";
        assert_eq!(EventFilter::members().encoded().unwrap(), expected);
    }

    #[test]
    fn filters_are_put_together() {
        let filter = EventFilter::member_events([MemberEventKind::Join])
            .or(EventFilter::user_event("deploy"))
            .or(EventFilter::query("load"));
        let expected = "member-join,user:deploy,query:load";
        assert_eq!(filter.encoded().unwrap(), expected);
        assert_eq!(EventFilter::all().encoded().unwrap(), "*");
        let any = EventFilter::user_events().or(EventFilter::queries());
        assert_eq!(any.encoded().unwrap(), "user,query");
    }

    #[test]
    fn what_cannot_be_said_is_not_said_otherwise() {
        assert_eq!(EventFilter::user_event("a,*").encoded(), None);
        assert_eq!(EventFilter::member_events([]).encoded(), None);
    }
}
