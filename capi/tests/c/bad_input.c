/* Every field of every entry with values that it must not have: an error that names the field, and nothing is written. */
#include "ptq_fp8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

/* Counts one check: the status, and a word that the message must hold. */
static void expect(const char *what, ptq_status actual, ptq_status expected, const char *word) {
    const char *message = ptq_last_error_message();
    checks++;
    if (actual == expected && strstr(message, word) != NULL && (*message != 0) == (expected != PTQ_STATUS_OK)) return;
    failures++;
    fprintf(stderr, "%s: status %d (%s), expected %d and '%s' in: %s\n", what, (int)actual, ptq_status_message(actual),
            (int)expected, word, message);
}

/* Operands of two rows of eight, with room. */
static union {
    unsigned char bytes[1024];
    uint64_t aligned;
} memory;

enum { X = 0, Q = 256, S = 512 };

static ptq_quantizer *quantizer;

static void untouched(const char *what) {
    for (size_t i = 0; i < sizeof memory.bytes; i++) {
        if (memory.bytes[i] != 0x3C) {
            failures++;
            fprintf(stderr, "%s: byte %zu was written\n", what, i);
            return;
        }
    }
}

static ptq_per_token_args per_token(void) {
    ptq_per_token_args args = {.struct_size = sizeof args, .dtype = PTQ_DTYPE_F32, .x = memory.bytes + X,
        .q = memory.bytes + Q, .s = (float *)(void *)(memory.bytes + S), .rows = 2, .hidden = 8, .rows_out = 2};
    return args;
}

static ptq_scaled_args scaled(void) {
    ptq_scaled_args args = {.struct_size = sizeof args, .dtype = PTQ_DTYPE_F32, .granularity = PTQ_GRANULARITY_PER_TOKEN,
        .x = memory.bytes + X, .q = memory.bytes + Q, .s = (float *)(void *)(memory.bytes + S), .rows = 2, .hidden = 8};
    return args;
}

static ptq_scaled_args per_tensor(void) {
    ptq_scaled_args args = scaled();
    args.granularity = PTQ_GRANULARITY_PER_TENSOR;
    return args;
}

static ptq_scaled_args static_(void) {
    ptq_scaled_args args = scaled();
    args.granularity = PTQ_GRANULARITY_STATIC;
    return args;
}

