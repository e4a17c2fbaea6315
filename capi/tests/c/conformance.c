/* Runs recorded calls through the library and compares every byte.
 *
 * conformance FILE. A record of FILE, numbers little-endian: dtype, math, zero_rows, dispatch, sm_count, granularity, length
 * of the name: u32 each; rows, hidden, rows_out: u64 each; the name; x; q and s as they must be afterwards, rows beyond
 * `rows` included. */
#include "ptq_fp8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };

static FILE *file;

static void need(void *into, size_t bytes) {
    if (fread(into, 1, bytes, file) != bytes) {
        fprintf(stderr, "the file of calls ends within one\n");
        exit(2);
    }
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}

/* What an output holds before: wrong in every bit of `rows` rows, and right after them, so that a byte that is not
 * written and one that is written but must not be are both seen. */
static void poison(unsigned char *out, const unsigned char *want, size_t written, size_t bytes) {
    memcpy(out, want, bytes);
    for (size_t i = 0; i < written; i++) out[i] = (unsigned char)~out[i];
    memset(out + bytes, 0xA5, GUARD);
}

static int differs(const char *name, const char *entry, const char *operand, const unsigned char *out,
                   const unsigned char *want, size_t bytes) {
    for (size_t i = 0; i < bytes + GUARD; i++) {
        unsigned char expected = i < bytes ? want[i] : 0xA5;
        if (out[i] != expected) {
            fprintf(stderr, "%s, %s: byte %zu of %s is %#04x, expected %#04x\n", name, entry, i, operand, out[i], expected);
            return 1;
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 2 || (file = fopen(arguments[1], "rb")) == NULL) {
        fprintf(stderr, "conformance FILE\n");
        return 2;
    }
    if (ptq_version() != (PTQ_VERSION_MAJOR << 16 | PTQ_VERSION_MINOR)) {
        fprintf(stderr, "the library is version %#x, not the header's\n", (unsigned)ptq_version());
        return 1;
    }
    unsigned calls = 0, failed = 0;
    uint32_t head[7];
    while (fread(head, sizeof head, 1, file) == 1) {
        uint64_t shape[3];
        need(shape, sizeof shape);
        char *name = allocate(head[6] + 1);
        need(name, head[6]);
        name[head[6]] = 0;
        uint64_t rows = shape[0], hidden = shape[1], rows_out = shape[2];
        size_t width = head[0] == PTQ_DTYPE_F32 ? 4 : 2;
        size_t x_bytes = rows * hidden * width, q_bytes = rows_out * hidden;
        const int per_token = head[5] == PTQ_GRANULARITY_PER_TOKEN;
        uint64_t scales = per_token ? rows_out : 1;
        uint64_t written = per_token ? rows : rows > 0 && head[5] != PTQ_GRANULARITY_STATIC;
        size_t s_bytes = scales * sizeof(float);
        unsigned char *x = allocate(x_bytes), *want_q = allocate(q_bytes), *want_s = allocate(s_bytes);
        unsigned char *q = allocate(q_bytes + GUARD), *s = allocate(s_bytes + GUARD);
        need(x, x_bytes);
        need(want_q, q_bytes);
        need(want_s, s_bytes);

        ptq_config config = {
            .struct_size = sizeof config, .backend = PTQ_BACKEND_CPU, .math = head[1], .sm_count = head[4]};
        ptq_quantizer *quantizer = NULL;
        ptq_status status = ptq_quantizer_create(&config, &quantizer);
        ptq_config came_to = {.struct_size = sizeof came_to};
        if (status == PTQ_STATUS_OK) status = ptq_quantizer_config(quantizer, &came_to);
        if (status == PTQ_STATUS_OK && memcmp(&config, &came_to, sizeof config) != 0) {
            fprintf(stderr, "%s: the quantizer came to something else than it was told\n", name);
            failed++;
        }
        if (status == PTQ_STATUS_OK) status = ptq_load(quantizer, head[0]);
        for (int scaled = !per_token; scaled < 2 && status == PTQ_STATUS_OK; scaled++) {
            poison(q, want_q, rows * hidden, q_bytes);
            poison(s, want_s, written * sizeof(float), s_bytes);
            if (scaled) {
                ptq_output_shape out = {.struct_size = sizeof out};
                status = ptq_scaled_fp8_output_shape(head[5], rows, hidden, rows_out, &out);
                if (status == PTQ_STATUS_OK &&
                    (out.rows_out != rows_out || out.hidden != hidden || out.scales != scales)) {
                    fprintf(stderr, "%s: the shape of the outputs is wrong\n", name);
                    failed++;
                }
                ptq_scaled_args args = {.struct_size = sizeof args, .dtype = head[0],
                    .granularity = head[5], .zero_rows = head[2], .dispatch = head[3], .x = x, .q = q,
                    .s = (float *)(void *)s, .rows = rows, .hidden = hidden, .num_token_padding = rows_out};
                if (status == PTQ_STATUS_OK) status = ptq_scaled_fp8_quant(quantizer, &args);
            } else {
                ptq_per_token_args args = {.struct_size = sizeof args, .dtype = head[0], .zero_rows = head[2],
                    .dispatch = head[3], .x = x, .q = q, .s = (float *)(void *)s, .rows = rows, .hidden = hidden,
                    .rows_out = rows_out};
                status = ptq_per_token_quant_fp8(quantizer, &args);
            }
            const char *entry = scaled ? "scaled" : "per token";
            calls++;
            failed += status == PTQ_STATUS_OK && (differs(name, entry, "q", q, want_q, q_bytes) ||
                                                  differs(name, entry, "s", s, want_s, s_bytes));
        }
        if (status == PTQ_STATUS_OK) status = ptq_quantizer_destroy(quantizer);
        if (status != PTQ_STATUS_OK) {
            fprintf(stderr, "%s: %s: %s\n", name, ptq_status_message(status), ptq_last_error_message());
            failed++;
        }
        free(name), free(x), free(want_q), free(want_s), free(q), free(s);
    }
    printf("%u calls, %u failures\n", calls, failed);
    return failed > 0 || calls == 0;
}
