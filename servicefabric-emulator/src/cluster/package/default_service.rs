//! Default services of an application.

use indexmap::IndexMap;

use super::PackageError;
use super::xml::Element;
use crate::cluster::entity::{PartitionScheme, ServiceKind, ServiceScale};
use crate::cluster::error::FabricError;
use crate::cluster::name::FabricName;
use crate::cluster::request::ServiceCreation;
use crate::hosting::ActivationMode;

/// A service of an application manifest. Its values can be the name of a parameter in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultService {
    /// The name below that of the application.
    pub name: String,
    /// The name of the service type.
    pub type_name: String,
    scale: ScaleSettings,
    scheme: Scheme,
    placement_constraints: Option<String>,
    activation_mode: Option<String>,
    dns_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ScaleSettings {
    Stateless {
        instances: Option<String>,
        min: Option<String>,
    },
    Stateful {
        target: Option<String>,
        min: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Singleton,
    Ranges {
        count: String,
        low: String,
        high: String,
    },
    Names(Vec<String>),
}

impl DefaultService {
    pub(super) fn read(service: Element<'_, '_>) -> Result<Self, PackageError> {
        let name = service.attribute("Name")?;
        let kinds = ["StatelessService", "StatefulService"];
        let mut elements = service.elements();
        let described = elements.find(|element| kinds.contains(&element.name()));
        let described = described.ok_or_else(|| {
            service.error(format!(
                "the default service `{name}` is neither a `StatelessService` nor a `StatefulService`"
            ))
        })?;
        // The values stay texts, since they may refer to parameters of the application.
        let given = |name: &str| described.get(name).map(str::to_owned);
        let scale = match described.name() {
            "StatelessService" => ScaleSettings::Stateless {
                instances: given("InstanceCount"),
                min: given("MinInstanceCount"),
            },
            _ => ScaleSettings::Stateful {
                target: given("TargetReplicaSetSize"),
                min: given("MinReplicaSetSize"),
            },
        };
        let constraints = described.first("PlacementConstraints");
        Ok(Self {
            name: name.to_owned(),
            type_name: described.attribute("ServiceTypeName")?.to_owned(),
            scale,
            scheme: scheme(described)?,
            placement_constraints: constraints.map(|of| of.text().to_owned()),
            activation_mode: service
                .get("ServicePackageActivationMode")
                .map(str::to_owned),
            dns_name: service.get("ServiceDnsName").map(str::to_owned),
        })
    }

    /// Returns the kind of the service: stateless or stateful.
    pub fn kind(&self) -> ServiceKind {
        match self.scale {
            ScaleSettings::Stateless { .. } => ServiceKind::Stateless,
            ScaleSettings::Stateful { .. } => ServiceKind::Stateful,
        }
    }

    /// Returns the request to create the service in an application with these parameters.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for a parameter that is not declared and for values that make no sense.
    pub(in crate::cluster) fn creation(
        &self,
        application: &FabricName,
        parameters: &IndexMap<String, String>,
    ) -> Result<ServiceCreation, FabricError> {
        let values = ParameterValues {
            service: &self.name,
            parameters,
        };
        let scale = match &self.scale {
            ScaleSettings::Stateless { instances, min } => ServiceScale::Stateless {
                instance_count: values.optional("InstanceCount", instances.as_ref())?,
                min_instance_count: values.optional("MinInstanceCount", min.as_ref())?,
            },
            ScaleSettings::Stateful { target, min } => ServiceScale::Stateful {
                target: values.optional("TargetReplicaSetSize", target.as_ref())?,
                min: values.optional("MinReplicaSetSize", min.as_ref())?,
            },
        };
        let scheme = match &self.scheme {
            Scheme::Singleton => PartitionScheme::Singleton,
            Scheme::Ranges { count, low, high } => PartitionScheme::Int64Range {
                count: values.number("PartitionCount", count)?,
                low: values.number("LowKey", low)?,
                high: values.number("HighKey", high)?,
            },
            Scheme::Names(names) => {
                let names = names.iter().map(|name| values.text(name));
                PartitionScheme::Named(names.collect::<Result<_, _>>()?)
            }
        };
        let optional = |text: &Option<String>| {
            let text = text.as_deref().map(|text| values.text(text)).transpose()?;
            // An empty value counts as missing.
            Ok::<_, FabricError>(text.filter(|text| !text.is_empty()))
        };
        let name = FabricName::parse(&format!("{application}/{}", values.text(&self.name)?))?;
        let mut creation = ServiceCreation::new(application.clone(), name, &self.type_name, scale)
            .with_scheme(scheme);
        creation.placement_constraints = optional(&self.placement_constraints)?;
        creation.dns_name = optional(&self.dns_name)?.unwrap_or_default();
        creation.activation_mode = match optional(&self.activation_mode)?.as_deref() {
            None | Some("SharedProcess") => ActivationMode::SharedProcess,
            Some("ExclusiveProcess") => ActivationMode::ExclusiveProcess,
            Some(other) => {
                return Err(values.error(&format!(
                    "ServicePackageActivationMode is `{other}`, but must be SharedProcess or ExclusiveProcess"
                )));
            }
        };
        Ok(creation)
    }
}

fn scheme(described: Element<'_, '_>) -> Result<Scheme, PackageError> {
    if let Some(ranges) = described.first("UniformInt64Partition") {
        return Ok(Scheme::Ranges {
            count: ranges.attribute("PartitionCount")?.to_owned(),
            low: ranges.attribute("LowKey")?.to_owned(),
            high: ranges.attribute("HighKey")?.to_owned(),
        });
    }
    if let Some(named) = described.first("NamedPartition") {
        let names = named.all("Partition").map(|partition| {
            let name = partition.attribute("Name")?;
            Ok(name.to_owned())
        });
        return Ok(Scheme::Names(names.collect::<Result<_, PackageError>>()?));
    }
    Ok(Scheme::Singleton)
}

/// The parameters of an application. Replaces a text `[Name]` with the parameter's value.
struct ParameterValues<'a> {
    service: &'a str,
    parameters: &'a IndexMap<String, String>,
}

impl ParameterValues<'_> {
    fn text(&self, text: &str) -> Result<String, FabricError> {
        // A value in brackets is the name of a parameter.
        let inner = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let Some(name) = inner else {
            return Ok(text.to_owned());
        };
        let mut known = self.parameters.iter();
        let found = known.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| self.error(&format!("the parameter `{name}` is not declared")))
    }

    /// Parses a count. Default: 1.
    fn optional<T: std::str::FromStr>(
        &self,
        what: &str,
        text: Option<&String>,
    ) -> Result<T, FabricError> {
        self.number(what, text.map_or("1", String::as_str))
    }

    fn number<T: std::str::FromStr>(&self, what: &str, text: &str) -> Result<T, FabricError> {
        let value = self.text(text)?;
        let number = value.trim().parse();
        number.map_err(|_| self.error(&format!("{what} is `{value}`, which is not such a number")))
    }

    fn error(&self, message: &str) -> FabricError {
        FabricError::invalid_argument(format!("the default service `{}`: {message}", self.service))
    }
}