/* One call with `field` of its arguments set. */
#define BAD(entry, args_of, field, value, status, word)                                \
    do {                                                                               \
        __typeof__(args_of()) args = args_of();                                        \
        args.field = (value);                                                          \
        expect(#entry "." #field " = " #value, entry(quantizer, &args), status, word); \
        untouched(#entry "." #field " = " #value);                                     \
    } while (0)

#define PER_TOKEN(field, value, status, word) BAD(ptq_per_token_quant_fp8, per_token, field, value, status, word)
#define SCALED(field, value, status, word) BAD(ptq_scaled_fp8_quant, scaled, field, value, status, word)
/* With one scale for the tensor, computed and given. */
#define PER_TENSOR(field, value, status, word)                              \
    do {                                                                    \
        BAD(ptq_scaled_fp8_quant, per_tensor, field, value, status, word);  \
        BAD(ptq_scaled_fp8_quant, static_, field, value, status, word);     \
    } while (0)
/* Fields that both entries have. */
#define BOTH(field, value, status, word)      \
    do {                                      \
        PER_TOKEN(field, value, status, word); \
        SCALED(field, value, status, word);    \
    } while (0)

static void create(void) {
    ptq_quantizer *const before = (ptq_quantizer *)(void *)&memory;
    ptq_quantizer *handle = before;
#define CREATE(field, value, status)                                                                             \
    do {                                                                                                         \
        ptq_config config = {.struct_size = sizeof config, .backend = PTQ_BACKEND_CPU};                          \
        config.field = (value);                                                                                  \
        expect("ptq_config." #field " = " #value, ptq_quantizer_create(&config, &handle), status, "ptq_config." #field); \
    } while (0)
    CREATE(struct_size, 0, PTQ_STATUS_STRUCT_SIZE);
    CREATE(struct_size, sizeof(size_t), PTQ_STATUS_STRUCT_SIZE);
    CREATE(struct_size, sizeof config - 1, PTQ_STATUS_STRUCT_SIZE);
    CREATE(struct_size, sizeof config + 8, PTQ_STATUS_STRUCT_SIZE);
    CREATE(struct_size, SIZE_MAX, PTQ_STATUS_STRUCT_SIZE);
    CREATE(backend, 4, PTQ_STATUS_INVALID_VALUE);
    CREATE(backend, UINT32_MAX, PTQ_STATUS_INVALID_VALUE);
    CREATE(math, 3, PTQ_STATUS_INVALID_VALUE);
    CREATE(math, UINT32_MAX, PTQ_STATUS_INVALID_VALUE);
    CREATE(reserved, 1, PTQ_STATUS_INVALID_VALUE);

    ptq_config config = {.struct_size = sizeof config, .backend = PTQ_BACKEND_CPU};
    union {
        unsigned char bytes[sizeof config + 8];
        uint64_t aligned;
    } off;
    memcpy(off.bytes + 1, &config, sizeof config);
    expect("config NULL", ptq_quantizer_create(NULL, &handle), PTQ_STATUS_NULL_POINTER, "ptq_config");
    expect("config misaligned", ptq_quantizer_create((const ptq_config *)(const void *)(off.bytes + 1), &handle),
           PTQ_STATUS_MISALIGNED, "ptq_config");
    expect("quantizer NULL", ptq_quantizer_create(&config, NULL), PTQ_STATUS_NULL_POINTER, "quantizer");
    expect("quantizer misaligned", ptq_quantizer_create(&config, (ptq_quantizer **)(void *)(off.bytes + 1)),
           PTQ_STATUS_MISALIGNED, "quantizer");

    config.backend = PTQ_BACKEND_AUTO;
    setenv("PTQ_BACKEND", "gpu", 1);
    expect("PTQ_BACKEND=gpu", ptq_quantizer_create(&config, &handle), PTQ_STATUS_ENVIRONMENT, "PTQ_BACKEND");
    unsetenv("PTQ_BACKEND");
    /* No context is current, whatever the machine has. */
    config.backend = PTQ_BACKEND_JIT;
    ptq_status status = ptq_quantizer_create(&config, &handle);
    ptq_status expected = status == PTQ_STATUS_NO_DRIVER || status == PTQ_STATUS_NO_DEVICE ? status : PTQ_STATUS_NO_CONTEXT;
    expect("a device without a context", status, expected, "CUDA");

    if (handle != before) {
        failures++;
        fprintf(stderr, "a failed ptq_quantizer_create wrote a handle\n");
    }
}

static void handles(void) {
    ptq_config config = {.struct_size = sizeof config, .backend = PTQ_BACKEND_CPU};
    ptq_quantizer *destroyed = NULL, *next = NULL;
    expect("create", ptq_quantizer_create(&config, &destroyed), PTQ_STATUS_OK, "");
    expect("destroy", ptq_quantizer_destroy(destroyed), PTQ_STATUS_OK, "");
    /* One that lives where the other died. */
    expect("create again", ptq_quantizer_create(&config, &next), PTQ_STATUS_OK, "");
    const struct {
        const char *what;
        ptq_quantizer *handle;
        ptq_status status;
    } bad[] = {
        {"NULL", NULL, PTQ_STATUS_NULL_POINTER},
        {"destroyed", destroyed, PTQ_STATUS_INVALID_HANDLE},
        {"an object of another type", (ptq_quantizer *)(void *)&memory, PTQ_STATUS_INVALID_HANDLE},
        {"1", (ptq_quantizer *)(uintptr_t)1, PTQ_STATUS_INVALID_HANDLE},
        {"-1", (ptq_quantizer *)UINTPTR_MAX, PTQ_STATUS_INVALID_HANDLE},
        {"beyond the last", (ptq_quantizer *)((uintptr_t)next + 1), PTQ_STATUS_INVALID_HANDLE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ptq_per_token_args args = per_token();
        ptq_scaled_args more = scaled();
        const char *word = "ptq_quantizer";
        expect(bad[i].what, ptq_per_token_quant_fp8(bad[i].handle, &args), bad[i].status, word);
        expect(bad[i].what, ptq_scaled_fp8_quant(bad[i].handle, &more), bad[i].status, word);
        expect(bad[i].what, ptq_load(bad[i].handle, PTQ_DTYPE_F16), bad[i].status, word);
        expect(bad[i].what, ptq_quantizer_config(bad[i].handle, &config), bad[i].status, word);
        expect(bad[i].what, ptq_quantizer_destroy(bad[i].handle), bad[i].status, word);
        untouched(bad[i].what);
    }
    expect("destroy the next", ptq_quantizer_destroy(next), PTQ_STATUS_OK, "");
}

static void fields(void) {
    const float nan = 0.0f / 0.0f;
    BOTH(struct_size, 0, PTQ_STATUS_STRUCT_SIZE, "struct_size");
    BOTH(struct_size, sizeof(size_t), PTQ_STATUS_STRUCT_SIZE, "struct_size");
    BOTH(struct_size, sizeof args - 8, PTQ_STATUS_STRUCT_SIZE, "struct_size");
    BOTH(struct_size, sizeof args + 8, PTQ_STATUS_STRUCT_SIZE, "struct_size");
    BOTH(dtype, 0, PTQ_STATUS_INVALID_VALUE, "dtype");
    BOTH(dtype, 4, PTQ_STATUS_INVALID_VALUE, "dtype");
    BOTH(dtype, UINT32_MAX, PTQ_STATUS_INVALID_VALUE, "dtype");
    BOTH(zero_rows, 2, PTQ_STATUS_INVALID_VALUE, "zero_rows");
    BOTH(zero_rows, UINT32_MAX, PTQ_STATUS_INVALID_VALUE, "zero_rows");
    BOTH(dispatch, 3, PTQ_STATUS_INVALID_VALUE, "dispatch");
    BOTH(dispatch, UINT32_MAX, PTQ_STATUS_INVALID_VALUE, "dispatch");
    PER_TOKEN(reserved, 1, PTQ_STATUS_INVALID_VALUE, "reserved");
    SCALED(granularity, 0, PTQ_STATUS_INVALID_VALUE, "granularity");
    SCALED(granularity, 4, PTQ_STATUS_INVALID_VALUE, "granularity");

    BOTH(x, NULL, PTQ_STATUS_NULL_POINTER, "`x`");
    BOTH(q, NULL, PTQ_STATUS_NULL_POINTER, "`q`");
    BOTH(s, NULL, PTQ_STATUS_NULL_POINTER, "`s`");
    BOTH(x, memory.bytes + X + 2, PTQ_STATUS_MISALIGNED, "`x`");
    BOTH(s, (float *)(void *)(memory.bytes + S + 1), PTQ_STATUS_MISALIGNED, "`s`");
    BOTH(s, (float *)(void *)(memory.bytes + S + 2), PTQ_STATUS_MISALIGNED, "`s`");
    BOTH(q, memory.bytes + X, PTQ_STATUS_OVERLAP, "`x` and `q`");
    BOTH(q, memory.bytes + X + 63, PTQ_STATUS_OVERLAP, "`x` and `q`");
    BOTH(s, (float *)(void *)(memory.bytes + X + 60), PTQ_STATUS_OVERLAP, "`x` and `s`");
    BOTH(s, (float *)(void *)(memory.bytes + Q + 12), PTQ_STATUS_OVERLAP, "`q` and `s`");

    BOTH(hidden, 0, PTQ_STATUS_SHAPE, "`hidden` is 0");
    BOTH(hidden, 2, PTQ_STATUS_SHAPE, "`hidden` is 2");
    BOTH(hidden, 9, PTQ_STATUS_SHAPE, "`hidden` is 9");
    BOTH(hidden, UINT64_MAX - 3, PTQ_STATUS_SHAPE, "address space");
    BOTH(hidden, UINT64_C(1) << 62, PTQ_STATUS_SHAPE, "address space");
    PER_TOKEN(rows, 3, PTQ_STATUS_SHAPE, "at least the input's 3");
    PER_TOKEN(rows, UINT64_MAX, PTQ_STATUS_SHAPE, "at least the input's");
    PER_TOKEN(rows_out, 1, PTQ_STATUS_SHAPE, "at least the input's 2");
    PER_TOKEN(rows_out, 0, PTQ_STATUS_SHAPE, "at least the input's 2");
    PER_TOKEN(rows_out, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    SCALED(rows, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    SCALED(num_token_padding, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");

    PER_TOKEN(x_row_stride, 7, PTQ_STATUS_SHAPE, "row stride of `x`");
    PER_TOKEN(x_row_stride, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    PER_TOKEN(x_row_stride, 64, PTQ_STATUS_OVERLAP, "`x` and `q`");
    PER_TOKEN(q_row_stride, 7, PTQ_STATUS_SHAPE, "row stride of `q`");
    PER_TOKEN(q_row_stride, UINT64_C(1) << 62, PTQ_STATUS_SHAPE, "address space");
    PER_TOKEN(q_row_stride, 256, PTQ_STATUS_OVERLAP, "`q` and `s`");
    PER_TOKEN(scale_upper_bound, -1.0f, PTQ_STATUS_INVALID_VALUE, "scale_upper_bound");
    PER_TOKEN(scale_upper_bound, nan, PTQ_STATUS_INVALID_VALUE, "scale_upper_bound");
    PER_TOKEN(scale_upper_bound, 1.0f / 0.0f, PTQ_STATUS_INVALID_VALUE, "scale_upper_bound");
    PER_TOKEN(min_scale, -1.0f, PTQ_STATUS_INVALID_VALUE, "min_scale");
    PER_TOKEN(min_scale, nan, PTQ_STATUS_INVALID_VALUE, "min_scale");
    PER_TOKEN(min_scale, 1.0f / 0.0f, PTQ_STATUS_INVALID_VALUE, "min_scale");
    PER_TOKEN(device_rows, (const uint32_t *)(const void *)(memory.bytes + 1022), PTQ_STATUS_MISALIGNED, "device_rows");

    PER_TENSOR(x, NULL, PTQ_STATUS_NULL_POINTER, "`x`");
    PER_TENSOR(q, NULL, PTQ_STATUS_NULL_POINTER, "`q`");
    PER_TENSOR(s, NULL, PTQ_STATUS_NULL_POINTER, "`s`");
    PER_TENSOR(x, memory.bytes + X + 2, PTQ_STATUS_MISALIGNED, "`x`");
    PER_TENSOR(s, (float *)(void *)(memory.bytes + S + 1), PTQ_STATUS_MISALIGNED, "`s`");
    PER_TENSOR(q, memory.bytes + X + 63, PTQ_STATUS_OVERLAP, "`x` and `q`");
    PER_TENSOR(s, (float *)(void *)(memory.bytes + X + 60), PTQ_STATUS_OVERLAP, "`x` and `s`");
    PER_TENSOR(s, (float *)(void *)(memory.bytes + Q + 12), PTQ_STATUS_OVERLAP, "`q` and `s`");
    PER_TENSOR(hidden, 0, PTQ_STATUS_SHAPE, "`hidden` is 0");
    PER_TENSOR(hidden, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    PER_TENSOR(rows, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    PER_TENSOR(num_token_padding, UINT64_MAX, PTQ_STATUS_SHAPE, "address space");
    PER_TENSOR(dtype, 4, PTQ_STATUS_INVALID_VALUE, "dtype");
    PER_TENSOR(zero_rows, 2, PTQ_STATUS_INVALID_VALUE, "zero_rows");
    PER_TENSOR(dispatch, 3, PTQ_STATUS_INVALID_VALUE, "dispatch");

    const void *off = memory.bytes + 1;
    expect("args NULL", ptq_per_token_quant_fp8(quantizer, NULL), PTQ_STATUS_NULL_POINTER, "ptq_per_token_args");
    expect("args misaligned", ptq_per_token_quant_fp8(quantizer, off), PTQ_STATUS_MISALIGNED, "ptq_per_token_args");
    expect("args NULL", ptq_scaled_fp8_quant(quantizer, NULL), PTQ_STATUS_NULL_POINTER, "ptq_scaled_args");
    expect("args misaligned", ptq_scaled_fp8_quant(quantizer, off), PTQ_STATUS_MISALIGNED, "ptq_scaled_args");
    expect("load 0", ptq_load(quantizer, 0), PTQ_STATUS_INVALID_VALUE, "dtype");
    expect("load 4", ptq_load(quantizer, 4), PTQ_STATUS_INVALID_VALUE, "dtype");
}

static void written_structs(void) {
    ptq_config config = {.struct_size = sizeof config - 8, .sm_count = 7};
    expect("config NULL", ptq_quantizer_config(quantizer, NULL), PTQ_STATUS_NULL_POINTER, "ptq_config");
    expect("config of another size", ptq_quantizer_config(quantizer, &config), PTQ_STATUS_STRUCT_SIZE, "ptq_config");
    failures += config.sm_count != 7;

    const ptq_granularity per_token = PTQ_GRANULARITY_PER_TOKEN;
    ptq_output_shape shape = {.struct_size = sizeof shape, .rows_out = 7};
    expect("granularity 0", ptq_scaled_fp8_output_shape(0, 2, 8, 0, &shape), PTQ_STATUS_INVALID_VALUE, "granularity");
    expect("granularity 4", ptq_scaled_fp8_output_shape(4, 2, 8, 0, &shape), PTQ_STATUS_INVALID_VALUE, "granularity");
    expect("hidden 0", ptq_scaled_fp8_output_shape(per_token, 2, 0, 0, &shape), PTQ_STATUS_SHAPE, "hidden");
    expect("hidden 6", ptq_scaled_fp8_output_shape(per_token, 2, 6, 0, &shape), PTQ_STATUS_SHAPE, "hidden");
    expect("rows", ptq_scaled_fp8_output_shape(per_token, UINT64_MAX, 8, 0, &shape), PTQ_STATUS_SHAPE, "address space");
    expect("num_token_padding", ptq_scaled_fp8_output_shape(per_token, 2, 8, UINT64_MAX, &shape), PTQ_STATUS_SHAPE,
           "address space");
    expect("shape NULL", ptq_scaled_fp8_output_shape(per_token, 2, 8, 0, NULL), PTQ_STATUS_NULL_POINTER, "ptq_output_shape");
    shape.struct_size = 0;
    expect("shape of another size", ptq_scaled_fp8_output_shape(per_token, 2, 8, 0, &shape), PTQ_STATUS_STRUCT_SIZE,
           "ptq_output_shape");
    failures += shape.rows_out != 7;
}

int main(void) {
    memset(memory.bytes, 0x3C, sizeof memory.bytes);
    ptq_config config = {.struct_size = sizeof config, .backend = PTQ_BACKEND_CPU, .math = PTQ_MATH_PRECISE};
    expect("create", ptq_quantizer_create(&config, &quantizer), PTQ_STATUS_OK, "");
    create();
    handles();
    fields();
    written_structs();
    untouched("any of these");

    /* No rows need no operands; and the call that all of these vary is a good one. */
    ptq_per_token_args nothing = {.struct_size = sizeof nothing, .dtype = PTQ_DTYPE_F32, .hidden = 8, .rows_out = 5};
    expect("no rows", ptq_per_token_quant_fp8(quantizer, &nothing), PTQ_STATUS_OK, "");
    ptq_per_token_args args = per_token();
    expect("a good call", ptq_per_token_quant_fp8(quantizer, &args), PTQ_STATUS_OK, "");
    if (memory.bytes[Q] == 0x3C || memory.bytes[S] == 0x3C) {
        failures++;
        fprintf(stderr, "a good call wrote nothing\n");
    }
    expect("destroy", ptq_quantizer_destroy(quantizer), PTQ_STATUS_OK, "");
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0;
}
