//! With the feature `cuda`: puts the GPU artifacts of the kernel sources into OUT_DIR, for `src/lib.rs` to embed.

fn main() {
    #[cfg(feature = "cuda")]
    embed();
    #[cfg(not(feature = "cuda"))]
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "cuda")]
fn embed() {
    let variable = |name| std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"));
    let folders = ptq_artifacts::Folders::new(variable("CARGO_MANIFEST_DIR"));
    let find = || ptq_artifacts::Toolchain::find(Some(folders.root()));
    if let Err(error) = ptq_artifacts::embed(&folders, variable("OUT_DIR").as_ref(), find) {
        for line in error.to_string().lines() {
            println!("cargo::error={line}");
        }
    }
}
