//! The emulator computes what the hardware does, and tells what the hardware leaves undefined.

use cuda_std::emulator::{Address, Fault, FaultKind, Launch, MathFlags, Memory, Space, Use, access};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::warp::*;

/// One CTA.
fn launch(threads: u32, kernel: impl Fn() + Sync) -> Result<(), Fault> {
    launch_with(threads, 0, &Memory::new(), kernel)
}

fn launch_with(
    threads: u32,
    dynamic_shared: usize,
    memory: &Memory<'_>,
    kernel: impl Fn() + Sync,
) -> Result<(), Fault> {
    Launch { ctas: 1, threads, dynamic_shared, math: MathFlags::PRECISE }.run(memory, kernel)
}

fn place(fault: &Fault) -> (u32, u32, u32) {
    (fault.block, fault.warp, fault.lane)
}

fn store(address: Address, index: u32, value: u32) {
    let address = address.as_mut_ptr::<u32>().wrapping_add(index as usize);
    access(Space::Global, Use::Write, address.cast(), 4);
    // SAFETY: `access` ends the thread where the address is not the launch's.
    unsafe { *address = value };
}

fn store_shared(address: *mut u32, value: u32) {
    access(Space::Shared, Use::Write, address.cast(), 4);
    // SAFETY: `access` ends the thread where the address is not in a shared array.
    unsafe { *address = value };
}

fn load_shared(address: *const u32) -> u32 {
    access(Space::Shared, Use::Read, address.cast(), 4);
    // SAFETY: `access` ends the thread where the address is not in a shared array.
    unsafe { *address }
}

fn raise_shared(address: *mut u32, value: u32) {
    access(Space::Shared, Use::Atomic, address.cast(), 4);
    // SAFETY: `access` ends the thread where the address is not in a shared array; threads take turns.
    let number = unsafe { &mut *address };
    *number = value.max(*number);
}

/// What every lane of one full warp returns.
fn warp(compute: impl Fn(u32) -> u32 + Sync) -> [u32; 32] {
    let mut out = [0; 32];
    let mut memory = Memory::new();
    let address = memory.writable("out", &mut out);
    launch_with(32, 0, &memory, || store(address, lane_id(), compute(lane_id()))).unwrap();
    out
}

#[test]
fn threads_know_where_they_are() {
    let mut out = [0_u32; 3 * 40];
    let mut memory = Memory::new();
    let address = memory.writable("out", &mut out);
    let grid = Launch { ctas: 3, threads: 40, dynamic_shared: 0, math: MathFlags::PRECISE };
    grid.run(&memory, || {
        let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
        assert_eq!((thread::grid_dim_x(), thread::block_dim_x(), lane_id()), (3, 40, thread % 32));
        store(address, block * 40 + thread, 100 * block + thread);
    })
    .unwrap();
    assert!((0..120).all(|i| out[i as usize] == 100 * (i / 40) + i % 40));
}

#[test]
fn shuffles_in_segments() {
    // SAFETY: all lanes are here. The same for every call below.
    let up = warp(|lane| unsafe { warp_shuffle_up(FULL_MASK, lane, 3, 32).0 });
    assert!((0..32).all(|lane| up[lane as usize] == if lane < 3 { lane } else { lane - 3 }));
    // SAFETY: all lanes are here.
    let down = warp(|lane| unsafe { warp_shuffle_down(FULL_MASK, lane, 3, 16).0 });
    assert!((0..32).all(|lane| down[lane as usize] == if lane % 16 > 12 { lane } else { lane + 3 }));
    // SAFETY: all lanes are here.
    let idx = warp(|lane| unsafe { warp_shuffle_idx(FULL_MASK, lane, 5, 8).0 });
    assert!((0..32).all(|lane| idx[lane as usize] == lane / 8 * 8 + 5));
    // SAFETY: all lanes are here.
    let xor = warp(|lane| unsafe { warp_shuffle_xor(FULL_MASK, lane, 6, 32).0 });
    assert!((0..32).all(|lane| xor[lane as usize] == lane ^ 6));
    // SAFETY: all lanes are here.
    let inside = warp(|lane| unsafe { warp_shuffle_up(FULL_MASK, lane, 1, 4).1 } as u32);
    assert!((0..32).all(|lane| inside[lane as usize] == u32::from(lane % 4 != 0)));
    // SAFETY: all lanes are here; the source differs between them.
    let rotated = warp(|lane| unsafe { warp_shuffle_idx(FULL_MASK, lane, lane + 1, 32).0 });
    assert!((0..32).all(|lane| rotated[lane as usize] == (lane + 1) % 32));
}

