//! The section `ConsulDiscovery` of a configuration.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{MAX_PRIORITY, Problem};

use super::{DiscoveryOptions, ServiceOptions};
use crate::client::{BuildError, Consistency, ConsulOptions, TlsOptions, Token, check_address};
use crate::discoverer::ConsulDiscoverer;
use crate::watch::{Datacenters, ShrinkGuard, WatchOptions};

/// The allowed range of periods. Shorter ones would be a busy loop, longer ones have no use.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);

/// The range of waits that servers accept.
const WAITS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

/// The section `ConsulDiscovery`.
///
/// | key | sets |
/// |---|---|
/// | `Address`, `Token`, `TokenFile`, `Namespace`, `Partition` | the same of [`ConsulOptions`] |
/// | `ConnectTimeout`, `RequestTimeout`, `MaxConnections` | the same of [`ConsulOptions`] |
/// | `Tls.{CaFile, ClientCertificateFile, ClientKeyFile, ServerName}` | [`TlsOptions`] |
/// | `Datacenter` | [`WatchOptions::own_datacenter`] |
/// | `Datacenters` | others to watch: a list, or `["*"]` for all |
/// | `Consistency` | `Default`, `Stale`, `Consistent` or `Cached` |
/// | `Patience` | the time for which the first result waits for datacenters other than the own one |
/// | `Wait`, `RereadInterval` | the wait of a blocking query, and the longest time between two reads of a service |
/// | `ShrinkGuard.{Share, Least, Settle}` | [`ShrinkGuard`] |
/// | `LabelPrefix`, `EnabledByDefault`, `TraefikTags` | the same of [`ServiceOptions`] |
/// | `TraefikEntryPoints`, `IncludeWarning`, `WanAddresses` | the same of [`ServiceOptions`] |
/// | `Priorities` | tiers by datacenter: `{ "vla": 2 }` |
/// | `DefaultsKey`, `AllowStartBeforeDiscovery`, `Persist` | the same of [`DiscoveryOptions`] |
///
/// Options without a key keep their default; environment variables are not read.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// The options of discovery.
    pub options: DiscoveryOptions,
}

impl Section {
    /// Reads the section. Invalid values are added to the reader's problems and stay at their default.
    pub fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let unset = DiscoveryOptions::default();
        let options = DiscoveryOptions {
            name: unset.name,
            consul: read_consul(section),
            watch: read_watch(section),
            services: read_services(section),
            defaults_key: section
                .text("DefaultsKey")
                .filter(|key| !key.trim().is_empty()),
            patience: time(section, "Patience", &PERIODS).unwrap_or(unset.patience),
            allow_start_before_discovery: section
                .boolean("AllowStartBeforeDiscovery")
                .unwrap_or(unset.allow_start_before_discovery),
            persist: section.text("Persist").map(PathBuf::from),
        };
        Self { options }
    }

    /// Creates a discoverer. Files with certificates are read, but no call is made yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the address or the certificates cannot be used.
    pub fn connect(&self) -> Result<ConsulDiscoverer, BuildError> {
        ConsulDiscoverer::new(self.options.clone())
    }
}

fn read_consul(section: &mut ObjectReader<'_, '_>) -> ConsulOptions {
    let unset = ConsulOptions::default();
    let token = section.text("Token").and_then(|text| {
        let token = Token::new(&text);
        if let Err(error) = &token {
            report(section, "Token", "invalid_token", error.to_string());
        }
        token.ok()
    });
    let token_file = section.text("TokenFile").map(PathBuf::from);
    if token.is_some() && token_file.is_some() {
        let message = "the token comes from `Token` or from `TokenFile`, not from both";
        report(section, "Token", "conflicting_tokens", message.to_owned());
    }
    let address = section.text("Address").filter(|address| {
        let checked = check_address(address);
        if let Err(error) = &checked {
            report(section, "Address", "invalid_address", error.to_string());
        }
        checked.is_ok()
    });
    let address = address.unwrap_or(unset.address);
    let tls = section.object("Tls", read_tls).unwrap_or_default();
    let is_secure = address.trim().to_ascii_lowercase().starts_with("https:");
    if tls != TlsOptions::default() && !is_secure {
        let message = "`Tls` has no effect, since `Address` is not `https`: nothing is encrypted";
        let problem = Problem::warning(section.pointer_to("Tls"), "no_effect", message);
        let suggestion = "write `https://` and the port for it, usually 8501, in `Address`";
        section.problems().push(problem.with_suggestion(suggestion));
    }
    ConsulOptions {
        address,
        token,
        token_file,
        namespace: section.text("Namespace"),
        partition: section.text("Partition"),
        tls,
        connect_timeout: time(section, "ConnectTimeout", &PERIODS).unwrap_or(unset.connect_timeout),
        request_timeout: time(section, "RequestTimeout", &PERIODS).unwrap_or(unset.request_timeout),
        max_connections: section
            .integer("MaxConnections", 2..=10_000_u16)
            .map_or(unset.max_connections, usize::from),
        max_body: unset.max_body,
    }
}

