//! Envoy's resources as the family's own model.
//!
//! Each resource is read on its own and is refused as a whole if something in it cannot be honoured that decides where
//! requests go, who may send them or what is sent; of a route configuration only the route or virtual host is, and its
//! requests are answered with 503, so that they get to no other route. A listener that says who may send in a way that cannot be
//! honoured closes the routes that it leads to in the same way. What only happens a little differently is a warning.
//! Resources that `xds-control-plane` wrote may [carry](xds_types::carried) the model's own form, and then lose nothing.

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
mod listener;
mod matching;
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
pub use self::listener::{ReadListener, RouteSource, read_listener};
pub use self::routes::{ReadRoutes, read_routes, read_routes_after};
use xds_types::carried::Carried;

/// A code of problems: a resource says something that a proxy of this family cannot do.
pub const NOT_HONOURED: &str = "not_honoured";
/// A code of problems: a proxy of this family does it differently than Envoy.
pub const DIFFERS: &str = "differs_in_envoy";

/// The longest message, in characters: others wrote what is in it.
const LONGEST_MESSAGE: usize = 500;
/// The longest name in a pointer.
const LONGEST_NAME: usize = 200;

/// Where problems of one resource go.
#[derive(Debug, Default)]
struct Reading {
    pointer: String,
    problems: Problems,
}

impl Reading {
    /// Of the resource `name` of one type: `cluster`, `route_configuration`.
    fn of(kind: &str, name: &str) -> Self {
        Self {
            pointer: pointer_to(&format!("/{kind}"), &shortened(name, LONGEST_NAME)),
            problems: Problems::new(),
        }
    }

    /// Something that cannot be honoured: the resource, or the route, is refused.
    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        let pointer = self.place(field);
        let message = shortened(&message.into(), LONGEST_MESSAGE);
        self.problems
            .push(Problem::error(pointer, NOT_HONOURED, message));
    }

    /// How much was refused so far.
    fn refusals(&self) -> usize {
        self.problems.error_count()
    }

    /// The resource is refused if it has `field`.
    fn refuse_if(&mut self, has: bool, field: &str) {
        if has {
            self.refuse(field, format!("`{field}` cannot be honoured"));
        }
    }

    /// Something that is done differently.
    fn differs(&mut self, field: &str, message: impl Into<String>) {
        let pointer = self.place(field);
        let message = shortened(&message.into(), LONGEST_MESSAGE);
        self.problems
            .push(Problem::warning(pointer, DIFFERS, message));
    }

    /// `field` is not looked at, if it is there.
    fn ignore_if(&mut self, has: bool, field: &str) {
        if has {
            self.differs(field, format!("`{field}` has no effect"));
        }
    }

    /// The model's own form, if the resource carries it and `read` can read it.
    fn carried<T>(&mut self, carried: &Carried, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = match carried {
            Carried::None => return None,
            Carried::Whole(json) => read(json),
            Carried::Broken => None,
        };
        if found.is_none() {
            self.differs(
                "metadata",
                "what it carries of this family does not belong to its fields, as if somebody had changed it on its way; the fields count",
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

    /// What was read with its warnings, or everything that is wrong.
    fn finish<T>(self, value: Option<T>) -> Result<(T, Problems), Problems> {
        match value {
            Some(value) if !self.problems.has_errors() => Ok((value, self.problems)),
            _ => Err(self.problems),
        }
    }
}
