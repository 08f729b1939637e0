//! What is counted: the requests that the gate is about.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use crate::origin::Resource;
use crate::proxies::{Kind, Protocol};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// What its baseline is called.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What forwards.
    pub(super) kind: Kind,
    pub(super) resource: Resource,
    pub(super) form: Form,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Over 64 connections that are kept.
    KeptAlive,
    /// Over one connection that is kept, so that each request wakes the gateway up, and its answer does again.
    OneConnection,
    /// Each over a connection of its own, 64 at a time.
    Churn,
    /// Over 8 connections of HTTP/2, 8 streams each.
    Streams,
}

impl Form {
    /// Whether a request takes a number of system calls that does not depend on others.
    pub(super) fn has_calls_of_its_own(self) -> bool {
        match self {
            Self::KeptAlive | Self::OneConnection | Self::Churn => true,
            Self::Streams => false,
        }
    }

    pub(super) fn protocol(self) -> Protocol {
        match self {
            Self::KeptAlive | Self::OneConnection | Self::Churn => Protocol::Http1,
            Self::Streams => Protocol::H2c,
        }
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "get-128",
        title: "128 B GET",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
    },
    Row {
        name: "one-connection",
        title: "128 B GET over one connection",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::OneConnection,
    },
    Row {
        name: "layered",
        title: "128 B GET of a route with a tower layer",
        kind: Kind::GatewayLayered,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
    },
    Row {
        name: "chunks",
        title: "reply of 16 chunks of 1 KiB",
        kind: Kind::Server,
        resource: Resource::Chunks16,
        form: Form::KeptAlive,
    },
    Row {
        name: "h2c",
        title: "128 B GET over HTTP/2",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::Streams,
    },
    Row {
        name: "churn",
        title: "128 B GET over a connection of its own",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::Churn,
    },
    Row {
        name: "service-in-axum",
        title: "128 B GET to the service in an axum server",
        kind: Kind::ServiceInAxum,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
    },
];

/// What they are called on the command line.
pub(super) fn names() -> PossibleValuesParser {
    ROWS.iter().map(|row| row.name).collect::<Vec<_>>().into()
}

impl Row {
    /// How much more than before is too much. How much is done at once, and how many blocks of the allocator are in use, is a
    /// matter of timing where tasks come and go.
    pub(super) fn tolerance(&self) -> f64 {
        match (self.kind, self.form) {
            (Kind::Server | Kind::GatewayLayered, Form::KeptAlive | Form::OneConnection) => 0.03,
            _ => 0.06,
        }
    }

    /// The file with what was measured before.
    pub(super) fn baseline(&self, directory: &Path) -> PathBuf {
        directory.join(self.name).with_extension("toml")
    }
}
