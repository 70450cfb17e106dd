// {{ name }}: one invocation folds along a line of {{ length }} elements and stores every partial result.

{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    var acc: {{ type }} = {{ identity }};
    for (var r = 0u; r < {{ length }}u; r++) {
        {{ fold }}
        acc = {{ combine }};
        {{ body }}
    }
}
