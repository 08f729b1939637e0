//! The policies that discovered services may name: `Policies.Discovered`.
//!
//! A service is often registered by others than those who decide about the proxy, so a service chooses none by default.

use discovery_core::{ConfigFilter, FilterContext};
use proxy_model::config::{ClusterConfig, PolicyConfigs, PolicyKind, RouteConfig};
use proxy_model::json::{Node, ObjectReader};
use proxy_model::{CompileOptions, Problem, Problems, RouteId, pointer_to, same_id};
use proxy_policies::SECTION;

use super::{CONSUL, SERF, SERVICE_FABRIC, XDS};

/// The key of the section.
const KEY: &str = "Discovered";

/// The names that need no definition and take a restriction away: of the policies that routes have by default, and of
/// what scripts of other origins may read.
const LOOSENING: [(PolicyKind, &str); 4] = [
    (PolicyKind::Authorization, "Anonymous"),
    // It takes the place of `Fallback`, which may be stricter.
    (PolicyKind::Authorization, DEFAULT),
    (PolicyKind::RateLimiter, "Disable"),
    (PolicyKind::Cors, DEFAULT),
];

const DEFAULT: &str = "Default";

/// The policies that the services of each section may name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Allowed {
    of_sections: Vec<(&'static str, Vec<(PolicyKind, String)>)>,
    /// True if routes without an authorization policy have one all the same.
    has_fallback: bool,
}

impl Allowed {
    /// Reads the key of the section `Policies`.
    pub(super) fn read(document: &mut ObjectReader<'_, '_>) -> Self {
        let Some(Node::Object(section)) = document.peek(SECTION) else {
            return Self::default();
        };
        let has_fallback = match section.entry(PolicyKind::Authorization.section()) {
            Some((_, Node::Object(policies))) => policies.entry("Fallback").is_some(),
            _ => false,
        };
        let none = Self {
            has_fallback,
            ..Self::default()
        };
        let Some((key, node)) = section.entry(KEY) else {
            return none;
        };
        let pointer = pointer_to(&document.pointer_to(SECTION), key);
        let problems = document.problems();
        let read = ObjectReader::read(node, &pointer, problems, |discovered| {
            let sections = [SERVICE_FABRIC, SERF, CONSUL, XDS];
            let of = |section| Some((section, discovered.object(section, read_source)?));
            sections.into_iter().filter_map(of).collect()
        });
        Self {
            of_sections: read.unwrap_or_default(),
            ..none
        }
    }

    /// Reports names that no policy has.
    pub(crate) fn judge(&self, policies: &PolicyConfigs, problems: &mut Problems) {
        for (section, names) in &self.of_sections {
            for (kind, name) in names {
                if is_loosening(*kind, name) || policies.get(*kind, name).is_some() {
                    continue;
                }
                let pointer = format!("/{SECTION}/{KEY}/{section}/{}", kind.section());
                let message = format!("there is no policy `{name}` in `{SECTION}`");
                problems.push(Problem::error(pointer, "unknown_policy", message));
            }
        }
    }

    /// Returns true if services of a section may name the policy.
    pub(crate) fn names(&self, kind: PolicyKind, name: &str) -> bool {
        let mut names = self.of_sections.iter().flat_map(|(_, names)| names);
        names.any(|(known, allowed)| *known == kind && same_id(allowed, name))
    }

    /// Returns `options` with the names that the services of a section may use.
    pub(super) fn options(&self, section: &str, options: &CompileOptions) -> CompileOptions {
        let names = |kind| {
            let of_section = self
                .of_sections
                .iter()
                .filter(|(known, _)| *known == section);
            let names = of_section.flat_map(|(_, names)| names);
            names
                .filter(move |(known, name)| *known == kind && !is_loosening(kind, name))
                .map(|(_, name)| name.clone())
                .collect::<Vec<_>>()
        };
        options
            .clone()
            .with_cors_policies(names(PolicyKind::Cors))
            .with_authorization_policies(names(PolicyKind::Authorization))
            .with_rate_limiter_policies(names(PolicyKind::RateLimiter))
            .with_timeout_policies(names(PolicyKind::Timeout))
    }

