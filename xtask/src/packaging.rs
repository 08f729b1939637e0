//! `cargo xtask packaging`: tests of `packaging/` and of the crates, from a user's point of view.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::peers;
use crate::process::Invocation;
use crate::say;
use crate::steps::{Outcome, Steps};
use crate::workspace::Workspace;

/// The programs that these checks use. `cargo xtask ci` fetches them with others.
const TOOLS: [&str; 4] = ["systemd", "kubectl", "kubernetes-validate", "prometheus"];

/// The program that is released.
const PROGRAM: &str = "proxy-gateway";

/// A small example, as the target of a build with dev-dependencies.
const EXAMPLE: &str = "filter";

/// The program that builds images.
const IMAGE_TOOLS: [&str; 1] = ["buildah"];

/// A guard against a check that hangs.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// A guard for building the program with full optimisation.
const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);

/// The maximum exposure of a unit, in tenths, as reported by `systemd-analyze security`.
const MOST_EXPOSED: &str = "--threshold=30";

/// The units with the name under which each can be verified: templates need an instance.
const UNITS: [(&str, &str); 3] = [
    ("proxy-gateway.socket", "proxy-gateway.socket"),
    ("proxy-gateway.service", "proxy-gateway.service"),
    ("proxy-gateway@.service", "proxy-gateway@blue.service"),
];

/// The path of the program in the units.
const INSTALLED: &str = "/usr/local/bin/proxy-gateway";

/// The check of the compose file: valid, with the services that its first lines promise, and with
/// existing mounts.
const COMPOSE_CHECK: &str = "
import os, sys, yaml
place = sys.argv[1]
compose = yaml.safe_load(open(place))
assert sorted(compose['services']) == ['backend-1', 'backend-2', 'gateway'], compose['services']
gateway = compose['services']['gateway']
folder = os.path.dirname(place)
paths = [volume.split(':')[0] for volume in gateway['volumes']] + [gateway['build']['context']]
paths.append(os.path.join(gateway['build']['context'], gateway['build']['dockerfile']))
for path in paths:
    assert os.path.exists(os.path.join(folder, path)), path + ' is not there'
";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail when a program that checks cannot be had, instead of leaving its checks out
    #[arg(long)]
    require_peers: bool,
    /// Build the static program, make an image of it and run that, too; takes root and minutes
    #[arg(long)]
    image: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    let mut steps = Steps::new(&[]);
    peers::fetch(&workspace, &TOOLS.map(str::to_owned))?;
    steps.run("packaging", || step(&workspace, options.require_peers));
    if options.image {
        peers::fetch(&workspace, &IMAGE_TOOLS.map(str::to_owned))?;
        steps.run("image", || {
            image_step(&workspace, options.require_peers, StaticProgram::Built)
        });
    }
    steps.end()
}

/// Checks packages, units, manifests, the compose file and monitoring, as a step of `cargo xtask ci`.
pub(crate) fn step(workspace: &Workspace, required: bool) -> crate::Result<Outcome> {
    let mut checks = Checks::default();
    checks.expect_success(&package(workspace))?;
    let scratch = workspace.target_directory().join("packaging");
    fs::create_dir_all(&scratch)?;
    match peers::find(workspace, "systemd-analyze") {
        Some(analyze) => units(&analyze, &scratch, &mut checks)?,
        None => checks.missing.push("systemd-analyze"),
    }
    match (
        peers::find(workspace, "kubectl"),
        peers::find(workspace, "kubernetes-validate"),
    ) {
        (Some(kubectl), Some(validate)) => kubernetes(&kubectl, &validate, &scratch, &mut checks)?,
        (None, _) => checks.missing.push("kubectl"),
        (_, None) => checks.missing.push("kubernetes-validate"),
    }
    match peers::find(workspace, "kubernetes-validate-python") {
        Some(python) => {
            let check = Invocation::new(python).args(["-c", COMPOSE_CHECK]);
            checks.expect_success(&check.arg("packaging/compose/compose.yaml"))?;
        }
        None => checks.missing.push("kubernetes-validate-python"),
    }
    match peers::find(workspace, "promtool") {
        Some(promtool) => monitoring(&promtool, &scratch, &mut checks)?,
        None => checks.missing.push("promtool"),
    }
    Ok(checks.outcome(required))
}

/// Builds the static program of the image as a release does, but without optimisation, which
/// has no effect on the tests.
fn build_static_program() -> crate::Result<Outcome> {
    let build = Invocation::new("packaging/release.sh")
        .arg("--no-sbom")
        .env("CARGO_PROFILE_DIST_LTO", "false")
        .env("CARGO_PROFILE_DIST_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DIST_CODEGEN_UNITS", "16");
    shown(&build)
}

