// {{ name }}: one invocation adds up along a line of {{ length }} elements, in blocks that each have a sum of their own.

{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    var acc = 0.0;
    for (var block = 0u; block < {{ length }}u; block += {{ block }}u) {
        let carry = acc;
        var part = 0.0;
        for (var r = block; r < min(block + {{ block }}u, {{ length }}u); r++) {
            {{ fold }}
            part = part + {{ element }};
            acc = carry + part;
            {{ body }}
        }
    }
}
