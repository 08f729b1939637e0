//! Envoy's resources, converted to this project's own model.
//!
//! Each resource is read on its own. It is rejected as a whole if an unsupported part of it decides where
//! requests go, who may send them or what is sent. In a route configuration only the route or virtual host
//! is rejected, and its requests are answered with 503, so that they get to no other route. A listener that
//! restricts senders in an unsupported way closes the routes that it leads to in the same way. A small
//! difference in behaviour is a warning. Resources that `xds-control-plane` wrote may
//! [carry](xds_types::carried) the model's own form, and then nothing is lost.

#![expect(
    deprecated,
    reason = "other control planes send fields that Envoy keeps for them"
)]

mod access;
mod cluster;
mod compose;
mod endpoints;
mod expression;
mod header;
mod headers;
mod hosts;
mod last_good;
mod listener;
mod matching;
mod reply;
mod route;
mod routes;
#[cfg(test)]
mod tests;
mod tls;
mod virtual_host;

use discovery_core::text::shortened;
use proxy_model::{Problem, Problems, pointer_to};

pub use self::cluster::{ReadCluster, read_cluster};
pub use self::compose::{Composed, compose};
pub use self::endpoints::{ReadEndpoints, read_endpoints};
pub(crate) use self::last_good::{last_good_listener, last_good_routes};
pub use self::listener::{ReadListener, RouteSource, read_listener};
pub use self::routes::{ReadRoutes, read_routes, read_routes_after};
use xds_types::carried::Carried;

/// A code of problems: a resource has a part that a proxy of this project does not support.
pub const NOT_HONOURED: &str = "not_honoured";
/// A code of problems: a proxy of this project differs from Envoy here.
pub const DIFFERS: &str = "differs_in_envoy";

/// Maximum length of a message, in characters, since it contains untrusted text.
const LONGEST_MESSAGE: usize = 500;
/// Maximum length of a name in a pointer.
const LONGEST_NAME: usize = 200;

/// The collected problems of one resource.
#[derive(Debug, Default)]
struct Reading {
    pointer: String,
    problems: Problems,
}

impl Reading {
    /// Creates an empty collection for the resource `name` of one type: `cluster`, `route_configuration`.
    fn of(kind: &str, name: &str) -> Self {
        Self {
            pointer: pointer_to(&format!("/{kind}"), &shortened(name, LONGEST_NAME)),
            problems: Problems::new(),
        }
    }

    /// Reports an unsupported part: the resource, or the route, is rejected.
    fn reject(&mut self, field: &str, message: impl Into<String>) {
        let pointer = self.place(field);
        let message = shortened(&message.into(), LONGEST_MESSAGE);
        self.problems
            .push(Problem::error(pointer, NOT_HONOURED, message));
    }

    /// Number of rejections so far.
    fn rejections(&self) -> usize {
        self.problems.error_count()
    }

    /// Rejects the resource if it has `field`.
    fn reject_if(&mut self, has: bool, field: &str) {
        if has {
            self.reject(field, format!("`{field}` cannot be honoured"));
        }
    }

    /// Reports a difference from Envoy.
    fn differs(&mut self, field: &str, message: impl Into<String>) {
        let pointer = self.place(field);
        let message = shortened(&message.into(), LONGEST_MESSAGE);
        self.problems
            .push(Problem::warning(pointer, DIFFERS, message));
    }

    /// Reports that `field` is ignored, if it is set.
    fn ignore_if(&mut self, has: bool, field: &str) {
        if has {
            self.differs(field, format!("`{field}` has no effect"));
        }
    }

    /// Returns the model's own form, if the resource carries it and `read` can read it.
    fn carried<T>(&mut self, carried: &Carried, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = match carried {
            Carried::None => return None,
            Carried::Whole(json) => read(json),
            Carried::Broken => None,
        };
        if found.is_none() {
            self.differs(
                "metadata",
                "the metadata of this family does not match its fields, as if it had been changed on its way; the fields count",
            );
        }
        found
    }

    fn place(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }

    /// Reads a part.
    fn below<T>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer = pointer_to(&self.pointer, &shortened(part, LONGEST_NAME));
        let value = read(self);
        self.pointer.truncate(length);
        value
    }

    /// Returns the value with its warnings, or all problems.
    fn finish<T>(self, value: Option<T>) -> Result<(T, Problems), Problems> {
        match value {
            Some(value) if !self.problems.has_errors() => Ok((value, self.problems)),
            _ => Err(self.problems),
        }
    }
}
