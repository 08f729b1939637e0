//! Settings by the variables of OpenTelemetry's specification.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use crate::sampler::Sampler;

/// The settings of an export of spans.
#[derive(Clone)]
pub struct Settings {
    pub(crate) collector: CollectorSettings,
    pub(crate) sampler: Sampler,
    /// Attributes of the program that is traced.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) queue_size: usize,
    pub(crate) batch_size: usize,
    /// The longest time that a span waits for others.
    pub(crate) delay: Duration,
    /// The limit of the delivery of one batch, repetitions included.
    pub(crate) export_limit: Duration,
}

/// The settings of an export of metrics.
#[derive(Clone)]
pub struct MetricsSettings {
    pub(crate) collector: CollectorSettings,
    /// Attributes of the program that is measured.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) interval: Duration,
    /// The limit of one delivery.
    pub(crate) limit: Duration,
}

/// A collector, and the way to it.
#[derive(Clone)]
pub(crate) struct CollectorSettings {
    pub(crate) endpoint: String,
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
    pub(crate) is_compressed: bool,
    /// The limit of one request to the collector.
    pub(crate) timeout: Duration,
    pub(crate) certificate: Option<PathBuf>,
    /// The files of a client certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// The protocol of the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

/// The variables that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidSettings(Vec<String>);

/// Reads variables and collects mistakes.
struct Reader<'v> {
    signal: &'static Signal,
    variable: &'v dyn Fn(&str) -> Option<String>,
    mistakes: Vec<String>,
}

/// A kind of exported data.
struct Signal {
    /// The name in variables.
    name: &'static str,
    /// The path that is added to a general endpoint over HTTP.
    path: &'static str,
    /// The path of the call of gRPC.
    call: &'static str,
}

const TRACES: Signal = Signal {
    name: "TRACES",
    path: "/v1/traces",
    call: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
};

const METRICS: Signal = Signal {
    name: "METRICS",
    path: "/v1/metrics",
    call: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
};