    /// Returns a filter for the services of a section. It removes names of policies that lift a restriction, unless
    /// they are permitted, so that the defaults of routes apply.
    pub(super) fn filter(&self, section: &'static str) -> NoExceptions {
        let of_section = self
            .of_sections
            .iter()
            .filter(|(known, _)| *known == section);
        let names: Vec<_> = of_section.flat_map(|(_, names)| names).collect();
        let denied = |(kind, loosening): &(PolicyKind, &str)| {
            // Without `Fallback` it restricts.
            if *loosening == DEFAULT && *kind == PolicyKind::Authorization && !self.has_fallback {
                return false;
            }
            let mut names = names.iter();
            !names.any(|(known, name)| known == kind && same_id(name, loosening))
        };
        let allowed = names.iter().map(|(kind, name)| (*kind, name.clone()));
        NoExceptions {
            section,
            loosening: LOOSENING.into_iter().filter(denied).collect(),
            allowed: allowed.collect(),
        }
    }
}

fn is_loosening(kind: PolicyKind, name: &str) -> bool {
    let mut known = LOOSENING.iter();
    known.any(|(known, loosening)| *known == kind && same_id(loosening, name))
}

fn read_source(source: &mut ObjectReader<'_, '_>) -> Vec<(PolicyKind, String)> {
    let of = |kind: PolicyKind| {
        let names = source.texts(kind.section()).unwrap_or_default();
        names
            .into_iter()
            .map(move |name| (kind, name))
            .collect::<Vec<_>>()
    };
    PolicyKind::ALL.into_iter().flat_map(of).collect()
}

