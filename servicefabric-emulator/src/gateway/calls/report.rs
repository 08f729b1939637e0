use serde::Deserialize;

use super::Call;
use super::body::service_kind;
use super::health::{deployed_application_key, deployed_package_key};
use crate::gateway::route::Route;
use crate::gateway::shapes::Wide;
use crate::gateway::wire::{Answer, ApiError, ApiVersion, parse_duration};
use crate::health::{EntityKey, HealthReport, HealthState};

pub(super) const ROUTES: &[Route] = &[
    Route::post("/$/ReportClusterHealth", cluster),
    Route::post("/Nodes/{node}/$/ReportHealth", node),
    Route::post("/Applications/{application*}/$/ReportHealth", application),
    Route::post("/Services/{service*}/$/ReportHealth", service),
    Route::post("/Partitions/{partition}/$/ReportHealth", partition),
    Route::post(
        "/Partitions/{partition}/$/GetReplicas/{replica}/$/ReportHealth",
        replica,
    ),
    Route::post(
        "/Nodes/{node}/$/GetApplications/{application*}/$/ReportHealth",
        deployed_application,
    ),
    Route::post(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServicePackages/{package}/$/ReportHealth",
        deployed_package,
    ),
];

fn cluster(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    report(call, EntityKey::Cluster)
}

fn node(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = EntityKey::Node(call.node());
    report(call, key)
}

fn application(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = EntityKey::Application(call.name("application")?);
    report(call, key)
}

fn service(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = EntityKey::Service(call.name("service")?);
    report(call, key)
}

fn partition(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = EntityKey::Partition(call.partition()?);
    report(call, key)
}

/// The first version in which the gateway distinguishes replicas and instances.
const SERVICE_KIND_SINCE: ApiVersion = ApiVersion::new(4, 0);

fn replica(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let replica = call.replica()?;
    let kind = match call.arguments.given("ServiceKind") {
        Some(word) => Some(service_kind(word)?),
        None if call.version >= SERVICE_KIND_SINCE => {
            return Err(ApiError::missing("ServiceKind"));
        }
        None => None,
    };
    let real = call
        .cluster
        .partition(replica.partition)
        .map(|partition| partition.kind);
    if kind.is_some() && real.is_some() && kind != real {
        // An instance is no replica: the report is about a missing entity, and so it is dropped.
        read(call)?;
        return Ok(Answer::done());
    }
    report(call, EntityKey::Replica(replica))
}

fn deployed_application(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = deployed_application_key(call)?;
    report(call, key)
}

fn deployed_package(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = deployed_package_key(call)?;
    report(call, key)
}

fn report(call: &mut Call<'_>, key: EntityKey) -> Result<Answer, ApiError> {
    let (report, immediate) = read(call)?;
    call.cluster.report_health(key, report, immediate)?;
    Ok(Answer::done())
}

/// `HealthInformation`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Information {
    source_id: String,
    property: String,
    health_state: String,
    #[serde(default)]
    time_to_live_in_milli_seconds: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    sequence_number: Option<Wide>,
    #[serde(default)]
    remove_when_expired: bool,
}

fn read(call: &Call<'_>) -> Result<(HealthReport, bool), ApiError> {
    let immediate = call.arguments.flag("Immediate", false)?;
    let information: Information = call.json()?;
    let state = match information.health_state.as_str() {
        "Ok" => HealthState::Ok,
        "Warning" => HealthState::Warning,
        "Error" => HealthState::Error,
        other => {
            return Err(ApiError::invalid(format!(
                "HealthState is `{other}`, but must be Ok, Warning or Error"
            )));
        }
    };
    let mut report = HealthReport::new(information.source_id, information.property, state)
        .with_description(information.description.unwrap_or_default())
        .with_sequence_number(information.sequence_number.unwrap_or_default().0);
    report.remove_when_expired = information.remove_when_expired;
    if let Some(duration) = information.time_to_live_in_milli_seconds {
        report.ttl = parse_duration(&duration)?;
    }
    Ok((report, immediate))
}
