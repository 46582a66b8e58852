//! Notes the commit the program is built from, for manifests; "unknown" outside a checkout.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/refs/heads");
    let described = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit = described
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=LASTHOP_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
