//! The rows of the gate: the measured requests.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use crate::origin::Resource;
use crate::proxies::{Kind, Protocol};

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The name of its baseline.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The forwarding program.
    pub(super) kind: Kind,
    pub(super) resource: Resource,
    pub(super) form: Form,
    /// True if the destinations speak HTTP/2.
    pub(super) http2_origins: bool,
    /// True for a reference to judge another row by, which is measured only by its name.
    pub(super) is_reference: bool,
}

/// The form of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Over 64 persistent connections.
    KeptAlive,
    /// Over one persistent connection, so that each request and each response wakes the gateway.
    OneConnection,
    /// Each over a new connection, 64 at a time.
    Churn,
    /// Over 8 HTTP/2 connections with 8 streams each.
    Streams,
}

impl Form {
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
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "one-connection",
        title: "128 B GET over one connection",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::OneConnection,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "layered",
        title: "128 B GET of a route with a tower layer",
        kind: Kind::GatewayLayered,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "chunks",
        title: "reply of 16 chunks of 1 KiB",
        kind: Kind::Server,
        resource: Resource::Chunks16,
        form: Form::KeptAlive,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "h2c",
        title: "128 B GET over HTTP/2",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::Streams,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "http2-destination",
        title: "128 B GET of a destination of HTTP/2",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
        http2_origins: true,
        is_reference: false,
    },
    Row {
        name: "churn",
        title: "128 B GET over a connection of its own",
        kind: Kind::Server,
        resource: Resource::Bytes128,
        form: Form::Churn,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "service-in-axum",
        title: "128 B GET to the service in an axum server",
        kind: Kind::ServiceInAxum,
        resource: Resource::Bytes128,
        form: Form::KeptAlive,
        http2_origins: false,
        is_reference: false,
    },
    Row {
        name: "h2-alone",
        title: "128 B answered by `h2` alone, without a proxy",
        kind: Kind::H2Alone,
        resource: Resource::Bytes128,
        form: Form::Streams,
        http2_origins: false,
        is_reference: true,
    },
];

/// The names on the command line.
pub(super) fn names() -> PossibleValuesParser {
    ROWS.iter().map(|row| row.name).collect::<Vec<_>>().into()
}

impl Row {
    /// Returns true if the number of system calls of a request does not depend on others.
    pub(super) fn has_calls_of_its_own(&self) -> bool {
        match self.form {
            Form::KeptAlive | Form::OneConnection | Form::Churn => !self.http2_origins,
            Form::Streams => false,
        }
    }

    /// The tolerated growth. Batching and the number of blocks in use depend on timing if tasks
    /// come and go.
    pub(super) fn tolerance(&self) -> f64 {
        match (self.kind, self.form) {
            _ if self.http2_origins => 0.06,
            (Kind::Server | Kind::GatewayLayered, Form::KeptAlive | Form::OneConnection) => 0.03,
            _ => 0.06,
        }
    }

    /// The baseline file.
    pub(super) fn baseline(&self, directory: &Path) -> PathBuf {
        directory.join(self.name).with_extension("toml")
    }
}