#[test]
fn votes_and_reductions() {
    // SAFETY: all lanes are here. The same for every call below.
    let ballot = warp(|lane| unsafe { warp_vote_ballot(FULL_MASK, lane % 3 == 0) });
    assert_eq!(ballot, [(0..32).filter(|l| l % 3 == 0).map(|l| 1 << l).sum::<u32>(); 32]);
    // SAFETY: all lanes are here.
    let all = warp(|lane| unsafe { warp_vote_all(FULL_MASK, lane < 31) } as u32);
    assert_eq!(all, [0; 32]);
    // SAFETY: all lanes are here.
    let any = warp(|lane| unsafe { warp_vote_any(FULL_MASK, lane == 31) } as u32);
    assert_eq!(any, [1; 32]);
    let modes = [
        (WarpReductionMode::Add, (7..39).sum()),
        (WarpReductionMode::Min, 7),
        (WarpReductionMode::Max, 38),
        (WarpReductionMode::And, (7..39).fold(u32::MAX, |a, b| a & b)),
        (WarpReductionMode::Or, (7..39).fold(0, |a, b| a | b)),
        (WarpReductionMode::Xor, (7..39).fold(0, |a, b| a ^ b)),
    ];
    for (mode, expected) in modes {
        // SAFETY: all lanes are here.
        assert_eq!(warp(|lane| unsafe { warp_reduce(FULL_MASK, lane + 7, mode) }), [expected; 32], "{mode:?}");
    }
    let float = |lane: u32| if lane == 3 { f32::NAN } else { lane as f32 };
    // SAFETY: all lanes are here.
    let max = warp(|lane| unsafe { warp_reduce_max_f32(FULL_MASK, float(lane)) }.to_bits());
    assert_eq!(max, [31_f32.to_bits(); 32]);
}

#[test]
fn halves_of_a_warp_work_apart() {
    let sums = warp(|lane| {
        let mask = if lane < 16 { 0xFFFF } else { 0xFFFF_0000 };
        if lane < 16 {
            // SAFETY: the lanes of each mask are in the same arm.
            unsafe { warp_reduce(mask, lane, WarpReductionMode::Add) }
        } else {
            // SAFETY: as above.
            unsafe { warp_reduce(mask, 1, WarpReductionMode::Add) }
        }
    });
    assert_eq!(sums[..16], [120; 16]);
    assert_eq!(sums[16..], [16; 16]);
}

#[test]
fn shared_arrays_belong_to_one_cta_and_pass_barriers() {
    let mut out = [0_u32; 4 * 64];
    let mut memory = Memory::new();
    let address = memory.writable("out", &mut out);
    let grid = Launch { ctas: 4, threads: 64, dynamic_shared: 256, math: MathFlags::PRECISE };
    grid.run(&memory, || {
        let (block, t) = (thread::block_idx_x(), thread::thread_idx_x());
        let (fixed, dynamic) = (shared_array![u32; 64], dynamic_shared_mem::<u32>());
        store_shared(fixed.wrapping_add(t as usize), 1000 * block + t);
        store_shared(dynamic.wrapping_add(t as usize), t);
        thread::sync_threads();
        let (a, b) =
            (load_shared(fixed.wrapping_add(63 - t as usize)), load_shared(dynamic.wrapping_add(t as usize ^ 1)));
        store(address, block * 64 + t, a + b);
    })
    .unwrap();
    assert!((0..256).all(|i| out[i as usize] == 1000 * (i / 64) + 63 - i % 64 + ((i % 64) ^ 1)));
}

#[test]
fn one_cta_of_a_grid_too_large_to_run() {
    let mut out = [0_u32; 64];
    let mut memory = Memory::new();
    let address = memory.writable("out", &mut out);
    let grid = Launch { ctas: u32::MAX, threads: 64, dynamic_shared: 0, math: MathFlags::PRECISE };
    let last = u32::MAX - 1;
    grid.run_cta(last, &memory, || store(address, thread::thread_idx_x(), thread::block_idx_x())).unwrap();
    assert_eq!(out, [last; 64]);
    let fault = grid.run_cta(7, &Memory::new(), || panic!("planted")).unwrap_err();
    assert_eq!(place(&fault), (7, 0, 0));
}

