//! Files of YAML beside those of JSON, and the lines of mistakes.

use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::peers::{self, PeerOutput};

use super::{ended, example, program, state};

const CONFIG: &str = "\u{feff}# written by hand
subscriptionId: 00000000-0000-0000-0000-000000000001
resourceGroup: shop
location: westeurope
clusterName: shop
vnetName: shop-net
subnetName: front
securityGroupName: shop-nsg
";

/// Returns the documents of a list as a series, with an empty one in front.
fn as_documents(list: &Path) -> String {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    let mut text = "---\n# of a chart\n".to_owned();
    for item in list["items"].as_array().unwrap() {
        text.push_str("---\n");
        for (key, value) in item.as_object().unwrap() {
            text.push_str(&format!("{key}:\n  {value}\n"));
        }
    }
    text
}

struct Files {
    directory: tempfile::TempDir,
    state: PathBuf,
}

impl Files {
    fn new() -> Self {
        let (directory, state) = state();
        Self { directory, state }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn plan(&self, config: &str, services: &str, nodes: &str) -> PeerOutput {
        let mut plan = program();
        plan.arg("plan")
            .arg("--config")
            .arg(self.write("azure.yaml", config));
        plan.arg("--services")
            .arg(self.write("services.yaml", services));
        plan.arg("--nodes").arg(self.write("nodes.yaml", nodes));
        plan.arg("--state").arg(&self.state);
        peers::output(plan).await
    }
}

#[tokio::test]
async fn files_of_yaml_mean_what_those_of_json_mean() {
    let files = Files::new();
    let text = |name: &str| std::fs::read_to_string(example(name)).unwrap();
    let of_json = files
        .plan(
            &text("azure.json"),
            &text("services.json"),
            &text("nodes.json"),
        )
        .await;
    ended(&of_json, 0);
    let of_example: Value = serde_json::from_str(&text("azure.json")).unwrap();
    for line in CONFIG.lines().skip(1) {
        let (key, value) = line.split_once(": ").unwrap();
        assert_eq!(of_example[key], value, "the two say the same");
    }
    let services = as_documents(&example("services.json"));
    let of_yaml = files
        .plan(CONFIG, &services, &as_documents(&example("nodes.json")))
        .await;
    ended(&of_yaml, 0);
    assert_eq!(of_yaml.stdout, of_json.stdout);
    assert!(
        of_yaml.stdout.contains("put loadBalancer"),
        "{}",
        of_yaml.stdout
    );
}

#[tokio::test]
async fn mistakes_have_their_file_line_and_path() {
    let files = Files::new();
    let services = as_documents(&example("services.json"));
    let nodes = as_documents(&example("nodes.json"));
    for (config, services, expected) in [
        (
            format!("{CONFIG}loadBalancerSku: gold\n"),
            &*services,
            "azure.yaml:9: loadBalancerSku: \"gold\" is neither",
        ),
        (
            format!("{CONFIG}maximumLoadBalancerRuleCount: many\n"),
            &services,
            "azure.yaml:9: maximumLoadBalancerRuleCount: invalid type: string \"many\", expected a whole number",
        ),
        (
            CONFIG.replace("westeurope", "''"),
            &services,
            "azure.yaml:4: configuration: location: it is empty",
        ),
        (
            format!("{CONFIG}location: northeurope\n"),
            &services,
            "the key \"location\" is there twice (line 9",
        ),
        (
            format!("{CONFIG}---\nlocation: x\n"),
            &services,
            "a configuration is one document, and this is 2",
        ),
        (
            "- a\n".to_owned(),
            &services,
            "a configuration is an object",
        ),
        (
            "# all of it is gone\n".to_owned(),
            &services,
            "it has no document; `azure-loadbalancer schema`",
        ),
        (
            CONFIG.to_owned(),
            "a: [\n",
            "services.yaml: the whole text: it is not YAML",
        ),
        (
            CONFIG.to_owned(),
            "# emptied\n",
            "services.yaml: the whole text: it has no document",
        ),
    ] {
        let planned = files.plan(&config, services, &nodes).await;
        ended(&planned, 1);
        assert!(
            planned.stderr.contains(expected),
            "{expected}: {}",
            planned.stderr
        );
    }
    // A mistake in one service affects only that service, which keeps its resources.
    let bad = format!(
        "{services}---\nkind: Service\nmetadata:\n  name: bad\nspec:\n  type: LoadBalancer\n  ports:\n  - port: 700000\n"
    );
    let line = bad.lines().count();
    let planned = files.plan(CONFIG, &bad, &nodes).await;
    ended(&planned, 1);
    let expected = format!(
        "spec.ports[0].port: invalid value: integer `700000`, expected a number from 0 to 65535 (line {line})"
    );
    assert!(planned.stdout.contains(&expected), "{}", planned.stdout);
    assert!(
        planned.stdout.contains("put loadBalancer"),
        "{}",
        planned.stdout
    );
}
