use std::collections::BTreeSet;

use serde::Serialize;

use super::Call;
use crate::cluster::{Node, NodeStatusFilter, PageRequest};
use crate::gateway::route::Route;
use crate::gateway::security::AadMetadata;
use crate::gateway::shapes::Manifest;
use crate::gateway::wire::{Answer, ApiError};

pub(super) const ROUTES: &[Route] = &[
    Route::get("/", root).unversioned(),
    Route::get("/$/GetClusterVersion", version),
    Route::get("/$/GetClusterManifest", manifest),
    Route::get("/$/GetAadMetadata", metadata).anonymous(),
    Route::get("/$/GetProvisionedCodeVersions", code_versions),
    Route::get("/$/GetProvisionedConfigVersions", config_versions),
];

/// Responds to `/`. A real cluster redirects to its Explorer; clients only need a success.
fn root(_: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    struct Nothing {}
    Answer::json(&Nothing {})
}

fn version(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Version<'a> {
        version: &'a str,
    }
    Answer::json(&Version {
        version: call.cluster.version(),
    })
}

fn manifest(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    Answer::json(&Manifest {
        manifest: call.cluster.cluster_manifest(),
    })
}

fn metadata(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    struct Metadata<'a> {
        r#type: &'static str,
        metadata: &'a AadMetadata,
    }
    Answer::json(&Metadata {
        r#type: "aad",
        metadata: &call.shared.security().metadata,
    })
}

/// Lists the provisioned code versions: those that nodes run, since no others can be provisioned.
fn code_versions(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct CodeVersion {
        code_version: String,
    }
    let found = versions(call, "CodeVersion", |node| &node.code_version);
    let infos: Vec<_> = found
        .map(|code_version| CodeVersion { code_version })
        .collect();
    Answer::json(&infos)
}

fn config_versions(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct ConfigVersion {
        config_version: String,
    }
    let found = versions(call, "ConfigVersion", |node| &node.config_version);
    let infos: Vec<_> = found
        .map(|config_version| ConfigVersion { config_version })
        .collect();
    Answer::json(&infos)
}

/// The versions that nodes have; only the one that the argument `wanted` names, if it does.
fn versions(call: &Call<'_>, wanted: &str, of: fn(&Node) -> &str) -> impl Iterator<Item = String> {
    let wanted = call.arguments.given(wanted);
    let nodes = call
        .cluster
        .nodes(NodeStatusFilter::All, &PageRequest::default());
    let found: BTreeSet<String> = nodes
        .items
        .into_iter()
        .map(of)
        .filter(|found| wanted.is_none_or(|wanted| wanted == *found))
        .map(str::to_owned)
        .collect();
    found.into_iter()
}
