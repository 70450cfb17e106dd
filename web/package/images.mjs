// Images to tensors and back, as onnxruntime-web does it:
// https://onnxruntime.ai/docs/api/js/interfaces/TensorFactory.html#fromImage

import { EmberletError, EmberletRangeError, EmberletTypeError } from "./errors.mjs";

const FORMATS = { RGB: [0, 1, 2], RGBA: [0, 1, 2, 3], BGR: [2, 1, 0], RBG: [0, 2, 1] }; // the channels of red, green, blue, alpha

// The float32 values and dims of an ImageData, HTMLImageElement, ImageBitmap or address of an image:
// (channel of the pixel + bias) / mean.
export async function valuesOf(image, options) {
  const { width, height, data: pixels } = await pixelsOf(image, options);
  const { tensorFormat = isElement(image) ? "RGBA" : "RGB", tensorLayout = "NCHW", norm } = options ?? {};
  const channels = channelsOf(tensorFormat);
  const [mean, bias] = [each(norm?.mean, 255), each(norm?.bias, 0)];
  const values = new Float32Array(channels.length * width * height);
  const at = placed(tensorLayout, channels.length, width * height);
  for (const [color, channel] of channels.entries()) {
    for (let i = 0; i < width * height; i++) values[at(channel, i)] = (pixels[4 * i + color] + bias[color]) / mean[color];
  }
  const nchw = tensorLayout === "NCHW";
  return { values, dims: nchw ? [1, channels.length, height, width] : [1, height, width, channels.length] };
}

// The ImageData of the first image of a tensor: (value - bias) * mean.
export function imageOf({ dims, data }, options) {
  const { format, tensorLayout = "NCHW", norm } = options ?? {};
  const [count, height, width] = tensorLayout === "NCHW" ? dims.slice(1) : [dims[3], dims[1], dims[2]];
  const at = placed(tensorLayout, count, width * height);
  const channels = channelsOf(format ?? (count === 4 ? "RGBA" : "RGB"));
  if (dims.length !== 4 || channels.length !== count) {
    throw new EmberletError(`an image of ${format ?? "RGB or RGBA"}, ${tensorLayout}, has ${format ? channels.length : "3 or 4"} channels in four dims; found: [${dims}]`);
  }
  const [mean, bias] = [each(norm?.mean, 255), each(norm?.bias, 0)];
  const image = new ImageData(width, height);
  image.data.fill(255); // opaque
  for (const [color, channel] of channels.entries()) {
    for (let i = 0; i < width * height; i++) image.data[4 * i + color] = (Number(data[at(channel, i)]) - bias[color]) * mean[color];
  }
  return image;
}

// That image as the address of a PNG file.
export function addressOf(tensor, options) {
  const image = imageOf(tensor, options);
  const { canvas, context } = drawing(image);
  if (!canvas.toDataURL) throw new EmberletError("toDataURL needs a canvas of the page, and this is a worker; use toImageData");
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

const isElement = (image) => typeof HTMLImageElement === "function" && image instanceof HTMLImageElement;

async function pixelsOf(image, options) {
  const isData = image instanceof ImageData;
  if (isData && !options) return image;
  if (!isData && !isElement(image) && !(image instanceof ImageBitmap) && typeof image !== "string") {
    throw new EmberletTypeError(`fromImage takes an ImageData, an image element, an ImageBitmap or an address; found: ${image}`);
  }
  const source = typeof image === "string" ? await loaded(image) : image;
  const { context } = drawing(source);
  if (isData) context.putImageData(source, 0, 0);
  else context.drawImage(source, 0, 0);
  const { resizedWidth, resizedHeight } = isData || isElement(image) ? options ?? {} : {}; // the two kinds of image that onnxruntime cuts
  const cut = resizedWidth !== undefined && resizedHeight !== undefined;
  return context.getImageData(0, 0, cut ? resizedWidth : source.width, cut ? resizedHeight : source.height);
}

async function loaded(address) {
  try {
    if (typeof Image !== "function") return await createImageBitmap(await (await fetch(address)).blob());
    const image = Object.assign(new Image(), { crossOrigin: "anonymous", src: address });
    await image.decode();
    return image;
  } catch (error) {
    throw new EmberletError(`could not load the image ${address.slice(0, 100)}`, { cause: error });
  }
}

function drawing({ width, height }) {
  const canvas = typeof document === "object" ? Object.assign(document.createElement("canvas"), { width, height }) : new OffscreenCanvas(width, height);
  return { canvas, context: canvas.getContext("2d") };
}

function channelsOf(format) {
  if (!Object.hasOwn(FORMATS, format)) throw new EmberletRangeError(`an image's format is one of ${Object.keys(FORMATS).join(", ")}; found: ${format}`);
  return FORMATS[format];
}

// Where a tensor has the channel of a pixel.
function placed(layout, channels, pixels) {
  if (layout === "NCHW") return (channel, i) => channel * pixels + i;
  if (layout === "NHWC") return (channel, i) => channels * i + channel;
  throw new EmberletRangeError(`tensorLayout is NCHW or NHWC; found: ${layout}`);
}

// One number for each of four colors; given: a number, or one for each of three or four.
const each = (given, otherwise) => Array.from({ length: 4 }, (_, i) => (typeof given === "object" ? given?.[i] : given) ?? otherwise);
