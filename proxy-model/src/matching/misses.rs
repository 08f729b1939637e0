//! All criteria of a route that a request does not meet, and routes that no request can reach.

use std::collections::BTreeSet;

use super::criterion::shown_values;
use super::host::RequestHost;
use super::matcher::{Mismatch, RouteMatcher};
use crate::head::RequestHead;
use crate::suggest::shortened;

/// Maximum of host patterns that are named.
const HOSTS: usize = 5;

impl RouteMatcher {
    /// Returns all criteria that a request does not meet, in the order of [`Mismatch`]'s variants;
    /// [`check`](Self::check) returns the first of them.
    pub fn mismatches<H: RequestHead + ?Sized>(&self, head: &H) -> Vec<Mismatch> {
        let mut all = Vec::new();
        let host = RequestHost::parse(head.authority(), head.is_https());
        let takes_host = |pattern: &super::HostPattern| pattern.matches(&host);
        if !self.hosts().is_empty() && !self.hosts().iter().any(takes_host) {
            all.push(Mismatch::Host);
        }
        if !self.path().matches(head.path()) {
            all.push(Mismatch::Path);
        }
        if !self.takes_method(head) {
            all.push(Mismatch::Method);
        }
        let headers = self.headers().iter().filter(|header| !header.matches(head));
        all.extend(headers.map(|header| Mismatch::Header(header.name().into())));
        let query = self.query().iter().filter(|query| !query.matches(head));
        all.extend(query.map(|query| Mismatch::Query(query.name().into())));
        all
    }

    /// Returns the criterion of the route that a request [does not meet](Self::mismatches), for users.
    pub fn wanted<H: RequestHead + ?Sized>(&self, mismatch: &Mismatch, head: &H) -> String {
        match mismatch {
            Mismatch::Host => {
                let hosts = self.hosts();
                let shown = hosts
                    .iter()
                    .take(HOSTS)
                    .map(|host| shortened(host.as_str()));
                let shown: Vec<_> = shown.collect();
                match hosts.len().saturating_sub(HOSTS) {
                    0 => shown.join(" or "),
                    more => format!("{} or {more} others", shown.join(" or ")),
                }
            }
            Mismatch::Path => shortened(self.path().as_str()),
            Mismatch::Method => self.methods().to_string(),
            Mismatch::Header(name) => {
                let mut headers = self.headers().iter();
                let missed = headers.find(|header| header.name() == name && !header.matches(head));
                missed.map_or_else(String::new, |header| {
                    shown_values(header.mode_name(), header.values())
                })
            }
            Mismatch::Query(name) => {
                let mut query = self.query().iter();
                let missed = query.find(|query| query.name() == name && !query.matches(head));
                missed.map_or_else(String::new, |query| {
                    shown_values(query.mode_name(), query.values())
                })
            }
        }
    }

    /// Returns true if each request that `other` takes is taken by this route as well. A `false` is not certain: only
    /// paths that are equal, or below a catch-all, are compared.
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_path(other)
            && self.covers_hosts(other)
            && self.covers_methods(other)
            && (!other.accepts_preflight()
                || self.accepts_preflight()
                || self.methods().takes_all())
            && is_subset(
                self.headers().iter().map(|header| format!("{header:?}")),
                other.headers().iter().map(|header| format!("{header:?}")),
            )
            && is_subset(
                self.query().iter().map(|query| query.signature()),
                other.query().iter().map(|query| query.signature()),
            )
    }

    fn covers_path(&self, other: &Self) -> bool {
        let signature = |matcher: &Self| {
            let mut signature = String::new();
            matcher.path().write_signature(&mut signature);
            signature
        };
        if signature(self) == signature(other) {
            return true;
        }
        // A catch-all below literal segments, without conditions.
        let Some((above, last)) = self.path().as_str().rsplit_once('/') else {
            return false;
        };
        let is_catch_all =
            last.starts_with("{**") && last.ends_with('}') && !last.contains([':', '=']);
        let above = above.trim_start_matches('/').to_ascii_lowercase();
        let below = other.path().as_str().trim_start_matches('/');
        let below = below.to_ascii_lowercase();
        let rest = below.strip_prefix(&*above);
        let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_catch_all && !above.contains(['{', '%']) && (above.is_empty() || is_below)
    }

    fn covers_hosts(&self, other: &Self) -> bool {
        let own: BTreeSet<_> = self
            .hosts()
            .iter()
            .map(super::HostPattern::to_ascii)
            .collect();
        let others = other.hosts();
        own.is_empty()
            || (!others.is_empty() && others.iter().all(|host| own.contains(&host.to_ascii())))
    }

    fn covers_methods(&self, other: &Self) -> bool {
        let (own, others) = (self.methods(), other.methods());
        own.takes_all() || (!others.takes_all() && others.iter().all(|method| own.takes(method)))
    }
}

