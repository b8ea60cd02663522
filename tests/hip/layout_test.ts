import { assert } from "@std/assert";
import { fromFileUrl, join } from "@std/path";

const NATIVE = fromFileUrl(new URL("../../native", import.meta.url));

async function compile(
  source: string,
): Promise<{ success: boolean; text: string }> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-layouts-" });
  try {
    const unit = join(dir, "layouts.c");
    await Deno.writeTextFile(unit, source);
    const { success, stderr } = await new Deno.Command("cc", {
      args: ["-std=c11", "-fsyntax-only", `-I${NATIVE}`, unit],
    }).output();
    return { success, text: new TextDecoder().decode(stderr) };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return { success: false, text: "cc is not installed" };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** AMD's header, as C on any compiler. */
const VENDOR = `
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <stddef.h>
`;

const OURS = `
#include <stddef.h>
#include "hip_api.h"
`;

/** What our header calls the vendor's values. */
const VALUES: Record<string, string> = {
  HIP_RESULT_SUCCESS: "hipSuccess",
  HIP_RESULT_INVALID_VALUE: "hipErrorInvalidValue",
  HIP_RESULT_OUT_OF_MEMORY: "hipErrorOutOfMemory",
  HIP_RESULT_DEINITIALIZED: "hipErrorDeinitialized",
  HIP_RESULT_NO_DEVICE: "hipErrorNoDevice",
  HIP_RESULT_INVALID_DEVICE: "hipErrorInvalidDevice",
  HIP_RESULT_NO_BINARY_FOR_GPU: "hipErrorNoBinaryForGpu",
  HIP_RESULT_ECC_UNCORRECTABLE: "hipErrorECCNotCorrectable",
  HIP_RESULT_NOT_FOUND: "hipErrorNotFound",
  HIP_RESULT_NOT_READY: "hipErrorNotReady",
  HIP_RESULT_ILLEGAL_ADDRESS: "hipErrorIllegalAddress",
  HIP_RESULT_LAUNCH_TIMEOUT: "hipErrorLaunchTimeOut",
  HIP_RESULT_ASSERT: "hipErrorAssert",
  HIP_RESULT_LAUNCH_FAILURE: "hipErrorLaunchFailure",
  HIP_RESULT_NOT_SUPPORTED: "hipErrorNotSupported",
  HIP_RESULT_CAPTURE_INVALIDATED: "hipErrorStreamCaptureInvalidated",
  HIP_ATTRIBUTE_INTEGRATED: "hipDeviceAttributeIntegrated",
  HIP_ATTRIBUTE_MULTIPROCESSORS: "hipDeviceAttributeMultiprocessorCount",
  HIP_ATTRIBUTE_POOLS: "hipDeviceAttributeMemoryPoolsSupported",
  HIP_ALLOCATION_PINNED: "hipMemAllocationTypePinned",
  HIP_LOCATION_DEVICE: "hipMemLocationTypeDevice",
  HIP_GRANULARITY_MINIMUM: "hipMemAllocationGranularityMinimum",
  HIP_GRANULARITY_RECOMMENDED: "hipMemAllocationGranularityRecommended",
  HIP_STREAM_NON_BLOCKING: "hipStreamNonBlocking",
  HIP_EVENT_DISABLE_TIMING: "hipEventDisableTiming",
  HIP_POOL_RELEASE_THRESHOLD: "hipMemPoolAttrReleaseThreshold",
  HIP_HOST_PORTABLE: "hipHostMallocPortable",
  HIP_HOST_DEVICE_MAP: "hipHostMallocMapped",
  HIP_CAPTURE_RELAXED: "hipStreamCaptureModeRelaxed",
};

/** The same where mapping memory works at all. */
const LATER_VALUES: Record<string, string> = {
  HIP_ATTRIBUTE_VMM: "hipDeviceAttributeVirtualMemoryManagementSupported",
};

/** Sizes and offsets of structures that both headers declare. */
const STRUCTS: [ours: string, vendor: string, members: [string, string][]][] = [
  ["HipLocation", "hipMemLocation", [["type", "type"], ["id", "id"]]],
  ["HipAccess", "hipMemAccessDesc", [
    ["location", "location"],
    ["flags", "flags"],
  ]],
  ["HipPoolProperties", "hipMemPoolProps", [
    ["type", "allocType"],
    ["handle_types", "handleTypes"],
    ["location", "location"],
    ["win32", "win32SecurityAttributes"],
  ]],
];

/** Those that came to be as they are with 5.3. */
const LATER_STRUCTS: typeof STRUCTS = [
  ["HipAllocationProperties", "hipMemAllocationProp", [
    ["type", "type"],
    ["handle_types", "requestedHandleType"],
    ["location", "location"],
    ["win32", "win32HandleMetaData"],
    ["compression", "allocFlags"],
  ]],
];

/**
 * What headers from 6.0 to 7.14 say and the older ones do not; looked up in the vendor's
 * public repositories, ROCm/hip and ROCm/rocm-systems.
 */
const NEWER: Record<string, number> = {
  HIP_ATTRIBUTE_VMM: 89,
  HIP_FIRST_VMM_VERSION: 60100000,
  HIP_R0600_ARCHITECTURE_AT: 1160,
  "sizeof(HipAllocationProperties)": 32,
  "offsetof(HipAllocationProperties, type)": 0,
  "offsetof(HipAllocationProperties, handle_types)": 4,
  "offsetof(HipAllocationProperties, location)": 8,
  "offsetof(HipAllocationProperties, win32)": 16,
  "offsetof(HipAllocationProperties, compression)": 24,
  "offsetof(HipAllocationProperties, rdma_capable)": 25,
  "offsetof(HipAllocationProperties, usage)": 26,
};

/** The vendor's names of our types. */
const TYPES: Record<string, string> = {
  HipResult: "hipError_t",
  HipDeviceId: "hipDevice_t",
  HipPointer: "void *",
  HipAllocation: "hipMemGenericAllocationHandle_t",
  HipStream: "hipStream_t",
  HipEvent: "hipEvent_t",
  HipModule: "hipModule_t",
  HipFunction: "hipFunction_t",
  HipPool: "hipMemPool_t",
  HipGraph: "hipGraph_t",
  HipGraphExec: "hipGraphExec_t",
  HipAllocationProperties: "hipMemAllocationProp",
  HipLocation: "hipMemLocation",
  HipAccess: "hipMemAccessDesc",
  HipPoolProperties: "hipMemPoolProps",
};

/** Parameters that we declare as a number or an unknown pointer, and the vendor closer. */
const CLOSER: Record<string, [ours: string, vendor: string]> = {
  hipDeviceGetAttribute: ["int attribute", "hipDeviceAttribute_t attribute"],
  hipGetDeviceProperties: ["void *", "hipDeviceProp_t *"],
  hipGetDevicePropertiesR0600: ["void *", "hipDeviceProp_t *"],
  hipMemGetAllocationGranularity: [
    "int option",
    "hipMemAllocationGranularity_flags option",
  ],
  hipMemPoolSetAttribute: ["int attribute", "hipMemPoolAttr attribute"],
  hipStreamBeginCapture: ["int mode", "hipStreamCaptureMode mode"],
  hipStreamIsCapturing: ["int *status", "hipStreamCaptureStatus *status"],
  hipGraphInstantiate: ["void **error_node", "hipGraphNode_t *error_node"],
};

const assertion = (condition: string, what: string) =>
  `_Static_assert(${condition}, "${what}");`;

function valueAssertions(values: Record<string, string>): string[] {
  return Object.entries(values).map(([ours, vendor]) =>
    assertion(`(int)${ours} == (int)${vendor}`, vendor)
  );
}

function structAssertions(structs: typeof STRUCTS): string[] {
  return structs.flatMap(([ours, vendor, members]) => [
    assertion(`sizeof(${ours}) == sizeof(${vendor})`, vendor),
    ...members.map(([member, theirs]) =>
      assertion(
        `offsetof(${ours}, ${member}) == offsetof(${vendor}, ${theirs})`,
        `${vendor}.${theirs}`,
      )
    ),
  ]);
}

/** Pointers to the vendor's functions, of the types that our header gives them. */
function functionPointers(header: string): string[] {
  const declared = header.replaceAll(/\\\n/g, " ");
  return [...declared.matchAll(/\bX\(([\w *]+), (hip\w+), *(\(.*?\))\)(?= )/g)]
    .map(([, result = "", name = "", parameters = ""]) => {
      const [ours, vendor] = CLOSER[name] ?? ["", ""];
      assert(parameters.includes(ours), `${name}: ${parameters}`);
      const type = (text: string) =>
        text.replaceAll(/\bHip\w+/g, (word) => TYPES[word] ?? word)
          .replaceAll(/\bconst\b/g, "");
      const pointer = `static ${type(result)} (*of_${name})${
        type(parameters.replace(ours, vendor))
      } = ${name};`;
      return name.endsWith("R0600")
        ? `#if HIP_VERSION >= 60000000\n${pointer}\n#endif`
        : pointer;
    });
}

const header = await compile(VENDOR);
const absent = header.success
  ? ""
  : " (ignored: hip/hip_runtime_api.h is not installed, such as Debian's libamdhip64-dev)";

Deno.test({
  name: `layouts and values are those of AMD's header${absent}`,
  ignore: !header.success,
  async fn() {
    const { success, text } = await compile([
      VENDOR,
      OURS,
      ...valueAssertions(VALUES),
      ...structAssertions(STRUCTS),
      assertion("HIP_ARGS_BUFFER == HIP_LAUNCH_PARAM_BUFFER_POINTER", "buffer"),
      assertion("HIP_ARGS_BUFFER_SIZE == HIP_LAUNCH_PARAM_BUFFER_SIZE", "size"),
      assertion("HIP_ARGS_END == HIP_LAUNCH_PARAM_END", "end"),
      assertion("sizeof(hipDeviceProp_t) <= HIP_PROPERTIES_ROOM", "room"),
      "#if HIP_VERSION < 60000000",
      assertion(
        "offsetof(hipDeviceProp_t, gcnArchName) == HIP_R0000_ARCHITECTURE_AT",
        "gcnArchName",
      ),
      "#else",
      assertion(
        "offsetof(hipDeviceProp_t, gcnArchName) == HIP_R0600_ARCHITECTURE_AT",
        "gcnArchName",
      ),
      "#endif",
      "#if HIP_VERSION >= 50300000",
      ...structAssertions(LATER_STRUCTS),
      "#endif",
      "#if HIP_VERSION >= 60000000",
      ...valueAssertions(LATER_VALUES),
      "#endif",
    ].join("\n"));
    assert(success, text);
  },
});

Deno.test({
  name: `functions have the parameters of AMD's header${absent}`,
  ignore: !header.success,
  async fn() {
    const pointers = functionPointers(
      await Deno.readTextFile(join(NATIVE, "hip_api.h")),
    );
    assert(pointers.length > 50);
    // The vendor added "const" to some parameters over time.
    const { success, text } = await compile([
      "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>",
      "#define const",
      VENDOR,
      '#pragma GCC diagnostic error "-Wincompatible-pointer-types"',
      ...pointers,
    ].join("\n"));
    assert(success, text);
  },
});

const compiler = (await compile(OURS)).success;

Deno.test({
  name: `layouts and values are those of newer headers, as they were looked up${
    compiler ? "" : " (ignored: cc is not installed)"
  }`,
  ignore: !compiler,
  async fn() {
    const { success, text } = await compile([
      OURS,
      ...Object.entries(NEWER).map(([ours, value]) =>
        assertion(`${ours} == ${value}`, ours)
      ),
    ].join("\n"));
    assert(success, text);
  },
});
