import { assert, assertEquals, assertGreater } from "@std/assert";
import {
  ABI_VERSION,
  AccessFlag,
  Backend,
  Property,
  Status,
  SYMBOLS,
} from "../ffi/symbols.ts";

const read = (path: string) =>
  Deno.readTextFile(new URL(`../${path}`, import.meta.url));
const header = (await read("native/moonbright.h"))
  .replaceAll(/\/\*.*?\*\//gs, "");
const table = await read("ffi/symbols.ts");

interface Signature {
  result: string;
  /** C type and name, such as `const double *sizes`. */
  parameters: string[];
}

/** The functions that the header declares. */
function declared(): Map<string, Signature> {
  const functions = new Map<string, Signature>();
  for (
    const [, result, name, list] of header.matchAll(
      /MB_API\s+(\w+)\s+(mb_\w+)\(([^)]*)\);/g,
    )
  ) {
    const parameters = list!.split(",").map((one) =>
      one.trim().replaceAll(/\s+/g, " ")
    );
    functions.set(name!, {
      result: result!,
      parameters: parameters.join() === "void" ? [] : parameters,
    });
  }
  return functions;
}

/** The type by which a C parameter, or result without a name, must cross. */
function crossingType(parameter: string): string {
  if (parameter.includes("*")) return "buffer";
  const [cType = ""] = parameter.split(" ");
  const type = { int32_t: "i32", uint32_t: "u32", double: "f64" }[cType];
  assert(type, `"${parameter}" may not cross`);
  return type;
}

/** The values of an enum of the header, without the prefix of their names. */
function enumValues(name: string, prefix: string): Record<string, number> {
  const body = new RegExp(`typedef enum ${name} \\{([^}]*)\\}`).exec(header);
  assert(body, `the header has no enum ${name}`);
  const values: Record<string, number> = {};
  for (const text of body[1]!.split(",").filter((one) => one.trim())) {
    const [, member, value] = /^\s*(\w+) = (\d+)\s*$/.exec(text) ?? [];
    assert(
      member !== undefined && member.startsWith(prefix),
      `"${text}" gives no value`,
    );
    values[member.slice(prefix.length)] = Number(value);
  }
  return values;
}

const functions = declared();
const symbols: Record<string, Deno.ForeignFunction> = SYMBOLS;

Deno.test("the table has every function of the header, and no other", () => {
  // A declaration that the pattern can't read must not go unnoticed.
  assertEquals(functions.size, header.match(/\bmb_\w+\s*\(/g)?.length);
  assertGreater(functions.size, 40);
  const blocking = Object.keys(SYMBOLS).filter((name) =>
    !name.endsWith("_async")
  );
  assertEquals(blocking.sort(), [...functions.keys()].sort());
});

Deno.test("parameters and results cross with the header's types", () => {
  for (const [name, symbol] of Object.entries(symbols)) {
    const inC = functions.get(symbol.name ?? name);
    assert(inC, `the header has no "${symbol.name}"`);
    assertEquals(
      { parameters: symbol.parameters, result: symbol.result },
      {
        parameters: inC.parameters.map(crossingType) as Deno.NativeType[],
        result: crossingType(inC.result) as Deno.NativeResultType,
      },
      name,
    );
  }
});

Deno.test("comments in the table give the header's types and names", () => {
  for (const [name, symbol] of Object.entries(symbols)) {
    const entry = new RegExp(`^  ${name}: \\{.*?^  \\},`, "ms").exec(table);
    assert(entry, `"${name}" is not in the table's text`);
    const comments = [...entry[0].matchAll(/", \/\/ (.*)$/gm)].map(([, c]) =>
      c
    );
    assertEquals(comments, functions.get(symbol.name ?? name)?.parameters);
  }
});

Deno.test("calls that may wait have twins that don't block", () => {
  const twins = Object.entries(symbols).filter(([name]) =>
    name.endsWith("_async")
  );
  assertEquals(twins.map(([name]) => name).sort(), [
    "mb_copy_in_async",
    "mb_copy_out_async",
    "mb_event_synchronize_async",
    "mb_stream_synchronize_async",
    "mb_synchronize_async",
    "mb_time_launch_async",
  ]);
  for (const [name, { name: target, nonblocking }] of twins) {
    assertEquals(target, name.slice(0, -"_async".length));
    assertEquals(nonblocking, true);
  }
});

Deno.test("constants are the header's", () => {
  assertEquals(enumValues("MbStatus", "MB_"), { ...Status });
  assertEquals(enumValues("MbBackendId", "MB_BACKEND_"), { ...Backend });
  assertEquals(enumValues("MbAccess", "MB_ACCESS_"), { ...AccessFlag });
  assertEquals(enumValues("MbProperty", "MB_PROP_"), { ...Property });
  const version = /^#define MB_ABI_VERSION (\d+)$/m.exec(header);
  assertEquals(Number(version?.[1]), ABI_VERSION);
});
