//! Policies of one provider, named by routes of others.

use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind};
use serde_json::json;

use super::*;

fn defining(names: &[&str], permits: u32) -> ProxyConfig {
    let mut policies = PolicyConfigs::default();
    for name in names {
        policies.insert(PolicyConfig {
            kind: PolicyKind::RateLimiter,
            name: (*name).into(),
            settings: json!({ "permits": permits }),
            timeout: None,
        });
    }
    ProxyConfig {
        policies: Arc::new(policies),
        ..simple(&[("own", "c")], &[("c", "http://c")])
    }
}

/// Routes that name the policy that is their id.
fn discovered(names: &[&str]) -> ProxyConfig {
    let routes: Vec<_> = names.iter().map(|name| (*name, "c")).collect();
    let mut config = simple(&routes, &[]);
    for (id, route) in &mut config.routes {
        route.rate_limiter_policy = Some(id.as_str().to_owned());
    }
    config
}

#[tokio::test(start_paused = true)]
async fn routes_of_a_provider_have_the_policies_that_it_may_name() {
    let permitted = CompileOptions::default().with_rate_limiter_policies(["few", "gone"]);
    let registry = provider("registry", discovered(&["few", "many", "gone"]));
    let source = MergeSource::new(registry)
        .with_strictness(Strictness::Isolated)
        .with_compile_options(permitted);
    let file = StaticProvider::new("file", defining(&["few", "many"], 1));
    let merged = Merge::new().provider(file).source(source).start();
    let state = ready(&merged).await;
    // `many` is not permitted, and nothing defines `gone`.
    assert_eq!(serving(&state), ["own→c", "few→c", "c=http://c"]);
    let route = state.snapshot.route(&"few".into()).unwrap();
    let chosen: Vec<_> = route
        .policies()
        .iter()
        .map(|p| (p.name(), p.is_defined()))
        .collect();
    assert_eq!(chosen, [("few", true)]);
    let problems = problems(&state).join("\n");
    for left_out in [
        "/Routes/many/RateLimiterPolicy",
        "/Routes/gone/RateLimiterPolicy",
    ] {
        assert!(problems.contains(left_out), "{problems}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_policy_is_published_alone() {
    let file = StaticProvider::new("file", defining(&["few"], 1));
    let update = file.clone();
    let registry = provider("registry", discovered(&["few"]));
    let permitted = CompileOptions::default().with_rate_limiter_policies(["few"]);
    let source = MergeSource::new(registry)
        .with_strictness(Strictness::Isolated)
        .with_compile_options(permitted);
    let merged = Merge::new().provider(file).source(source).start();
    let before = ready(&merged).await;
    update.update(defining(&["few"], 2));
    let after = settled(&merged).await;
    assert_ne!(before.snapshot.revision(), after.snapshot.revision());
    let policies = &after.snapshot.config().policies;
    let few = policies.get(PolicyKind::RateLimiter, "few").unwrap();
    assert_eq!(few.settings, json!({ "permits": 2 }));
    assert_eq!(serving(&after), serving(&before));
}
