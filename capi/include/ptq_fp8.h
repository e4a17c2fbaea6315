/* Dynamic per-token FP8 (E4M3) quantization, bit-exact with SGLang's kernels, on NVIDIA GPUs and CPUs.
 *
 * Functions return a ptq_status; ptq_last_error_message() then tells more. Structs begin with their own size: set
 * struct_size to sizeof of the struct, and what you do not use to 0. Linux, x86_64 and aarch64. No CUDA header or library
 * is needed: the driver is opened when it is first used. */

#ifndef PTQ_FP8_H
#define PTQ_FP8_H

/* Made by cbindgen from capi/src; PTQ_UPDATE_HEADER=1 cargo test -p ptq-capi --test header makes it again. */

#include <stddef.h>
#include <stdint.h>

// Major version of this header. Another major version is another ABI.
#define PTQ_VERSION_MAJOR 0

// Minor version of this header. Under major version 0, another minor version is another ABI too; later, a library of a
// higher one also serves programs that were compiled with this header.
#define PTQ_VERSION_MINOR 1

// What a call came to. Unless it is PTQ_STATUS_DRIVER or PTQ_STATUS_INTERNAL, nothing was written or enqueued by a call
// that failed.
typedef enum {
    // Done, or enqueued.
    PTQ_STATUS_OK = 0,
    // A pointer is null that must not be.
    PTQ_STATUS_NULL_POINTER = 1,
    // A handle is not alive: it was destroyed, or never created.
    PTQ_STATUS_INVALID_HANDLE = 2,
    // `struct_size` is not the size of the struct in this library's header.
    PTQ_STATUS_STRUCT_SIZE = 3,
    // A field has a value that it cannot have.
    PTQ_STATUS_INVALID_VALUE = 4,
    // The numbers of rows and of elements do not make up a call, or an operand would not fit the address space.
    PTQ_STATUS_SHAPE = 5,
    // An address is not a multiple of its element's size.
    PTQ_STATUS_MISALIGNED = 6,
    // Two operands share memory.
    PTQ_STATUS_OVERLAP = 7,
    // This library cannot do what was asked for.
    PTQ_STATUS_UNSUPPORTED = 8,
    // There is no CUDA driver.
    PTQ_STATUS_NO_DRIVER = 9,
    // The driver shows no device.
    PTQ_STATUS_NO_DEVICE = 10,
    // No CUDA context is current on the calling thread.
    PTQ_STATUS_NO_CONTEXT = 11,
    // Another CUDA context is current than when the handle was created.
    PTQ_STATUS_CONTEXT_MISMATCH = 12,
    // An operand is not in memory of the handle's device and context.
    PTQ_STATUS_WRONG_MEMORY = 13,
    // An environment variable (PTQ_BACKEND, PTQ_TARGET, PTQ_ARTIFACTS) has a value that cannot be followed.
    PTQ_STATUS_ENVIRONMENT = 14,
    // No kernel could be loaded for the device.
    PTQ_STATUS_LOAD = 15,
    // The CUDA driver reported an error, perhaps of an earlier kernel; a part of the call may be enqueued.
    PTQ_STATUS_DRIVER = 16,
    // A defect of this library.
    PTQ_STATUS_INTERNAL = 17,
} ptq_status;

// Where kernels come from. The bits are the same.
typedef enum {
    // What the environment variable PTQ_BACKEND says. If it is unset: the device, by machine code or else by PTX; the CPU
    // where there is no driver, no device, or a device that is too old.
    PTQ_BACKEND_AUTO = 0,
    // Machine code compiled ahead of time.
    PTQ_BACKEND_AOT = 1,
    // PTX that the driver compiles.
    PTQ_BACKEND_JIT = 2,
    // The CPU; operands are host memory.
    PTQ_BACKEND_CPU = 3,
} ptq_backend;

// Which of the reference's two per-token kernels a call stands for. Only rows whose scale is 0 depend on it.
typedef enum {
    // The reference's choice: its warp kernel from 16 rows per multiprocessor up.
    PTQ_DISPATCH_AUTO = 0,
    // Its warp kernel, which makes such rows zeros.
    PTQ_DISPATCH_WARP = 1,
    // Its CTA kernel, which makes them codes of +-448.
    PTQ_DISPATCH_CTA = 2,
} ptq_dispatch;

// Element type of `x`.
typedef enum {
    // IEEE binary16.
    PTQ_DTYPE_F16 = 1,
    // bfloat16.
    PTQ_DTYPE_BF16 = 2,
    // IEEE binary32.
    PTQ_DTYPE_F32 = 3,
} ptq_dtype;