#[test]
fn math_flags_are_the_launchs() {
    for math in [MathFlags::FAST, MathFlags::PRECISE] {
        let grid = Launch { ctas: 1, threads: 1, dynamic_shared: 0, math };
        grid.run(&Memory::new(), || assert_eq!(cuda_std::emulator::math_flags(), math)).unwrap();
    }
}

// Every diagnosis, with its fault planted.

#[test]
fn barrier_in_a_divergent_branch() {
    let fault = launch(64, || {
        if thread::thread_idx_x() < 40 {
            thread::sync_threads();
        }
    });
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::DivergentBarrier { waiting: 40, threads: 64, .. }), "{fault}");
    assert_eq!(place(&fault), (0, 0, 0));
}

#[test]
fn two_barriers_in_two_branches() {
    let other = thread::sync_threads;
    let fault = launch(64, || if lane_id() == 5 { other() } else { thread::sync_threads() });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::DivergentBarrier { waiting: 62, threads: 64, .. }));
}

#[test]
fn warp_operation_without_a_lane() {
    let fault = launch(64, || {
        if thread::thread_idx_x() != 37 {
            // SAFETY: planted: lane 5 of warp 1 is missing.
            unsafe { warp_shuffle_xor(FULL_MASK, 0_u32, 1, 32) };
        }
    });
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::MissingLanes { mask: FULL_MASK, missing: 0x20, .. }), "{fault}");
    assert_eq!((fault.block, fault.warp), (0, 1));
}

#[test]
fn warp_operation_beyond_the_cta() {
    // SAFETY: planted: a CTA of 16 threads has no lanes 16 to 31.
    let fault = launch(16, || unsafe { sync_warp(FULL_MASK) });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::MissingLanes { missing: 0xFFFF_0000, .. }));
}

#[test]
fn warp_operation_against_a_barrier() {
    let fault = launch(32, || {
        if lane_id() == 0 {
            thread::sync_threads();
        } else {
            // SAFETY: planted: lane 0 waits elsewhere.
            unsafe { sync_warp(FULL_MASK) };
        }
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::MissingLanes { missing: 1, .. }));
}

#[test]
fn caller_outside_its_mask() {
    // SAFETY: planted: lane 0 is not in the mask.
    let fault = launch(32, || unsafe { sync_warp(0xFFFF_FFFE) });
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::NotInMask { mask: 0xFFFF_FFFE, .. }), "{fault}");
}

#[test]
fn shuffle_from_a_lane_outside_the_mask() {
    let fault = launch(32, || {
        if lane_id() < 16 {
            // SAFETY: planted: lane 16 does not take part.
            unsafe { warp_shuffle_xor(0xFFFF, 0_u32, 16, 32) };
        }
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::ShuffleSource { source: 16, mask: 0xFFFF, .. }));
}

#[test]
fn shuffle_of_an_odd_width() {
    let fault = launch(32, || {
        // SAFETY: planted: 12 is no power of two.
        unsafe { warp_shuffle_xor(FULL_MASK, 0_u32, 1, 12) };
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::ShuffleWidth { width: 12, .. }));
}

#[test]
fn global_access_out_of_range() {
    let (x, mut out) = ([1_u32; 8], [0_u32; 8]);
    let mut memory = Memory::new();
    let address = memory.writable("out", &mut out);
    memory.read_only("x", &x);
    let grid = Launch { ctas: 3, threads: 4, dynamic_shared: 0, math: MathFlags::PRECISE };
    let fault =
        grid.run(&memory, || store(address, 4 * thread::block_idx_x() + thread::thread_idx_x(), 0)).unwrap_err();
    let FaultKind::OutOfRange { space: Space::Global, access: Use::Write, bytes: 4, .. } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!(place(&fault), (2, 0, 0));
}

#[test]
fn global_access_across_the_end() {
    let x = [0_u8; 30];
    let mut memory = Memory::new();
    let address = memory.read_only("x", &x);
    let fault = launch_with(1, 0, &memory, || {
        access(Space::Global, Use::Read, address.as_ptr::<u8>().wrapping_add(28), 4);
    });
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfRange { offset: 28, len: 30, .. }), "{fault}");
}

