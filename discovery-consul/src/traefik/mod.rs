//! Traefik's common tags, translated to our own labels.
//!
//! | tag | becomes |
//! |---|---|
//! | `traefik.enable` | `enable` |
//! | `traefik.http.routers.<r>.rule` | one or several routes |
//! | `traefik.http.routers.<r>.priority` | the order of these routes. Default: the length of the rule |
//! | `traefik.http.routers.<r>.entrypoints` | nothing, if they are the configured ones |
//! | `traefik.http.routers.<r>.middlewares` | transforms, for `stripprefix` with one prefix, `addprefix` and `chain` |
//! | `traefik.http.services.<s>.loadbalancer.server.port`, `.scheme`, `.weight` | the same of the instance |
//! | `traefik.http.services.<s>.loadbalancer.passhostheader` | true keeps the request's host. Default: true |
//! | `traefik.http.services.<s>.loadbalancer.healthcheck.path`, `.interval`, `.timeout` | active health checks |
//! | `traefik.http.services.<s>.loadbalancer.sticky.cookie`, `.name` | session affinity, by any key of the cookie |
//!
//! Rules may have `Host`, `Path`, `PathPrefix`, `Method`, `Header`, `Headers` and `Query`, combined with `&&`,
//! `||` and parentheses. The entry points are those of
//! [`traefik_entry_points`](crate::options::ServiceOptions::traefik_entry_points).
//!
//! A router is left out as a whole, with a warning, if its rule has no equivalent here, or if one of its
//! middlewares is unsupported or not defined by these tags. The same applies if its entry points do not
//! exist here, or if any other setting may reject requests. If services of Traefik differ, they are not one
//! cluster, and all routers are left out. A service whose routers have no rule has the default rule of
//! Traefik's configuration, which is unknown here; that is a warning as well.
//!
//! A prefix consists of whole segments here: `PathPrefix(`/x`)` does not match `/xy`, which it does in
//! Traefik. Settings that only affect performance or reliability are left out with a warning: compression,
//! retries, TLS of routers.

mod middlewares;
mod rule;
mod services;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use discovery_core::Labels;
use discovery_core::text::shortened;
use proxy_model::{Problem, Problems, pointer_to};

use self::middlewares::Middlewares;
use self::rule::Conditions;
use self::services::TraefikService;
pub(crate) use self::services::{Server, server_of};

/// The prefix of Traefik's tags.
const PREFIX: &str = "traefik.";

/// The result of translating a service's tags.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    /// The labels in the own dialect, without its prefix.
    pub(crate) labels: Labels,
    /// The service of Traefik that the cluster is. `None` for Traefik's implicit one.
    pub(crate) service: Option<String>,
    pub(crate) problems: Problems,
}

/// The context of the tags.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'s> {
    /// The name of the service in Consul.
    pub(crate) service: &'s str,
    /// The entry points that exist here.
    pub(crate) entry_points: &'s [String],
}

/// Returns true if a tag is one of Traefik's.
pub(crate) fn is_traefik(key: &str) -> bool {
    key.get(..PREFIX.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(PREFIX))
}

/// Translates the tags of a service, by key. Only a service with `traefik.enable=true` is enabled.
pub(crate) fn translate(tags: &BTreeMap<String, String>, known: Surroundings<'_>) -> Translated {
    let mut translation = Translation::default();
    for (key, value) in tags {
        let folded = key.to_ascii_lowercase();
        let Some(rest) = folded.strip_prefix(PREFIX) else {
            continue;
        };
        let parts: Vec<_> = rest.splitn(4, '.').collect();
        match parts[..] {
            ["enable"] => {
                let enable = value.trim().to_owned();
                translation.labels.insert("enable".to_owned(), enable);
            }
            ["http", "routers", name, setting] => {
                let router = translation.routers.entry(name.to_owned()).or_default();
                let tag = (key.clone(), value.trim().to_owned());
                router.insert(setting.to_owned(), tag);
            }
            ["http", "services", name, setting] => {
                let service = translation.services.entry(name.to_owned()).or_default();
                service.add(key, setting, value);
            }
            ["http", "middlewares", name, setting] => {
                translation.middlewares.add(key, name, setting, value);
            }
            _ => translation.ignored(key),
        }
    }
    translation.finish(known)
}

