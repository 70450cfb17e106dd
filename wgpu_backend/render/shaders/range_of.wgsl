// The lowest and the highest element of each lane. The range includes 0.
var<workgroup> ends: array<vec2<f32>, {{ workgroup }}>;

// The scale and the zero point of all elements, found by a workgroup.
fn range_of(lane: u32) -> vec2<f32> {
    var low = 0.0;
    var high = 0.0;
    for (var r = lane; r < {{ words }}u; r += {{ step }}u) {
        {{ fold }}
    }
    ends[lane] = vec2<f32>(low, high);
    for (var half = {{ workgroup }}u / 2u; half > 0u; half = half / 2u) {
        workgroupBarrier();
        if (lane < half) {
            let other = ends[lane + half];
            low = minimum_f32(low, other.x);
            high = maximum_f32(high, other.y);
            ends[lane] = vec2<f32>(low, high);
        }
    }
    workgroupBarrier();
    low = ends[0].x;
    high = ends[0].y;
    let span = (high - low) / 255.0;
    let scale = select(span, 1.0, span == 0.0);
    return vec2<f32>(scale, minimum_f32(maximum_f32(round(-low / scale), 0.0), 255.0));
}