// Whose scale it is.
typedef enum {
    // One scale per token, computed.
    PTQ_GRANULARITY_PER_TOKEN = 1,
    // One scale for the tensor, computed.
    PTQ_GRANULARITY_PER_TENSOR = 2,
    // One scale for the tensor, given.
    PTQ_GRANULARITY_STATIC = 3,
} ptq_granularity;

// How scale, inverse and product are rounded.
typedef enum {
    // As the reference on the device: fast on compute capability 9.0, else precise. Without a device: precise.
    PTQ_MATH_AUTO = 0,
    // Subnormals flushed, approximate reciprocal: compute capability 9.0 and the CPU alone.
    PTQ_MATH_FAST = 1,
    // Correctly rounded.
    PTQ_MATH_PRECISE = 2,
} ptq_math;

// What becomes of a row, or a tensor, whose scale is 0.
typedef enum {
    // What the reference makes of it, which depends on its dispatch.
    PTQ_ZERO_ROWS_LEGACY = 0,
    // Zeros.
    PTQ_ZERO_ROWS_GUARDED = 1,
} ptq_zero_rows;

// A quantizer. Any thread may use it, several at once too.
//
// On a device it belongs to the CUDA context that was current when it was created (of the CUDA runtime and PyTorch: the
// device's primary context), and each call needs that context current on its thread. It holds no device memory.
//
// The pointer is a number that is looked up and never dereferenced, and no number is given out twice: a call with a
// handle that was destroyed or never created returns PTQ_STATUS_INVALID_HANDLE, always.
typedef struct ptq_quantizer ptq_quantizer;

// One call of ptq_per_token_quant_fp8(). On a device, operands are device memory; on the CPU, host memory.
typedef struct {
    // sizeof(ptq_per_token_args).
    size_t struct_size;
    // A ptq_dtype: the elements of `x`.
    uint32_t dtype;
    // A ptq_zero_rows.
    uint32_t zero_rows;
    // A ptq_dispatch.
    uint32_t dispatch;
    // 0.
    uint32_t reserved;
    // `x[rows, hidden]`, aligned to its element.
    const void *x;
    // `q[rows_out, hidden]`: E4M3 codes, one byte each.
    void *q;
    // `s[rows_out]`: scales, aligned to 4 bytes.
    float *s;
    // Rows of `x`. With 0, the call does nothing and the operands may be null.
    uint64_t rows;
    // Elements per row: a multiple of 4, not 0.
    uint64_t hidden;
    // Rows of `q` and `s`, at least `rows`; those from `rows` on are not touched.
    uint64_t rows_out;
    // Elements between the starts of two rows of `x`. 0: `hidden`.
    uint64_t x_row_stride;
    // Elements between the starts of two rows of `q`. 0: `hidden`.
    uint64_t q_row_stride;
    // What a row's largest magnitude counts as at most. 0: no bound.
    float scale_upper_bound;
    // Least scale. 0: none.
    float min_scale;
    // Address, as of the operands, of the number of rows to quantize, at most `rows`; those after it are not touched. NULL: `rows`.
    const uint32_t *device_rows;
    // A CUstream or cudaStream_t; NULL: the default stream. Means nothing on the CPU.
    void *stream;
} ptq_per_token_args;

// What a quantizer is created with. All zero but `struct_size` is the default.
typedef struct {
    // sizeof(ptq_config).
    size_t struct_size;
    // A ptq_backend.
    uint32_t backend;
    // A ptq_math.
    uint32_t math;
    // Multiprocessors of the device whose zero rows PTQ_ZERO_ROWS_LEGACY keeps. 0: the device's; without one, 132.
    uint32_t sm_count;
    // 0.
    uint32_t reserved;
} ptq_config;

// What ptq_scaled_fp8_quant() writes: `q[rows_out, hidden]` and `scales` scales.
typedef struct {
    // sizeof(ptq_output_shape).
    size_t struct_size;
    // Rows of `q`.
    uint64_t rows_out;
    // Elements per row of `q`.
    uint64_t hidden;
    // Elements of `s`.
    uint64_t scales;
} ptq_output_shape;

