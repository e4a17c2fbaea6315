//! What this machine has: the driver and its devices.

use crate::driver::{self, DriverError};
use crate::{Error, error};
use ptq_spec::{ComputeCapability, MathMode, TARGETS};
use std::fmt;

/// The CUDA version that a driver supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

/// The driver and the devices that it shows to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The CUDA version it supports.
    pub version: DriverVersion,
    /// At least one device, by ordinal.
    pub devices: Vec<DeviceInfo>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The driver's number of the device, after `CUDA_VISIBLE_DEVICES`.
    pub ordinal: i32,
    /// The driver's name of the device.
    pub name: String,
    /// Compute capability.
    pub capability: ComputeCapability,
    /// Multiprocessors.
    pub sm_count: u32,
}

/// The driver's version and devices.
///
/// # Errors
/// [`Error::NoDriver`] without a driver, [`Error::NoDevice`] with a driver that shows no device, and [`Error::Driver`].
pub fn probe() -> Result<Driver, Error> {
    let version = start_driver()?;
    let devices = (0..driver::device_count()?).map(|i| DeviceInfo::of(driver::device(i)?)).collect::<Result<_, _>>()?;
    Ok(Driver { version, devices })
}

/// Opens and initialises the driver.
pub(crate) fn start_driver() -> Result<DriverVersion, Error> {
    if !cuda_driver_shim::driver_available() {
        let reason = cuda_driver_shim::load_error().unwrap_or_default().to_owned();
        return Err(Error::NoDriver { reason });
    }
    let version = DriverVersion::from_cuda(driver::version()?);
    match driver::init() {
        Err(error::Error::Driver { code: DriverError::NO_DEVICE, .. }) => Err(Error::NoDevice { driver: version }),
        started => started.map(|()| version),
    }
}

impl DriverVersion {
    fn from_cuda(version: i32) -> Self {
        let version = version.max(0) as u32;
        Self { major: version / 1000, minor: version % 1000 / 10 }
    }
}

impl DeviceInfo {
    pub(crate) fn of(device: cust::sys::CUdevice) -> Result<Self, Error> {
        Ok(Self {
            ordinal: device,
            name: driver::device_name(device)?,
            capability: driver::compute_capability(device)?,
            sm_count: driver::sm_count(device)?,
        })
    }

    /// The math mode in which the reference runs on this device.
    pub fn math(&self) -> MathMode {
        MathMode::of_reference(self.capability)
    }

    /// Whether some target's cubin or PTX runs on this device.
    pub fn has_target(&self) -> bool {
        TARGETS.iter().any(|target| target.runs_cubin(self.capability) || target.runs_ptx(self.capability))
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}, {} SMs)", self.ordinal, self.name, self.capability, self.sm_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_split_as_cuda_packs_it() {
        assert_eq!(DriverVersion::from_cuda(12080), DriverVersion { major: 12, minor: 8 });
        assert_eq!(DriverVersion::from_cuda(13000).to_string(), "13.0");
    }

    #[test]
    fn probe_tells_no_driver_from_no_device() {
        match probe() {
            Ok(driver) => assert!(!driver.devices.is_empty()),
            Err(Error::NoDriver { reason }) => {
                assert!(!cuda_driver_shim::driver_available());
                assert!(reason.contains("libcuda.so.1"), "{reason}");
            }
            Err(error) => assert!(matches!(error, Error::NoDevice { .. }), "{error}"),
        }
    }
}
