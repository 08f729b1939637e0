//! The documents that `plan` and `apply` print for programs, and the schemas of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::peers;
use testkit::schema::check;

use super::{about, ended, example, program, state};

const PLAN: &str = include_str!("../../../schema/plan.schema.json");
const APPLY: &str = include_str!("../../../schema/apply.schema.json");

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// An output that its schema describes, and that it does not describe without one of its members.
fn described(command: &str, printed: &str) -> Value {
    let schema = match command {
        "plan" => parsed(PLAN),
        _ => parsed(APPLY),
    };
    let document = parsed(printed);
    check(&schema, &document).unwrap_or_else(|why| panic!("{why}: {printed}"));
    for key in document.as_object().unwrap().keys() {
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove(key);
        check(&schema, &without).expect_err(key);
        without[format!("{key}2")] = json!(1);
        check(&schema, &without).expect_err(key);
    }
    document
}

struct Place {
    directory: tempfile::TempDir,
    state: PathBuf,
}

impl Place {
    fn new() -> Self {
        let (directory, state) = state();
        Self { directory, state }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn run(&self, command: &str, config: &Path, services: &Path, more: &[&str]) -> Value {
        let mut made = program();
        made.arg(command).arg("--config").arg(config);
        made.arg("--services").arg(services);
        made.arg("--nodes").arg(example("nodes.json"));
        made.arg("--state").arg(&self.state);
        made.args(["--format", "json"]).args(more);
        described(command, &peers::output(made).await.stdout)
    }

    async fn both(&self, services: &Path, more: &[&str]) -> (Value, Value) {
        let config = example("azure.json");
        let plan = self.run("plan", &config, services, more).await;
        (plan, self.run("apply", &config, services, more).await)
    }
}

#[tokio::test]
async fn what_is_printed_for_programs_is_what_the_schemas_say() {
    let place = Place::new();
    let text = std::fs::read_to_string(example("services.json")).unwrap();
    let (plan, applied) = place.both(&example("services.json"), &[]).await;
    assert!(plan["actions"].as_array().is_some_and(|all| all.len() > 3));
    assert_eq!(applied["done"], true);
    let (nothing, _) = place.both(&example("services.json"), &[]).await;
    assert_eq!(nothing["actions"], json!([]));

    // A mistake, a warning, deletions, and resources without an owner.
    let annotated = |more: &str| {
        text.replacen(
            "\"annotations\": {",
            &format!("\"annotations\": {{ {more},"),
            1,
        )
    };
    let timeout = "\"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout\": \"x\"";
    let wrong = place.file("wrong.json", &annotated(timeout));
    let (plan, applied) = place.both(&wrong, &[]).await;
    let errors = |document: &Value| {
        let services = document["services"].as_object().unwrap().values();
        services.filter(|of| of["error"].is_string()).count()
    };
    assert_eq!((errors(&plan), errors(&applied)), (1, 1));
    assert_eq!(applied["done"], false);
    let none = place.file("none.json", r#"{"kind": "List", "items": []}"#);
    let (plan, _) = place.both(&none, &[]).await;
    assert!(
        plan["orphans"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    let (plan, _) = place.both(&none, &["--remove-orphans"]).await;
    let deletes = |action: &Value| action["operation"]["do"] == "deletePublicIp";
    assert!(plan["actions"].as_array().unwrap().iter().any(deletes));
}

#[tokio::test]
async fn stages_of_a_migration_are_described() {
    let place = Place::new();
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    let of_sku = |sku: &str| {
        let words = format!("{{ \"loadBalancerSku\": \"{sku}\",");
        place.file(&format!("{sku}.json"), &good.replacen('{', &words, 1))
    };
    let services = example("services.json");
    place.run("apply", &of_sku("basic"), &services, &[]).await;
    let standard = of_sku("standard");
    let plan = place
        .run("plan", &standard, &services, &["--migrate-to-standard"])
        .await;
    let digest = plan["stages"][0]["digest"].as_str().unwrap();
    let carried = place
        .run(
            "apply",
            &standard,
            &services,
            &["--migrate-to-standard", digest],
        )
        .await;
    assert_eq!(carried["done"], true);
}

#[tokio::test]
async fn a_program_that_follows_prints_one_such_document_a_line() {
    let place = Place::new();
    let mut watch = about("apply", &place.state);
    watch.args(["--watch", "--format", "json"]);
    let mut watching = peers::spawn(watch);
    watching.wait_for_output("20.0.0.1").await;
    watching.terminate();
    watching.wait().await;
    let output = watching.output();
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let documents: Vec<_> = lines.map(|line| described("apply", line)).collect();
    assert!(!documents.is_empty(), "{output}");
}

#[tokio::test]
async fn schemas_are_printed() {
    for (of, schema) in [("plan", PLAN), ("apply", APPLY)] {
        let mut command = program();
        command.args(["schema", of]);
        let printed = peers::output(command).await;
        ended(&printed, 0);
        assert_eq!(printed.stdout, schema);
    }
}
