// Drives one Chromium for a whole pytest session: a command per line on stdin, a reply per line on stdout, both JSON.
//   {"id": 7, "do": "evaluate", "page": 1, "code": "...", "argument": ...}  ->  {"id": 7, "value": ...} or {"id": 7, "error": "..."}
// `code` is the source of a JavaScript function of one argument; what it returns (or resolves to) must be JSON.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [playwright, executablePath, webgpu, ...more] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(playwright).href);

// SwiftShader gives every machine the same WebGPU, in software; the rest keeps Chromium from calling home.
const software = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
const flags = [
  ...(webgpu === "webgpu" ? software : ["--disable-gpu"]),
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--enable-blink-features=ForceEagerMeasureMemory", // measureUserAgentSpecificMemory answers at once
  // A camera and a microphone that show and sound a test pattern, without a question to anybody.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  ...more,
];

const browser = await chromium.launch({ executablePath, headless: true, args: flags });
const PATIENCE = 4; // a busy machine takes several times as long; what waits asks for a state, so an idle one waits no longer
const pages = new Map(); // number -> { context, page, log }
let next = 0;

const commands = {
  version: () => browser.version(),

  async open({ url, width = 1000, height = 760, touch = false, scale = 1, dark = false, forced = false, before = "" }) {
    const context = await browser.newContext({
      viewport: { width, height },
      hasTouch: touch,
      isMobile: touch,
      deviceScaleFactor: scale,
      colorScheme: dark ? "dark" : "light",
      forcedColors: forced ? "active" : "none",
    });
    const page = await context.newPage();
    if (before) await page.addInitScript(before);
    const log = [];
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("console", (message) => log.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => log.push(`uncaught: ${error.stack ?? error}`));
    page.on("crash", () => log.push("crash: the page crashed"));
    page.on("requestfailed", (request) => log.push(`request failed: ${request.url()} ${request.failure()?.errorText}`));
    const response = await page.goto(url, { timeout: PATIENCE * 60000 });
    if (!response?.ok()) throw new Error(`${url} answered ${response?.status()}`);
    pages.set(++next, { context, page, log, requests });
    return next;
  },

  evaluate: ({ page, code, argument, timeout = 60000 }) =>
    Promise.race([
      pages.get(page).page.evaluate(`(${code})(${JSON.stringify(argument ?? null)})`),
      new Promise((_, reject) => setTimeout(() => reject(new Error(`no answer in ${PATIENCE * timeout} ms`)), PATIENCE * timeout)),
    ]),
  wait: async ({ page, code, timeout = 30000 }) => {
    // Playwright's waitForFunction calls eval in the page, which a content security policy may forbid.
    const until = Date.now() + PATIENCE * timeout;
    const holds = () =>
      pages.get(page).page.evaluate(`Promise.resolve((${code})()).then(Boolean)`).catch((error) => {
        if (/Execution context was destroyed/.test(error)) return false; // the page navigates
        throw error;
      });
    while (!(await holds())) {
      if (Date.now() > until) throw new Error(`Timeout ${PATIENCE * timeout}ms exceeded: ${code}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return true;
  },
  goto: async ({ page, url }) => void (await pages.get(page).page.goto(url)),
  block: async ({ page, pattern }) => void (await pages.get(page).context.route(pattern, (route) => route.abort())),
  // Put code before a script that the site serves.
  prepend: async ({ page, pattern, code }) =>
    void (await pages.get(page).context.route(pattern, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: `${code};\n${await response.text()}` });
    })),
  unblock: async ({ page }) => void (await pages.get(page).context.unrouteAll()),
  // Prefer light or dark colors from now on.
  color: async ({ page, scheme }) => void (await pages.get(page).page.emulateMedia({ colorScheme: scheme })),
  screenshot: async ({ page, path, full = false }) => void (await pages.get(page).page.screenshot({ path, fullPage: full })),
  click: async ({ page, selector }) => void (await pages.get(page).page.click(selector)),
  // Choose files of an <input type="file">.
  files: async ({ page, selector, paths }) => void (await pages.get(page).page.setInputFiles(selector, paths)),
  fill: async ({ page, selector, text }) => void (await pages.get(page).page.fill(selector, text)),
  select: async ({ page, selector, value }) => void (await pages.get(page).page.selectOption(selector, value)),
  focus: async ({ page, selector }) => void (await pages.get(page).page.focus(selector)),
  press: async ({ page, key }) => void (await pages.get(page).page.keyboard.press(key)),

  // Draw with the mouse inside an element: strokes are lists of [x, y] in 0..1 of its width and height.
  async draw({ page, selector, strokes }) {
    const target = pages.get(page).page;
    const box = await target.locator(selector).boundingBox();
    for (const stroke of strokes) {
      for (const [step, [x, y]] of stroke.entries()) {
        await target.mouse.move(box.x + x * box.width, box.y + y * box.height, { steps: 4 });
        if (step === 0) await target.mouse.down();
      }
      await target.mouse.up();
    }
  },

  // The same with a finger, through the browser's own touch input.
  async swipe({ page, selector, strokes }) {
    const { context, page: target } = pages.get(page);
    const box = await target.locator(selector).boundingBox();
    const session = await context.newCDPSession(target);
    for (const stroke of strokes) {
      const points = stroke.map(([x, y]) => ({ x: box.x + x * box.width, y: box.y + y * box.height }));
      await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [points[0]] });
      for (const point of points.slice(1)) {
        await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [point] });
      }
      await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    }
    await session.detach();
  },

  // From here on, tasks are recorded; `tasks` ends it and tells those of pages' own threads, the longest first, in ms of
  // processor time, which another process's load does not lengthen.
  trace: async ({ page }) => void (await browser.startTracing(pages.get(page).page, { categories: ["toplevel"] })),
  async tasks() {
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const place = ({ pid, tid }) => `${pid} ${tid}`;
    const own = traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(place);
    const tasks = traceEvents.filter((event) => event.name.endsWith("RunTask") && event.tdur && own.includes(place(event)));
    return tasks.map(({ tdur }) => tdur / 1000).sort((a, b) => b - a);
  },

  requests: ({ page }) => pages.get(page).requests,
  log: ({ page }) => pages.get(page).log.splice(0),
  close: async ({ page }) => {
    await pages.get(page).context.close();
    pages.delete(page);
  },
};

const reply = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const { id, do: name, ...rest } = JSON.parse(line);
    try {
      reply({ id, value: (await commands[name](rest)) ?? null });
    } catch (error) {
      reply({ id, error: String(error.stack ?? error) });
    }
  })
  .on("close", async () => {
    await browser.close();
    process.exit(0);
  });