/// The key as written and the value, by folded setting.
type Router = BTreeMap<String, (String, String)>;

#[derive(Default)]
struct Translation {
    labels: Labels,
    problems: Problems,
    routers: BTreeMap<String, Router>,
    services: BTreeMap<String, TraefikService>,
    middlewares: Middlewares,
}

/// A router that can be served.
struct Served {
    name: String,
    order: i64,
    alternatives: Vec<Conditions>,
    transforms: Vec<(&'static str, String)>,
    service: Option<String>,
}

/// The reason why a router is left out: the key of a tag, a code and a text.
type LeftOut = (String, &'static str, String);

impl Translation {
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

    fn finish(mut self, known: Surroundings<'_>) -> Translated {
        let routers = std::mem::take(&mut self.routers);
        let mut served = Vec::new();
        for (name, router) in &routers {
            match self.served(name, router, known) {
                Ok(router) => served.push(router),
                Err((key, code, reason)) => {
                    self.warn(&key, code, format!("the router is left out: {reason}"));
                }
            }
        }
        let is_enabled = self.labels.get("enable");
        if routers.is_empty() && is_enabled.is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            let message = "no router has a rule, and the default rule is one of Traefik's configuration; write `traefik.http.routers.<name>.rule`";
            self.warn("traefik.enable", "traefik_default_rule", message.to_owned());
        }
        let service = self.chosen(&mut served);
        let settings = service.as_ref().and_then(|name| self.services.get(name));
        let settings = settings.cloned().unwrap_or_default();
        let mut ignored: Vec<String> = (settings.labels(&mut self.labels).into_iter())
            .map(str::to_owned)
            .collect();
        ignored.extend(self.middlewares.without_effect().map(str::to_owned));
        for key in ignored {
            self.ignored(&key);
        }
        for router in &served {
            self.routes(router, settings.keeps_host());
        }
        Translated {
            labels: self.labels,
            service,
            problems: self.problems,
        }
    }

    /// Returns a router, or the reason why it is left out.
    fn served(
        &mut self,
        name: &str,
        router: &Router,
        known: Surroundings<'_>,
    ) -> Result<Served, LeftOut> {
        let mut priority = None;
        let mut transforms = Vec::new();
        for (setting, (key, value)) in router {
            let left_out = |code, reason: String| Err((key.clone(), code, reason));
            match setting.as_str() {
                "rule" | "service" => {}
                "priority" => match value.parse::<i64>() {
                    Ok(number) => priority = Some(number),
                    Err(_) => {
                        let message = format!("`{}` is not a priority", shortened(value, 40));
                        self.warn(key, "traefik_priority", message);
                    }
                },
                "entrypoints" => {
                    let mut names = value.split(',').map(str::trim);
                    let exists = |name: &str| {
                        let mut known = known.entry_points.iter();
                        known.any(|known| known.eq_ignore_ascii_case(name))
                    };
                    if !names.any(exists) {
                        let shown = shortened(value, 40);
                        let reason = format!(
                            "there is no entry point `{shown}` here (`TraefikEntryPoints`)"
                        );
                        return left_out("traefik_entry_point", reason);
                    }
                }
                "middlewares" => match self.middlewares.transforms(value) {
                    Ok(found) => transforms = found,
                    Err(reason) => return left_out("traefik_middleware", reason),
                },
                // Certificates are those of listeners.
                "tls" | "tls.certresolver" | "rulesyntax" => self.ignored(key),
                "tls.options" if value.eq_ignore_ascii_case("default") => self.ignored(key),
                _ if setting.starts_with("tls.domains")
                    || setting.starts_with("observability.") =>
                {
                    self.ignored(key);
                }
                _ => {
                    let reason = "this tag is not supported".to_owned();
                    return left_out("traefik_router", reason);
                }
            }
        }
        let Some((key, rule)) = router.get("rule") else {
            let reason = "it has no rule".to_owned();
            return Err((
                format!("traefik.http.routers.{name}"),
                "traefik_rule",
                reason,
            ));
        };
        let service = self.service_of(name, router, known)?;
        let alternatives =
            rule::parse(rule).map_err(|reason| (key.clone(), "traefik_rule", reason))?;
        // The longest rule wins in Traefik, and the lowest order here.
        let length = i64::try_from(rule.len()).unwrap_or(i64::MAX);
        let priority = priority.filter(|priority| *priority != 0);
        Ok(Served {
            name: name.to_owned(),
            order: priority.unwrap_or(length).saturating_neg(),
            alternatives,
            transforms,
            service,
        })
    }

    /// Returns the service of a router. `None` for Traefik's implicit one, where none is defined.
    fn service_of(
        &self,
        name: &str,
        router: &Router,
        known: Surroundings<'_>,
    ) -> Result<Option<String>, LeftOut> {
        const CODE: &str = "traefik_service";
        let (key, service) = match router.get("service") {
            Some((key, service)) => {
                let folded = service.to_ascii_lowercase();
                let own = folded.strip_suffix("@consulcatalog").unwrap_or(&folded);
                let is_made_up = self.services.is_empty() && own == made_up(known.service);
                if is_made_up {
                    return Ok(None);
                }
                (key.clone(), own.to_owned())
            }
            None => {
                let key = format!("traefik.http.routers.{name}");
                let mut all = self.services.keys();
                match (all.next(), all.next()) {
                    (None, _) => return Ok(None),
                    (Some(only), None) => (key, only.clone()),
                    _ => {
                        let reason = "it does not name one of several services";
                        return Err((key, CODE, reason.to_owned()));
                    }
                }
            }
        };
        match self.services.get(&service) {
            Some(settings) if settings.has_servers() => Ok(Some(service)),
            Some(_) => Err((key, CODE, "its service is one of other services".to_owned())),
            None => {
                let shown = shortened(&service, 40);
                let reason = format!("`{shown}` is no service of these tags");
                Err((key, CODE, reason))
            }
        }
    }

    /// Returns the one service that all routers are for. They are left out if there are several that
    /// differ.
    fn chosen(&mut self, served: &mut Vec<Served>) -> Option<String> {
        const KEY: &str = "traefik.http.services";
        const CODE: &str = "traefik_services";
        let wanted: BTreeSet<&Option<String>> =
            served.iter().map(|router| &router.service).collect();
        let of = |name: &Option<String>| {
            name.as_ref()
                .and_then(|name| self.services.get(name))
                .cloned()
        };
        let mut settings = wanted.iter().map(|name| of(name));
        let first = settings.next();
        let are_one = first.is_none_or(|first| settings.all(|other| other == first));
        let chosen = match wanted.into_iter().next() {
            Some(chosen) => chosen.clone(),
            // Without a router the only service may still configure the cluster.
            None if self.services.len() == 1 => self.services.keys().next().cloned(),
            None => None,
        };
        if !are_one {
            served.clear();
            let message = "the routers are left out: several services of Traefik that differ cannot be one cluster; register a service of Consul for each";
            self.warn(KEY, CODE, message.to_owned());
            return None;
        }
        if self.services.len() > 1 {
            let message = "several services of Traefik at one service of Consul are one here";
            self.warn(KEY, CODE, message.to_owned());
        }
        chosen
    }

    fn routes(&mut self, router: &Served, keeps_host: bool) {
        for (nth, conditions) in router.alternatives.iter().enumerate() {
            let name = match nth {
                0 => router.name.clone(),
                nth => format!("{}-{}", router.name, nth + 1),
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
            let order = router.order.clamp(i32::MIN.into(), i32::MAX.into());
            set("order", order.to_string());
            for (kind, pairs) in [
                ("headers", &conditions.headers),
                ("queryParameters", &conditions.query),
            ] {
                for (nth, (key, value)) in pairs.iter().enumerate() {
                    set(&format!("{kind}.[{nth}].name"), key.clone());
                    set(&format!("{kind}.[{nth}].values"), value.clone());
                }
            }
            let host = keeps_host.then(|| ("RequestHeaderOriginalHost", "true".to_owned()));
            let transforms = host.into_iter().chain(router.transforms.iter().cloned());
            for (nth, (kind, value)) in transforms.enumerate() {
                set(&format!("transforms.[{nth}].{kind}"), value);
            }
        }
    }
}

/// The name that Traefik gives to a service of Consul without tags for services.
fn made_up(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric();
    let parts = name.split(|c| !is_part(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}
