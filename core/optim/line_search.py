"""The line search by the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6), as in PyTorch."""

MOST = 25  # computations of the loss, unless a step has fewer left


class Point:
    """A step length, the loss and the gradient there, and the slope of the loss along the direction."""

    def __init__(self, length, value, gradient, slope):
        self.length = length
        self.value = value
        self.gradient = gradient
        self.slope = slope


def strong_wolfe(evaluate, start, length, largest, tolerance_change, most=MOST, c1=1e-4, c2=0.9):
    """(the Point where the loss has fallen enough and its slope is small, or the best one found; how often the loss
    was computed). evaluate(length) gives a Point; start: the Point of length 0; largest: the largest element of the
    direction."""

    def too_high(point):
        return point.value > start.value + c1 * point.length * start.slope

    before, new = start, evaluate(length)
    tries, evaluations = 0, 1
    ends, done = None, False
    while tries < most:
        if too_high(new) or (tries > 1 and new.value >= before.value) or not new.value == new.value:
            ends = [before, new]
            break
        if abs(new.slope) <= -c2 * start.slope:
            return new, evaluations
        if new.slope >= 0:
            ends = [before, new]
            break
        low, high = new.length + 0.01 * (new.length - before.length), new.length * 10
        length = _cubic(before, new, low, high)
        before, new = new, evaluate(length)
        evaluations += 1
        tries += 1
    if ends is None:
        ends = [start, new]
    low, high = (1, 0) if ends[1].value < ends[0].value else (0, 1)
    slow = False
    while not done and tries < most:
        least, greatest = sorted([ends[0].length, ends[1].length])
        if (greatest - least) * largest < tolerance_change:
            break
        length = _cubic(ends[0], ends[1], least, greatest)
        length, slow = _away_from_ends(length, least, greatest, slow)
        new = evaluate(length)
        evaluations += 1
        tries += 1
        if too_high(new) or new.value >= ends[low].value or not new.value == new.value:
            ends[high] = new
            low, high = (1, 0) if ends[1].value < ends[0].value else (0, 1)
            continue
        if abs(new.slope) <= -c2 * start.slope:
            done = True
        elif new.slope * (ends[high].length - ends[low].length) >= 0:
            ends[high] = ends[low]
        ends[low] = new
    return ends[low], evaluations


def _away_from_ends(length, least, greatest, slow):
    """The length, or one further inside where it was too close to an end twice; whether it was so now. slow: whether
    it was so before."""
    margin = 0.1 * (greatest - least)
    if not min(greatest - length, length - least) < margin:
        return length, False
    if slow or length >= greatest or length <= least:
        return greatest - margin if abs(length - greatest) < abs(length - least) else least + margin, False
    return length, True


def _cubic(a, b, least, greatest):
    """The length of the least value of the cubic through two Points, within bounds."""
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + greatest) / 2
    d2 = square**0.5
    if a.length <= b.length:
        divisor = b.slope - a.slope + 2 * d2
        at = b.length - (b.length - a.length) * ((b.slope + d2 - d1) / divisor) if divisor else least
    else:
        divisor = a.slope - b.slope + 2 * d2
        at = a.length - (a.length - b.length) * ((a.slope + d2 - d1) / divisor) if divisor else least
    return min(max(at, least), greatest)