fn read_tls(tls: &mut ObjectReader<'_, '_>) -> TlsOptions {
    TlsOptions {
        ca_file: tls.text("CaFile").map(PathBuf::from),
        client_certificate_file: tls.text("ClientCertificateFile").map(PathBuf::from),
        client_key_file: tls.text("ClientKeyFile").map(PathBuf::from),
        server_name: tls.text("ServerName"),
    }
}

fn read_watch(section: &mut ObjectReader<'_, '_>) -> WatchOptions {
    let unset = WatchOptions::default();
    let modes = [
        ("Default", Consistency::Default),
        ("Stale", Consistency::Stale),
        ("Consistent", Consistency::Consistent),
        ("Cached", Consistency::Cached),
    ];
    let datacenters = section.texts("Datacenters").map(|listed| {
        let is_all = listed.iter().any(|name| name == "*");
        match is_all {
            true => Datacenters::All,
            false => Datacenters::Listed(listed.into_iter().map(Arc::from).collect()),
        }
    });
    let mut options = WatchOptions {
        datacenters: datacenters.unwrap_or_default(),
        own_datacenter: section.text("Datacenter").map(Arc::from),
        consistency: section.choice("Consistency", &modes).unwrap_or_default(),
        reread: time(section, "RereadInterval", &PERIODS).unwrap_or(unset.reread),
        shrink: section
            .object("ShrinkGuard", read_shrink)
            .unwrap_or_default(),
        ..unset
    };
    if let Some(wait) = time(section, "Wait", &WAITS) {
        options.follow.wait = wait;
    }
    options
}

fn read_shrink(shrink: &mut ObjectReader<'_, '_>) -> ShrinkGuard {
    let unset = ShrinkGuard::default();
    let share = shrink.number("Share").filter(|share| {
        let is_share = (0.0..=1.0).contains(share);
        if !is_share {
            let message = "`Share` is from 0 to 1, which is all instances".to_owned();
            report(shrink, "Share", "out_of_range", message);
        }
        is_share
    });
    ShrinkGuard {
        share: share.unwrap_or(unset.share),
        least: shrink
            .integer("Least", 1..=1_000_000_u32)
            .and_then(|least| least.try_into().ok())
            .unwrap_or(unset.least),
        settle: time(shrink, "Settle", &PERIODS).unwrap_or(unset.settle),
    }
}