/// Returns true if each condition of the first list is in the second.
fn is_subset(conditions: impl Iterator<Item = String>, of: impl Iterator<Item = String>) -> bool {
    let of: BTreeSet<_> = of.collect();
    let mut conditions = conditions;
    conditions.all(|condition| of.contains(&condition))
}

#[cfg(test)]
mod tests {
    use crate::Snapshot;
    use crate::config::ProxyConfig;

    fn routes(routes: &str) -> Snapshot {
        let config = format!(r#"{{"Routes":{{{routes}}},"Clusters":{{}}}}"#);
        let config = ProxyConfig::from_json(&config).unwrap();
        Snapshot::compile(config, &crate::CompileOptions::default())
            .unwrap()
            .0
    }

    #[test]
    fn a_route_covers_what_it_takes_as_well() {
        for (wide, narrow, covers) in [
            (r#"{"Path":"/{**all}"}"#, r#"{"Path":"/a/b"}"#, true),
            (r#"{"Path":"/a/{**all}"}"#, r#"{"Path":"/A/b/{c}"}"#, true),
            (r#"{"Path":"/a/{**all}"}"#, r#"{"Path":"/a"}"#, true),
            (r#"{"Path":"/a/{**all}"}"#, r#"{"Path":"/ab"}"#, false),
            (r#"{"Path":"/a"}"#, r#"{"Path":"/{x}"}"#, false),
            (r#"{"Path":"/{x}"}"#, r#"{"Path":"/{y}"}"#, true),
            (
                r#"{"Path":"/{**all}"}"#,
                r#"{"Path":"/a","Hosts":["h"]}"#,
                true,
            ),
            (
                r#"{"Path":"/{**all}","Hosts":["h"]}"#,
                r#"{"Path":"/a"}"#,
                false,
            ),
            (
                r#"{"Path":"/{**all}","Hosts":["h","i"]}"#,
                r#"{"Path":"/a","Hosts":["H"]}"#,
                true,
            ),
            (
                r#"{"Path":"/{**all}","Methods":["GET"]}"#,
                r#"{"Path":"/a","Methods":["GET","PUT"]}"#,
                false,
            ),
            (
                r#"{"Path":"/a","Headers":[{"Name":"x","Mode":"Exists"}]}"#,
                r#"{"Path":"/a"}"#,
                false,
            ),
            (
                r#"{"Path":"/a"}"#,
                r#"{"Path":"/a","Headers":[{"Name":"x","Mode":"Exists"}]}"#,
                true,
            ),
            (
                r#"{"Path":"/a","QueryParameters":[{"Name":"q","Values":["1"]}]}"#,
                r#"{"Path":"/a","QueryParameters":[{"Name":"q","Values":["2"]}]}"#,
                false,
            ),
        ] {
            let snapshot = routes(&format!(
                r#""a":{{"Match":{wide}}},"b":{{"Order":1,"Match":{narrow}}}"#
            ));
            let [wide, narrow] = snapshot.routes() else {
                panic!("there are two");
            };
            assert_eq!(
                wide.matcher().covers(narrow.matcher()),
                covers,
                "{} {}",
                wide.matcher().path(),
                narrow.matcher().path()
            );
        }
    }
}
