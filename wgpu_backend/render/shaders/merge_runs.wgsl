// {{ name }}: merges neighboring sorted runs of {{ run }} in lines of {{ length }}, one invocation an element.

{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    let line = g / {{ length }}u;
    let r = g % {{ length }}u;
    let own = r / {{ run }}u;
    let left = (own & 1u) == 0u;
    let sibling = (own ^ 1u) * {{ run }}u;
    {{ fold }}
    // The number of elements of the sibling run that come before this one: equal ones do when they are the left run.
    var low = min(sibling, {{ length }}u);
    var high = min(sibling + {{ run }}u, {{ length }}u);
    let first = low;
    while (low < high) {
        let middle = (low + high) / 2u;
        {{ body }}
        if (before < my_key || (before == my_key && !left)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    let target_at = (own & 0xfffffffeu) * {{ run }}u + (r % {{ run }}u) + (low - first);
    {{ store }}
}
