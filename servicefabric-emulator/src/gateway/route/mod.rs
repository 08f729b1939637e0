//! The routing of requests: verb, path and version against a table of templates.

mod path;
mod template;

#[cfg(test)]
mod tests;

use http::Method;

use self::path::Path;
use self::template::Template;
use super::calls::{self, Call};
use super::wire::{Answer, ApiError, ApiVersion};

pub(crate) use self::template::Parameters;

/// The handler of a call.
pub(crate) type Handler = fn(&mut Call<'_>) -> Result<Answer, ApiError>;

/// A call of the gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    verb: Verb,
    template: &'static str,
    since: ApiVersion,
    /// True if read access suffices.
    pub(crate) reads: bool,
    /// True if the call needs no authentication.
    pub(crate) anonymous: bool,
    /// True if `api-version` is required.
    versioned: bool,
    /// True if the body is a file of any size.
    pub(crate) uploads: bool,
    /// True if the call moves time before its response.
    pub(crate) moves_time: bool,
    /// The handler.
    pub(crate) handler: Handler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Route {
    const fn new(verb: Verb, template: &'static str, handler: Handler) -> Self {
        Self {
            verb,
            template,
            since: ApiVersion::FIRST,
            reads: matches!(verb, Verb::Get),
            anonymous: false,
            versioned: true,
            uploads: false,
            moves_time: false,
            handler,
        }
    }

    /// Creates a query.
    pub(crate) const fn get(template: &'static str, handler: Handler) -> Self {
        Self::new(Verb::Get, template, handler)
    }

    /// Creates a change.
    pub(crate) const fn post(template: &'static str, handler: Handler) -> Self {
        Self::new(Verb::Post, template, handler)
    }

    /// Creates a query whose arguments are in the body.
    pub(crate) const fn query(template: &'static str, handler: Handler) -> Self {
        let mut route = Self::new(Verb::Post, template, handler);
        route.reads = true;
        route
    }

    /// Creates a change that may be repeated.
    pub(crate) const fn put(template: &'static str, handler: Handler) -> Self {
        Self::new(Verb::Put, template, handler)
    }

    /// Creates a deletion.
    pub(crate) const fn delete(template: &'static str, handler: Handler) -> Self {
        Self::new(Verb::Delete, template, handler)
    }

    /// Sets the first version with this call.
    pub(crate) const fn since(mut self, major: u32, minor: u32) -> Self {
        self.since = ApiVersion::new(major, minor);
        self
    }

    /// Allows the call without authentication.
    pub(crate) const fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Allows the call without `api-version`, for resources that a cluster does not version.
    pub(crate) const fn unversioned(mut self) -> Self {
        self.versioned = false;
        self
    }

    /// Allows a file as body, which may be larger than other bodies.
    pub(crate) const fn uploading(mut self) -> Self {
        self.uploads = true;
        self
    }

    /// Moves time as the body requests, before the call is handled.
    pub(crate) const fn moving_time(mut self) -> Self {
        self.moves_time = true;
        self
    }

    /// Checks the `api-version` of a request against the call. Returns the version of the response.
    pub(crate) fn version(&self, asked: Option<&str>) -> Result<ApiVersion, ApiError> {
        if !self.versioned {
            return Ok(ApiVersion::CURRENT);
        }
        let Some(asked) = asked else {
            return Err(ApiError::missing("api-version"));
        };
        ApiVersion::parse(asked)
            .filter(|version| (self.since..=ApiVersion::CURRENT).contains(version))
            .ok_or_else(|| {
                ApiError::invalid(format!(
                    "api-version is `{asked}`, but this call is there from {} to {}",
                    self.since,
                    ApiVersion::CURRENT
                ))
            })
    }
}

/// The router of all calls.
#[derive(Debug)]
pub(crate) struct Router {
    routes: Vec<(Template, &'static Route)>,
}

/// The reason why no route matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No route begins with this path.
    Unknown,
    /// The path begins like one of the gateway's, but no template has this verb and form.
    Shape,
    /// The path is not percent-encoded UTF-8.
    Encoding,
}

impl Router {
    /// Creates the router with the table of this crate.
    pub(crate) fn new() -> Self {
        let routes = calls::tables()
            .into_iter()
            .flatten()
            .map(|route| (Template::new(route.template), route))
            .collect();
        Self { routes }
    }

    /// Returns the route for this verb and raw path, and the parameters of its template.
    pub(crate) fn find(
        &self,
        method: &Method,
        raw_path: &str,
    ) -> Result<(&'static Route, Parameters), NoRoute> {
        let path = Path::parse(raw_path).ok_or(NoRoute::Encoding)?;
        let verb = match *method {
            Method::GET => Some(Verb::Get),
            Method::POST => Some(Verb::Post),
            Method::PUT => Some(Verb::Put),
            Method::DELETE => Some(Verb::Delete),
            _ => None,
        };
        let mut begins = false;
        for (template, route) in &self.routes {
            begins |= template.begins_like(&path);
            if Some(route.verb) == verb
                && let Some(parameters) = template.matches(&path)
            {
                return Ok((route, parameters));
            }
        }
        Err(if begins {
            NoRoute::Shape
        } else {
            NoRoute::Unknown
        })
    }
}
