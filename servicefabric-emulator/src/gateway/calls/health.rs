use serde::Deserialize;

use super::Call;
use crate::gateway::route::Route;
use crate::gateway::shapes::{
    ChunkQueryBody, ClusterHealthChunkInfo, EntityHealthInfo, HealthStyle,
};
use crate::gateway::wire::{Answer, ApiError};
use crate::health::{ChunkQuery, EntityKey, HealthQuery, StateFilter};
use crate::hosting::PackageKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/$/GetClusterHealth", cluster),
    Route::query("/$/GetClusterHealth", cluster),
    Route::get("/$/GetClusterHealthChunk", chunk),
    Route::query("/$/GetClusterHealthChunk", chunk),
    Route::get("/Nodes/{node}/$/GetHealth", node),
    Route::query("/Nodes/{node}/$/GetHealth", node),
    Route::get("/Applications/{application*}/$/GetHealth", application),
    Route::query("/Applications/{application*}/$/GetHealth", application),
    Route::get("/Services/{service*}/$/GetHealth", service),
    Route::query("/Services/{service*}/$/GetHealth", service),
    Route::get("/Partitions/{partition}/$/GetHealth", partition),
    Route::query("/Partitions/{partition}/$/GetHealth", partition),
    Route::get(
        "/Partitions/{partition}/$/GetReplicas/{replica}/$/GetHealth",
        replica,
    ),
    Route::query(
        "/Partitions/{partition}/$/GetReplicas/{replica}/$/GetHealth",
        replica,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetHealth",
        deployed_application,
    ),
    Route::query(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetHealth",
        deployed_application,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServicePackages/{package}/$/GetHealth",
        deployed_package,
    ),
    Route::query(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServicePackages/{package}/$/GetHealth",
        deployed_package,
    ),
];

fn cluster(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Cluster)
}

fn node(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Node(call.node()))
}

fn application(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Application(call.name("application")?))
}

fn service(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Service(call.name("service")?))
}

fn partition(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Partition(call.partition()?))
}

fn replica(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &EntityKey::Replica(call.replica()?))
}

fn deployed_application(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &deployed_application_key(call)?)
}

fn deployed_package(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    health_of(call, &deployed_package_key(call)?)
}

/// The application on the node of the path.
pub(super) fn deployed_application_key(call: &Call<'_>) -> Result<EntityKey, ApiError> {
    Ok(EntityKey::DeployedApplication {
        application: call.name("application")?,
        node: call.node(),
    })
}

/// Returns the service package on the node of the path. Paths do not distinguish activations: unless an
/// argument names one, it is the shared one, or the first if there is no shared one.
pub(super) fn deployed_package_key(call: &Call<'_>) -> Result<EntityKey, ApiError> {
    let application = call.name("application")?;
    let manifest = call.at("package");
    let key = |activation: &str| EntityKey::DeployedServicePackage {
        package: PackageKey::exclusive(application.as_str(), manifest, activation),
        node: call.node(),
    };
    if let Some(activation) = call.arguments.get("ServicePackageActivationId") {
        return Ok(key(activation));
    }
    let store = call.cluster.health_store();
    let shared = key("");
    if store.state(&shared).is_some() {
        return Ok(shared);
    }
    let parent = EntityKey::DeployedApplication {
        application: application.clone(),
        node: call.node(),
    };
    let first = store.children(&parent).map(|(child, _)| child).find(|child| {
        matches!(child, EntityKey::DeployedServicePackage { package, .. } if &*package.manifest == manifest)
    });
    Ok(first.cloned().unwrap_or(shared))
}

/// The part of a health policy that the emulator applies: whether a warning counts as an error. Limits in
/// percent are ignored: a single unhealthy child always counts.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, expecting = "an object")]
struct Policy {
    consider_warning_as_error: bool,
    cluster_health_policy: Option<Box<Self>>,
}

fn health_of(call: &Call<'_>, key: &EntityKey) -> Result<Answer, ApiError> {
    let query = query(call)?;
    let policy: Policy = call.json_or_nothing()?.unwrap_or_default();
    let strict = policy.consider_warning_as_error
        || policy
            .cluster_health_policy
            .is_some_and(|policy| policy.consider_warning_as_error);
    let style = HealthStyle {
        strict,
        statistics: !call.arguments.flag("ExcludeHealthStatistics", false)?,
        epoch: call.shared.epoch(),
    };
    let health = call.cluster.health(key, &query)?;
    let kind_of = |key: &EntityKey| match key {
        EntityKey::Replica(replica) => call
            .cluster
            .partition(replica.partition)
            .map(|partition| partition.kind),
        _ => None,
    };
    let below = |key: &EntityKey| call.cluster.health_store().reasons(key);
    Answer::json(&EntityHealthInfo::new(&health, style, &kind_of, &below))
}

fn query(call: &Call<'_>) -> Result<HealthQuery, ApiError> {
    let filter = |name: &str| -> Result<StateFilter, ApiError> {
        let bits = call.arguments.number(name)?.unwrap_or(0);
        Ok(StateFilter::from_bits(bits))
    };
    Ok(HealthQuery {
        events: filter("EventsHealthStateFilter")?,
        nodes: filter("NodesHealthStateFilter")?,
        applications: filter("ApplicationsHealthStateFilter")?,
        services: filter("ServicesHealthStateFilter")?,
        partitions: filter("PartitionsHealthStateFilter")?,
        replicas: filter("ReplicasHealthStateFilter")?,
        deployed_applications: filter("DeployedApplicationsHealthStateFilter")?,
        deployed_service_packages: filter("DeployedServicePackagesHealthStateFilter")?,
    })
}

/// Returns the health of the cluster. Without a body there are no filters, so it is the state of the cluster
/// alone.
fn chunk(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let query = match call.json_or_nothing::<ChunkQueryBody>()? {
        Some(body) => ChunkQuery::try_from(body)?,
        None => ChunkQuery::default(),
    };
    Answer::json(&ClusterHealthChunkInfo::from(
        &call.cluster.health_chunk(&query),
    ))
}
