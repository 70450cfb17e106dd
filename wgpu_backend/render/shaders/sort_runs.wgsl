// {{ name }}: one workgroup sorts a run of {{ run }} elements of a line of {{ length }} (bitonic, in workgroup memory).

{{ bindings }}

var<workgroup> keys: array<u32, {{ run }}>;
var<workgroup> places: array<u32, {{ run }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    let line = g / {{ runs }}u;
    let start = (g % {{ runs }}u) * {{ run }}u;
    for (var i = lane; i < {{ run }}u; i += {{ workgroup }}u) {
        let r = start + i;
        var found = 0xffffffffu;  // what lies beyond the line sorts behind everything, by its position
        if (r < {{ length }}u) {
            {{ fold }}
            found = {{ key }};
        }
        keys[i] = found;
        places[i] = r;
    }
    for (var size = 2u; size <= {{ run }}u; size = size * 2u) {
        for (var stride = size / 2u; stride > 0u; stride = stride / 2u) {
            workgroupBarrier();
            for (var i = lane; i < {{ run }}u / 2u; i += {{ workgroup }}u) {
                let low = 2u * i - (i & (stride - 1u));
                let high = low + stride;
                let a = keys[low];
                let b = keys[high];
                let pa = places[low];
                let pb = places[high];
                let greater = a > b || (a == b && pa > pb);
                if (greater == ((low & size) == 0u)) {
                    keys[low] = b;
                    keys[high] = a;
                    places[low] = pb;
                    places[high] = pa;
                }
            }
        }
    }
    workgroupBarrier();
    for (var i = lane; i < {{ run }}u; i += {{ workgroup }}u) {
        let r = start + i;
        let at = places[i];
        if (r < {{ length }}u) {
            {{ body }}
        }
    }
}
