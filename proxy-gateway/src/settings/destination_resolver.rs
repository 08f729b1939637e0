//! `Server.DnsDestinationResolver`: names of destinations become one destination for each address or server.

use std::time::Duration;

use discovery_core::resolver::{AddressFamily, DnsResolver};
use proxy_model::Problem;
use proxy_model::json::ObjectReader;
use proxy_runtime::upstream::{DnsLookup, DnsOptions};

/// The default of YARP.
const REFRESH: Duration = Duration::from_secs(300);

/// The names of .NET's `AddressFamily`.
const FAMILIES: [(&str, AddressFamily); 3] = [
    ("Unspecified", AddressFamily::Any),
    ("InterNetwork", AddressFamily::V4),
    ("InterNetworkV6", AddressFamily::V6),
];

/// The settings of the resolver of destinations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DestinationResolver {
    refresh: Duration,
    family: AddressFamily,
}

pub(super) fn read(resolver: &mut ObjectReader<'_, '_>) -> Option<DestinationResolver> {
    let enabled = resolver.boolean("Enabled").unwrap_or(true);
    let refresh = resolver
        .time_span("RefreshPeriod")
        .map_or(REFRESH, Duration::from);
    if refresh < Duration::from_secs(1) {
        let pointer = resolver.pointer_to("RefreshPeriod");
        let problem = Problem::error(
            pointer,
            "out_of_range",
            "names are looked up at most once a second",
        );
        resolver
            .problems()
            .push(problem.with_suggestion("write `5m`, or leave it out"));
    }
    let family = resolver
        .choice("AddressFamily", &FAMILIES)
        .unwrap_or_default();
    enabled.then_some(DestinationResolver { refresh, family })
}

impl DestinationResolver {
    /// Returns the resolver. It queries DNS servers with these options, or without options uses the operating
    /// system.
    pub(crate) fn resolver(&self, dns: Option<DnsOptions>) -> DnsResolver {
        let resolver = match dns {
            Some(options) => DnsResolver::with_lookup(DnsLookup::new(options)),
            None => DnsResolver::new(),
        };
        resolver.with_refresh(self.refresh).with_family(self.family)
    }
}
