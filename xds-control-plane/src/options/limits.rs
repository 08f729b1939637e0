//! The section `limits`.

use std::time::Duration;

use proxy_model::json::ObjectReader;

use crate::server::ServerOptions;
use crate::sources::period;

/// The limits of clients of the xDS server, and its time limits. `None` stands for the default of
/// [`ServerOptions`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitsSection {
    /// [`ServerOptions::connections`].
    pub connections: Option<usize>,
    /// [`ServerOptions::connections_per_peer`].
    pub connections_per_address: Option<usize>,
    /// [`ServerOptions::streams_per_connection`].
    pub streams_per_connection: Option<u32>,
    /// [`ServerOptions::streams_per_peer`].
    pub streams_per_address: Option<usize>,
    /// [`ServerOptions::names_per_stream`].
    pub names_per_stream: Option<usize>,
    /// [`ServerOptions::names_per_peer`].
    pub names_per_address: Option<usize>,
    /// [`ServerOptions::request_bytes`].
    pub request_bytes: Option<usize>,
    /// [`ServerOptions::opening_timeout`].
    pub opening: Option<Duration>,
    /// [`ServerOptions::ping_interval`].
    pub ping_interval: Option<Duration>,
    /// [`ServerOptions::ping_timeout`].
    pub ping_timeout: Option<Duration>,
    /// [`ServerOptions::patience`].
    pub patience: Option<Duration>,
    /// [`ServerOptions::removal_grace`].
    pub removal_grace: Option<Duration>,
    /// [`ServerOptions::addition_lead`].
    pub addition_lead: Option<Duration>,
    /// [`ServerOptions::drain`].
    pub drain: Option<Duration>,
}

impl LimitsSection {
    pub(super) fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let mut number = |key| section.integer(key, 1..=u32::MAX);
        let size = |number: Option<u32>| number.and_then(|number| usize::try_from(number).ok());
        Self {
            connections: size(number("connections")),
            connections_per_address: size(number("connectionsPerAddress")),
            streams_per_connection: number("streamsPerConnection"),
            streams_per_address: size(number("streamsPerAddress")),
            names_per_stream: size(number("namesPerStream")),
            names_per_address: size(number("namesPerAddress")),
            request_bytes: size(number("requestBytes")),
            opening: period(section, "opening"),
            ping_interval: period(section, "pingInterval"),
            ping_timeout: period(section, "pingTimeout"),
            patience: period(section, "patience"),
            removal_grace: period(section, "removalGrace"),
            addition_lead: period(section, "additionLead"),
            drain: period(section, "drain"),
        }
    }

    /// Applies the limits that are set.
    pub(super) fn apply(&self, options: &mut ServerOptions) {
        set(&mut options.connections, self.connections);
        set(
            &mut options.connections_per_peer,
            self.connections_per_address,
        );
        set(
            &mut options.streams_per_connection,
            self.streams_per_connection,
        );
        set(&mut options.streams_per_peer, self.streams_per_address);
        set(&mut options.names_per_stream, self.names_per_stream);
        set(&mut options.names_per_peer, self.names_per_address);
        set(&mut options.request_bytes, self.request_bytes);
        set(&mut options.opening_timeout, self.opening);
        set(&mut options.ping_interval, self.ping_interval);
        set(&mut options.ping_timeout, self.ping_timeout);
        set(&mut options.patience, self.patience);
        set(&mut options.removal_grace, self.removal_grace);
        set(&mut options.addition_lead, self.addition_lead);
        set(&mut options.drain, self.drain);
    }
}

fn set<T>(slot: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *slot = said;
    }
}