// One call of ptq_scaled_fp8_quant(). On a device, operands are device memory; on the CPU, host memory.
typedef struct {
    // sizeof(ptq_scaled_args).
    size_t struct_size;
    // A ptq_dtype: the elements of `x`.
    uint32_t dtype;
    // A ptq_granularity.
    uint32_t granularity;
    // A ptq_zero_rows.
    uint32_t zero_rows;
    // A ptq_dispatch. Means nothing unless scales are per token.
    uint32_t dispatch;
    // `x[rows, hidden]`, aligned to its element.
    const void *x;
    // `q[rows_out, hidden]`: E4M3 codes, one byte each; ptq_scaled_fp8_output_shape() tells `rows_out`.
    void *q;
    // Scales, aligned to 4 bytes: `s[rows_out]` with PTQ_GRANULARITY_PER_TOKEN, else `s[1]`. Read with
    // PTQ_GRANULARITY_STATIC, else written.
    float *s;
    // Rows of `x`. With 0, the call does nothing and the operands may be null.
    uint64_t rows;
    // Elements per row, not 0; a multiple of 4 with PTQ_GRANULARITY_PER_TOKEN.
    uint64_t hidden;
    // Least number of rows of the outputs; those from `rows` on are not touched. 0: none.
    uint64_t num_token_padding;
    // A CUstream or cudaStream_t; NULL: the default stream. Means nothing on the CPU.
    void *stream;
} ptq_scaled_args;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last call on this thread said that returned a status: operand, expected and actual value, what to do. Empty if
// it succeeded. Belongs to the library and is valid until the next such call on this thread.
const char *ptq_last_error_message(void);

// Quantizes `x[rows, hidden]` to E4M3 codes `q[rows_out, hidden]` and scales `s[rows_out]`; q * s dequantizes.
//
// On a device the call enqueues kernels in the stream and returns: it waits for nothing and allocates nothing, and may be
// captured into a graph after ptq_load(). On the CPU it is done when it returns.
//
// Checked: handle, fields, shape, alignment, that no two operands overlap, that the context is the handle's. Not checked:
// that the addresses are of memory of that size which the handle's device can use.
//
// # Safety
// `args` is null, which is an error, or of a variable of its type. Its operands are memory of the size that it says, in
// use by nobody else until the stream has passed the call; its stream exists.
ptq_status ptq_per_token_quant_fp8(const ptq_quantizer *quantizer,
                                   const ptq_per_token_args *args);

// Creates a quantizer and writes its handle to `*quantizer`, which ptq_quantizer_destroy() takes.
//
// Unless the backend is the CPU, a CUDA context must be current on the calling thread where there is a device; else
// PTQ_STATUS_NO_CONTEXT.
//
// # Safety
// Both pointers are null, which is an error, or of variables of their type.
ptq_status ptq_quantizer_create(const ptq_config *config, ptq_quantizer **quantizer);

// Destroys a quantizer. Calls that other threads are in the middle of end as if it were not; kernels that are enqueued
// run. A handle that is null, or destroyed already, is an error.
ptq_status ptq_quantizer_destroy(ptq_quantizer *quantizer);

// Writes to `*config`, whose `struct_size` is set, what the quantizer came to: PTQ_BACKEND_CPU if it is the CPU, else the
// backend that was chosen (PTQ_BACKEND_AUTO: machine code, else PTX), the math mode and the number of multiprocessors.
//
// # Safety
// `config` is null, which is an error, or of a variable of its type.
ptq_status ptq_quantizer_config(const ptq_quantizer *quantizer,
                                ptq_config *config);

// Loads the kernels of every operation for a ptq_dtype, as the first calls would: before a stream is captured into a
// graph, which allows no loading, and to have the time that it takes when a program starts.
ptq_status ptq_load(const ptq_quantizer *quantizer, uint32_t dtype);

// Writes to `*shape`, whose `struct_size` is set, the shape of the outputs of ptq_scaled_fp8_quant() for a
// ptq_granularity and an input of that shape. `num_token_padding` 0: none.
//
// # Safety
// `shape` is null, which is an error, or of a variable of its type.
ptq_status ptq_scaled_fp8_output_shape(uint32_t granularity,
                                       uint64_t rows,
                                       uint64_t hidden,
                                       uint64_t num_token_padding,
                                       ptq_output_shape *shape);

// Quantizes `x[rows, hidden]` to E4M3 codes with a scale per token or per tensor, computed or given. As
// ptq_per_token_quant_fp8() in all that its arguments do not tell.
//
// # Safety
// As ptq_per_token_quant_fp8().
ptq_status ptq_scaled_fp8_quant(const ptq_quantizer *quantizer, const ptq_scaled_args *args);

// What a status means, in general: a static string. Any number may be asked about. ptq_last_error_message() tells what
// happened.
const char *ptq_status_message(int32_t status);

// Version of the library that is loaded: 65536 times the major version plus the minor version.
uint32_t ptq_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PTQ_FP8_H */
