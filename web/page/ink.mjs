// Converts strokes to the model's input, as scikit-learn's handwritten digits were prepared.
//
// The data set's digits were cropped to their ink, stretched to a 32×32 bitmap whose whole height the ink fills, and
// counted in blocks of 4×4: 8×8 numbers from 0 to 16. Three quarters of them are 24 wide; a one stays narrow.

export const SIZE = 8;
const BITMAP = 32;
const BLOCK = BITMAP / SIZE;
const WIDTH = 24;
const PEN = 5.2; // in pixels of the bitmap: plain drawn digits then have the ink that the data set has on average (313)
const NARROW = [0.3, 0.6]; // width to height: below the first a one, which keeps its proportions; above the second not

// Strokes are arrays of [x, y] in any unit. Returns 64 counts, row by row, or null where there is no ink.
export function toPixels(strokes) {
  const points = strokes.flat();
  if (!points.length) return null;
  const place = placement(points);
  const bitmap = draw(strokes.map((stroke) => stroke.map(place)));
  const pixels = new Array(SIZE * SIZE).fill(0);
  for (let y = 0; y < BITMAP; y++) {
    for (let x = 0; x < BITMAP; x++) {
      pixels[Math.floor(y / BLOCK) * SIZE + Math.floor(x / BLOCK)] += bitmap[y * BITMAP + x];
    }
  }
  return pixels;
}

// Where a point comes to lie in the bitmap, so that the ink (half a pen around the points) fills it as it should.
function placement(points) {
  const [left, right] = range(points.map(([x]) => x));
  const [top, bottom] = range(points.map(([, y]) => y));
  const width = right - left;
  const height = bottom - top;
  const toWidth = width ? (WIDTH - PEN) / width : Infinity; // the scales that fill the bitmap
  const toHeight = height ? (BITMAP - PEN) / height : Infinity;
  let scaleX = Math.min(toWidth, toHeight);
  let scaleY = scaleX;
  if (scaleX === Infinity) scaleX = scaleY = 0; // a dot
  else if (height > width / 4) {
    // Neither a dot nor a flat dash: fill the height, and the width unless it is as narrow as a one.
    const [narrow, wide] = NARROW;
    scaleY = toHeight;
    scaleX = width ? mix(Math.min(toHeight, toWidth), toWidth, clamp((width / height - narrow) / (wide - narrow))) : 0;
  }
  return ([x, y]) => [
    BITMAP / 2 + (x - (left + right) / 2) * scaleX,
    BITMAP / 2 + (y - (top + bottom) / 2) * scaleY,
  ];
}

// 1 for every pixel whose center the pen touches.
function draw(strokes) {
  const bitmap = new Uint8Array(BITMAP * BITMAP);
  const reach = (PEN / 2) ** 2;
  for (const stroke of strokes) {
    for (let i = 0; i < stroke.length; i++) {
      const [ax, ay] = stroke[Math.max(0, i - 1)];
      const [bx, by] = stroke[i];
      const [dx, dy] = [bx - ax, by - ay];
      const length = dx * dx + dy * dy || 1;
      const from = (a, b) => Math.max(0, Math.floor(Math.min(a, b) - PEN));
      const to = (a, b) => Math.min(BITMAP - 1, Math.ceil(Math.max(a, b) + PEN));
      for (let y = from(ay, by); y <= to(ay, by); y++) {
        for (let x = from(ax, bx); x <= to(ax, bx); x++) {
          const [px, py] = [x + 0.5 - ax, y + 0.5 - ay];
          const along = clamp((px * dx + py * dy) / length);
          if ((px - along * dx) ** 2 + (py - along * dy) ** 2 <= reach) bitmap[y * BITMAP + x] = 1;
        }
      }
    }
  }
  return bitmap;
}

const range = (values) => [Math.min(...values), Math.max(...values)];
const clamp = (value) => Math.min(1, Math.max(0, value));
const mix = (a, b, share) => a + (b - a) * share;
