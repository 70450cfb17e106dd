// {{ name }}: one invocation copies a line of {{ extent }} elements and applies its {{ steps }} updates in order.

{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    for (var r = 0u; r < {{ extent }}u; r++) {
        {{ fold }}
    }
    for (var r = 0u; r < {{ steps }}u; r++) {
        {{ body }}
    }
}
