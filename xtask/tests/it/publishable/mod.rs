//! Requirements of registries and readers for published crates: metadata, licence texts, and links
//! that work there.

mod links;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use self::links::Places;

/// The licence of a package, and the files with its text.
fn licence(package: &Package) -> (&'static str, &'static [&'static str]) {
    match package.name.as_str() {
        // Generated from Envoy's API, with its licence.
        "xds-types" => ("Apache-2.0", &["LICENSE-APACHE"]),
        _ => ("MIT OR Apache-2.0", &["LICENSE-MIT", "LICENSE-APACHE"]),
    }
}

/// Maximum number of keywords and of categories in the registry.
const MOST_WORDS: usize = 5;

/// Maximum length of a keyword in the registry, in bytes.
const LONGEST_KEYWORD: usize = 20;

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("xtask lies in the root").to_owned()
}

fn published() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo knows the workspace");
    let all = metadata.packages.into_iter();
    all.filter(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()))
        .collect()
}

/// The files that are published, as cargo lists them.
fn packaged(package: &Package) -> Vec<String> {
    let listed = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .args(["--package", &package.name])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success(), "{}: {errors}", package.name);
    let files = String::from_utf8_lossy(&listed.stdout);
    files.lines().map(|file| file.replace('\\', "/")).collect()
}

#[test]
fn every_published_crate_has_what_the_registry_and_its_readers_need() {
    let packages = published();
    assert!(packages.len() > 5, "only {} crates found", packages.len());
    let mut complaints = Vec::new();
    for package in &packages {
        let mut wrong = metadata(package);
        let files = packaged(package);
        wrong.extend(licences(package, &files));
        wrong.extend(readme(package, &files));
        wrong.extend(front_page(package));
        wrong.extend(dependencies(package));
        let named = wrong
            .iter()
            .map(|wrong| format!("{}: {wrong}", package.name));
        complaints.extend(named);
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn metadata(package: &Package) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |fine: bool, what: &str| {
        if !fine {
            wrong.push(what.to_owned());
        }
    };
    let is_url = |url: &Option<String>| {
        url.as_deref()
            .is_some_and(|url| url.starts_with("https://"))
    };
    expect(is_url(&package.repository), "`repository` is no URL");
    let documentation = format!("https://docs.rs/{}", package.name);
    expect(
        package.documentation.as_ref() == Some(&documentation),
        &format!("`documentation` is not {documentation}"),
    );
    let described = package.description.as_ref();
    expect(
        described.is_some_and(|text| !text.is_empty()),
        "there is no `description`",
    );
    expect(
        package.license.as_deref() == Some(licence(package).0),
        "`license` is another",
    );
    expect(package.rust_version.is_some(), "there is no `rust-version`");
    let counts = |words: &[String]| (1..=MOST_WORDS).contains(&words.len());
    expect(counts(&package.keywords), "one to five `keywords`");
    expect(counts(&package.categories), "one to five `categories`");
    for keyword in &package.keywords {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
        let fine = keyword.len() <= LONGEST_KEYWORD && keyword.chars().all(plain);
        expect(
            fine,
            &format!("the registry rejects the keyword `{keyword}`"),
        );
    }
    wrong
}

fn licences(package: &Package, files: &[String]) -> Vec<String> {
    let directory = directory(package);
    let mut wrong = Vec::new();
    for name in licence(package).1 {
        let is_packaged = files.iter().any(|file| file == *name);
        // A link that was checked out as a text file contains its target.
        let text = |place: &Path| fs::read_to_string(place.join(name)).ok();
        if !is_packaged || text(directory) != text(&root()) {
            wrong.push(format!(
                "{name} of the workspace is not in the package; `ln -s ../{name}` puts it there"
            ));
        }
    }
    wrong
}

fn readme(package: &Package, files: &[String]) -> Vec<String> {
    let Some(readme) = &package.readme else {
        return vec!["there is no `readme`".to_owned()];
    };
    let root = root();
    let places = Places {
        repository: package.repository.as_deref().unwrap_or("none"),
        root: &root,
        packaged: files,
    };
    match fs::read_to_string(directory(package).join(readme)) {
        Ok(text) => {
            let mut wrong = places.complaints(&text);
            wrong.extend(places.complaint_about_guide(&text).map(str::to_owned));
            let wrong = wrong.into_iter();
            wrong.map(|wrong| format!("{readme} {wrong}")).collect()
        }
        Err(error) => vec![format!("{readme}: {error}")],
    }
}

/// The README is the front page of a library's documentation, so that it has the README's links.
fn front_page(package: &Package) -> Option<String> {
    let library = package.targets.iter().find(|target| target.is_lib())?;
    let text = fs::read_to_string(&library.src_path).expect("cargo knows the file");
    let includes = text.contains("#![doc = include_str!(\"../README.md\")]");
    (!includes).then(|| format!("{} does not include README.md", library.src_path))
}

/// A dependency by path alone is stripped from a published crate if only its tests need it, and an
/// error otherwise.
fn dependencies(package: &Package) -> Vec<String> {
    let unpublished = package.dependencies.iter().filter(|dependency| {
        dependency.kind != DependencyKind::Development
            && dependency.path.is_some()
            && dependency.req.comparators.is_empty()
    });
    unpublished
        .map(|dependency| format!("it depends on `{}`, without a version", dependency.name))
        .collect()
}

fn directory(package: &Package) -> &Path {
    let manifest = package.manifest_path.as_std_path();
    manifest.parent().expect("a manifest lies in a directory")
}
