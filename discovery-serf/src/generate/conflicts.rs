//! Routes of different services that take the same requests.

use std::collections::HashMap;

use proxy_model::config::{ProxyConfig, RouteMatch};
use proxy_model::matching::{
    HeaderMatcher, HostPattern, PathTemplate, RouteMatcher, RouteMatcherParts,
};
use proxy_model::{Problem, Problems, RouteId, pointer_to};

use crate::catalog::shown::shown;

/// The routes so far, by what they match.
#[derive(Default)]
pub(super) struct Conflicts {
    routes: HashMap<String, RouteId>,
}

impl Conflicts {
    /// Reports those of a service's routes that match the same requests as a route of an earlier service,
    /// which gets them.
    ///
    /// A merge of sources compiles all routes together and finds the same. It recognizes problems that were
    /// already reported by code, text and place; so these are the model's.
    pub(super) fn look_at(&mut self, config: &ProxyConfig, problems: &mut Problems) {
        for (id, route) in &config.routes {
            let Some(signature) = signature(&route.r#match) else {
                continue;
            };
            let Some(first) = self.routes.get(&signature) else {
                self.routes.insert(signature, id.clone());
                continue;
            };
            let pointer = pointer_to("/Routes", id.as_str());
            let message = format!(
                "the route matches the same requests as `{}`, which comes first and takes them all",
                shown(first.as_str().as_bytes()),
            );
            problems.push(
                Problem::warning(pointer, "duplicate_route_criteria", message)
                    .with_suggestion("give the services different tags `host` or `route-path`"),
            );
        }
    }
}

fn signature(criteria: &RouteMatch) -> Option<String> {
    let path = match &criteria.path {
        Some(path) => PathTemplate::parse(path).ok()?,
        None => PathTemplate::catch_all(),
    };
    let hosts = criteria.hosts.iter().flatten();
    let hosts = hosts
        .map(|host| HostPattern::parse(host))
        .collect::<Result<_, _>>();
    let headers = criteria.headers.iter().flatten();
    let headers = headers.map(HeaderMatcher::new).collect::<Result<_, _>>();
    let matcher = RouteMatcher::new(RouteMatcherParts {
        path,
        hosts: hosts.ok()?,
        headers: headers.ok()?,
        ..RouteMatcherParts::default()
    });
    Some(matcher.signature())
}
