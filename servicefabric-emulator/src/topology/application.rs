//! The applications and services of a topology.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scalar;
use super::application_type::texts;
use super::error::Problems;
use super::plan::{PlannedType, TypesByName};
use crate::cluster::{
    ApplicationCreation, FabricName, MAX_REPLICAS, PartitionScheme, PropertyValue, ServiceCreation,
    ServiceKind, ServiceScale, wanted_replicas,
};
use crate::hosting::{ActivationMode, Span};

/// An application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApplicationDescription {
    /// The name of the application type. Required.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The version of its type. Default: the first one in the file.
    pub version: Option<String>,
    /// The number of copies. The name must contain `{n}`, which becomes 1, 2, 3… there and in the parameters.
    pub count: Option<u32>,
    /// Parameters that differ from the defaults of the type.
    pub parameters: IndexMap<String, Scalar>,
    /// The services, by name: `Web` in `fabric:/Shop` stands for `fabric:/Shop/Web`.
    pub services: IndexMap<String, ServiceDescription>,
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceDescription {
    /// The name of the service type. Required.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The number of copies. The name must contain `{n}`, which becomes 1, 2, 3…
    pub count: Option<u32>,
    /// The number of instances of each partition of a stateless service; -1: one on every node. Default: 1.
    pub instances: Option<i32>,
    /// The number of replicas of each partition of a stateful service. Default: 3.
    pub replicas: Option<u32>,
    /// The number of replicas below which a partition takes no writes. Default: 2, or 1 with a single
    /// replica.
    pub min_replicas: Option<u32>,
    /// The partition scheme. Default: a single partition.
    pub partitions: Option<PartitionsDescription>,
    /// The placement constraints. Default: those of the service type.
    pub placement_constraints: Option<String>,
    /// True if each partition has a package activation of its own. Default: false.
    pub exclusive: bool,
    /// The time for which an instance stays reachable after the naming service has dropped it. Default: 0.
    pub instance_close_delay: Span,
    /// The time to wait for a replica that is down before it is replaced. Default: 30 minutes, as in a
    /// cluster.
    pub replica_restart_wait: Option<Span>,
    /// The properties in the naming service.
    pub properties: IndexMap<String, PropertyDescription>,
}

/// The partition scheme of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PartitionsDescription {
    /// A single partition.
    Singleton,
    /// Ranges of numbers of the same length.
    Ranges {
        /// The number of partitions.
        count: u32,
        /// The lowest key. Default: the lowest 64-bit number.
        #[serde(default = "lowest")]
        low: i64,
        /// The highest key. Default: the highest 64-bit number.
        #[serde(default = "highest")]
        high: i64,
    },
    /// Names.
    Names(Vec<String>),
}

fn lowest() -> i64 {
    i64::MIN
}

fn highest() -> i64 {
    i64::MAX
}

/// A property of a name.
pub type PropertyDescription = Scalar;

/// The maximum number of services of a topology, repetitions included.
const MAX_SERVICES: usize = 100_000;

/// The deployed applications, services and properties.
#[derive(Debug, Default)]
pub(super) struct Deployed {
    pub(super) applications: Vec<ApplicationCreation>,
    pub(super) services: Vec<ServiceCreation>,
    pub(super) properties: Vec<(FabricName, String, PropertyValue)>,
    /// The place in the topology that declares each name.
    names: BTreeMap<FabricName, String>,
}

impl Deployed {
    /// Returns true if the name is new. A duplicate is reported once.
    fn is_new(&mut self, name: &FabricName, at: &str, problems: &mut Problems) -> bool {
        let Some(other) = self.names.get(name) else {
            self.names.insert(name.clone(), at.to_owned());
            return true;
        };
        problems.add(
            at,
            format!("`{name}` is the name of {other} too"),
            "give each a name of its own",
        );
        false
    }
}

/// Checks the described applications and services, and repeats them as often as requested.
pub(super) fn plan(
    described: &IndexMap<String, ApplicationDescription>,
    types: &TypesByName<'_>,
    nodes: usize,
    problems: &mut Problems,
) -> Deployed {
    let mut deployed = Deployed::default();
    // The total is checked first, so that a mistyped count does not exhaust the memory.
    let total: usize = described
        .values()
        .map(ApplicationDescription::services_in_all)
        .fold(0, usize::saturating_add);
    if total > MAX_SERVICES {
        problems.add(
            "applications",
            format!("there would be {total} applications and services, more than {MAX_SERVICES}"),
            "lower a `count`",
        );
        return deployed;
    }
    for (name, application) in described {
        application.plan(name, types, &mut deployed, problems);
    }
    let replicas = deployed.services.iter().map(|service| {
        let partitions = service.scheme.count();
        wanted_replicas(service.scale, partitions, nodes)
    });
    let replicas = replicas.fold(0, usize::saturating_add);
    if replicas > MAX_REPLICAS {
        problems.add(
            "applications",
            format!("there would be {replicas} replicas and instances, more than {MAX_REPLICAS}"),
            "lower `instances`, `replicas`, `partitions`, a `count` or the number of nodes",
        );
    }
    deployed
}

