// Elementwise functions that WGSL lacks, or whose built-in form is too inaccurate or undefined at the edges.
// A kernel includes only the functions it calls (wgsl.py). Accuracies were measured against float64 (tests/wgpu).

// The only way to write an infinity or NaN: a constant expression must not evaluate to one, a call is no constant.
fn from_bits(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

// Comparisons of the bits, because an implementation may assume that no NaN exists (x != x may fold to false).
fn isnan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn isinf_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

// a * b where one of them is 0.
fn times_zero(a: f32, b: f32) -> f32 {
    let special = isnan_f32(a) || isnan_f32(b) || isinf_f32(a) || isinf_f32(b);
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    return bitcast<f32>(select(sign, 0x7fc00000u, special));
}

// a / b where one of them is 0.
fn over_zero(a: f32, b: f32) -> f32 {
    let undefined = isnan_f32(a) || isnan_f32(b) || (a == 0.0 && b == 0.0);
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    let whole = select(sign, sign | 0x7f800000u, b == 0.0);
    return bitcast<f32>(select(whole, 0x7fc00000u, undefined));
}

fn over_itself(x: f32) -> f32 {
    return select(1.0, from_bits(0x7fc00000u), x == 0.0 || isnan_f32(x) || isinf_f32(x));
}

fn sign_f32(x: f32) -> f32 {
    return select(sign(x), x, isnan_f32(x));
}

fn maximum_f32(a: f32, b: f32) -> f32 {
    return select(select(max(a, b), b, isnan_f32(b)), a, isnan_f32(a));
}

fn minimum_f32(a: f32, b: f32) -> f32 {
    return select(select(min(a, b), b, isnan_f32(b)), a, isnan_f32(a));
}

// Natural logarithm: reduction to [sqrt(1/2), sqrt(2)) and the minimax polynomial of Cephes' logf.
fn log_f32(x: f32) -> f32 {
    let tiny = x < 1.17549435e-38;
    let bits = bitcast<u32>(select(x, x * 8388608.0, tiny));
    var e = f32(i32(bits >> 23u) - 126) - select(0.0, 23.0, tiny);
    var m = bitcast<f32>((bits & 0x007fffffu) | 0x3f000000u);
    if (m < 0.707106781) {
        e = e - 1.0;
        m = m + m;
    }
    let f = m - 1.0;
    let normal = f + (log_tail(f) + e * -2.12194440e-4) + e * 0.693359375;
    let special = select(from_bits(0x7fc00000u), select(x, from_bits(0xff800000u), x == 0.0), x >= 0.0);
    return select(special, normal, x > 0.0 && (bitcast<u32>(x) < 0x7f800000u));
}

// log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)).
fn log_tail(f: f32) -> f32 {
    let z = f * f;
    var y = fma(f, 7.0376836292e-2, -1.1514610310e-1);
    y = fma(y, f, 1.1676998740e-1);
    y = fma(y, f, -1.2420140846e-1);
    y = fma(y, f, 1.4249322787e-1);
    y = fma(y, f, -1.6668057665e-1);
    y = fma(y, f, 2.0000714765e-1);
    y = fma(y, f, -2.4999993993e-1);
    y = fma(y, f, 3.3333331174e-1) * f * z;
    return y - 0.5 * z;
}

// No correction of the form (1 + x) - 1: shader compilers simplify it away.
fn log1p_f32(x: f32) -> f32 {
    if (x > -0.29 && x < 0.41) {
        return x + log_tail(x);
    }
    return log_f32(1.0 + x);
}

fn expm1_f32(x: f32) -> f32 {
    if (abs(x) < 0.5) {
        var p = fma(x, 1.9841270e-4, 1.3888889e-3);
        p = fma(p, x, 8.3333333e-3);
        p = fma(p, x, 4.1666667e-2);
        p = fma(p, x, 1.6666667e-1);
        p = fma(p, x, 0.5);
        return fma(p * x, x, x);
    }
    return exp(x) - 1.0;
}

fn sinh_f32(x: f32) -> f32 {
    let a = abs(x);
    if (a < 0.5) {
        let z = x * x;
        return fma(x * z, fma(z, fma(z, 1.98412698e-4, 8.33333333e-3), 1.66666667e-1), x);
    }
    let h = exp(0.5 * a);  // two factors, so that sinh(89) does not overflow on the way
    let r = 0.5 * h * h - 0.5 / h / h;
    return select(r, -r, x < 0.0);
}

fn cosh_f32(x: f32) -> f32 {
    let h = exp(0.5 * abs(x));
    return 0.5 * h * h + 0.5 / h / h;
}

fn tanh_f32(x: f32) -> f32 {
    let a = abs(x);
    if (a < 0.625) {
        let z = x * x;
        var p = fma(z, -5.70498872745e-3, 2.06390887954e-2);
        p = fma(p, z, -5.37397155531e-2);
        p = fma(p, z, 1.33314422036e-1);
        p = fma(p, z, -3.33332819422e-1);
        return fma(p * z, x, x);
    }
    if (isnan_f32(x)) {
        return x;
    }
    let r = 1.0 - 2.0 / (exp(2.0 * min(a, 20.0)) + 1.0);
    return select(r, -r, x < 0.0);
}

fn asinh_f32(x: f32) -> f32 {
    let a = abs(x);
    if (a > 1e10) {
        let big = log_f32(a) + 0.693147180559945;
        return select(big, -big, x < 0.0);
    }
    let r = log1p_f32(a + a * a / (1.0 + sqrt(a * a + 1.0)));
    return select(r, -r, x < 0.0);
}

fn acosh_f32(x: f32) -> f32 {
    if (x > 1e10) {
        return log_f32(x) + 0.693147180559945;
    }
    let t = x - 1.0;
    return select(log1p_f32(t + sqrt(t * (x + 1.0))), from_bits(0x7fc00000u), x < 1.0);
}

fn atanh_f32(x: f32) -> f32 {
    let a = abs(x);
    let r = 0.5 * log1p_f32(2.0 * a / (1.0 - a));
    let s = select(r, from_bits(0x7f800000u), a == 1.0);
    return select(select(s, from_bits(0x7fc00000u), a > 1.0), -s, x < 0.0 && a <= 1.0);
}

// Cephes' asinf, atanf.
fn asin_f32(x: f32) -> f32 {
    let a = abs(x);
    if (!(a <= 1.0)) {
        return from_bits(0x7fc00000u);
    }
    let large = a > 0.5;
    let z = select(a * a, 0.5 * (1.0 - a), large);
    let s = select(a, sqrt(z), large);
    var p = fma(z, 4.2163199048e-2, 2.4181311049e-2);
    p = fma(p, z, 4.5470025998e-2);
    p = fma(p, z, 7.4953002686e-2);
    p = fma(p, z, 1.6666752422e-1);
    let y = fma(p * z, s, s);
    let r = select(y, 1.5707963267949 - 2.0 * y, large);
    return select(r, -r, x < 0.0);
}

fn acos_f32(x: f32) -> f32 {
    if (x > 0.5) {
        return 2.0 * asin_f32(sqrt(0.5 * (1.0 - x)));
    }
    if (x < -0.5) {
        return 3.14159265358979 - 2.0 * asin_f32(sqrt(0.5 * (1.0 + x)));
    }
    return 1.5707963267949 - asin_f32(x);
}

fn atan_f32(x: f32) -> f32 {
    let a = abs(x);
    var base = 0.0;
    var t = a;
    if (a > 2.414213562373095) {
        base = 1.5707963267949;
        t = -1.0 / a;
    } else if (a > 0.4142135623730950) {
        base = 0.785398163397448;
        t = (a - 1.0) / (a + 1.0);
    }
    let z = t * t;
    var p = fma(z, 8.05374449538e-2, -1.38776856032e-1);
    p = fma(p, z, 1.99777106478e-1);
    p = fma(p, z, -3.33329491539e-1);
    let r = base + fma(p * z, t, t);
    return select(r, -r, x < 0.0);
}

fn atan2_f32(y: f32, x: f32) -> f32 {
    if (isnan_f32(x) || isnan_f32(y)) {
        return x + y;
    }
    let below = (bitcast<u32>(y) >> 31u) == 1u;
    let left = (bitcast<u32>(x) >> 31u) == 1u;
    var r: f32;
    if (isinf_f32(x) && isinf_f32(y)) {
        r = 0.785398163397448;
    } else if (y == 0.0) {
        r = 0.0;
    } else if (x == 0.0) {
        r = 1.5707963267949;
    } else {
        r = atan_f32(abs(y) / abs(x));
    }
    r = select(r, 3.14159265358979 - r, left);
    return select(r, -r, below);
}

// erf: below 1 a polynomial in x*x fitted at Chebyshev points (error 1.2e-9); above it 1 - erfc with the rational
// Chebyshev fit of Numerical Recipes (erfcc, fractional error 1.2e-7).
fn erf_f32(x: f32) -> f32 {
    let a = abs(x);
    if (a < 1.0) {
        let z = x * x;
        var p = fma(z, 7.882497107e-5, -8.018854991e-4);
        p = fma(p, z, 5.189311942e-3);
        p = fma(p, z, -2.685432880e-2);
        p = fma(p, z, 1.128359746e-1);
        p = fma(p, z, -3.761262690e-1);
        p = fma(p, z, 1.128379166);
        return p * x;
    }
    if (isnan_f32(x)) {
        return x;
    }
    let t = 1.0 / (1.0 + 0.5 * a);
    var p = fma(t, 0.17087277, -0.82215223);
    p = fma(p, t, 1.48851587);
    p = fma(p, t, -1.13520398);
    p = fma(p, t, 0.27886807);
    p = fma(p, t, -0.18628806);
    p = fma(p, t, 0.09678418);
    p = fma(p, t, 0.37409196);
    p = fma(p, t, 1.00002368);
    p = fma(p, t, -1.26551223);
    let r = 1.0 - t * exp(min(p - a * a, 0.0));
    return select(r, -r, x < 0.0);
}

// WGSL promises 11 bits of a sine, and that only up to a half turn. x less k quarter turns by the three parts of Cody and
// Waite, then the polynomials of Cephes' sinf and cosf.
fn sine_f32(x: f32, quarters: u32) -> f32 {
    if (isnan_f32(x) || isinf_f32(x)) {
        return from_bits(0x7fc00000u);
    }
    if (abs(x) > 100000.0) { // the parts of k quarter turns are no longer exact
        return select(sin(x), cos(x), quarters == 1u);
    }
    let k = round(x * 0.636619772);
    let r = ((x - k * 1.5703125) - k * 4.837512969970703e-4) - k * 7.54978995489e-8;
    let z = r * r;
    let s = r + r * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
    let c = (1.0 - 0.5 * z) + z * z * ((2.443315711e-5 * z - 1.388731625e-3) * z + 4.166664568e-2);
    let q = bitcast<u32>(i32(k)) + quarters;
    let y = select(s, c, (q & 1u) == 1u);
    return select(y, -y, (q & 2u) == 2u);
}

fn sin_f32(x: f32) -> f32 {
    return sine_f32(x, 0u);
}

fn cos_f32(x: f32) -> f32 {
    return sine_f32(x, 1u);
}

fn tan_f32(x: f32) -> f32 {
    return sin_f32(x) / cos_f32(x);
}

// Exact, by long division of the significands: 7 bits of the quotient a step.
fn fmod_f32(a: f32, b: f32) -> f32 {
    if (isnan_f32(a) || isnan_f32(b) || isinf_f32(a) || b == 0.0) {
        return from_bits(0x7fc00000u);
    }
    if (isinf_f32(b) || abs(a) < abs(b)) {
        return a;
    }
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    var m = (x & 0x007fffffu) | 0x00800000u;
    let n = (y & 0x007fffffu) | 0x00800000u;
    var e = i32(x >> 23u) - i32(y >> 23u);
    m = m % n;
    while (e > 0) {
        let step = min(e, 7);
        m = (m << u32(step)) % n;
        e = e - step;
    }
    // Two factors: the exponent of b alone may be below the smallest normal number.
    let r = f32(m) * bitcast<f32>((y & 0x7f800000u)) * 1.1920928955078125e-7;
    return select(r, -r, (bitcast<u32>(a) >> 31u) == 1u);
}

fn remainder_f32(a: f32, b: f32) -> f32 {
    let r = fmod_f32(a, b);
    if (r == 0.0) {
        return bitcast<f32>(bitcast<u32>(b) & 0x80000000u);
    }
    return select(r, r + b, (r < 0.0) != (b < 0.0));
}

fn floor_divide_f32(a: f32, b: f32) -> f32 {
    if (isnan_f32(a) || isnan_f32(b)) {
        return from_bits(0x7fc00000u);
    }
    if (b == 0.0) {
        return over_zero(a, b);
    }
    if (isinf_f32(a)) {
        return from_bits(0x7fc00000u);
    }
    let r = fmod_f32(a, b);
    var q = (a - r) / b;
    if (r != 0.0 && ((r < 0.0) != (b < 0.0))) {
        q = q - 1.0;
    }
    if (q == 0.0) {
        return bitcast<f32>((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u);
    }
    return round(q);
}

fn pow_f32(a: f32, b: f32) -> f32 {
    if (b == 0.0 || a == 1.0) {
        return 1.0;
    }
    if (isnan_f32(a) || isnan_f32(b)) {
        return from_bits(0x7fc00000u);
    }
    let whole = floor(b) == b;
    if (whole && abs(b) <= 64.0) {
        var n = u32(abs(b));
        var square = a;
        var r = 1.0;
        while (n > 0u) {
            if ((n & 1u) == 1u) {
                r = r * square;
            }
            square = square * square;
            n = n >> 1u;
        }
        return select(r, 1.0 / r, b < 0.0);
    }
    let odd = whole && abs(b) < 16777216.0 && (u32(abs(b)) & 1u) == 1u;
    let m = abs(a);
    var r: f32;
    if (m == 0.0) {
        r = select(0.0, from_bits(0x7f800000u), b < 0.0);
    } else if (isinf_f32(b)) {
        r = select(select(0.0, b, (m > 1.0) == (b > 0.0)), 1.0, m == 1.0);
        r = abs(r);
    } else if (m == 1.0) {
        r = 1.0;
    } else if (b == 0.5) {
        r = sqrt(m);
    } else {
        r = exp(b * log_f32(m));
    }
    if (a < 0.0 && !whole && !isinf_f32(b) && !isinf_f32(a)) {
        return from_bits(0x7fc00000u);
    }
    return select(r, -r, odd && (bitcast<u32>(a) >> 31u) == 1u);
}

fn pow_i32(a: i32, b: i32) -> i32 {
    if (b < 0) {
        return select(select(0, select(-1, 1, (b & 1) == 0), a == -1), 1, a == 1);
    }
    var n = u32(b);
    var square = a;
    var r = 1;
    while (n > 0u) {
        if ((n & 1u) == 1u) {
            r = r * square;
        }
        square = square * square;
        n = n >> 1u;
    }
    return r;
}

fn pow_u32(a: u32, b: u32) -> u32 {
    var n = b;
    var square = a;
    var r = 1u;
    while (n > 0u) {
        if ((n & 1u) == 1u) {
            r = r * square;
        }
        square = square * square;
        n = n >> 1u;
    }
    return r;
}

// Integer division and remainder by zero give 0 (core/backend/protocol.py); the most negative number by -1 wraps.
fn div_i32(a: i32, b: i32) -> i32 {
    if (b == 0) {
        return 0;
    }
    return select(a / select(b, 1, b == -1), -a, b == -1);
}

fn div_u32(a: u32, b: u32) -> u32 {
    return select(a / max(b, 1u), 0u, b == 0u);
}

fn fmod_i32(a: i32, b: i32) -> i32 {
    if (b == 0 || b == -1) {
        return 0;
    }
    // Not %: Vulkan leaves the remainder of negative numbers undefined, and NVIDIA's driver takes them as unsigned.
    return a - (a / b) * b;
}

fn fmod_u32(a: u32, b: u32) -> u32 {
    return select(a % max(b, 1u), 0u, b == 0u);
}

fn remainder_i32(a: i32, b: i32) -> i32 {
    let r = fmod_i32(a, b);
    return select(r, r + b, r != 0 && ((r < 0) != (b < 0)));
}

fn floor_divide_u32(a: u32, b: u32) -> u32 {
    return div_u32(a, b);
}

fn remainder_u32(a: u32, b: u32) -> u32 {
    return fmod_u32(a, b);
}

fn floor_divide_i32(a: i32, b: i32) -> i32 {
    let q = div_i32(a, b);
    return select(q, q - 1, b != 0 && q * b != a && ((a < 0) != (b < 0)));
}

fn shift_left_i32(a: i32, b: i32) -> i32 {
    return select(a << (u32(b) & 31u), 0, u32(b) > 31u);
}

fn shift_left_u32(a: u32, b: u32) -> u32 {
    return select(a << (b & 31u), 0u, b > 31u);
}

fn shift_right_i32(a: i32, b: i32) -> i32 {
    return a >> min(u32(b), 31u);
}

fn shift_right_u32(a: u32, b: u32) -> u32 {
    return select(a >> (b & 31u), 0u, b > 31u);
}

// Narrow integers live in 32-bit words; every result is brought back to `bits` bits.
fn unpack_i8(word: u32) -> vec4<i32> {
    let w = bitcast<i32>(word);
    return vec4<i32>(w << 24u, w << 16u, w << 8u, w) >> vec4<u32>(24u);
}

fn unpack_u8(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn dot_bytes(a: u32, b: u32) -> i32 {
    return dot4I8Packed(a, b);
}

fn pack_four(v: vec4<u32>) -> u32 {
    let bytes = (v & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}

fn word_of_bytes(a: i32, b: i32, c: i32, d: i32) -> u32 {
    return pack_four(vec4<u32>(vec4<i32>(a, b, c, d)));
}

fn byte_of_word(word: u32, at: u32) -> i32 {
    return extractBits(bitcast<i32>(word), 8u * at, 8u);
}

// Quantized to 8 bits; NaN becomes the lowest level.
fn level_of(x: f32, scale: f32, point: f32) -> u32 {
    let y = round(x / scale) + point;
    return u32(min(select(0.0, y, y > 0.0), 255.0));
}

// The bits of a level less the zero point. range: the scale and the zero point.
fn bits_of_level(x: f32, range: vec2<f32>) -> u32 {
    return bitcast<u32>(f32(level_of(x, range.x, range.y)) - range.y);
}

// Four levels as a word of signed bytes: less 128. range: the scale and the zero point.
fn word_of_levels(a: f32, b: f32, c: f32, d: f32, range: vec2<f32>) -> u32 {
    let low = vec2<u32>(level_of(a, range.x, range.y), level_of(b, range.x, range.y));
    let high = vec2<u32>(level_of(c, range.x, range.y), level_of(d, range.x, range.y));
    return pack_four(vec4<u32>(low, high)) ^ 0x80808080u;
}

fn wrap_i(x: i32, bits: u32) -> i32 {
    let s = 32u - bits;
    return (x << s) >> s;
}

fn wrap_u(x: u32, bits: u32) -> u32 {
    return x & ((1u << bits) - 1u);
}

// In integers: NVIDIA's driver leaves out packing to 16 bits and back.
fn round_f16(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    let m = b & 0x7fffffffu;
    let near = (m + 0xfffu + ((m >> 13u) & 1u)) & 0x7fffe000u;
    // Below 2^-14 the nearest multiple of 2^-24, which is what the last bit of a number around 0.5 stands for.
    let small = bitcast<u32>(f32(bitcast<u32>(bitcast<f32>(m) + 0.5) - 0x3f000000u) * 5.9604644775390625e-8);
    let rounded = select(select(near, 0x7f800000u, near >= 0x47800000u), small, m < 0x38800000u);
    return bitcast<f32>(select(rounded, m | 0x00400000u, m > 0x7f800000u) | (b & 0x80000000u));
}

fn round_bf16(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) & 0xffff0000u;
    return bitcast<f32>(select(rounded, b & 0xffff0000u | 0x00400000u, isnan_f32(x)));
}

// Saturating conversions: truncate, clamp to [lo, hi], NaN to 0.
fn to_i32(x: f32, lo: f32, hi: f32) -> i32 {
    let whole = i32(clamp(trunc(select(x, 0.0, isnan_f32(x))), lo, hi));
    return select(whole, 2147483647, x >= 2147483648.0 && hi >= 2147483520.0);
}

fn to_u32(x: f32, hi: f32) -> u32 {
    let whole = u32(clamp(trunc(select(x, 0.0, isnan_f32(x))), 0.0, hi));
    return select(whole, 4294967295u, x >= 4294967296.0 && hi >= 4294967040.0);
}

// Philox 4x32-10 (Salmon et al., 2011).
fn mulhi(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let mid = ah * bl + ((al * bl) >> 16u);
    let mid2 = al * bh + (mid & 0xffffu);
    return ah * bh + (mid >> 16u) + (mid2 >> 16u);
}

fn philox(c0: u32, c1: u32, c2: u32, c3: u32, k0: u32, k1: u32, word: u32) -> u32 {
    var c = vec4<u32>(c0, c1, c2, c3);
    var k = vec2<u32>(k0, k1);
    for (var round = 0; round < 10; round++) {
        let h0 = mulhi(0xD2511F53u, c.x);
        let l0 = 0xD2511F53u * c.x;
        let h1 = mulhi(0xCD9E8D57u, c.z);
        let l1 = 0xCD9E8D57u * c.z;
        c = vec4<u32>(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k = k + vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c[word];
}

// Element i of the stream that starts at 128-bit counter c and has key k.
fn philox_at(i: u32, c0: u32, c1: u32, c2: u32, c3: u32, k0: u32, k1: u32) -> u32 {
    let low = c0 + i / 4u;
    let carry1 = select(0u, 1u, low < c0);
    let mid = c1 + carry1;
    let carry2 = select(0u, carry1, mid == 0u);
    let high = c2 + carry2;
    let carry3 = select(0u, carry2, high == 0u);
    return philox(low, mid, high, c3 + carry3, k0, k1, i % 4u);
}

fn bits_of_float16(x: f32) -> u32 {
    return pack2x16float(vec2<f32>(x, 0.0)) & 0xffffu;
}

fn bits_of_bfloat16(x: f32) -> u32 {
    return bitcast<u32>(x) >> 16u;
}

fn float16_of_bits(x: u32) -> f32 {
    return unpack2x16float(x).x;
}

fn bfloat16_of_bits(x: u32) -> f32 {
    return bitcast<f32>(x << 16u);
}

// Unsigned keys in the order of the values; NaN is the largest, -0 equals 0.
fn sort_key_f32(x: f32) -> u32 {
    if (isnan_f32(x)) {
        return 0xffffffffu;
    }
    let bits = select(bitcast<u32>(x), 0u, x == 0.0);
    return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn sort_key_i32(x: i32) -> u32 {
    return bitcast<u32>(x) ^ 0x80000000u;
}

fn sort_key_u32(x: u32) -> u32 {
    return x;
}
