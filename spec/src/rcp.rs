//! `rcp.approx.ftz.f32` of compute capability 9.0 as an integer function.
//!
//! Quadratic interpolation in 128 segments of the mantissa, with the square's partial products below 2^17 dropped.
//! Source: measured; no difference to the hardware on all 2^32 inputs of an H200. The CPU implementation and the host
//! build of the kernels read it, so that fast mode gives the same bits without a GPU.

const SEGMENTS: usize = 128;
const MANTISSA_BITS: u32 = 23;
const MANTISSA_MASK: u32 = (1 << MANTISSA_BITS) - 1;
const EXPONENT_MASK: u32 = 0x7F80_0000;
const SIGN: u32 = 0x8000_0000;
/// What the instruction returns for every NaN, whatever its sign.
const NAN: u32 = 0x7FFF_FFFF;

/// Bits of `rcp.approx.ftz.f32(f32::from_bits(bits))` on compute capability 9.0.
///
/// ±0 and subnormals give ±inf, ±inf gives ±0, NaN gives `0x7FFFFFFF`; a result below 2^-126 is flushed to ±0.
pub const fn rcp_approx_ftz(bits: u32) -> u32 {
    let sign = bits & SIGN;
    let exponent = (bits & EXPONENT_MASK) >> MANTISSA_BITS;
    let mantissa = bits & MANTISSA_MASK;
    if exponent == 0 {
        return sign | EXPONENT_MASK;
    }
    if exponent == 255 {
        return if mantissa == 0 { sign } else { NAN };
    }
    let segment = (mantissa >> 16) as usize;
    let low = mantissa & 0xFFFF;
    // i64 is ample: C0 <= 2^26 before its shift by 13, |C1 * low| and C2 * square below 2^33.
    let y = ((C0[segment] << 13) + C1[segment] * low as i64 + C2[segment] * truncated_square(low) as i64 + 2023) >> 15;
    // y is in [2^23, 2^24], the mantissa with its hidden bit; 2^24 carries into the exponent by itself.
    let result = ((253 - exponent as i64) << MANTISSA_BITS) + y - (1 << MANTISSA_BITS);
    if result < 1 << MANTISSA_BITS { sign } else { sign | result as u32 }
}

/// `low * low >> 17` with the partial products below 2^17 dropped, as the hardware's squarer does.
const fn truncated_square(low: u32) -> u32 {
    let mut sum = 0;
    let mut bit = 9;
    while bit < 16 {
        if low >> bit & 1 == 1 {
            sum += ((low & ((1 << bit) - 1)) >> (16 - bit)) + (1 << (2 * bit - 17));
        }
        bit += 1;
    }
    sum
}

/// Value at the start of each segment.
#[rustfmt::skip]
const C0: [i64; SEGMENTS] = [
    67108864, 66588642, 66076422, 65572021, 65075262, 64585976, 64103992, 63629146, 63161284, 62700254,
    62245905, 61798091, 61356677, 60921524, 60492499, 60069474, 59652325, 59240930, 58835170, 58434930,
    58040099, 57650569, 57266231, 56886986, 56512729, 56143366, 55778798, 55418934, 55063686, 54712961,
    54366677, 54024747, 53687093, 53353633, 53024288, 52698987, 52377651, 52060212, 51746596, 51436737,
    51130565, 50828017, 50529029, 50233538, 49941482, 49652803, 49367442, 49085342, 48806449, 48530705,
    48258060, 47988464, 47721861, 47458204, 47197444, 46939534, 46684429, 46432082, 46182446, 45935480,
    45691143, 45449392, 45210185, 44973481, 44739244, 44507436, 44278016, 44050948, 43826199, 43603730,
    43383510, 43165503, 42949675, 42735995, 42524430, 42314950, 42107525, 41902122, 41698714, 41497270,
    41297764, 41100168, 40904453, 40710593, 40518561, 40328333, 40139883, 39953186, 39768218, 39584955,
    39403371, 39223448, 39045159, 38868484, 38693401, 38519888, 38347924, 38177489, 38008563, 37841123,
    37675154, 37510633, 37347543, 37185866, 37025582, 36866673, 36709124, 36552915, 36398030, 36244452,
    36092164, 35941151, 35791396, 35642884, 35495599, 35349528, 35204652, 35060959, 34918436, 34777064,
    34636835, 34497732, 34359741, 34222849, 34087044, 33952313, 33818641, 33686019,
];

/// Slope of each segment; negative.
#[rustfmt::skip]
const C1: [i64; SEGMENTS] = [
    -65534, -64522, -63533, -62567, -61622, -60699, -59797, -58914, -58051, -57207, -56381, -55572, -54781,
    -54007, -53249, -52507, -51780, -51068, -50371, -49688, -49019, -48363, -47721, -47091, -46473, -45868,
    -45274, -44692, -44121, -43560, -43011, -42471, -41942, -41423, -40913, -40412, -39921, -39439, -38965,
    -38500, -38043, -37594, -37153, -36720, -36294, -35876, -35464, -35060, -34663, -34272, -33888, -33511,
    -33140, -32774, -32415, -32062, -31714, -31373, -31036, -30705, -30379, -30059, -29743, -29432, -29127,
    -28826, -28529, -28237, -27950, -27667, -27388, -27114, -26843, -26577, -26314, -26056, -25801, -25550,
    -25302, -25058, -24818, -24581, -24348, -24117, -23890, -23667, -23446, -23228, -23014, -22802, -22593,
    -22388, -22184, -21984, -21787, -21592, -21399, -21209, -21022, -20837, -20655, -20475, -20297, -20122,
    -19949, -19778, -19609, -19443, -19278, -19116, -18956, -18797, -18641, -18487, -18334, -18184, -18035,
    -17888, -17743, -17600, -17458, -17318, -17180, -17043, -16908, -16775, -16643, -16513,
];

/// Curvature of each segment.
#[rustfmt::skip]
const C2: [i64; SEGMENTS] = [
    1013, 989, 966, 945, 923, 902, 883, 863, 845, 827, 809, 791, 774, 758, 742, 727, 711, 696, 682, 669, 656,
    642, 631, 618, 605, 594, 582, 572, 561, 549, 540, 529, 519, 510, 501, 490, 482, 474, 465, 457, 449, 441,
    433, 426, 418, 412, 403, 397, 390, 383, 377, 371, 366, 358, 353, 348, 341, 337, 331, 326, 320, 316, 310,
    305, 302, 297, 291, 287, 283, 279, 274, 271, 266, 263, 258, 256, 251, 248, 243, 240, 237, 233, 231, 226,
    223, 222, 218, 214, 212, 208, 205, 204, 199, 197, 196, 193, 189, 186, 184, 182, 180, 178, 175, 173, 171,
    169, 166, 165, 161, 160, 159, 155, 154, 153, 150, 149, 147, 145, 143, 143, 140, 138, 137, 135, 133, 132,
    131, 130,
];