/// Returns the numbers of the repetitions, and whether there is any repetition.
fn numbers(count: Option<u32>, name: &str, at: &str, problems: &mut Problems) -> Vec<Option<u32>> {
    match count {
        None => vec![None],
        Some(count) => {
            if !name.contains(PLACE) {
                problems.add(
                    format!("{at}.count"),
                    format!("all {count} would have the name `{name}`"),
                    format!("write {PLACE} where the number goes, such as `{name}{PLACE}`"),
                );
                return Vec::new();
            }
            (1..=count).map(Some).collect()
        }
    }
}

/// The placeholder for the number of a repetition.
const PLACE: &str = "{n}";

/// Replaces the placeholder in a text by the number of the repetition.
fn numbered(text: &str, number: Option<u32>) -> String {
    number.map_or_else(
        || text.to_owned(),
        |number| text.replace(PLACE, &number.to_string()),
    )
}

impl ApplicationDescription {
    fn services_in_all(&self) -> usize {
        let each = self
            .services
            .values()
            .map(|service| service.count.unwrap_or(1) as usize);
        let services = each.fold(1_usize, usize::saturating_add);
        services.saturating_mul(self.count.unwrap_or(1) as usize)
    }

    fn plan(
        &self,
        name: &str,
        types: &TypesByName<'_>,
        deployed: &mut Deployed,
        problems: &mut Problems,
    ) {
        let at = format!("applications.{name}");
        let Some(planned) = self.find_type(&at, types, problems) else {
            return;
        };
        let declared = &planned.application_type;
        for parameter in self.parameters.keys() {
            let known = || declared.default_parameters.keys().map(String::as_str);
            if !known().any(|known| known.eq_ignore_ascii_case(parameter)) {
                let at = format!("{at}.parameters.{parameter}");
                problems.unknown(at, "parameter", parameter, known());
            }
        }
        for number in numbers(self.count, name, &at, problems) {
            let written = numbered(name, number);
            let full = if written.starts_with("fabric:/") {
                written
            } else {
                format!("fabric:/{written}")
            };
            let application = match FabricName::parse(&full) {
                Ok(application) => application,
                Err(error) => {
                    problems.add(&at, error.message, "");
                    return;
                }
            };
            if !deployed.is_new(&application, &at, problems) {
                return;
            }
            let parameters = texts(&self.parameters).into_iter();
            let parameters = parameters.map(|(key, value)| (key, numbered(&value, number)));
            deployed.applications.push(
                ApplicationCreation::new(application.clone(), &declared.name, &declared.version)
                    .with_parameters(parameters.collect()),
            );
            for (name, service) in &self.services {
                let at = format!("{at}.services.{name}");
                // An error in one copy is in all of them, and is reported once.
                let mut ignored = Problems::default();
                let first = number.is_none_or(|number| number == 1);
                let problems = if first { &mut *problems } else { &mut ignored };
                service.plan(name, &at, &application, planned, deployed, problems);
            }
        }
    }

    fn find_type<'a>(
        &self,
        at: &str,
        types: &TypesByName<'a>,
        problems: &mut Problems,
    ) -> Option<&'a PlannedType> {
        let Some(versions) = types.get(self.type_name.as_str()) else {
            let at = format!("{at}.type");
            problems.unknown(
                at,
                "application type",
                &self.type_name,
                types.keys().copied(),
            );
            return None;
        };
        let version = |planned: &PlannedType| planned.application_type.version.clone();
        let found = match &self.version {
            // Without a version, the first described one is meant.
            None => versions.first(),
            Some(wanted) => versions.iter().find(|planned| version(planned) == *wanted),
        };
        let Some(found) = found else {
            let wanted = self.version.as_deref().unwrap_or_default();
            let known = versions
                .iter()
                .map(|planned| planned.application_type.version.as_str());
            problems.unknown(format!("{at}.version"), "version", wanted, known);
            return None;
        };
        if !found.provisioned {
            problems.add(
                format!("{at}.version"),
                format!("version `{}` is not provisioned", version(found)),
                "choose another version, or leave out `unprovisioned`",
            );
        }
        Some(found)
    }
}

