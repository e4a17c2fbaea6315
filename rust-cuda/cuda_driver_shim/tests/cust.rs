//! `cust` over the trampolines, with a driver and without one.

use cuda_driver_shim::{driver_available, load_error};
use cust::CudaFlags;
use cust::error::CudaError;

#[test]
fn init_is_an_ordinary_result_and_its_error_can_be_shown() {
    assert_eq!(driver_available(), load_error().is_none());
    match cust::init(CudaFlags::empty()) {
        Ok(()) => assert!(driver_available()),
        // With a driver but no device the code is the same.
        Err(error) => {
            assert_eq!(error, CudaError::NoDevice);
            assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn calls_before_any_look_at_the_driver_resolve_too() {
    let version = cust::CudaApiVersion::get();
    match load_error() {
        Some(reason) => {
            assert!(reason.contains("libcuda.so.1"), "{reason}");
            assert_eq!(version, Err(CudaError::NoDevice));
        }
        None => assert!(version.unwrap().major() >= 11),
    }
}

#[test]
fn threads_race_for_the_first_call() {
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(cust::device::Device::num_devices)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    // Without `cuInit` the driver answers 3; without a driver the answer is 100.
    assert!(results.iter().all(|r| *r == results[0]), "{results:?}");
}
