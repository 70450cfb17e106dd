"""Non-maximum suppression of a detector's boxes. Reads its inputs, because the result's shape depends on them."""

from ... import dtypes
from ..operands import tensor
from ..overriding import composite


#: function; ONNX NonMaxSuppression; score_threshold: float
@composite
def non_max_suppression(
    boxes, scores, max_output_boxes_per_class=0, iou_threshold=0.0, score_threshold=None, center_point_box=False
):
    """boxes (batch, n, 4), scores (batch, classes, n) -> int64 (kept, 3): batch, class and box index, best score first.

    Boxes are corner pairs y1, x1, y2, x2 in any order, or x, y, width, height with center_point_box. A box is dropped
    if its intersection over union with a kept box exceeds iou_threshold (ONNX NonMaxSuppression).
    """
    boxes, scores = tensor(boxes), tensor(scores)
    backend = boxes.backend
    limit = max(0, int(max_output_boxes_per_class))
    kept = []
    if limit:
        all_boxes, all_scores = boxes.tolist(), scores.tolist()
        for batch in range(len(all_boxes)):
            corners = [_corners(b, center_point_box) for b in all_boxes[batch]]
            for c in range(len(all_scores[batch])):
                for i in _keep(corners, all_scores[batch][c], limit, float(iou_threshold), score_threshold):
                    kept += [batch, c, i]
    return backend.from_list(kept, dtypes.int64, (len(kept) // 3, 3))


def _corners(box, center_point_box):
    if center_point_box:
        x, y, w, h = box
        return (y - h / 2, x - w / 2, y + h / 2, x + w / 2)
    y1, x1, y2, x2 = box
    return (min(y1, y2), min(x1, x2), max(y1, y2), max(x1, x2))


def _keep(corners, scores, limit, iou_threshold, score_threshold):
    order = [i for i in range(len(scores)) if score_threshold is None or scores[i] > score_threshold]
    order.sort(key=lambda i: (-scores[i], i))  # the lower index wins a tie; MicroPython's sort is not stable
    kept = []
    for i in order:
        if len(kept) == limit:
            break
        clear = True
        for j in kept:
            if _overlap(corners[i], corners[j]) > iou_threshold:
                clear = False
                break
        if clear:
            kept.append(i)
    return kept


def _overlap(a, b):
    """Intersection over union; 0 if either box has no area."""
    height = min(a[2], b[2]) - max(a[0], b[0])
    width = min(a[3], b[3]) - max(a[1], b[1])
    if height <= 0 or width <= 0:
        return 0.0
    shared = height * width
    area_a, area_b = (a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1])
    return shared / (area_a + area_b - shared)
