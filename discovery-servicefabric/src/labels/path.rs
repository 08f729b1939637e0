//! Paths that begin with the name of a service.

use proxy_model::config::{RouteConfig, TransformConfig};

/// The path that a service has by its name: `/Shop/Web` of `fabric:/Shop/Web`.
pub(super) fn of_service(name: &str) -> String {
    let path = name.strip_prefix("fabric:").unwrap_or(name);
    format!("/{}", path.trim_matches('/'))
}

/// Puts `base` before the path of a route, and takes it off again before anything else is done to the path.
///
/// A route without a path takes everything below `base`.
pub(super) fn add_prefix(route: &mut RouteConfig, base: &str) {
    let literal = base.replace('{', "{{").replace('}', "}}");
    let literal = literal.trim_end_matches('/');
    let rest = route.r#match.path.as_deref().unwrap_or("{**catch-all}");
    let path = format!("{literal}/{}", rest.trim_start_matches('/'));
    route.r#match.path = Some(path);
    let removal = TransformConfig::from([("PathRemovePrefix".to_owned(), base.to_owned())]);
    route.transforms.get_or_insert_default().insert(0, removal);
}
