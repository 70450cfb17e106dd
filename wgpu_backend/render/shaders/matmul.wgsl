// {{ name }}: a workgroup computes {{ block_rows }} × {{ block_columns }} results through workgroup memory.
//
// Both operands pass through tiles of {{ depth }} inner steps: the left one turned, so that four rows are one vector.
// Lane (x, y) of 16 × 16 holds row vectors y, y + 16, … and column vectors x, x + 16, … of the block.

{{ bindings }}

var<workgroup> left_tile: array<vec4<f32>, {{ left_size }}>;
var<workgroup> right_tile: array<vec4<f32>, {{ right_size }}>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let t = {{ flat }};
    if (t >= {{ count }}u) {
        return;
    }
    let x = lane % 16u;
    let y = lane / 16u;
    {{ start }}
    for (var step = 0u; step < {{ steps }}u; step++) {
        {{ fold }}
        workgroupBarrier();
        for (var k = 0u; k < {{ depth }}u; k++) {
            {{ multiply }}
        }
        workgroupBarrier();
    }
    {{ body }}
}
