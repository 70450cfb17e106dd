// {{ name }}: one workgroup finds the first extreme of {{ extent }} elements.

{{ bindings }}

var<workgroup> shared_acc: array<{{ type }}, {{ workgroup }}>;
var<workgroup> shared_at: array<u32, {{ workgroup }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    var acc: {{ type }} = {{ identity }};
    var best = min(lane, {{ extent }}u - 1u);
    {{ fold }}
    shared_acc[lane] = acc;
    shared_at[lane] = best;
    for (var half = {{ workgroup }}u / 2u; half > 0u; half = half / 2u) {
        workgroupBarrier();
        if (lane < half) {
            let other = shared_acc[lane + half];
            let other_at = shared_at[lane + half];
            if ({{ replaces }}) {
                acc = other;
                best = other_at;
            }
            shared_acc[lane] = acc;
            shared_at[lane] = best;
        }
    }
    if (lane == 0u) {
        {{ body }}
    }
}
