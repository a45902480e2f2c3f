//! The workspace's packages, from `cargo metadata`.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::error::HouseError;

/// One package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Package {
    /// Name in Cargo.toml.
    pub name: String,
    /// Folder relative to the workspace's folder.
    #[serde(rename = "manifest_path")]
    pub folder: String,
    /// Libraries, programs, tests and benchmarks.
    pub targets: Vec<Target>,
    /// Dependencies of all kinds.
    pub dependencies: Vec<Dependency>,
}

/// One library, program, test or benchmark of a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Target {
    /// Name in Cargo.toml.
    pub name: String,
    /// Kinds as cargo names them: `lib`, `bin`, `test`, ...
    pub kind: Vec<String>,
    /// Path of the root file, relative to the workspace's folder.
    pub src_path: String,
}

/// One dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// `dev` or `build`; `None` for a normal one.
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Package {
    /// Names of the packages that the product code or the build script depends on.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let needed = self.dependencies.iter().filter(|on| on.kind.as_deref() != Some("dev"));
        needed.map(|on| on.name.as_str())
    }

    /// Libraries and programs, without tests, benchmarks, examples and build scripts.
    pub fn product(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "lib" || kind == "bin"))
    }
}

/// The packages of the workspace in folder `root`.
pub fn packages(root: &Path) -> Result<Vec<Package>, HouseError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let said = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    if !said.status.success() {
        return Err(HouseError::Cargo(String::from_utf8_lossy(&said.stderr).into_owned()));
    }
    let metadata: Metadata = serde_json::from_slice(&said.stdout)?;
    let relative = |path: &str| {
        let path = Path::new(path);
        path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    };
    let mut packages = metadata.packages;
    for package in &mut packages {
        package.folder = relative(package.folder.trim_end_matches("Cargo.toml").trim_end_matches('/'));
        for target in &mut package.targets {
            target.src_path = relative(&target.src_path);
        }
    }
    Ok(packages)
}
