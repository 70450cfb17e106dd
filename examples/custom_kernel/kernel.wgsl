// max(lhs @ rhs + bias, 0) for matrices with leading dimensions that broadcast.
//
// One invocation an element of the output: row and column from x and y, the batch from z. Every tensor is contiguous;
// `info` holds, one after the other, RANK numbers each: strides of lhs, rhs, bias and output, then the output's shape.
// A stride of 0 marks a dimension along which a tensor broadcasts.

@group(0) @binding(0) var<storage, read> lhs: array<{{ elem }}>;
@group(0) @binding(1) var<storage, read> rhs: array<{{ elem }}>;
@group(0) @binding(2) var<storage, read> bias: array<{{ elem }}>;
@group(0) @binding(3) var<storage, read> info: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<{{ elem }}>;

const RANK = {{ rank }}u;
const K = {{ k }}u;  // columns of lhs, rows of rhs

@compute @workgroup_size({{ workgroup_size_x }}, {{ workgroup_size_y }}, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let rows = info[5u * RANK - 2u];
    let columns = info[5u * RANK - 1u];
    let row = id.y;
    let column = id.x;
    if (row >= rows || column >= columns) {
        return;
    }
    var at_lhs = row * info[RANK - 2u];
    var at_rhs = column * info[2u * RANK - 1u];
    var at_bias = row * info[3u * RANK - 2u] + column * info[3u * RANK - 1u];
    var rest = id.z;
    for (var i = RANK - 2u; i > 0u; i--) {
        let size = info[4u * RANK + i - 1u];
        let index = rest % size;
        rest /= size;
        at_lhs += index * info[i - 1u];
        at_rhs += index * info[RANK + i - 1u];
        at_bias += index * info[2u * RANK + i - 1u];
    }
    let step_lhs = info[RANK - 1u];
    let step_rhs = info[2u * RANK - 2u];
    var sum = {{ elem }}(0);
    for (var k = 0u; k < K; k++) {
        sum += lhs[at_lhs + k * step_lhs] * rhs[at_rhs + k * step_rhs];
    }
    output[(id.z * rows + row) * columns + column] = max(sum + bias[at_bias], {{ elem }}(0));
}
