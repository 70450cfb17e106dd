// {{ name }}: one workgroup finds the range of all elements, and their levels of 8 bits in it.

{{ bindings }}

{{ range }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(local_invocation_index) lane: u32) {
    let range = range_of(lane);
    for (var r = lane; r < {{ words }}u; r += {{ step }}u) {
        {{ body }}
    }
    if (lane == 0u) {
        {{ numbers }}
    }
}