/// Links the program of `cargo xtask ci` statically, from the libraries of its tests. This takes seconds.
///
/// The next build links it dynamically again.
fn link_static_program(workspace: &Workspace) -> crate::Result<Outcome> {
    let target = workspace.target_directory();
    let program = target.join("debug").join(PROGRAM);
    forget(&program)?;
    // Cargo chooses the features of dependencies for all packages and kinds of targets of a command.
    // They are those of the tests only if the command builds the whole workspace and something that
    // may use dev-dependencies.
    let link = Invocation::cargo("build --workspace --all-features --example")
        .args([EXAMPLE, "--bin", PROGRAM])
        .env(
            "RUSTC_WRAPPER",
            workspace.root().join("packaging/image/static-rustc.sh"),
        );
    let linked = shown(&workspace.compiling(link))?;
    if !matches!(linked, Outcome::Passed { .. }) {
        return Ok(linked);
    }
    let release = Invocation::new("packaging/release.sh").args(["--no-sbom", "--program"]);
    let released = shown(&release.arg(&program))?;
    forget(&program)?;
    Ok(released)
}

/// Deletes a program and cargo's copy of it, so that the next build links it.
fn forget(program: &Path) -> io::Result<()> {
    let Ok(known) = fs::metadata(program) else {
        return Ok(());
    };
    let copies = program.with_file_name("deps");
    for entry in fs::read_dir(copies)? {
        let entry = entry?;
        if is_same(&entry.metadata()?, &known) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(program)
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Images are built on Linux only.
#[cfg(not(unix))]
fn is_same(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    false
}

fn shown(build: &Invocation) -> crate::Result<Outcome> {
    say!("{build}");
    let ended = build.show(BUILD_LIMIT)?;
    Ok(match ended.is_success() {
        true => Outcome::PASSED,
        false => Outcome::Failed {
            why: ended.to_string(),
            repeat: vec![build.to_string()],
        },
    })
}

/// The origin of the static program of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StaticProgram {
    /// A build like that of a release.
    Built,
    /// The libraries of the tests, which are compiled already.
    Linked,
}

/// Builds and runs the image with the static program only, as a step of `cargo xtask ci`.
pub(crate) fn image_step(
    workspace: &Workspace,
    required: bool,
    program: StaticProgram,
) -> crate::Result<Outcome> {
    let mut checks = Checks::default();
    let Some(buildah) = peers::find(workspace, "buildah") else {
        checks.missing.push("buildah");
        return Ok(checks.outcome(required));
    };
    let (_, user) = Invocation::new("id").arg("-u").capture(LIMIT)?;
    if user.trim() != "0" {
        let why =
            "the image is tried in a changed root, which takes root; IT IS NOT BUILT".to_owned();
        return Ok(Outcome::Skipped { why });
    }
    let made = match program {
        StaticProgram::Built => build_static_program()?,
        StaticProgram::Linked => link_static_program(workspace)?,
    };
    if !matches!(made, Outcome::Passed { .. }) {
        return Ok(made);
    }
    let image = Invocation::new("packaging/image/build.sh").arg("--try");
    checks.expect_success(&image.env("BUILDAH", buildah))?;
    Ok(checks.outcome(required))
}

/// Packages all published crates without building them: other steps build their sources.
fn package(workspace: &Workspace) -> Invocation {
    let package = Invocation::cargo("package --no-verify --locked --allow-dirty --quiet");
    let published = workspace.published();
    package.args(published.iter().flat_map(|name| ["--package", name]))
}

/// Copies the units to a place where systemd can verify them without installation, and rates them.
fn units(analyze: &Path, scratch: &Path, checks: &mut Checks) -> crate::Result<()> {
    let verified = scratch.join("units");
    fs::create_dir_all(&verified)?;
    let mut verify = Invocation::new(analyze).args(["verify", "--man=no"]);
    for (unit, name) in UNITS {
        let place = Path::new("packaging/systemd").join(unit);
        let text = fs::read_to_string(&place)?;
        let copy = verified.join(name);
        // systemd looks for the program, which need not be installed on this machine.
        fs::write(&copy, text.replace(INSTALLED, "/bin/true"))?;
        verify = verify.arg(copy);
        if unit.ends_with(".service") {
            let rate = Invocation::new(analyze).args(["security", "--offline=true", MOST_EXPOSED]);
            checks.expect_success(&rate.arg(place))?;
        }
    }
    // It warns about unknown keys, but succeeds.
    checks.expect_silence(&verify)
}

/// Builds the manifests, and validates them against the schemas of Kubernetes' API.
fn kubernetes(
    kubectl: &Path,
    validate: &Path,
    scratch: &Path,
    checks: &mut Checks,
) -> crate::Result<()> {
    let build = Invocation::new(kubectl).args(["kustomize", "packaging/kubernetes"]);
    let Some(manifests) = checks.expect_success(&build)? else {
        return Ok(());
    };
    let built = scratch.join("kubernetes.yaml");
    fs::write(&built, manifests)?;
    let validate = Invocation::new(validate).arg("--strict").arg(built);
    checks.expect_success(&validate)?;
    Ok(())
}

/// Checks scrape configurations and alert rules, and runs the tests of the rules.
fn monitoring(promtool: &Path, scratch: &Path, checks: &mut Checks) -> crate::Result<()> {
    let copies = scratch.join("monitoring");
    fs::create_dir_all(&copies)?;
    let checked: [(&[&str], &[&str]); 3] = [
        // The rules come first: configurations name them.
        (
            &["check", "rules"],
            &["proxy-gateway.rules.yml", "xds-control-plane.rules.yml"],
        ),
        (
            &["check", "config"],
            &["prometheus.yml", "prometheus-kubernetes.yml"],
        ),
        (
            &["test", "rules"],
            &[
                "proxy-gateway.rules.test.yml",
                "xds-control-plane.rules.test.yml",
            ],
        ),
    ];
    for name in checked.iter().flat_map(|(_, files)| *files) {
        let text = fs::read_to_string(Path::new("packaging/monitoring").join(name))?;
        // Debian builds the program without Kubernetes.
        let text = text.replace(
            "kubernetes_sd_configs:\n      - role: pod",
            "file_sd_configs:\n      - files: [pods.json]",
        );
        fs::write(copies.join(name), text)?;
    }
    for (command, files) in checked {
        for file in files {
            let check = Invocation::new(promtool).args(command);
            checks.expect_success(&check.arg(copies.join(file)))?;
        }
    }
    Ok(())
}

/// The results of a step's checks.
#[derive(Debug, Default)]
struct Checks {
    /// Commands of failed checks.
    failed: Vec<String>,
    /// Missing programs whose checks were skipped.
    missing: Vec<&'static str>,
}

impl Checks {
    /// Runs a check. Returns its output if it succeeded.
    fn expect_success(&mut self, check: &Invocation) -> crate::Result<Option<String>> {
        let (ended, output) = check.capture(LIMIT)?;
        say!("{}", first_line(check));
        if ended.is_success() {
            return Ok(Some(output));
        }
        say!("{output}{ended}");
        self.failed.push(check.to_string());
        Ok(None)
    }

    /// Runs a check that succeeds if it prints nothing.
    fn expect_silence(&mut self, check: &Invocation) -> crate::Result<()> {
        if let Some(output) = self.expect_success(check)?
            && !output.trim().is_empty()
        {
            say!("{output}");
            self.failed.push(check.to_string());
        }
        Ok(())
    }

    fn outcome(self, required: bool) -> Outcome {
        let left_out = format!("are not available: {}", self.missing.join(", "));
        if !self.failed.is_empty() {
            return Outcome::Failed {
                why: format!("{} checks failed", self.failed.len()),
                repeat: self.failed,
            };
        }
        match (self.missing.is_empty(), required) {
            (true, _) => Outcome::PASSED,
            (false, true) => Outcome::Failed {
                why: left_out,
                repeat: vec!["cargo xtask packaging --require-peers".to_owned()],
            },
            (false, false) => Outcome::Skipped {
                why: format!("{left_out}; THEIR CHECKS ARE LEFT OUT"),
            },
        }
    }
}

/// The command that repeats a check, without further lines of its script.
fn first_line(check: &Invocation) -> String {
    let line = check.to_string();
    line.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Invocation {
        Invocation::new("sh").args(["-c", script])
    }

    #[cfg(unix)]
    #[test]
    fn a_forgotten_program_is_linked_by_the_next_build() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let deps = place.path().join("deps");
        fs::create_dir(&deps).expect("can be made");
        let (program, copy) = (place.path().join(PROGRAM), deps.join("proxy_gateway-01"));
        let library = deps.join("libproxy_gateway-02.rlib");
        for path in [&copy, &library] {
            fs::write(path, "").expect("can be written");
        }
        fs::hard_link(&copy, &program).expect("can be linked");
        forget(&program).expect("can be deleted");
        assert!(!program.exists() && !copy.exists() && library.exists());
        // A second time, there is nothing to delete.
        forget(&program).expect("is not there");
    }

    #[test]
    fn a_failed_check_fails_the_step_and_can_be_repeated() {
        let mut checks = Checks::default();
        checks.expect_success(&shell("true")).expect("sh runs");
        checks.expect_success(&shell("exit 3")).expect("sh runs");
        checks
            .expect_silence(&shell("echo unknown key"))
            .expect("sh runs");
        let Outcome::Failed { repeat, .. } = checks.outcome(false) else {
            panic!("two checks have failed");
        };
        assert_eq!(repeat, ["sh -c 'exit 3'", "sh -c 'echo unknown key'"]);
    }

    #[test]
    fn a_missing_program_is_a_failure_where_it_is_required_and_reported_elsewhere() {
        let missing = || Checks {
            missing: vec!["kubectl"],
            ..Checks::default()
        };
        assert!(matches!(missing().outcome(true), Outcome::Failed { .. }));
        let Outcome::Skipped { why } = missing().outcome(false) else {
            panic!("the checks were left out");
        };
        assert!(why.contains("kubectl"), "{why}");
    }
}
