//! The bodies that describe services.

use serde::Deserialize;

use crate::cluster::{
    ErrorCode, FabricName, PartitionScheme, ServiceCreation, ServiceKind, ServiceScale,
    ServiceUpdate,
};
use crate::gateway::shapes::Wide;
use crate::gateway::wire::ApiError;
use crate::hosting::{ActivationMode, Span};

/// The kind of a service: a word, or its number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum KindBody {
    Word(String),
    Number(u32),
}

impl KindBody {
    fn kind(&self) -> Result<ServiceKind, ApiError> {
        let word = match self {
            Self::Word(word) => word.clone(),
            Self::Number(number) => number.to_string(),
        };
        service_kind(&word)
    }
}

/// Parses `Stateless` and `Stateful`, and 1 and 2 of older gateways.
///
/// # Errors
///
/// `E_INVALIDARG` for anything else.
pub(super) fn service_kind(word: &str) -> Result<ServiceKind, ApiError> {
    match word {
        "Stateless" | "1" => Ok(ServiceKind::Stateless),
        "Stateful" | "2" => Ok(ServiceKind::Stateful),
        _ => Err(ApiError::invalid(format!(
            "ServiceKind is `{word}`, but must be Stateless (1) or Stateful (2)"
        ))),
    }
}

/// `ServiceDescription`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
pub(super) struct ServiceBody {
    service_kind: KindBody,
    #[serde(default)]
    application_name: Option<String>,
    service_name: String,
    service_type_name: String,
    partition_description: SchemeBody,
    #[serde(default)]
    placement_constraints: Option<String>,
    #[serde(default)]
    service_package_activation_mode: Option<String>,
    #[serde(default)]
    service_dns_name: Option<String>,
    #[serde(default)]
    instance_count: Option<i32>,
    #[serde(default)]
    min_instance_count: Option<u32>,
    #[serde(default)]
    target_replica_set_size: Option<u32>,
    #[serde(default)]
    min_replica_set_size: Option<u32>,
    #[serde(default)]
    instance_close_delay_duration_seconds: Option<Wide>,
    #[serde(default)]
    replica_restart_wait_duration_seconds: Option<Wide>,
}

/// `PartitionSchemeDescription`.
#[derive(Debug, Deserialize)]
#[serde(tag = "PartitionScheme", rename_all_fields = "PascalCase")]
enum SchemeBody {
    Singleton,
    UniformInt64Range {
        count: u32,
        low_key: Wide,
        high_key: Wide,
    },
    Named {
        #[serde(default)]
        count: Option<usize>,
        names: Vec<String>,
    },
}

impl SchemeBody {
    fn scheme(self) -> Result<PartitionScheme, ApiError> {
        match self {
            Self::Singleton => Ok(PartitionScheme::Singleton),
            Self::UniformInt64Range {
                count,
                low_key,
                high_key,
            } => Ok(PartitionScheme::Int64Range {
                low: low_key.0,
                high: high_key.0,
                count,
            }),
            Self::Named { count, names } if count.is_none_or(|count| count == names.len()) => {
                Ok(PartitionScheme::Named(names))
            }
            Self::Named { .. } => Err(ApiError::invalid("Count is not the number of Names")),
        }
    }
}

impl ServiceBody {
    /// Returns the request to create the service under this application.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for contradictory values, `FABRIC_E_INVALID_NAME_URI` for invalid names.
    pub(super) fn creation(self, application: FabricName) -> Result<ServiceCreation, ApiError> {
        let said = self.application_name.filter(|name| !name.is_empty());
        if said.is_some_and(|name| name != application.as_str()) {
            return Err(ApiError::invalid(
                "ApplicationName is not the application of the path",
            ));
        }
        let missing =
            |member: &str| ApiError::new(ErrorCode::ValueEmpty, format!("{member} is missing"));
        let scale = match self.service_kind.kind()? {
            ServiceKind::Stateless => ServiceScale::Stateless {
                instance_count: self
                    .instance_count
                    .ok_or_else(|| missing("InstanceCount"))?,
                min_instance_count: self.min_instance_count.unwrap_or(1),
            },
            ServiceKind::Stateful => ServiceScale::Stateful {
                target: self
                    .target_replica_set_size
                    .ok_or_else(|| missing("TargetReplicaSetSize"))?,
                min: self
                    .min_replica_set_size
                    .ok_or_else(|| missing("MinReplicaSetSize"))?,
            },
        };
        let name = FabricName::parse(&self.service_name)?;
        let mut creation = ServiceCreation::new(application, name, &self.service_type_name, scale)
            .with_scheme(self.partition_description.scheme()?);
        creation.placement_constraints = self
            .placement_constraints
            .filter(|constraints| !constraints.is_empty());
        creation.dns_name = self.service_dns_name.unwrap_or_default();
        creation.activation_mode =
            activation_mode(self.service_package_activation_mode.as_deref())?;
        if let Some(delay) = self.instance_close_delay_duration_seconds {
            creation.instance_close_delay = seconds(delay)?;
        }
        if let Some(wait) = self.replica_restart_wait_duration_seconds {
            creation.replica_restart_wait = seconds(wait)?;
        }
        Ok(creation)
    }
}

fn activation_mode(word: Option<&str>) -> Result<ActivationMode, ApiError> {
    match word {
        None | Some("SharedProcess") => Ok(ActivationMode::SharedProcess),
        Some("ExclusiveProcess") => Ok(ActivationMode::ExclusiveProcess),
        Some(word) => Err(ApiError::invalid(format!(
            "ServicePackageActivationMode is `{word}`, but must be SharedProcess or ExclusiveProcess"
        ))),
    }
}

fn seconds(wide: Wide) -> Result<Span, ApiError> {
    let seconds = u64::try_from(wide.0)
        .map_err(|_| ApiError::invalid(format!("{} seconds are less than none", wide.0)))?;
    Ok(Span::from_secs(seconds))
}

/// `ServiceUpdateDescription`. The members present decide; `Flags` only repeats them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
pub(super) struct UpdateBody {
    /// The kind of the service.
    service_kind: KindBody,
    #[serde(default)]
    instance_count: Option<i32>,
    #[serde(default)]
    target_replica_set_size: Option<u32>,
    #[serde(default)]
    min_replica_set_size: Option<u32>,
    #[serde(default)]
    placement_constraints: Option<String>,
    #[serde(default)]
    instance_close_delay_duration_seconds: Option<Wide>,
    #[serde(default)]
    replica_restart_wait_duration_seconds: Option<Wide>,
}

impl UpdateBody {
    /// Returns the changes of a service of this kind.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` when the service is of another kind, and for values that make no sense.
    pub(super) fn update(self, kind: Option<ServiceKind>) -> Result<ServiceUpdate, ApiError> {
        let said = self.service_kind.kind()?;
        if kind.is_some_and(|kind| kind != said) {
            return Err(ApiError::invalid(format!(
                "ServiceKind is {said}, which the service is not"
            )));
        }
        Ok(ServiceUpdate {
            instance_count: self.instance_count,
            target_replica_set_size: self.target_replica_set_size,
            min_replica_set_size: self.min_replica_set_size,
            placement_constraints: self.placement_constraints,
            instance_close_delay: self
                .instance_close_delay_duration_seconds
                .map(seconds)
                .transpose()?,
            replica_restart_wait: self
                .replica_restart_wait_duration_seconds
                .map(seconds)
                .transpose()?,
        })
    }
}
