//! Builds, checks and embeds the GPU artifacts next to it.
