//! Tokens and what they may see.

use std::time::Duration;

use discovery_consul::client::{ConsulClient, ConsulErrorKind, Query, Token};
use discovery_core::SourceState;
use testkit::consul::{Consul, ConsulAgent};

use crate::live::support::{Published, consul as consul_options, options, served};

const MASTER: &str = "8b2a3c1e-6f0d-4a6b-9c55-0d1f5b1c7a11";
const READER: &str = "2f4d9c7a-1b3e-4d5f-8a6b-7c8d9e0f1a2b";

const NOTHING: &str = r#"key_prefix \"nothing/\" {policy=\"read\"}"#;

/// The policy of the documentation, inside of JSON.
fn least() -> String {
    let page = include_str!("../../../../docs/consul.md");
    let (_, policy) = page.split_once("```text\nnode_prefix").unwrap();
    let (policy, _) = policy.split_once("```").unwrap();
    format!("node_prefix{policy}")
        .replace('"', "\\\"")
        .replace('\n', " ")
}

/// A policy with these rules, and a token for it. Returns the path of the policy.
async fn reader(agent: &ConsulAgent) -> String {
    let policy = format!(r#"{{"Name": "reader", "Rules": "{}"}}"#, least());
    let policy = agent.call("PUT", "/v1/acl/policy", &policy).await.json();
    let id = policy["ID"].as_str().unwrap().to_owned();
    let token = format!(r#"{{"SecretID": "{READER}", "Policies": [{{"ID": "{id}"}}]}}"#);
    agent.call("PUT", "/v1/acl/token", &token).await.json();
    format!("/v1/acl/policy/{id}")
}

fn client(agent: &ConsulAgent, token: Option<&str>) -> ConsulClient {
    let mut options = consul_options(agent);
    options.token = token.map(|token| Token::new(token).unwrap());
    ConsulClient::new(options).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_see_what_they_may_and_losing_them_takes_nothing_away() {
    let Some(consul) = Consul::find() else { return };
    let sas = consul.datacenter("sas").deny_all_but(MASTER).start().await;
    let master = client(&sas, Some(MASTER));
    master
        .register(&served("web", "web-1", 8001))
        .await
        .unwrap();
    master
        .register(&served("web", "web-2", 8002))
        .await
        .unwrap();
    let policy = reader(&sas).await;

    // Without a token there is nothing, which is no error; keys and the agent are one.
    let anonymous = client(&sas, None);
    assert!(
        anonymous
            .services(&Query::new())
            .await
            .unwrap()
            .value
            .is_empty()
    );
    let error = anonymous
        .kv_get("proxy/a", &Query::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Denied);
    let error = anonymous.agent_self().await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Denied);
    anonymous.leader().await.unwrap();
    let unknown = client(&sas, Some("c0ffee00-0000-0000-0000-000000000000"));
    let error = unknown.services(&Query::new()).await.unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Denied);
    assert!(error.to_string().contains("ACL not found"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, READER).unwrap();
    let reading = consul_options(&sas).with_token_file(file.clone());
    let published = Published::start(options(&sas).with_consul(reading));
    let both = [("sas/sas-1/web-1", 8001, 0), ("sas/sas-1/web-2", 8002, 0)];
    published.service("web", &both).await;

    // The policy loses its rules: all services seem to be removed. The agent keeps policies for a while.
    let rules = |rules: &str| format!(r#"{{"Name": "reader", "Rules": "{rules}"}}"#);
    sas.call("PUT", &policy, &rules(NOTHING)).await.json();
    published.problem("catalog_hidden", true).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    published.service("web", &both).await;
    sas.call("PUT", &policy, &rules(&least())).await.json();
    published.problem("catalog_hidden", false).await;
    published.problem("removal_held", false).await;
    published.service("web", &both).await;

    // The token is not known any more; another one in the file is.
    let accessor = sas.call("GET", "/v1/acl/tokens", "").await.json();
    let tokens = accessor.as_array().unwrap().iter();
    let found = tokens.filter(|token| token["Policies"][0]["Name"] == "reader");
    let accessor = found
        .map(|token| token["AccessorID"].as_str().unwrap())
        .next()
        .unwrap();
    sas.call("DELETE", &format!("/v1/acl/token/{accessor}"), "")
        .await;
    published.is(SourceState::Failing).await;
    published.service("web", &both).await;
    std::fs::write(&file, MASTER).unwrap();
    published.is(SourceState::Live).await;
    master
        .register(&served("web", "web-2", 8012))
        .await
        .unwrap();
    published
        .service("web", &[both[0], ("sas/sas-1/web-2", 8012, 0)])
        .await;
}
