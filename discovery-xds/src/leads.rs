//! The routes that listeners lead to.

use prost::Message as _;
use proxy_model::Problems;
use xds_types::pb::envoy::config::listener::v3::Listener;

use crate::read::{ReadRoutes, RouteSource, last_good_listener, read_listener, read_routes_after};

/// The sources of a listener's routes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Leads {
    pub(super) names: Vec<String>,
    /// Names of the closed route configurations.
    pub(super) closed: Vec<String>,
    /// Inline routes with their names in the listener, which need not be unique.
    pub(super) inline: Vec<(String, ReadRoutes)>,
    /// True if its routes must reject paths that programs read in different ways.
    pub(super) has_strict_paths: bool,
}

impl Leads {
    /// The inline routes of that name, if the name is unique.
    fn only_inline(&self, name: &str) -> Option<&ReadRoutes> {
        let mut of_name = self.inline.iter().filter(|(called, _)| called == name);
        let (_, routes) = of_name.next()?;
        of_name.next().is_none().then_some(routes)
    }
}

/// Returns the sources of a listener's routes, given its earlier ones as `before`.
pub(super) fn leads(
    listener: &Listener,
    before: Option<&Leads>,
) -> Result<(Leads, Problems), Problems> {
    let (read, mut problems) = read_listener(listener)?;
    let mut found = Leads {
        has_strict_paths: read.has_strict_paths,
        ..Leads::default()
    };
    let open = read.routes.into_iter().map(|source| (source, false));
    let closed = read.closed.into_iter().map(|source| (source, true));
    let is_any_closed = closed.len() > 0;
    for (source, is_closed) in open.chain(closed) {
        match source {
            RouteSource::Named(name) if is_closed => found.closed.push(name),
            RouteSource::Named(name) => found.names.push(name),
            RouteSource::Inline(inline) => {
                let known = before.and_then(|before| before.only_inline(&inline.name));
                let routes = match read_routes_after(&inline, known) {
                    Ok((routes, more)) => {
                        problems.append(more);
                        routes
                    }
                    // A closed part stays closed, independent of other problems.
                    Err(more) if is_any_closed => {
                        problems.append(more);
                        let mut earlier = known.cloned().unwrap_or_default();
                        earlier.is_earlier = true;
                        earlier
                    }
                    Err(more) => return Err(more),
                };
                let routes = match is_closed {
                    true => routes.closed(),
                    false if read.has_strict_paths => routes.strict(),
                    false => routes,
                };
                found.inline.push((inline.name, routes));
            }
        }
    }
    Ok((found, problems))
}

/// Returns the encoded listener that is read as `leads` without the one before it, of which `before` is the
/// encoded form.
pub(super) fn last_good(listener: &Listener, leads: &Leads, before: &[u8]) -> Option<Vec<u8>> {
    let before = Listener::decode(before).ok();
    let good = last_good_listener(listener, &leads.inline, before.as_ref());
    good.map(|listener| listener.encode_to_vec())
}
