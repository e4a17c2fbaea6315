//! The version of the header and that of the library.

/// Major version of this header. Another major version is another ABI.
pub const PTQ_VERSION_MAJOR: u32 = 0;

/// Minor version of this header. Under major version 0, another minor version is another ABI too; later, a library of a
/// higher one also serves programs that were compiled with this header.
pub const PTQ_VERSION_MINOR: u32 = 1;

/// Version of the library that is loaded: 65536 times the major version plus the minor version.
#[unsafe(no_mangle)]
pub extern "C" fn ptq_version() -> u32 {
    PTQ_VERSION_MAJOR << 16 | PTQ_VERSION_MINOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_package_s() {
        let package = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
        assert_eq!(package, (&*PTQ_VERSION_MAJOR.to_string(), &*PTQ_VERSION_MINOR.to_string()));
    }
}