#[test]
fn misaligned_access() {
    let x = [0_u128; 2];
    let mut memory = Memory::new();
    let address = memory.read_only("x", &x);
    let fault = launch_with(1, 0, &memory, || {
        access(Space::Global, Use::Read, address.as_ptr::<u8>().wrapping_add(8), 16);
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::Misaligned { bytes: 16, remainder: 8, .. }));
    let fault = launch(1, || {
        let array = shared_array![u32; 4];
        access(Space::Shared, Use::Write, array.cast::<u8>().wrapping_add(2), 4);
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::Misaligned { space: Space::Shared, remainder: 2, .. }));
}

#[test]
fn write_to_an_input() {
    let x = [0_u32; 4];
    let mut memory = Memory::new();
    let address = memory.read_only("x", &x);
    let fault = launch_with(1, 0, &memory, || store(address, 1, 7)).unwrap_err();
    assert!(matches!(&fault.kind, FaultKind::ReadOnly { buffer, offset: 4 } if buffer == "x"), "{fault}");
}

#[test]
fn shared_access_out_of_range() {
    let fault = launch(33, || store_shared(shared_array![u32; 32].wrapping_add(thread::thread_idx_x() as usize), 0));
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfRange { space: Space::Shared, offset: 128, len: 128, .. }), "{fault}");
    assert_eq!(place(&fault), (0, 1, 0));
    let fault = launch_with(1, 16, &Memory::new(), || store_shared(dynamic_shared_mem::<u32>().wrapping_add(4), 0));
    assert!(matches!(fault.unwrap_err().kind, FaultKind::OutOfRange { space: Space::Shared, len: 16, .. }));
}

#[test]
fn race_of_two_writes() {
    let fault = launch(32, || {
        let array = shared_array![u32; 32];
        store_shared(array.wrapping_add(lane_id() as usize / 2), 1);
        thread::sync_threads();
        load_shared(array.wrapping_add(lane_id() as usize));
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::Race { .. }));
}

#[test]
fn shared_read_before_any_write() {
    let fault = launch(32, || {
        let array = shared_array![u32; 32];
        if lane_id().is_multiple_of(2) {
            store_shared(array.wrapping_add(lane_id() as usize), 1);
        }
        thread::sync_threads();
        load_shared(array.wrapping_add(lane_id() as usize));
    });
    let fault = fault.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Uninitialised { offset: 4, bytes: 4 }), "{fault}");
    assert_eq!(place(&fault), (0, 0, 1));
}

#[test]
fn race_without_a_barrier() {
    let kernel = |barrier: bool| {
        move || {
            let word = shared_array![u32; 1];
            if thread::thread_idx_x() == 40 {
                store_shared(word, 1);
            }
            if barrier {
                thread::sync_threads();
            }
            if thread::thread_idx_x() == 50 {
                load_shared(word);
            }
        }
    };
    launch(64, kernel(true)).unwrap();
    let fault = launch(64, kernel(false)).unwrap_err();
    let expected = FaultKind::Race { offset: 0, access: Use::Read, other: Use::Write, thread: Some(40) };
    assert_eq!((fault.kind, fault.warp, fault.lane), (expected, 1, 18));
}

/// Atomic accesses race with everything but each other.
#[test]
fn races_of_atomic_accesses() {
    let kernel = |write_apart: bool, read_apart: bool| {
        move || {
            let word = shared_array![u32; 1];
            if thread::thread_idx_x() == 40 {
                store_shared(word, 1);
            }
            if write_apart {
                thread::sync_threads();
            }
            raise_shared(word, thread::thread_idx_x());
            if read_apart {
                thread::sync_threads();
            }
            if thread::thread_idx_x() == 63 {
                assert_eq!(load_shared(word), 63);
            }
        }
    };
    launch(64, kernel(true, true)).unwrap();
    let kind = |write_apart, read_apart| launch(64, kernel(write_apart, read_apart)).unwrap_err().kind;
    let FaultKind::Uninitialised { .. } = kind(false, true) else { panic!("the first warp comes before the write") };
    let expected = FaultKind::Race { offset: 0, access: Use::Read, other: Use::Atomic, thread: None };
    assert_eq!(kind(true, false), expected);
    let late_write = launch(64, || {
        let word = shared_array![u32; 1];
        if thread::thread_idx_x() == 0 {
            store_shared(word, 1);
        }
        thread::sync_threads();
        if thread::thread_idx_x() == 50 { store_shared(word, 1) } else { raise_shared(word, 2) }
    });
    let expected = FaultKind::Race { offset: 0, access: Use::Write, other: Use::Atomic, thread: None };
    assert_eq!(late_write.unwrap_err().kind, expected);
}