impl ServiceDescription {
    fn plan(
        &self,
        name: &str,
        at: &str,
        application: &FabricName,
        planned: &PlannedType,
        deployed: &mut Deployed,
        problems: &mut Problems,
    ) {
        let declared = &planned.application_type;
        let Some((_, service_type)) = declared.service_type(&self.type_name) else {
            let known = || {
                declared
                    .service_types()
                    .map(|(_, found)| found.name.as_str())
            };
            let known: Vec<&str> = known().collect();
            let at = format!("{at}.type");
            problems.unknown(at, "service type", &self.type_name, known.iter().copied());
            return;
        };
        let scale = self.scale(service_type.kind, at, problems);
        if let Some(Err(error)) = self
            .placement_constraints
            .as_deref()
            .map(crate::cluster::check_constraints)
        {
            problems.add(format!("{at}.placement_constraints"), error.message, "");
        }
        let scheme = self.scheme();
        if let Err(error) = crate::cluster::check_scheme(&scheme) {
            problems.add(format!("{at}.partitions"), error.message, "");
        }
        for number in numbers(self.count, name, at, problems) {
            let service = match application.join(&numbered(name, number)) {
                Ok(service) => service,
                Err(error) => {
                    problems.add(at, error.message, "");
                    return;
                }
            };
            if !deployed.is_new(&service, at, problems) {
                return;
            }
            for (property, value) in &self.properties {
                let value = match value {
                    Scalar::Integer(value) => PropertyValue::Int64(*value),
                    Scalar::Float(value) => PropertyValue::Double(*value),
                    other => PropertyValue::String(numbered(&other.to_string(), number)),
                };
                deployed
                    .properties
                    .push((service.clone(), property.clone(), value));
            }
            let mut creation =
                ServiceCreation::new(application.clone(), service, &self.type_name, scale)
                    .with_scheme(scheme.clone());
            creation.placement_constraints = self.placement_constraints.clone();
            if self.exclusive {
                creation.activation_mode = ActivationMode::ExclusiveProcess;
            }
            creation.instance_close_delay = self.instance_close_delay;
            if let Some(wait) = self.replica_restart_wait {
                creation.replica_restart_wait = wait;
            }
            deployed.services.push(creation);
        }
    }

    fn scheme(&self) -> PartitionScheme {
        match &self.partitions {
            None | Some(PartitionsDescription::Singleton) => PartitionScheme::Singleton,
            Some(PartitionsDescription::Ranges { count, low, high }) => {
                PartitionScheme::Int64Range {
                    low: *low,
                    high: *high,
                    count: *count,
                }
            }
            Some(PartitionsDescription::Names(names)) => PartitionScheme::Named(names.clone()),
        }
    }

    fn scale(&self, kind: ServiceKind, at: &str, problems: &mut Problems) -> ServiceScale {
        let mut misplaced = |key: &str, written: bool, instead: &str| {
            if written {
                let of = if kind == ServiceKind::Stateless {
                    "stateless"
                } else {
                    "stateful"
                };
                problems.add(
                    format!("{at}.{key}"),
                    format!("service type `{}` is {of}", self.type_name),
                    format!("write `{instead}`"),
                );
            }
        };
        match kind {
            ServiceKind::Stateless => {
                misplaced("replicas", self.replicas.is_some(), "instances");
                misplaced("min_replicas", self.min_replicas.is_some(), "instances");
                let instance_count = self.instances.unwrap_or(1);
                if instance_count < -1 {
                    problems.add(
                        format!("{at}.instances"),
                        format!("there cannot be {instance_count} instances"),
                        "write a number, or -1 for one on every node",
                    );
                }
                ServiceScale::Stateless {
                    instance_count,
                    min_instance_count: 1,
                }
            }
            ServiceKind::Stateful => {
                misplaced("instances", self.instances.is_some(), "replicas");
                let target = self.replicas.unwrap_or(3);
                let min = self.min_replicas.unwrap_or_else(|| target.min(2));
                if min < 1 || target < min {
                    problems.add(
                        format!("{at}.replicas"),
                        format!("{target} replicas, at least {min}, cannot be"),
                        "write 1 <= min_replicas <= replicas",
                    );
                }
                ServiceScale::Stateful { target, min }
            }
        }
    }
}
