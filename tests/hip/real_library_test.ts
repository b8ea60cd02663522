import { assert, assertEquals, assertMatch } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { type RealLibrary, symbolNames } from "./real_library_work.ts";

/** What ROCm 5 does not export; its older twin is called there. */
const NEW = "hipGetDevicePropertiesR0600";
const OLD = "hipGetDeviceProperties";

async function look(): Promise<RealLibrary | undefined> {
  const script = fromFileUrl(new URL("real_library_work.ts", import.meta.url));
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", script],
  }).output();
  const decoder = new TextDecoder();
  assert(success, decoder.decode(stderr));
  const text = decoder.decode(stdout);
  return text === "" ? undefined : JSON.parse(text);
}

const library = await look();
const absent = library
  ? ""
  : " (ignored: AMD's HIP runtime is not installed, such as Debian's libamdhip64-5)";

Deno.test("the backend calls each function of the runtime once by name", () => {
  const names = symbolNames();
  assertEquals(new Set(names).size, names.length);
  for (const name of [NEW, OLD, "hipInit", "hipMemSetAccess", "hipFreeAsync"]) {
    assert(names.includes(name), name);
  }
});

Deno.test({
  name: `AMD's own runtime has every function that the backend calls${absent}`,
  ignore: library === undefined,
  fn() {
    const { name, missing } = library!;
    const expected = name.endsWith(".5") ? [NEW] : [];
    assertEquals(missing, expected, name);
  },
});

Deno.test({
  name: library && !library.refusal
    ? "AMD's own runtime without a device says so (ignored: there is a device)"
    : `AMD's own runtime without a device says so${absent}`,
  ignore: !library?.refusal,
  fn() {
    const [code, message] = library!.refusal!;
    assertEquals(code, "no-device", message);
    assertMatch(
      message,
      /^Cannot open the device "hip:0": no AMD device: .*(\/dev\/kfd|_VISIBLE_DEVICES)/,
    );
  },
});