/// Removes names of policies that lift a restriction from routes, and rejects routes that name other policies
/// without permission.
pub(super) struct NoExceptions {
    section: &'static str,
    loosening: Vec<(PolicyKind, &'static str)>,
    allowed: Vec<(PolicyKind, String)>,
}

impl NoExceptions {
    fn take_out_of(&self, route: &mut RouteConfig) {
        for (kind, loosening) in &self.loosening {
            let named = named(route, *kind);
            if named.as_ref().is_some_and(|name| same_id(name, loosening)) {
                *named = None;
            }
        }
    }
}

impl NoExceptions {
    /// # Errors
    ///
    /// The route names a policy that the services of the section may not name.
    fn judge(&self, route: &mut RouteConfig) -> Result<(), Problem> {
        for kind in PolicyKind::ALL {
            let key = kind.route_key();
            let Some(name) = named(route, kind)
                .as_deref()
                .filter(|name| !name.is_empty())
            else {
                continue;
            };
            let mut allowed = self.allowed.iter();
            let is_allowed =
                allowed.any(|(known, allowed)| *known == kind && same_id(allowed, name));
            if is_allowed || NEEDLESS.iter().any(|needless| same_id(needless, name)) {
                continue;
            }
            let (section, of_kind) = (self.section, kind.section());
            let message = format!("services of `{section}` may not name the policy `{name}`");
            return Err(Problem::error(format!("/{key}"), "policy_not_permitted", message)
                .with_suggestion(format!(
                    "permit it: `\"{SECTION}\": {{ \"{KEY}\": {{ \"{section}\": {{ \"{of_kind}\": [ \"{name}\" ] }} }} }}`"
                )));
        }
        Ok(())
    }
}

/// Policy names that need no definition. Those that lift a restriction have been removed before.
const NEEDLESS: [&str; 3] = ["Anonymous", DEFAULT, "Disable"];

/// The policy of a kind that a route names.
fn named(route: &mut RouteConfig, kind: PolicyKind) -> &mut Option<String> {
    match kind {
        PolicyKind::Authorization => &mut route.authorization_policy,
        PolicyKind::RateLimiter => &mut route.rate_limiter_policy,
        PolicyKind::Cors => &mut route.cors_policy,
        PolicyKind::Timeout => &mut route.timeout_policy,
    }
}

impl ConfigFilter for NoExceptions {
    fn route(
        &self,
        _: &FilterContext<'_>,
        _: &RouteId,
        route: &mut RouteConfig,
        _: Option<&ClusterConfig>,
    ) -> Result<(), Problem> {
        self.take_out_of(route);
        self.judge(route)
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::Snapshot;
    use proxy_model::config::ProxyConfig;
    use proxy_model::json::parse_document;

    use super::*;

    fn allowed(text: &str) -> (Allowed, Problems) {
        let document = parse_document(text).unwrap();
        let mut problems = Problems::new();
        let read = ObjectReader::read(&document, "", &mut problems, |root| {
            root.allow_unknown();
            Allowed::read(root)
        });
        (read.unwrap(), problems)
    }

    const TEXT: &str = r#"{"policies":{"discovered":{
        "ConsulDiscovery":{"RateLimiter":["few","disable"],"Authorization":["staff"]},"SerfDiscovery":{}}}}"#;

    #[test]
    fn services_may_name_what_their_section_permits() {
        let (allowed, problems) = allowed(TEXT);
        assert!(problems.is_empty(), "{problems}");
        let route = |policy: &str| {
            let config = ProxyConfig::from_json(&format!(
                r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/"}},{policy}}}}},"Clusters":{{"c":{{}}}}}}"#
            ));
            config.unwrap()
        };
        let serves = |section, policy: &str| {
            let options = allowed.options(section, &CompileOptions::default());
            Snapshot::compile(route(policy), &options).is_ok()
        };
        for (section, policy, expected) in [
            (CONSUL, r#""RateLimiterPolicy":"FEW""#, true),
            (CONSUL, r#""AuthorizationPolicy":"staff""#, true),
            (CONSUL, r#""AuthorizationPolicy":"few""#, false),
            (CONSUL, r#""CorsPolicy":"staff""#, false),
            (CONSUL, r#""TimeoutPolicy":"few""#, false),
            (SERF, r#""RateLimiterPolicy":"few""#, false),
            (XDS, r#""RateLimiterPolicy":"few""#, false),
            (XDS, r#""RateLimiterPolicy":"Disable""#, true),
        ] {
            assert_eq!(serves(section, policy), expected, "{section} {policy}");
        }
    }

    /// A label must not open what the operator has closed for all routes.
    #[test]
    fn names_that_take_restrictions_away_have_to_be_permitted() {
        let (allowed, _) = allowed(TEXT);
        let left = |section| {
            let mut route = RouteConfig {
                authorization_policy: Some("ANONYMOUS".to_owned()),
                rate_limiter_policy: Some("Disable".to_owned()),
                cors_policy: Some("default".to_owned()),
                timeout_policy: Some("Disable".to_owned()),
                ..RouteConfig::default()
            };
            allowed.filter(section).take_out_of(&mut route);
            [
                route.authorization_policy,
                route.rate_limiter_policy,
                route.cors_policy,
                route.timeout_policy,
            ]
            .map(|name| name.is_some())
        };
        assert_eq!(left(SERF), [false, false, false, true]);
        assert_eq!(left(CONSUL), [false, true, false, true]);
    }

    #[test]
    fn who_names_what_is_not_permitted_is_told_where_it_would_be() {
        let (allowed, _) = allowed(TEXT);
        for (section, name, expected) in [
            (CONSUL, "FEW", None),
            (CONSUL, "many", Some("many")),
            (SERF, "few", Some("few")),
            (SERF, "Default", None),
            (SERF, "", None),
        ] {
            let mut route = RouteConfig {
                rate_limiter_policy: Some(name.to_owned()),
                ..RouteConfig::default()
            };
            let judged = allowed.filter(section).judge(&mut route);
            let told = judged.err().map(|problem| problem.suggestion.unwrap());
            let expected = expected.map(|name| {
                format!(
                    r#"permit it: `"Policies": {{ "Discovered": {{ "{section}": {{ "RateLimiter": [ "{name}" ] }} }} }}`"#
                )
            });
            assert_eq!(told, expected, "{section} {name}");
        }
    }

    /// `Default` is less than `Fallback` where there is one, and more than nothing elsewhere.
    #[test]
    fn the_default_takes_the_place_of_no_fallback() {
        for (authorization, expected) in [
            (r#"{"Default":{},"fallback":{}}"#, None),
            (r#"{"Default":{}}"#, Some("default")),
        ] {
            let text = format!(r#"{{"Policies":{{"Authorization":{authorization}}}}}"#);
            let mut route = RouteConfig {
                authorization_policy: Some("default".to_owned()),
                ..RouteConfig::default()
            };
            allowed(&text).0.filter(SERF).take_out_of(&mut route);
            assert_eq!(route.authorization_policy.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn names_that_nothing_defines_are_told() {
        let (allowed, _) = allowed(TEXT);
        let mut problems = Problems::new();
        allowed.judge(&PolicyConfigs::default(), &mut problems);
        let found: Vec<_> = problems.iter().map(|p| &*p.pointer).collect();
        let place = "/Policies/Discovered/ConsulDiscovery";
        // `disable` needs no definition.
        assert_eq!(
            found,
            [
                format!("{place}/Authorization"),
                format!("{place}/RateLimiter")
            ]
        );
        let (_, problems) = self::allowed(r#"{"Policies":{"Discovered":{"Consul":{}}}}"#);
        let told = problems.to_string();
        assert!(
            told.contains("unknown key") && told.contains("ConsulDiscovery"),
            "{told}"
        );
    }
}
