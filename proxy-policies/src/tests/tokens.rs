//! JSON Web Tokens. Tokens of others are those of RFC 7515, appendix A.

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::around::send;
use super::remote::{Script, Scripted, answer};

/// A key of an issuer.
struct Issuer {
    name: &'static str,
    key: EncodingKey,
}

impl Issuer {
    fn new(name: &'static str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let key = EncodingKey::from_ec_der(pkcs8.unwrap().as_ref());
        Self { name, key }
    }

    fn jwk(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(self.name.to_owned());
        serde_json::to_value(jwk).unwrap()
    }

    fn sign(&self, kid: Option<&str>, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = kid.map(str::to_owned);
        let token = encode(&header, claims, &self.key).unwrap();
        format!("Authorization: Bearer {token}")
    }
}

fn claims(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = json!({
        "iss": "https://login.example/", "aud": ["orders", "carts"], "sub": "ann",
        "exp": get_current_timestamp() + 600, "scope": "orders.read orders.write",
    });
    change(&mut claims);
    claims
}

fn list(keys: &[Value]) -> Scripted {
    let text = json!({ "keys": keys }).to_string();
    Scripted::Answer(200, Vec::new(), text)
}

const POLICY: &str = r#""Authorization":{"token":{"ClaimHeaders":{"X-User":"sub"},"Jwt":{
    "Issuer":"https://login.example/","Audiences":["orders"],"JwksUri":"https://login.example/keys",
    "RequiredClaims":{"scope":["orders.read"]}}}},
    "RateLimiter":{"one":{"Kind":"FixedWindow","PermitLimit":1,"Window":"1h","Partition":{"By":"Claim","Name":"sub"}}}"#;
const ROUTES: &str = r#"
    "r":{"ClusterId":"c","Match":{"Path":"/{**rest}"},"AuthorizationPolicy":"token"},
    "one":{"ClusterId":"c","Match":{"Path":"/one"},"AuthorizationPolicy":"token","RateLimiterPolicy":"one"}"#;