#[test]
fn race_of_a_write_with_an_earlier_read() {
    let fault = launch(64, || {
        let word = shared_array![u32; 1];
        if thread::thread_idx_x() == 0 {
            store_shared(word, 1);
        }
        thread::sync_threads();
        load_shared(word);
        if thread::thread_idx_x() == 63 {
            store_shared(word, 2);
        }
    });
    assert!(matches!(
        fault.unwrap_err().kind,
        FaultKind::Race { access: Use::Write, other: Use::Read, thread: None, .. }
    ));
}

#[test]
fn warp_barriers_order_their_lanes_only() {
    let kernel = |reader: u32| {
        move || {
            let word = shared_array![u32; 1];
            if thread::thread_idx_x() == 0 {
                store_shared(word, 1);
            }
            // SAFETY: all lanes of both warps are here.
            unsafe { sync_warp(FULL_MASK) };
            if thread::thread_idx_x() == reader {
                load_shared(word);
            }
        }
    };
    launch(64, kernel(31)).unwrap();
    assert!(matches!(launch(64, kernel(32)).unwrap_err().kind, FaultKind::Race { thread: Some(0), .. }));
}

#[test]
fn panic_tells_where() {
    let grid = Launch { ctas: 4, threads: 64, dynamic_shared: 0, math: MathFlags::PRECISE };
    let fault = grid.run(&Memory::new(), || {
        assert!(thread::block_idx_x() < 2 || thread::thread_idx_x() != 33, "planted");
    });
    let fault = fault.unwrap_err();
    assert!(matches!(&fault.kind, FaultKind::Panicked { message } if message == "planted"), "{fault}");
    assert_eq!(place(&fault), (2, 1, 1));
}

#[test]
fn launches_after_a_fault_are_clean() {
    for _ in 0..3 {
        launch(256, || if thread::thread_idx_x() == 0 { panic!("planted") } else { thread::sync_threads() })
            .unwrap_err();
        launch(256, thread::sync_threads).unwrap();
    }
}

/// What a fault leaves suspended is unwound, and its destructors may call device functions.
#[test]
fn destructors_of_a_faulty_launch_may_wait() {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            thread::sync_threads();
            // SAFETY: planted: after a fault nobody comes.
            unsafe { sync_warp(FULL_MASK) };
            assert!(thread::thread_idx_x() < 64);
        }
    }
    for faulty in [0, 3, 63] {
        let fault = launch(64, || {
            let _guard = (thread::thread_idx_x() != faulty).then_some(Guard);
            thread::sync_threads();
            // SAFETY: planted: the faulty thread does not come to it.
            unsafe { sync_warp(if thread::thread_idx_x() == faulty { 0 } else { FULL_MASK }) };
        });
        assert!(fault.is_err());
        launch(64, thread::sync_threads).unwrap();
    }
}

#[test]
fn a_fault_that_the_kernel_catches_is_still_told() {
    let fault = launch(1, || {
        let load = || access(Space::Global, Use::Read, std::ptr::dangling(), 1);
        assert!(std::panic::catch_unwind(load).is_err());
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::OutOfRange { .. }));
}

/// Arrays without elements may have the address of the static that follows them.
#[test]
fn arrays_without_elements_are_arrays_of_their_own() {
    launch_with(32, 128, &Memory::new(), || {
        let lane = lane_id() as usize;
        let (empty, dynamic, fixed) = (shared_array![u32; 0], dynamic_shared_mem::<u32>(), shared_array![u32; 32]);
        store_shared(dynamic.wrapping_add(lane), 1);
        store_shared(fixed.wrapping_add(lane), 2);
        assert!(empty != dynamic && empty != fixed && dynamic != fixed);
        assert_eq!((load_shared(dynamic.wrapping_add(lane)), load_shared(fixed.wrapping_add(lane))), (1, 2));
    })
    .unwrap();
}

#[test]
#[should_panic(expected = "outside a kernel launch")]
fn device_functions_need_a_launch() {
    thread::thread_idx_x();
}
