//! Filters of listed members and of events.

use std::collections::BTreeMap;

use super::MemberEventKind;

/// A filter of listed members. Patterns are regular expressions in the syntax of RE2, and match a text as a
/// whole.
///
/// An agent closes the connection if a pattern is not a regular expression.
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
    /// Selects all members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects nodes whose name matches.
    #[must_use]
    pub fn with_name(mut self, pattern: &str) -> Self {
        self.name = Some(whole(pattern));
        self
    }

    /// Selects members whose [status](crate::MemberStatus) matches.
    #[must_use]
    pub fn with_status(mut self, pattern: &str) -> Self {
        self.status = Some(whole(pattern));
        self
    }

    /// Selects members with a matching value of a tag. A pattern that matches the empty text also matches
    /// members without the tag. Several tags must all match; a later pattern for a tag replaces the
    /// earlier.
    #[must_use]
    pub fn with_tag(mut self, key: impl Into<String>, pattern: &str) -> Self {
        self.tags.insert(key.into(), whole(pattern));
        self
    }
}

/// Returns the pattern in parentheses. Agents put `^` and `$` around a pattern but no parentheses, so that
/// in `a|b` each would apply to one half only.
fn whole(pattern: &str) -> String {
    format!("(?:{pattern})")
}

/// A filter of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    tokens: Vec<String>,
}

impl EventFilter {
    /// Selects all member events. Other events would only take space in the agent's queue.
    pub fn members() -> Self {
        Self::member_events(MemberEventKind::ALL)
    }

    /// Selects some kinds of member events.
    pub fn member_events(kinds: impl IntoIterator<Item = MemberEventKind>) -> Self {
        let words = kinds.into_iter().map(MemberEventKind::as_str);
        Self {
            tokens: words.map(str::to_owned).collect(),
        }
    }

    /// Selects user events of any name.
    pub fn user_events() -> Self {
        Self::one("user".to_owned())
    }

    /// Selects user events of one name.
    pub fn user_event(name: &str) -> Self {
        Self::one(format!("user:{name}"))
    }

    /// Selects queries of any name.
    pub fn queries() -> Self {
        Self::one("query".to_owned())
    }

    /// Selects queries of one name.
    pub fn query(name: &str) -> Self {
        Self::one(format!("query:{name}"))
    }

    /// Selects all events.
    pub fn all() -> Self {
        Self::one("*".to_owned())
    }

    /// Selects the events that either filter selects.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.tokens.extend(other.tokens);
        self
    }

    fn one(token: String) -> Self {
        let tokens = vec![token];
        Self { tokens }
    }

    /// Returns the filter in the agent's format. `None` if it has no representation: an empty filter, which
    /// agents read as all events, or a name with a comma.
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