#[tokio::test(start_paused = true)]
async fn only_valid_tokens_of_the_issuer_let_pass() {
    let (issuer, other) = (Issuer::new("1"), Issuer::new("1"));
    let script = Script::new([list(&[issuer.jwk()])]);
    let mut service = script.service(POLICY, ROUTES);
    let now = get_current_timestamp();
    let good = issuer.sign(Some("1"), &claims(|_| {}));
    let unsigned = {
        let token = good.strip_prefix("Authorization: Bearer ").unwrap();
        let payload = token.split('.').nth(1).unwrap();
        // `{"alg":"none"}`
        format!("Authorization: Bearer eyJhbGciOiJub25lIn0.{payload}.")
    };
    let shared = {
        // The public key as a shared secret, in the algorithm of the token.
        let secret = issuer.jwk().to_string();
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("1".to_owned());
        let key = EncodingKey::from_secret(secret.as_bytes());
        let token = encode(&header, &claims(|_| {}), &key).unwrap();
        format!("Authorization: Bearer {token}")
    };
    let critical = {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some("1".to_owned());
        header.crit = Some(vec!["exp".to_owned()]);
        let token = encode(&header, &claims(|_| {}), &issuer.key).unwrap();
        format!("Authorization: Bearer {token}")
    };
    let signed = |change: &dyn Fn(&mut Value)| issuer.sign(Some("1"), &claims(change));
    for (what, header, status) in [
        ("nothing", "Accept: a".to_owned(), 401),
        ("a password", "Authorization: Basic eDp5".to_owned(), 401),
        ("no token", "Authorization: Bearer abc".to_owned(), 401),
        ("good", good.clone(), 503),
        ("known", good.clone(), 503),
        (
            "without the name of the only key",
            issuer.sign(None, &claims(|_| {})),
            503,
        ),
        ("forged", other.sign(Some("1"), &claims(|_| {})), 401),
        ("unsigned", unsigned, 401),
        ("a shared secret", shared, 401),
        ("an extension", critical, 401),
        ("expired", signed(&|c| c["exp"] = (now - 31).into()), 401),
        (
            "expired within the skew",
            signed(&|c| c["exp"] = (now - 20).into()),
            503,
        ),
        (
            "not valid yet",
            signed(&|c| c["nbf"] = (now + 60).into()),
            401,
        ),
        (
            "nearly valid",
            signed(&|c| c["nbf"] = (now + 20).into()),
            503,
        ),
        (
            "without an end",
            signed(&|c| drop(c.as_object_mut().unwrap().remove("exp"))),
            401,
        ),
        (
            "of somebody else",
            signed(&|c| c["iss"] = "https://evil.example/".into()),
            401,
        ),
        (
            "for somebody else",
            signed(&|c| c["aud"] = "carts".into()),
            401,
        ),
        (
            "for nobody",
            signed(&|c| drop(c.as_object_mut().unwrap().remove("aud"))),
            401,
        ),
        (
            "without the scope",
            signed(&|c| c["scope"] = "orders.reader".into()),
            403,
        ),
        (
            "with a list",
            signed(&|c| c["scope"] = json!(["orders.read"])),
            503,
        ),
    ] {
        let response = send(&mut service, "GET /a", &[&header]).await;
        assert_eq!(response.status(), status, "{what}");
        let challenge = response.headers().get("www-authenticate");
        assert_eq!(challenge.is_some(), status != 503, "{what}");
    }
    let twice = [&*good, "Authorization: Bearer e30.e30.e30"];
    assert_eq!(send(&mut service, "GET /a", &twice).await.status(), 401);
    assert_eq!(script.count(), 1, "the keys are fetched once");
    // Claims divide requests.
    let other = signed(&|c| c["sub"] = "bob".into());
    for (header, status) in [(&good, 503), (&good, 429), (&other, 503)] {
        assert_eq!(
            send(&mut service, "GET /one", &[header]).await.status(),
            status
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_keys_are_asked_for_seldom_and_rotation_is_noticed() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let script = Script::new([list(&[old.jwk()])]);
    let mut service = script.service(POLICY, ROUTES);
    let by_old = old.sign(Some("old"), &claims(|_| {}));
    let by_new = new.sign(Some("new"), &claims(|_| {}));
    assert_eq!(send(&mut service, "GET /a", &[&by_old]).await.status(), 503);
    script.set(list(&[new.jwk()]));
    // A storm of keys that do not exist: the list was fetched a moment ago.
    for number in 0..100 {
        let token = new.sign(Some(&number.to_string()), &claims(|_| {}));
        assert_eq!(send(&mut service, "GET /a", &[&token]).await.status(), 401);
    }
    assert_eq!(script.count(), 1);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(send(&mut service, "GET /a", &[&by_new]).await.status(), 503);
    assert_eq!(script.count(), 2);
    // The token was known; its key is gone.
    assert_eq!(send(&mut service, "GET /a", &[&by_old]).await.status(), 401);
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_away_closes_only_what_it_never_opened() {
    let issuer = Issuer::new("1");
    let good = issuer.sign(
        Some("1"),
        &claims(|c| c["exp"] = (get_current_timestamp() + 200_000).into()),
    );
    for failure in [
        answer(500, &[]),
        Scripted::Silence,
        Scripted::Broken,
        answer(200, &[]),
    ] {
        let script = Script::new([failure.clone()]);
        let mut service = script.service(POLICY, ROUTES);
        let begin = tokio::time::Instant::now();
        for _ in 0..3 {
            let response = send(&mut service, "GET /a", &[&good]).await;
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()["retry-after"], "5", "closed");
        }
        assert!(begin.elapsed() <= Duration::from_secs(5));
        assert_eq!(script.count(), 1, "asked once in ten seconds");
        // It comes, and goes again: its keys are used for a day.
        script.set(list(&[issuer.jwk()]));
        tokio::time::advance(Duration::from_secs(10)).await;
        let passed = send(&mut service, "GET /a", &[&good]).await;
        assert!(!passed.headers().contains_key("retry-after"));
        script.set(failure);
        for (hours, is_closed) in [(23, false), (2, true)] {
            tokio::time::advance(Duration::from_secs(hours * 3600)).await;
            let response = send(&mut service, "GET /a", &[&good]).await;
            assert_eq!(
                response.headers().contains_key("retry-after"),
                is_closed,
                "{hours}"
            );
        }
    }
}

/// The token and the key of RFC 7515, appendix A.3.
#[tokio::test(start_paused = true)]
async fn a_token_of_others_is_verified() {
    let key = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    let head = "eyJhbGciOiJFUzI1NiJ9";
    let payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let script = Script::new([list(&[key])]);
    let policy = POLICY.replace("https://login.example/\",\"Aud", "joe\",\"Aud");
    let mut service = script.service(&policy, ROUTES);
    for (signature, why) in [
        // It is signed, ended in 2011, and has no audience.
        (signature.to_owned(), "a claim is missing"),
        (signature.replace("DtEh", "DtEi"), "its signature is wrong"),
    ] {
        let header = format!("Authorization: Bearer {head}.{payload}.{signature}");
        let response = send(&mut service, "GET /a", &[&header]).await;
        let challenge = response.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(challenge.contains(why), "{challenge}");
    }
}
