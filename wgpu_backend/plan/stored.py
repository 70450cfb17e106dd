"""Weights that a plan's file stores in fewer bits. A GPU kernel expands them once, when the plan is loaded.

"float16": two elements to a word. "q8": blocks of 32 elements, each an int8 times the block's float16 scale, as GGUF's
Q8_0, the scales apart. "levels": int8 plus an offset, times one of some float32 scales; "integers": int8 plus an
offset, as int32. Their second tensor has [elements in a row with one scale, number of scales, offset] before the
scales. An entry of the plan's "stored" is [buffer, how, tensor, tensor of the scales or null].
"""

BLOCK = 32  # elements per scale
PARTS = {"float16": 1, "q8": 2, "levels": 2, "integers": 2}  # how -> number of tensors

# Each invocation expands one word of the file. Elements beyond the last fall into the allocation's padding and are
# never read.
_KERNELS = {
    "float16": """
@group(0) @binding(0) var<storage, read> packed: array<u32>;
@group(0) @binding(1) var<storage, read_write> values: array<vec2f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64u + id.x;
  if (i < arrayLength(&packed) && i < arrayLength(&values)) {
    values[i] = unpack2x16float(packed[i]);
  }
}
""",
    "q8": """
@group(0) @binding(0) var<storage, read> packed: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64u + id.x;
  if (i < arrayLength(&packed) && i < arrayLength(&values)) {
    let word = bitcast<i32>(packed[i]);
    let whole = vec4i(word << 24u, word << 16u, word << 8u, word) >> vec4u(24u);
    let block = i / 8u;
    values[i] = vec4f(whole) * unpack2x16float(scales[block / 2u])[block % 2u];
  }
}
""",
}

_LEVELS = """
@group(0) @binding(0) var<storage, read> packed: array<u32>;
@group(0) @binding(1) var<storage, read> numbers: array<f32>;
@group(0) @binding(2) var<storage, read_write> values: array<TYPE>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64u + id.x;
  if (i < arrayLength(&packed) && i < arrayLength(&values)) {
    let word = bitcast<i32>(packed[i]);
    let whole = (vec4i(word << 24u, word << 16u, word << 8u, word) >> vec4u(24u)) + vec4i(i32(numbers[2]));
    VALUES
  }
}
"""
_SCALED = """let each = u32(numbers[0]);
    let count = u32(numbers[1]);
    let at = (vec4u(4u * i) + vec4u(0u, 1u, 2u, 3u)) / each % count + 3u;
    values[i] = vec4f(whole) * vec4f(numbers[at.x], numbers[at.y], numbers[at.z], numbers[at.w]);"""
_KERNELS["levels"] = _LEVELS.replace("TYPE", "vec4f").replace("VALUES", _SCALED)
_KERNELS["integers"] = _LEVELS.replace("TYPE", "vec4i").replace("VALUES", "values[i] = whole;")


def stored_bytes(how, nbytes):
    """Bytes of each tensor that encodes `nbytes` of 32-bit words, multiples of 4 (None: any number); None for an
    unknown `how`."""
    count = nbytes // 4
    if how in ("levels", "integers"):
        return [(count + 3) // 4 * 4, None]
    if how == "float16":
        return [(2 * count + 3) // 4 * 4]
    if how == "q8":
        return [(count + 3) // 4 * 4, ((count + BLOCK - 1) // BLOCK * 2 + 3) // 4 * 4]
    return None


def expand(device, how, parts, target):
    """Fill the Allocation `target` from those of the parts. Raises BackendError."""
    device.enter()
    try:
        pipeline, layout = device.pipeline("expand " + how, _KERNELS[how])
        encoder = device.raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, device.bind(layout, parts + [target], [1] * (len(parts) + 1)))
        groups = (parts[0].nbytes // 4 + 63) // 64
        rows = (groups + 65534) // 65535
        run.dispatch_workgroups((groups + rows - 1) // rows, rows, 1)
        run.end()
        device.queue.submit([encoder.finish()])
    except Exception as error:
        raise device.failure("expanding weights", error)
    finally:
        device.leave()
