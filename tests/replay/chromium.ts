// A headless Chromium, driven through its DevTools protocol.

/** Whether Chromium is there, and the end of a test's name if it is not. */
export function needChromium(): { ignore: boolean; reason: string } {
  try {
    new Deno.Command("chromium", { args: ["--version"] }).outputSync();
    return { ignore: false, reason: "" };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return { ignore: true, reason: " (ignored: chromium not installed)" };
  }
}

/** What a page may be shown with. */
export interface PageOptions {
  /** The system's theme. */
  scheme?: "light" | "dark";
}

/** Shows a page to a function, then closes the browser. */
export async function withPage(
  html: string,
  visit: (page: Page) => Promise<void>,
  { scheme = "light" }: PageOptions = {},
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "moonbright-report-" });
  const file = `${folder}/report.html`;
  await Deno.writeTextFile(file, html);
  const browser = new Deno.Command("timeout", {
    args: [
      "60",
      "chromium",
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      // Containers give little of /dev/shm.
      "--disable-dev-shm-usage",
      "--window-size=1400,1000",
      `--user-data-dir=${folder}/profile`,
      "--remote-debugging-port=0",
      "about:blank",
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const said = browser.stderr.pipeThrough(new TextDecoderStream()).getReader();
  try {
    const page = await Page.open(await debuggingPort(said));
    try {
      await page.send("Emulation.setEmulatedMedia", {
        features: [{ name: "prefers-color-scheme", value: scheme }],
      });
      await page.load(`file://${file}`);
      await page.until(
        "document.documentElement.dataset.ready || document.documentElement.dataset.errors",
      );
      await visit(page);
    } finally {
      await page.close();
    }
  } finally {
    await said.cancel();
    await browser.status;
    await removeFolder(folder);
  }
}

/** Removes a folder to which the browser's last processes may still be writing. */
async function removeFolder(folder: string): Promise<void> {
  for (let tries = 20;; tries--) {
    try {
      return await Deno.remove(folder, { recursive: true });
    } catch (error) {
      if (tries === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

async function debuggingPort(
  said: ReadableStreamDefaultReader<string>,
): Promise<string> {
  let text = "";
  while (true) {
    const { value, done } = await said.read();
    if (done) throw new Error(`chromium ended:\n${text}`);
    text += value;
    const match = /DevTools listening on ws:\/\/([^/]+)\//.exec(text);
    if (match) return match[1]!;
  }
}

/** A page in the browser. */
export class Page {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number | string, (message: Message) => void>();
  readonly #closed: Promise<void>;
  #sent = 0;
  /** Errors and warnings on the console, and what the page asked the network for. */
  readonly complaints: string[] = [];

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const message: Message = JSON.parse(data);
      const complaint = complaintOf(message);
      if (complaint) this.complaints.push(complaint);
      const key = message.id ?? message.method!;
      this.#waiting.get(key)?.(message);
      this.#waiting.delete(key);
    };
    this.#closed = new Promise((resolve) => {
      socket.onclose = () => {
        const error = { message: "chromium ended" };
        for (const answer of this.#waiting.values()) answer({ error });
        resolve();
      };
    });
  }

  /** The browser's first page. */
  static async open(host: string): Promise<Page> {
    const answer = await fetch(`http://${host}/json/list`);
    const targets: { type: string; webSocketDebuggerUrl: string }[] =
      await answer.json();
    const target = targets.find(({ type }) => type === "page")!;
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    return new Page(socket);
  }

  /** Goes to an address and waits until all of it is there. */
  async load(url: string): Promise<void> {
    for (const domain of ["Page", "Log", "Runtime", "Network"]) {
      await this.send(`${domain}.enable`);
    }
    const loaded = this.#next("Page.loadEventFired");
    await this.send("Page.navigate", { url });
    const { error } = await loaded;
    if (error) throw new Error(`${url}: ${error.message}`);
  }

  /** Sends a command and waits for its result. */
  async send(
    method: string,
    params: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> {
    const id = ++this.#sent;
    const answer = this.#next(id);
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await answer;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result!;
  }

  /** The value of an expression within the page. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    }) as { result: { value: unknown }; exceptionDetails?: unknown };
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  }

  /** Waits until an expression is true, for 20 seconds at most. */
  async until(expression: string): Promise<void> {
    for (let tries = 0; tries < 400; tries++) {
      if (await this.evaluate(`Boolean(${expression})`)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`never true in the page: ${expression}`);
  }

  /** The text of the element with this id. */
  async text(id: string): Promise<string> {
    return String(
      await this.evaluate(`document.getElementById("${id}").textContent`),
    );
  }

  /** An attribute of the page's data, such as what it says of itself. */
  async data(name: string): Promise<string | undefined> {
    return await this.evaluate(
      `document.documentElement.dataset.${name}`,
    ) as string | undefined;
  }

  /** Presses and lets go of a key. */
  async press(key: string): Promise<void> {
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key });
  }

  /** Moves the mouse to a place within an element, given in parts of its size, and clicks there if asked to. */
  async point(
    id: string,
    across: number,
    down: number,
    click = false,
  ): Promise<void> {
    const [x, y] = await this.evaluate(`(() => {
      const element = document.getElementById("${id}");
      element.scrollIntoView({ block: "center" });
      const { left, top, width, height } = element.getBoundingClientRect();
      return [left + ${across} * width, top + ${down} * height];
    })()`) as [number, number];
    const mouse = (type: string) =>
      this.send("Input.dispatchMouseEvent", {
        type,
        x,
        y,
        button: type === "mouseMoved" ? "none" : "left",
        clickCount: type === "mouseMoved" ? 0 : 1,
      });
    await mouse("mouseMoved");
    if (!click) return;
    await mouse("mousePressed");
    await mouse("mouseReleased");
  }

  /** The answer to the command with this number, or the next event of this name. */
  #next(key: number | string): Promise<Message> {
    return new Promise((resolve) => this.#waiting.set(key, resolve));
  }

  /** Ends the browser. */
  async close(): Promise<void> {
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.send(
        JSON.stringify({ id: ++this.#sent, method: "Browser.close" }),
      );
    }
    await this.#closed;
  }
}

interface Message {
  id?: number;
  method?: string;
  // deno-lint-ignore no-explicit-any
  params?: any;
  result?: Record<string, unknown>;
  error?: { message: string };
}

/** What is wrong with an event, if anything is. */
function complaintOf({ method, params }: Message): string | undefined {
  switch (method) {
    case "Log.entryAdded": {
      const { level, text } = params.entry;
      return ["error", "warning"].includes(level) ? `log: ${text}` : undefined;
    }
    case "Runtime.consoleAPICalled":
      return ["error", "warning", "assert"].includes(params.type)
        ? `console: ${JSON.stringify(params.args)}`
        : undefined;
    case "Runtime.exceptionThrown":
      return `exception: ${JSON.stringify(params.exceptionDetails)}`;
    case "Network.requestWillBeSent": {
      const { type, request: { url } } = params;
      return type === "Document" || url.startsWith("data:")
        ? undefined
        : `request: ${url}`;
    }
    default:
      return undefined;
  }
}
