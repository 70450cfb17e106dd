// {{ name }}: one workgroup scans a line of {{ length }} elements, {{ workgroup }} at a time (Hillis and Steele).

{{ bindings }}

var<workgroup> partial: array<{{ type }}, {{ workgroup }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    var carry: {{ type }} = {{ identity }};
    for (var start = 0u; start < {{ length }}u; start += {{ workgroup }}u) {
        let r = start + lane;
        var acc: {{ type }} = {{ identity }};
        if (r < {{ length }}u) {
            {{ fold }}
            acc = {{ element }};
        }
        {{ steps }}
        acc = {{ combine_carry }};
        partial[lane] = acc;
        workgroupBarrier();
        carry = partial[{{ workgroup }}u - 1u];
        workgroupBarrier();
        if (r < {{ length }}u) {
            {{ body }}
        }
    }
}
