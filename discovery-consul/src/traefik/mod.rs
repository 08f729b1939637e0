//! Traefik's common tags in the terms of our own labels.
//!
//! | tag | becomes |
//! |---|---|
//! | `traefik.enable` | `enable` |
//! | `traefik.http.routers.<r>.rule` | a route, or several: `Host`, `Path`, `PathPrefix`, `Method`, `Header`, `Headers` and `Query` with `&&`, `\|\|` and parentheses |
//! | `traefik.http.routers.<r>.priority` | the order of these routes; unset: the length of the rule, as Traefik has it |
//! | `traefik.http.services.<s>.loadbalancer.server.port`, `.scheme` | port and scheme of the instance |
//! | `traefik.http.services.<s>.loadbalancer.passhostheader` | whether the host of the request is kept; unset: yes |
//! | `traefik.http.services.<s>.loadbalancer.healthcheck.path`, `.interval`, `.timeout` | active health checks |
//! | `traefik.http.services.<s>.loadbalancer.sticky.cookie`, `.name` | session affinity |
//!
//! A prefix is one of whole segments here: `PathPrefix(`/x`)` does not match `/xy`. Everything else is left out with a
//! warning; a router whose rule says more than can be said here is left out as a whole.

mod rule;

use std::collections::{BTreeMap, BTreeSet};

use discovery_core::Labels;
use proxy_model::{Problem, Problems, pointer_to};

use self::rule::Conditions;

/// What all of Traefik's tags begin with.
const PREFIX: &str = "traefik.";

/// What the tags of a service say.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    /// In our own terms, without our prefix.
    pub(crate) labels: Labels,
    pub(crate) problems: Problems,
}

/// The port and the scheme of an instance, if its tags say something else than its registration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) port: Option<u16>,
    pub(crate) scheme: Option<String>,
}

/// Whether a tag is one of Traefik's.
pub(crate) fn is_traefik(key: &str) -> bool {
    key.get(..PREFIX.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(PREFIX))
}

