//! JWTs of an issuer, next to tokens: whom they name, what its claims give, and when they end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::service::Service;

const NUMBERS: &str = "/api/v1/document-numbering/numbers";

/// Long past, and far ahead.
const PAST: u64 = 1_000_000_000;
const AHEAD: u64 = 4_102_444_800;

/// The signer of JWTs.
struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Issuer(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    /// Its set of keys.
    fn set(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": x }] })
    }

    /// A JWT with these groups, for these series.
    fn names(&self, subject: &str, groups: &[&str], series: &Value, until: u64) -> String {
        let claims = json!({
            "iss": "https://login.example", "aud": "office", "sub": subject, "exp": until,
            "realm": { "groups": groups }, "series": series,
        });
        let header = json!({ "alg": "EdDSA", "kid": "one" });
        let [header, claims] = [header, claims].map(|it| URL_SAFE_NO_PAD.encode(it.to_string()));
        let message = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

async fn ask(service: &Service, token: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = testkit::client().request(method, format!("{}{path}", service.url));
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.bearer_auth(token).send().await.unwrap();
    let status = answer.status().as_u16();
    let told = answer.headers().get("www-authenticate").map(|it| it.to_str().unwrap().to_owned());
    assert_eq!(told.as_deref(), (status == 401).then_some("Bearer error=\"invalid_token\""));
    (status, answer.json().await.unwrap_or_default())
}

async fn take(service: &Service, token: &str, document: &str) -> (u16, Value) {
    let spo = json!({ "type": "SPO", "date": "2024-01-22" });
    ask(service, token, &format!("/api/v1/documents/{document}/generate-number"), Some(spo)).await
}

#[tokio::test]
async fn whom_a_jwt_names_takes_numbers_as_its_own_within_the_roles_and_series_it_has() {
    let (issuer, mut deployment) = (Issuer::new(), Deployment::embedded());
    deployment.apply_examples();
    let set = deployment.path("issuer.json");
    std::fs::write(&set, issuer.set().to_string()).unwrap();
    // `auto`: a configured issuer means that callers must identify themselves.
    deployment.extra = format!(
        "[auth.jwt]\nissuer = \"https://login.example\"\naudience = \"office\"\n\
         algorithms = [\"EdDSA\"]\njwks_file = \"{}\"\nroles_claim = \"realm.groups\"\n\
         roles = {{ clerks = [\"caller\"], revision = [\"auditor\"] }}\n\
         series_claim = \"series\"\n",
        set.display()
    );
    let token = deployment.ok(&["token", "create", "ann"]);
    let service = deployment.serve();
    let clerk = issuer.names("ann", &["clerks", "staff"], &json!("*"), AHEAD);
    let (status, issued) = take(&service, &clerk, "d1").await;
    assert_eq!((status, &issued["document_number"]), (201, &json!("SPO-20240122-001")));

    // The auditor reads the owner; another clerk, or a token of the same word, sees nothing.
    let auditor = issuer.names("rev", &["revision"], &json!(["SPO", "RFA"]), AHEAD);
    let of_ann = format!("{NUMBERS}?user_id=jwt:ann");
    let (status, list) = ask(&service, &auditor, &format!("{of_ann}&series=SPO"), None).await;
    assert_eq!((status, &list["numbers"][0]["user_id"]), (200, &json!("jwt:ann")), "{list}");
    assert_eq!(take(&service, &auditor, "d2").await.0, 403);
    let own = format!("{NUMBERS}/SPO-20240122-001");
    assert_eq!(ask(&service, &clerk, &own, None).await.0, 200);
    let other = issuer.names("bob", &["clerks"], &json!("*"), AHEAD);
    for stranger in [other.as_str(), token.trim()] {
        let (status, told) = ask(&service, stranger, &own, None).await;
        // As for a number that was never issued, though a series could read it.
        assert_eq!((status, &told["issued"], &told["numbers"]), (200, &json!(false), &json!([])));
        assert_eq!(take(&service, stranger, "d1").await.1["code"], "document-already-numbered");
    }

    // What a claim narrows to, and claims that give nothing.
    let narrowed = issuer.names("ann", &["clerks"], &json!(["RFA"]), AHEAD);
    let (_, refused) = take(&service, &narrowed, "d3").await;
    assert_eq!(refused["code"], "unknown-type", "{refused}");
    for (jwt, says) in [
        (issuer.names("ann", &["clerks"], &json!("*"), PAST), "expired"),
        (issuer.names("ann", &["caller"], &json!("*"), AHEAD), "auth.jwt.roles"),
        (issuer.names("ann", &["clerks"], &json!([]), AHEAD), "auth.jwt.series_claim"),
        (Issuer::new().names("ann", &["clerks"], &json!("*"), AHEAD), "signature"),
    ] {
        let (status, refused) = take(&service, &jwt, "d4").await;
        assert_eq!(status, 401);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(says) && !detail.contains("clerks"), "{detail}");
    }
    assert!(!service.log().contains(&clerk), "a JWT was logged");
    assert!(service.log().contains("jwt:ann"), "the log names who called");
}

#[tokio::test]
async fn a_person_with_a_jwt_takes_one_number_a_call_unless_the_settings_say_more() {
    for (setting, count_max) in [("", 1), ("count_max = 3\n", 3), ("people = false\n", 1_000)] {
        let (issuer, mut deployment) = (Issuer::new(), Deployment::embedded());
        let set = deployment.path("issuer.json");
        std::fs::write(&set, issuer.set().to_string()).unwrap();
        deployment.extra = format!(
            "[auth.jwt]\nissuer = \"https://login.example\"\naudience = \"office\"\n\
             algorithms = [\"EdDSA\"]\njwks_file = \"{}\"\n\
             roles_claim = \"realm.groups\"\n{setting}",
            set.display()
        );
        let service = deployment.serve();
        let jwt = issuer.names("ann", &["caller"], &json!("*"), AHEAD);
        let take = async |body: Value| {
            ask(&service, &jwt, "/api/v1/document-numbering/batches", Some(body)).await
        };
        let range = |count: usize| json!({ "type": "SPO", "date": "2024-01-22", "count": count });
        let document = |i: usize| json!({ "document_id": i.to_string(), "type": "SPO" });
        let list =
            |count: usize| json!({ "documents": (0..count).map(document).collect::<Vec<_>>() });
        let limited = [(range(count_max + 1), "count"), (list(count_max + 1), "documents")];
        for (body, field) in limited.into_iter().take(if count_max < 1_000 { 2 } else { 0 }) {
            let (status, refused) = take(body).await;
            assert_eq!((status, &refused["field"]), (422, &json!(field)), "{refused}");
            assert!(
                refused["detail"].as_str().unwrap().contains("auth.jwt.count_max"),
                "{refused}"
            );
        }
        let (status, taken) = take(range(count_max.min(900))).await;
        assert_eq!(status, 201, "{taken}");
    }
}