fn read_services(section: &mut ObjectReader<'_, '_>) -> ServiceOptions {
    let unset = ServiceOptions::default();
    let prefix = section.text("LabelPrefix").filter(|prefix| {
        let is_prefix = prefix.len() > 1 && prefix.ends_with('.');
        if !is_prefix {
            let message = "a prefix ends with a dot: `proxy.`".to_owned();
            report(section, "LabelPrefix", "invalid_prefix", message);
        }
        is_prefix
    });
    let priorities = section.entries("Priorities", |_, value, pointer, problems| {
        let value: Option<u32> = match value {
            Node::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
            Node::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        let priority = value.filter(|priority| *priority <= MAX_PRIORITY);
        if priority.is_none() {
            let message = format!("a priority is a number from 0 to {MAX_PRIORITY}");
            problems.push(Problem::error(pointer, "out_of_range", message));
        }
        priority
    });
    ServiceOptions {
        label_prefix: prefix.unwrap_or(unset.label_prefix),
        enabled_by_default: section
            .boolean("EnabledByDefault")
            .unwrap_or(unset.enabled_by_default),
        traefik_tags: section.boolean("TraefikTags").unwrap_or(unset.traefik_tags),
        traefik_entry_points: section
            .texts("TraefikEntryPoints")
            .unwrap_or(unset.traefik_entry_points),
        include_warning: section
            .boolean("IncludeWarning")
            .unwrap_or(unset.include_warning),
        wan_addresses: section
            .boolean("WanAddresses")
            .unwrap_or(unset.wan_addresses),
        priorities: priorities
            .into_iter()
            .flatten()
            .map(|(name, priority)| (Arc::from(name), priority))
            .collect(),
    }
}

fn report(section: &mut ObjectReader<'_, '_>, key: &str, code: &'static str, message: String) {
    let problem = Problem::error(section.pointer_to(key), code, message);
    section.problems().push(problem);
}

/// A length of time in a range.
fn time(
    section: &mut ObjectReader<'_, '_>,
    key: &'static str,
    range: &RangeInclusive<Duration>,
) -> Option<Duration> {
    let time = Duration::from(section.time_span(key)?);
    if range.contains(&time) {
        return Some(time);
    }
    let message = format!(
        "`{key}` is not between {:?} and {:?}",
        range.start(),
        range.end()
    );
    report(section, key, "out_of_range", message);
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proxy_model::Problems;
    use proxy_model::json::parse_document;

    use super::*;

    fn read(text: &str) -> (Section, Vec<String>) {
        let document = parse_document(text).unwrap();
        let mut problems = Problems::new();
        let section = ObjectReader::read(&document, "", &mut problems, Section::read).unwrap();
        let found = problems
            .iter()
            .map(|problem| format!("{} {}", problem.code, problem.pointer));
        (section, found.collect())
    }

    #[test]
    fn an_empty_section_is_the_default() {
        assert_eq!(read("{}"), (Section::default(), Vec::new()));
    }

    #[test]
    fn an_address_that_leads_to_no_agent_is_an_error_at_its_key() {
        for address in [
            "ftp://x",
            "http://user:pw@x:8500",
            "",
            "http://x:8500/?token=a",
        ] {
            let (_, problems) = read(&format!(r#"{{ "Address": "{address}" }}"#));
            assert_eq!(problems, ["invalid_address /Address"], "{address}");
        }
    }

    #[test]
    fn everything_can_be_said() {
        let (section, problems) = read(
            r#"{
                "Address": "https://consul.example:8501", "TokenFile": "/run/token", "Namespace": "team",
                "Partition": "p", "ConnectTimeout": "1s", "RequestTimeout": "20s", "MaxConnections": 64,
                "Tls": {"CaFile": "ca.pem", "ClientCertificateFile": "c.pem", "ClientKeyFile": "k.pem", "ServerName": "s"},
                "Datacenter": "sas", "Datacenters": ["vla", "iva"], "Consistency": "stale", "Wait": "1m",
                "RereadInterval": "3m", "ShrinkGuard": {"Share": 0.3, "Least": 5, "Settle": "30s"},
                "LabelPrefix": "acme.", "EnabledByDefault": true, "TraefikTags": false, "TraefikEntryPoints": ["edge"], "IncludeWarning": true,
                "WanAddresses": false, "Priorities": {"vla": 2}, "DefaultsKey": "proxy/defaults",
                "AllowStartBeforeDiscovery": true, "Persist": "last.json"
            }"#,
        );
        assert_eq!(problems, <[String; 0]>::default());
        let tls = TlsOptions::default()
            .with_ca_file("ca.pem")
            .with_client_certificate_file("c.pem")
            .with_client_key_file("k.pem")
            .with_server_name("s");
        let consul = ConsulOptions::default()
            .with_address("https://consul.example:8501")
            .with_token_file("/run/token")
            .with_namespace("team")
            .with_partition("p")
            .with_connect_timeout(Duration::from_secs(1))
            .with_request_timeout(Duration::from_secs(20))
            .with_max_connections(64_usize)
            .with_tls(tls);
        let shrink = ShrinkGuard::default()
            .with_share(0.3)
            .with_least(5)
            .with_settle(Duration::from_secs(30));
        let mut watch = WatchOptions::default()
            .with_own_datacenter("sas")
            .with_datacenters(Datacenters::Listed(vec!["vla".into(), "iva".into()]))
            .with_consistency(Consistency::Stale)
            .with_reread(Duration::from_secs(180))
            .with_shrink(shrink);
        watch.follow.wait = Duration::from_secs(60);
        let services = ServiceOptions::default()
            .with_label_prefix("acme.")
            .with_enabled_by_default(true)
            .with_traefik_tags(false)
            .with_traefik_entry_points(vec!["edge".to_owned()])
            .with_include_warning(true)
            .with_wan_addresses(false)
            .with_priorities(BTreeMap::from([("vla".into(), 2)]));
        let expected = DiscoveryOptions::default()
            .with_consul(consul)
            .with_watch(watch)
            .with_services(services)
            .with_defaults_key("proxy/defaults")
            .with_allow_start_before_discovery(true)
            .with_persist("last.json");
        assert_eq!(section.options, expected);
        let (all, _) = read(r#"{"Datacenters": ["*"]}"#);
        assert_eq!(all.options.watch.datacenters, Datacenters::All);
    }

    /// The operator believes that the connection is encrypted.
    #[test]
    fn certificates_for_an_address_without_tls_are_told_of() {
        for (address, warns) in [
            ("http://consul.example:8500", true),
            ("consul.example:8500", true),
            ("https://consul.example:8501", false),
            (" HTTPS://consul.example:8501", false),
        ] {
            let text = format!(r#"{{"Address": "{address}", "Tls": {{"CaFile": "ca.pem"}}}}"#);
            let expected: &[&str] = if warns { &["no_effect /Tls"] } else { &[] };
            assert_eq!(read(&text).1, expected, "{address}");
        }
        assert_eq!(read(r#"{"Address": "http://a", "Tls": {}}"#).1, [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_named_and_stays_at_its_default() {
        let (section, problems) = read(
            r#"{
                "Token": "two words", "Wait": "1h", "ShrinkGuard": {"Share": 2}, "LabelPrefix": "proxy",
                "Priorities": {"vla": 1000}, "Adress": "x", "MaxConnections": 1
            }"#,
        );
        assert_eq!(section, Section::default());
        let expected = [
            "invalid_token /Token",
            "out_of_range /MaxConnections",
            "out_of_range /ShrinkGuard/Share",
            "out_of_range /Wait",
            "invalid_prefix /LabelPrefix",
            "out_of_range /Priorities/vla",
            "unknown_key /Adress",
        ];
        assert_eq!(problems, expected);
    }
}
