/**
 * The example's kernel as a module image: PTX that was compiled before, or a shared
 * object that is compiled now.
 *
 * @module
 */

import type { DeviceInfo } from "@moonbright/moonbright";
import { fromFileUrl } from "@std/path";

const SOURCE = fromFileUrl(new URL("vector_add.c", import.meta.url));
const HEADERS = fromFileUrl(new URL("../../kernels/", import.meta.url));

/** Makes the PTX anew: what a test compares `vector_add.ptx` with. */
export const PTX_COMMAND: readonly string[] = [
  "clang-19",
  ...["--target=nvptx64-nvidia-cuda", "-march=sm_70", "--cuda-feature=+ptx60"],
  ...["-O3", "-std=c11", "-ffreestanding", "-fno-ident", "-I", HEADERS],
  ...["-S", SOURCE, "-o"],
];

const HOST_COMMAND = [
  "cc",
  ...["-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden"],
  ...["-I", HEADERS, SOURCE, "-o"],
];

/**
 * The image for a device.
 *
 * @throws {Error} if there is none for its backend, or the compiler fails
 */
export function vectorAddImage(device: DeviceInfo): Uint8Array | string {
  switch (device.backend) {
    case "cuda":
      return Deno.readTextFileSync(
        new URL("vector_add.ptx", import.meta.url),
      );
    case "host":
      return compileForHost();
    default:
      throw new Error(
        `Cannot add vectors on ${device.backend}: compile vector_add.c for it first, as kernels/README.md says`,
      );
  }
}

function compileForHost(): Uint8Array {
  const file = Deno.makeTempFileSync({ suffix: ".so" });
  try {
    const [compiler, ...args] = HOST_COMMAND;
    const { success, stderr } = new Deno.Command(compiler!, {
      args: [...args, file],
    }).outputSync();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    return Deno.readFileSync(file);
  } finally {
    Deno.removeSync(file);
  }
}
