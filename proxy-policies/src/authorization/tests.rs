use std::net::IpAddr;

use super::*;
use crate::config::{BasicConfig, NetworkSetting, NetworksConfig};
use crate::named::Visit;
use crate::tests::{TestHead, route};
use proxy_runtime::ConnectionInfo;
use tokio::time::Instant;

fn networks(texts: &[&str]) -> Vec<NetworkSetting> {
    texts
        .iter()
        .map(|text| NetworkSetting(text.parse().unwrap()))
        .collect()
}

#[test]
fn clients_come_from_allowed_networks_that_are_not_denied() {
    let both = NetworksConfig {
        allow: Some(networks(&[
            "10.0.0.0/8",
            "2001:db8::/32",
            "::ffff:192.0.2.0/120",
        ])),
        deny: networks(&["10.9.0.0/16", "2001:db8:bad::/48"]),
    };
    let denying = NetworksConfig {
        allow: None,
        deny: networks(&["10.0.0.7"]),
    };
    let nobody = NetworksConfig {
        allow: Some(Vec::new()),
        deny: Vec::new(),
    };
    for (config, client, expected) in [
        (&both, "10.1.2.3", true),
        (&both, "10.9.2.3", false),
        (&both, "11.0.0.1", false),
        (&both, "192.0.2.77", true),
        (&both, "192.0.3.1", false),
        (&both, "2001:db8:1::1", true),
        (&both, "2001:db8:bad::1", false),
        (&both, "::1", false),
        (&denying, "10.0.0.7", false),
        (&denying, "10.0.0.8", true),
        (&denying, "::1", true),
        (&nobody, "127.0.0.1", false),
    ] {
        let client: IpAddr = client.parse().unwrap();
        let admits = Networks::new(config).admit(Some(client));
        assert_eq!(admits, expected, "{client} by {config:?}");
    }
    assert!(
        !Networks::new(&denying).admit(None),
        "nobody knows who it is"
    );
}

async fn judged(
    policy: &Authorization,
    head: &mut TestHead,
    client: &str,
) -> (u16, Option<Arc<Claims>>) {
    let route = route();
    let visit = Visit {
        route: &route.routes()[0],
        connection: ConnectionInfo::new(format!("{client}:80").parse().unwrap()),
        now: Instant::now(),
        claims: None,
    };
    let judged = match policy.check(head, &visit) {
        Ok(judging) => judging.wait().await,
        Err(judged) => judged,
    };
    match judged {
        Judged::Admitted(claims) => (200, claims),
        Judged::Told(claims, _) => (200, Some(claims)),
        Judged::Denied(answer) | Judged::Unauthenticated(answer) | Judged::Unavailable(answer) => {
            (answer.status.as_u16(), None)
        }
    }
}

#[tokio::test]
async fn destinations_are_told_who_it_is_by_the_proxy_alone() {
    let config = AuthorizationConfig {
        certificate: None,
        networks: Some(NetworksConfig {
            allow: None,
            deny: networks(&["192.0.2.66"]),
        }),
        jwt: None,
        forward: None,
        basic: Some(BasicConfig {
            realm: "r".to_owned(),
            users: [("ann".to_owned(), bcrypt::hash("secret", 4).unwrap())].into(),
        }),
        claim_headers: [
            ("x-user".to_owned(), "name".to_owned()),
            ("x-role".to_owned(), "role".to_owned()),
        ]
        .into(),
    };
    let policy = Authorization::new(&"staff".into(), &config, None).unwrap();
    let right = ("authorization", "Basic YW5uOnNlY3JldA==");
    let head =
        |credentials| TestHead::get("/", &[credentials, ("x-user", "root"), ("X-Role", "admin")]);
    // Checked, and then known.
    for _ in 0..2 {
        let mut head = head(right);
        let (status, claims) = judged(&policy, &mut head, "192.0.2.1").await;
        assert_eq!(status, 200);
        policy.tell(&claims.unwrap(), &mut head);
        let header = |name| Head::header(&head, name).map(<[u8]>::to_vec);
        assert_eq!(header("x-user"), Some(b"ann".to_vec()));
        assert_eq!(header("x-role"), None, "a claim that nobody made");
    }
    // The network comes first, so that no password is checked for those who may not come.
    assert_eq!(judged(&policy, &mut head(right), "192.0.2.66").await.0, 403);
    let wrong = ("authorization", "Basic YW5uOng=");
    assert_eq!(judged(&policy, &mut head(wrong), "192.0.2.1").await.0, 401);
}

/// A flood of passwords: few are checked at a time, and requests beyond the bound do not wait.
#[tokio::test]
async fn a_flood_of_passwords_is_bounded() {
    let config = AuthorizationConfig {
        basic: Some(BasicConfig {
            realm: "r".to_owned(),
            users: [("ann".to_owned(), bcrypt::hash("secret", 4).unwrap())].into(),
        }),
        ..AuthorizationConfig::default()
    };
    let policy = Arc::new(Authorization::new(&"staff".into(), &config, None).unwrap());
    let guesses = (0..1_000).map(|number| {
        use base64::Engine as _;
        let text = format!("ann:guess{number}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let policy = Arc::clone(&policy);
        tokio::spawn(async move {
            let value = format!("Basic {encoded}");
            let mut head = TestHead::get("/", &[("authorization", &value)]);
            judged(&policy, &mut head, "192.0.2.1").await.0
        })
    });
    let guesses: Vec<_> = guesses.collect();
    let mut statuses = BTreeMap::<u16, usize>::new();
    for guess in guesses {
        *statuses.entry(guess.await.unwrap()).or_default() += 1;
    }
    assert_eq!(statuses.keys().collect::<Vec<_>>(), [&401, &503]);
    assert!(statuses[&401] >= 256, "{statuses:?}");
    assert!(statuses[&503] > 500, "{statuses:?}");
    // Afterwards there is room again.
    let right = ("authorization", "Basic YW5uOnNlY3JldA==");
    let mut head = TestHead::get("/", &[right]);
    assert_eq!(judged(&policy, &mut head, "192.0.2.1").await.0, 200);
}

#[test]
fn hashes_have_a_cost_that_a_check_can_take() {
    // Of libxcrypt, and of Apache's htpasswd in spelling.
    let foreign = "$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q";
    for hash in [foreign.to_owned(), foreign.replacen("2b", "2y", 1)] {
        assert_eq!(cost_of(&hash), Some(4));
        assert!(bcrypt::verify("secret", &hash).unwrap());
    }
    for text in [
        "",
        "secret",
        "$apr1$x$y",
        "$2y$10$short",
        "$2y$03$KqyDzB/qc7z7yYqnSTN7uuKYTNTkGxwSBTNVMbnEXhcu1zXiSSH7S",
    ] {
        assert_eq!(cost_of(text), None, "{text}");
    }
}
