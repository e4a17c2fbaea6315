//! The GPU artifacts: PTX and a cubin per (operation, target, math mode, element type), checked in next to this crate.
//!
//! | room | what |
//! |---|---|
//! | [`mod@build`] | the plan: what is built, with which flags |
//! | `sources` | the hash of everything that decides their bytes |
//! | [`manifest`] | `manifest.json`: that hash, the tools, and the hash of every file |
//! | [`embed`](mod@embed) | what the library's build script does: take the checked-in files, or build fresh ones |
//! | [`check`](mod@check) | what `cargo xtask kernels --check` does |

pub mod build;
pub mod check;
mod compress;
pub mod embed;
mod error;
mod folders;
pub mod manifest;
mod sources;

pub use build::build;
pub use check::check;
pub use cuda_builder::Toolchain;
pub use embed::embed;
pub use error::ArtifactsError;
pub use folders::Folders;
pub use manifest::Manifest;
