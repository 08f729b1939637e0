//! Services whose routes match the same requests.

use super::*;

/// A service with a route of its name for each of these hosts.
fn at(name: &str, hosts: &[&str]) -> DiscoveredService {
    let mut config = fragment(name, &format!("http://{name}"));
    config.routes[0].r#match.path = None;
    config.routes[0].r#match.hosts = Some(hosts.iter().map(ToString::to_string).collect());
    DiscoveredService::configured(name, config)
}

fn routes(state: &ProviderState) -> Vec<&str> {
    let config = state.config.as_deref().expect("it serves");
    config.routes.keys().map(|id| id.as_str()).collect()
}

/// The order of the routes after each of these answers.
async fn orders(options: RunnerOptions, answers: Vec<Vec<DiscoveredService>>) -> Vec<String> {
    let source = ScriptedDiscoverer::new("script");
    let count = answers.len() as u64;
    for answer in answers {
        source.answer(answer);
    }
    let provider = Runner::new(source.clone()).options(options).start();
    let mut orders = Vec::new();
    for cycle in 1..=count {
        orders.push(routes(&*after_cycles(&source, &provider, cycle).await).join(" "));
    }
    orders
}

#[tokio::test(start_paused = true)]
async fn what_serves_keeps_its_requests_from_newcomers() {
    let shop = &["shop.example"][..];
    let broken = || {
        let mut service = at("b", shop);
        service
            .problems
            .push(proxy_model::Problem::error("", "broken", "it is broken"));
        service
    };
    let cases = [
        (
            "a newcomer with a lower name",
            vec![
                vec![at("b", shop), at("c", &["c.example"])],
                vec![at("a", shop), at("b", shop), at("c", &["c.example"])],
            ],
            "b c a",
        ),
        (
            "also when the one that serves writes its host in another way",
            vec![
                vec![at("b", &["b\u{fc}cher.example"])],
                vec![
                    at("a", &["xn--bcher-kva.example"]),
                    at("b", &["XN--bcher-kva.example"]),
                ],
            ],
            "b a",
        ),
        (
            "also when it writes its hosts in another order",
            vec![
                vec![at("b", &["shop.example", "b\u{fc}cher.example"])],
                vec![
                    at("a", &["xn--bcher-kva.example", "shop.example"]),
                    at("b", &["xn--bcher-kva.example", "shop.example"]),
                ],
            ],
            "b a",
        ),
        (
            "but not when one host of several is another",
            vec![
                vec![at("b", &["b\u{fc}cher.example", "b.example"])],
                vec![
                    at("a", &["xn--bcher-kva.example", "c.example"]),
                    at("b", &["xn--bcher-kva.example", "c.example"]),
                ],
            ],
            "a b",
        ),
        (
            "also while the one that serves is in quarantine",
            vec![vec![at("b", shop)], vec![at("a", shop), broken()]],
            "b a",
        ),
        (
            "a service that turns to the requests of another",
            vec![
                vec![at("a", &["a.example"]), at("b", shop)],
                vec![at("a", shop), at("b", shop)],
            ],
            "b a",
        ),
        (
            "among those that came at once the name decides",
            vec![vec![at("b", shop), at("a", shop)]],
            "a b",
        ),
        (
            "the requests go on when the one that had them leaves and returns",
            vec![
                vec![at("b", shop)],
                vec![at("a", shop), at("b", shop)],
                vec![at("a", shop)],
                vec![at("a", shop), at("b", shop)],
            ],
            "a b",
        ),
        (
            "newcomers come in their order",
            vec![
                vec![at("c", shop)],
                vec![at("b", shop), at("c", shop)],
                vec![at("a", shop), at("b", shop), at("c", shop)],
                vec![at("a", shop), at("b", shop), at("c", shop)],
            ],
            "c b a",
        ),
    ];
    for (case, answers, expected) in cases {
        for keep_order in [false, true] {
            let first_by_name = expected == "a b" && answers.len() == 1;
            if keep_order && first_by_name {
                continue;
            }
            let options = options().with_keep_order(keep_order);
            let orders = orders(options, answers.clone()).await;
            assert_eq!(
                orders.last().unwrap(),
                expected,
                "{case}, keep_order: {keep_order}"
            );
        }
    }
}

/// Routes of one service are in the order in which it has them, also a new one among old ones.
#[tokio::test(start_paused = true)]
async fn the_order_within_a_service_is_its_own() {
    let two = |ids: [&str; 2]| {
        let mut config = fragment("x", "http://x");
        let route = config.routes[0].clone();
        config.routes.clear();
        for id in ids.iter().filter(|id| !id.is_empty()) {
            config.routes.insert((*id).into(), route.clone());
        }
        vec![DiscoveredService::configured("x", config)]
    };
    let orders = orders(options(), vec![two(["", "old"]), two(["new", "old"])]).await;
    assert_eq!(orders, ["old", "new old"]);
}

#[tokio::test(start_paused = true)]
async fn what_serves_keeps_its_requests_over_a_restart_that_is_kept_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let shop = &["shop.example"][..];
    let both = || vec![at("a", shop), at("b", shop)];
    let kept = || options().with_persist(directory.path().join("last-good"));
    assert_eq!(
        orders(kept(), vec![vec![at("b", shop)], both()]).await,
        ["b", "b a"]
    );
    assert_eq!(orders(kept(), vec![both(), both()]).await, ["b a", "b a"]);
    assert_eq!(orders(options(), vec![both()]).await, ["a b"]);
}