impl Settings {
    /// Reads the variables `OTEL_*`; `variable` returns their values. `service` and `version` name the program,
    /// unless the variables do. `None` if no export is requested: neither an endpoint nor
    /// `OTEL_TRACES_EXPORTER=otlp` is set, the SDK is disabled, or the sampler records nothing.
    ///
    /// # Errors
    ///
    /// A value cannot be used. An empty variable counts as not set.
    pub fn from_variables(
        service: &str,
        version: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidSettings> {
        let settings = read(&TRACES, variable, |reader| reader.traces(service, version))?;
        Ok(settings.filter(|settings| !settings.sampler.is_off()))
    }

    /// The URL that spans are sent to.
    pub fn endpoint(&self) -> &str {
        &self.collector.endpoint
    }
}

impl MetricsSettings {
    /// Reads `OTEL_*`, as [`Settings::from_variables`] does. `None` if no export of metrics is asked for: neither
    /// `OTEL_METRICS_EXPORTER=otlp` nor `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` is set, since the general endpoint may be
    /// that of a collector which reads the metrics itself; or the SDK is disabled.
    ///
    /// # Errors
    ///
    /// A value cannot be used. An empty variable counts as not set.
    pub fn from_variables(
        service: &str,
        version: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidSettings> {
        read(&METRICS, variable, |reader| {
            reader.metrics(service, version)
        })
    }

    /// The URL that metrics are sent to.
    pub fn endpoint(&self) -> &str {
        &self.collector.endpoint
    }
}

fn read<T>(
    signal: &'static Signal,
    variable: &dyn Fn(&str) -> Option<String>,
    settings: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<Option<T>, InvalidSettings> {
    let mut reader = Reader {
        signal,
        variable,
        mistakes: Vec::new(),
    };
    if reader.flag("OTEL_SDK_DISABLED") {
        return Ok(None);
    }
    let settings = settings(&mut reader);
    match reader.mistakes.is_empty() {
        true => Ok(settings),
        false => Err(InvalidSettings(reader.mistakes)),
    }
}

impl Reader<'_> {
    fn traces(&mut self, service: &str, version: &str) -> Option<Settings> {
        let general = self.text("OTEL_EXPORTER_OTLP_ENDPOINT");
        let collector = self.collector(general.is_some())?;
        Some(Settings {
            collector,
            sampler: self.sampler(),
            resource: self.resource(service, version),
            queue_size: self.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048, 1..=1_000_000),
            batch_size: self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 1..=100_000),
            delay: self.milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5000),
            export_limit: self.milliseconds("OTEL_BSP_EXPORT_TIMEOUT", 30_000),
        })
    }

    fn metrics(&mut self, service: &str, version: &str) -> Option<MetricsSettings> {
        let collector = self.collector(false)?;
        Some(MetricsSettings {
            collector,
            resource: self.resource(service, version),
            interval: self.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
            limit: self.milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", 30_000),
        })
    }

    /// Reads the collector. `None` if no export is asked for; without a variable of the signal, `by_default` decides.
    fn collector(&mut self, by_default: bool) -> Option<CollectorSettings> {
        let named = self.of_signal("ENDPOINT");
        let general = self.text("OTEL_EXPORTER_OTLP_ENDPOINT");
        let exporter = format!("OTEL_{}_EXPORTER", self.signal.name);
        match self.text(&exporter).as_deref() {
            Some("otlp") => {}
            Some("none") => return None,
            None if named.is_some() || by_default => {}
            None => return None,
            Some(other) => {
                self.mistake(&exporter, other, "`otlp` or `none`");
                return None;
            }
        }
        let protocol = self.protocol();
        Some(CollectorSettings {
            endpoint: self.endpoint(protocol, named, general),
            protocol,
            headers: self.headers(),
            is_compressed: self.is_compressed(),
            timeout: self.milliseconds_of_signal("TIMEOUT", 10_000),
            certificate: self.of_signal("CERTIFICATE").map(Into::into),
            identity: self.identity(),
        })
    }

    fn protocol(&mut self) -> Protocol {
        match self.of_signal("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => Protocol::Http,
            Some("grpc") => Protocol::Grpc,
            Some(other) => {
                self.mistake(
                    "OTEL_EXPORTER_OTLP_PROTOCOL",
                    other,
                    "`http/protobuf` or `grpc`",
                );
                Protocol::Http
            }
        }
    }

    fn endpoint(
        &mut self,
        protocol: Protocol,
        named: Option<String>,
        general: Option<String>,
    ) -> String {
        let Signal { name, path, call } = self.signal;
        let (name, endpoint) = match (named, protocol) {
            (Some(named), _) => (format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT"), named),
            (None, Protocol::Http) => {
                let base = general.unwrap_or_else(|| "http://localhost:4318".to_owned());
                let url = format!("{}{path}", base.trim_end_matches('/'));
                ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url)
            }
            (None, Protocol::Grpc) => {
                let base = general.unwrap_or_else(|| "http://localhost:4317".to_owned());
                ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), base)
            }
        };
        let parsed = endpoint.parse::<Uri>().ok();
        let is_url = parsed.is_some_and(|url| {
            matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
        });
        if !is_url {
            self.mistake(
                &name,
                &endpoint,
                "a URL that begins with `http://` or `https://`",
            );
        }
        match protocol {
            Protocol::Http => endpoint,
            Protocol::Grpc => format!("{}{call}", endpoint.trim_end_matches('/')),
        }
    }

    /// `name=value,name=value`, with percent-encoded values. Values may be secrets, so mistakes do not repeat them.
    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let text = self.of_signal("HEADERS").unwrap_or_default();
        for (position, pair) in pairs(&text).enumerate() {
            let header = pair.and_then(|(name, value)| {
                let name = HeaderName::from_str(name).ok()?;
                let mut value = HeaderValue::from_str(&value).ok()?;
                value.set_sensitive(true);
                Some((name, value))
            });
            match header {
                Some((name, value)) => drop(headers.insert(name, value)),
                None => self.mistakes.push(format!(
                    "OTEL_EXPORTER_OTLP_HEADERS: part {} is not `name=value` of a header",
                    position + 1
                )),
            }
        }
        headers
    }

    fn is_compressed(&mut self) -> bool {
        match self.of_signal("COMPRESSION").as_deref() {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => {
                self.mistake("OTEL_EXPORTER_OTLP_COMPRESSION", other, "`gzip` or `none`");
                false
            }
        }
    }

    fn identity(&mut self) -> Option<(PathBuf, PathBuf)> {
        let certificate = self.of_signal("CLIENT_CERTIFICATE");
        let key = self.of_signal("CLIENT_KEY");
        match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            (certificate, _) => {
                let missing = match certificate {
                    Some(_) => "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                    None => "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
                };
                let mistake =
                    format!("{missing} is missing: a certificate and its key are set together");
                self.mistakes.push(mistake);
                None
            }
        }
    }

    fn sampler(&mut self) -> Sampler {
        let ratio = match self.text("OTEL_TRACES_SAMPLER_ARG") {
            None => 1.0,
            Some(text) => match text.parse() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
                _ => {
                    self.mistake("OTEL_TRACES_SAMPLER_ARG", &text, "a number from 0 to 1");
                    1.0
                }
            },
        };
        let Some(name) = self.text("OTEL_TRACES_SAMPLER") else {
            return Sampler::DEFAULT;
        };
        Sampler::new(&name, ratio).unwrap_or_else(|allowed| {
            self.mistake("OTEL_TRACES_SAMPLER", &name, allowed);
            Sampler::DEFAULT
        })
    }

    fn resource(&mut self, service: &str, version: &str) -> Vec<(String, String)> {
        let mut resource = vec![
            ("service.name".to_owned(), service.to_owned()),
            ("service.version".to_owned(), version.to_owned()),
        ];
        let mut set = |name: &str, value: String| match resource
            .iter_mut()
            .find(|(known, _)| known == name)
        {
            Some((_, known)) => *known = value,
            None => resource.push((name.to_owned(), value)),
        };
        let text = self.text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        for pair in pairs(&text) {
            match pair {
                Some((name, value)) => set(name, value),
                None => self.mistake("OTEL_RESOURCE_ATTRIBUTES", &text, "`name=value,name=value`"),
            }
        }
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            set("service.name", name);
        }
        resource
    }

    /// The value for the signal, else the one for all signals.
    fn of_signal(&self, what: &str) -> Option<String> {
        let of_signal = self.text(&self.name_of_signal(what));
        match what {
            // Its meaning differs: a path is added to the general one.
            "ENDPOINT" => of_signal,
            _ => of_signal.or_else(|| self.text(&format!("OTEL_EXPORTER_OTLP_{what}"))),
        }
    }

    fn milliseconds_of_signal(&mut self, what: &str, default: u64) -> Duration {
        let of_signal = self.name_of_signal(what);
        match self.text(&of_signal) {
            Some(_) => self.milliseconds(&of_signal, default),
            None => self.milliseconds(&format!("OTEL_EXPORTER_OTLP_{what}"), default),
        }
    }

    fn name_of_signal(&self, what: &str) -> String {
        format!("OTEL_EXPORTER_OTLP_{}_{what}", self.signal.name)
    }

    fn milliseconds(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.number(name, default, 1..=3_600_000))
    }

    fn number<T: FromStr + PartialOrd + fmt::Display>(
        &mut self,
        name: &str,
        default: T,
        allowed: std::ops::RangeInclusive<T>,
    ) -> T {
        let Some(text) = self.text(name) else {
            return default;
        };
        match text.parse() {
            Ok(number) if allowed.contains(&number) => number,
            _ => {
                let range = format!("a number from {} to {}", allowed.start(), allowed.end());
                self.mistake(name, &text, &range);
                default
            }
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name)
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = (self.variable)(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn mistake(&mut self, name: &str, value: &str, expected: &str) {
        self.mistakes
            .push(format!("{name}: `{value}` is not {expected}"));
    }
}

/// The parts of a list of names and percent-encoded values. `None` for a part that is none.
fn pairs(text: &str) -> impl Iterator<Item = Option<(&str, String)>> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name, value.into_owned()))
    })
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("collector", &self.collector)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MetricsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsSettings")
            .field("collector", &self.collector)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CollectorSettings {
    /// Leaves out the headers, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorSettings")
            .field("endpoint", &self.endpoint)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}