/// Port and scheme of an instance with these tags.
pub(crate) fn server_of<'t>(tags: impl Iterator<Item = (&'t str, &'t str)>) -> Server {
    let mut server = Server::default();
    for (key, value) in tags {
        let key = key.to_ascii_lowercase();
        let Some(("http", setting)) = in_services(&key) else {
            continue;
        };
        match setting {
            "loadbalancer.server.port" => server.port = value.trim().parse().ok(),
            "loadbalancer.server.scheme" => server.scheme = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    server
}

/// `traefik.http.services.<s>.<setting>` as protocol and setting.
fn in_services(key: &str) -> Option<(&str, &str)> {
    let (protocol, rest) = key.strip_prefix(PREFIX)?.split_once('.')?;
    let (_, setting) = rest.strip_prefix("services.")?.split_once('.')?;
    Some((protocol, setting))
}

/// Translates the tags of a service, by key. Only one that says `traefik.enable=true` is enabled.
pub(crate) fn translate(tags: &BTreeMap<String, String>) -> Translated {
    let mut translation = Translation {
        keeps_host: true,
        ..Translation::default()
    };
    let mut services = BTreeSet::new();
    for (key, value) in tags {
        let folded = key.to_ascii_lowercase();
        let Some(rest) = folded.strip_prefix(PREFIX) else {
            continue;
        };
        let parts: Vec<_> = rest.splitn(4, '.').collect();
        match parts[..] {
            ["enable"] => translation.set("enable", value),
            ["http", "routers", name, setting] => translation.router(key, name, setting, value),
            ["http", "services", name, setting] => {
                services.insert(name.to_owned());
                translation.service(key, setting, value);
            }
            _ => translation.ignored(key),
        }
    }
    if services.len() > 1 {
        let message = "several services of Traefik at one service of Consul are one here";
        translation.warn(
            "traefik.http.services",
            "traefik_services",
            message.to_owned(),
        );
    }
    translation.finish(&services)
}

#[derive(Default)]
struct Translation {
    labels: Labels,
    problems: Problems,
    routers: BTreeMap<String, Router>,
    keeps_host: bool,
}

#[derive(Default)]
struct Router {
    /// The tag with the rule, and the rule.
    rule: Option<(String, String)>,
    priority: Option<i64>,
    service: Option<(String, String)>,
}

impl Translation {
    fn set(&mut self, label: &str, value: &str) {
        self.labels
            .insert(label.to_owned(), value.trim().to_owned());
    }

    fn warn(&mut self, key: &str, code: &'static str, message: String) {
        self.problems
            .push(Problem::warning(pointer_to("", key), code, message));
    }

    fn ignored(&mut self, key: &str) {
        self.warn(
            key,
            "traefik_ignored",
            "the tag means nothing here".to_owned(),
        );
    }

    fn router(&mut self, key: &str, name: &str, setting: &str, value: &str) {
        let router = self.routers.entry(name.to_owned()).or_default();
        match setting {
            "rule" => router.rule = Some((key.to_owned(), value.to_owned())),
            "service" => router.service = Some((key.to_owned(), value.trim().to_ascii_lowercase())),
            "priority" => match value.trim().parse() {
                Ok(priority) => router.priority = Some(priority),
                Err(_) => {
                    let message = format!(
                        "`{}` is not a priority",
                        discovery_core::text::shortened(value, 40)
                    );
                    self.warn(key, "traefik_priority", message);
                }
            },
            _ => self.ignored(key),
        }
    }

    fn service(&mut self, key: &str, setting: &str, value: &str) {
        match setting {
            // Of each instance: see `server_of`.
            "loadbalancer.server.port" | "loadbalancer.server.scheme" => {}
            "loadbalancer.passhostheader" => {
                self.keeps_host = !value.trim().eq_ignore_ascii_case("false");
            }
            "loadbalancer.healthcheck.path" => {
                self.set("cluster.healthCheck.active.enabled", "true");
                self.set("cluster.healthCheck.active.path", value);
            }
            "loadbalancer.healthcheck.interval" => {
                self.set("cluster.healthCheck.active.interval", value);
            }
            "loadbalancer.healthcheck.timeout" => {
                self.set("cluster.healthCheck.active.timeout", value);
            }
            "loadbalancer.sticky" | "loadbalancer.sticky.cookie" => {
                self.set("cluster.sessionAffinity.enabled", value);
                let name = self
                    .labels
                    .entry("cluster.sessionAffinity.affinityKeyName".to_owned());
                name.or_insert_with(|| "_sticky".to_owned());
            }
            "loadbalancer.sticky.cookie.name" => {
                self.set("cluster.sessionAffinity.affinityKeyName", value);
            }
            _ => self.ignored(key),
        }
    }

    fn finish(mut self, services: &BTreeSet<String>) -> Translated {
        for (name, router) in std::mem::take(&mut self.routers) {
            let Some((key, rule)) = &router.rule else {
                let key = format!("traefik.http.routers.{name}");
                let message = "a router without a rule is left out".to_owned();
                self.warn(&key, "traefik_rule", message);
                continue;
            };
            if let Some((key, service)) = &router.service
                && !services.contains(service)
            {
                let message = format!(
                    "the router is left out: `{}` is no service of these tags",
                    discovery_core::text::shortened(service, 40)
                );
                self.warn(key, "traefik_service", message);
                continue;
            }
            match rule::parse(rule) {
                Ok(alternatives) => {
                    // The longest rule wins in Traefik, and the lowest order here.
                    let length = i64::try_from(rule.len()).unwrap_or(i64::MAX);
                    let priority = router.priority.filter(|priority| *priority != 0);
                    let order = priority.unwrap_or(length).saturating_neg();
                    self.routes(&name, order, &alternatives);
                }
                Err(reason) => {
                    let message = format!("the router is left out: {reason}");
                    self.warn(key, "traefik_rule", message);
                }
            }
        }
        Translated {
            labels: self.labels,
            problems: self.problems,
        }
    }

    fn routes(&mut self, router: &str, order: i64, alternatives: &[Conditions]) {
        for (nth, conditions) in alternatives.iter().enumerate() {
            let name = match nth {
                0 => router.to_owned(),
                nth => format!("{router}-{}", nth + 1),
            };
            let mut set = |setting: &str, value: String| {
                self.labels
                    .insert(format!("routes.{name}.{setting}"), value);
            };
            let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(",");
            if let Some(hosts) = &conditions.hosts {
                set("hosts", list(hosts));
            }
            if let Some(methods) = &conditions.methods {
                set("methods", list(methods));
            }
            // A route needs a host or a path.
            let path = conditions.path.clone();
            set("path", path.unwrap_or_else(|| "/{**rest}".to_owned()));
            set(
                "order",
                order.clamp(i32::MIN.into(), i32::MAX.into()).to_string(),
            );
            for (kind, pairs) in [
                ("headers", &conditions.headers),
                ("queryParameters", &conditions.query),
            ] {
                for (nth, (key, value)) in pairs.iter().enumerate() {
                    set(&format!("{kind}.[{nth}].name"), key.clone());
                    set(&format!("{kind}.[{nth}].values"), value.clone());
                }
            }
            if self.keeps_host {
                set(
                    "transforms.[0].RequestHeaderOriginalHost",
                    "true".to_owned(),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = list.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn translated(list: &[(&str, &str)]) -> (BTreeMap<String, String>, Vec<(String, String)>) {
        let translated = translate(&tags(list));
        let problems = translated.problems.iter();
        let problems = problems.map(|problem| (problem.pointer.clone(), problem.code.to_string()));
        let problems = problems.collect();
        (translated.labels.into_iter().collect(), problems)
    }

    #[test]
    fn common_tags_become_labels() {
        let (labels, problems) = translated(&[
            ("traefik.enable", "true"),
            (
                "traefik.http.routers.Web.rule",
                "Host(`a.example`) && PathPrefix(`/x`)",
            ),
            ("traefik.http.routers.web.priority", "50"),
            ("traefik.http.services.web.loadbalancer.server.port", "8080"),
            (
                "traefik.http.services.web.loadbalancer.healthcheck.path",
                "/health",
            ),
            (
                "traefik.http.services.web.loadbalancer.sticky.cookie",
                "true",
            ),
        ]);
        let expected = tags(&[
            ("enable", "true"),
            ("routes.web.hosts", "a.example"),
            ("routes.web.path", "/x/{**rest}"),
            ("routes.web.order", "-50"),
            (
                "routes.web.transforms.[0].RequestHeaderOriginalHost",
                "true",
            ),
            ("cluster.healthCheck.active.enabled", "true"),
            ("cluster.healthCheck.active.path", "/health"),
            ("cluster.sessionAffinity.enabled", "true"),
            ("cluster.sessionAffinity.affinityKeyName", "_sticky"),
        ]);
        assert_eq!((labels, problems), (expected, vec![]));
    }

    #[test]
    fn alternatives_are_routes_of_their_own_and_longer_rules_come_first() {
        let rule = "Host(`a`) && Header(`X`, `1`) || PathPrefix(`/x`)";
        let (labels, problems) = translated(&[
            ("traefik.http.routers.r.rule", rule),
            (
                "traefik.http.services.s.loadbalancer.passHostHeader",
                "false",
            ),
        ]);
        let order = format!("-{}", rule.len());
        let expected = tags(&[
            ("routes.r.hosts", "a"),
            ("routes.r.path", "/{**rest}"),
            ("routes.r.headers.[0].name", "X"),
            ("routes.r.headers.[0].values", "1"),
            ("routes.r.order", &order),
            ("routes.r-2.path", "/x/{**rest}"),
            ("routes.r-2.order", &order),
        ]);
        assert_eq!((labels, problems), (expected, vec![]));
    }

    #[test]
    fn what_cannot_be_said_is_left_out_and_named() {
        let (labels, problems) = translated(&[
            ("traefik.enable", "true"),
            ("traefik.http.routers.a.rule", "HostRegexp(`.*`)"),
            ("traefik.http.routers.b.rule", "Host(`b`)"),
            ("traefik.http.routers.b.service", "api@internal"),
            ("traefik.http.routers.c.entrypoints", "web"),
            ("traefik.http.middlewares.m.compress", "true"),
            ("traefik.tcp.routers.t.rule", "HostSNI(`*`)"),
        ]);
        assert_eq!(labels, tags(&[("enable", "true")]));
        let codes: BTreeSet<_> = problems
            .iter()
            .map(|(pointer, code)| (pointer.as_str(), code.as_str()))
            .collect();
        let expected = BTreeSet::from([
            ("/traefik.http.middlewares.m.compress", "traefik_ignored"),
            ("/traefik.http.routers.a.rule", "traefik_rule"),
            ("/traefik.http.routers.b.service", "traefik_service"),
            ("/traefik.http.routers.c", "traefik_rule"),
            ("/traefik.http.routers.c.entrypoints", "traefik_ignored"),
            ("/traefik.tcp.routers.t.rule", "traefik_ignored"),
        ]);
        assert_eq!(codes, expected);
    }

    #[test]
    fn port_and_scheme_are_those_of_the_instance() {
        let server = |list: &[(&'static str, &'static str)]| server_of(list.iter().copied());
        let port = "Traefik.HTTP.services.web.loadbalancer.server.port";
        assert_eq!(server(&[(port, " 8080 ")]).port, Some(8080));
        assert_eq!(server(&[(port, "x")]), Server::default());
        let scheme = "traefik.http.services.web.loadbalancer.server.scheme";
        assert_eq!(
            server(&[(scheme, "https")]).scheme.as_deref(),
            Some("https")
        );
    }
}
