import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { assertPlatform } from "../ffi/platform.ts";
import { MoonBrightError } from "../lib/errors.ts";

Deno.test("Linux on x86-64 and arm64 is what the shim is built for", () => {
  assertPlatform();
  assertPlatform("linux", "x86_64");
  assertPlatform("linux", "aarch64");
});

Deno.test("elsewhere an error says where MoonBright runs", () => {
  for (
    const [os, processor, instead] of [
      ["windows", "x86_64", "use WSL 2"],
      ["darwin", "aarch64", "virtual machine"],
      ["freebsd", "x86_64", "virtual machine"],
      ["linux", "riscv64", "x86-64 or arm64"],
    ] as const
  ) {
    const error = assertThrows(
      () => assertPlatform(os, processor),
      MoonBrightError,
      `for ${os} ${processor}`,
    );
    assertEquals(error.code, "unsupported");
    assertStringIncludes(error.message, instead);
  }
});
