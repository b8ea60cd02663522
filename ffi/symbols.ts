/**
 * The shim's functions as Deno calls them. Every line of parameters carries the C type
 * and name of `native/moonbright.h`; a test holds the two against each other.
 *
 * @module
 */

/**
 * Symbol table of the shim. Those ending in `_async` run on another thread and return a
 * promise.
 */
export const SYMBOLS = {
  mb_abi_version: {
    parameters: [],
    result: "i32",
  },
  mb_error_text: {
    parameters: [
      "buffer", // uint8_t *text
      "u32", // uint32_t capacity
    ],
    result: "i32",
  },
  mb_driver_code: {
    parameters: [],
    result: "i32",
  },
  mb_device_count: {
    parameters: [
      "i32", // int32_t backend
      "buffer", // const uint8_t *library
      "u32", // uint32_t library_length
      "buffer", // uint32_t *count
    ],
    result: "i32",
  },
  mb_device_properties: {
    parameters: [
      "i32", // int32_t backend
      "buffer", // const uint8_t *library
      "u32", // uint32_t library_length
      "u32", // uint32_t ordinal
      "buffer", // double *properties
      "buffer", // uint8_t *name
      "u32", // uint32_t name_capacity
    ],
    result: "i32",
  },
  mb_open: {
    parameters: [
      "i32", // int32_t backend
      "buffer", // const uint8_t *library
      "u32", // uint32_t library_length
      "u32", // uint32_t ordinal
      "buffer", // uint32_t *device
    ],
    result: "i32",
  },
  mb_close: {
    parameters: [
      "u32", // uint32_t device
    ],
    result: "i32",
  },
  mb_memory_info: {
    parameters: [
      "u32", // uint32_t device
      "buffer", // double *free_and_total
    ],
    result: "i32",
  },
  mb_synchronize: {
    parameters: [
      "u32", // uint32_t device
    ],
    result: "i32",
  },
  mb_synchronize_async: {
    name: "mb_synchronize",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
    ],
    result: "i32",
  },
  mb_reserve: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "buffer", // double *address
    ],
    result: "i32",
  },
  mb_unreserve: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
    ],
    result: "i32",
  },
  mb_extents_create: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t count
      "buffer", // const double *sizes
      "buffer", // uint32_t *extents
    ],
    result: "i32",
  },
  mb_extents_release: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t count
      "buffer", // const uint32_t *extents
    ],
    result: "i32",
  },
  mb_map: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "u32", // uint32_t count
      "buffer", // const uint32_t *extents
      "i32", // int32_t access
      "buffer", // double *elapsed_ns
    ],
    result: "i32",
  },
  mb_set_access: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "f64", // double size
      "i32", // int32_t access
    ],
    result: "i32",
  },
  mb_unmap: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t count
      "buffer", // const double *addresses
      "buffer", // const double *sizes
    ],
    result: "i32",
  },
  mb_stream_create: {
    parameters: [
      "u32", // uint32_t device
      "buffer", // uint32_t *stream
    ],
    result: "i32",
  },
  mb_stream_destroy: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_stream_synchronize: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_stream_synchronize_async: {
    name: "mb_stream_synchronize",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_stream_handle: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
      "buffer", // uint64_t *handle
    ],
    result: "i32",
  },
  mb_stream_wait: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
      "u32", // uint32_t event
    ],
    result: "i32",
  },
  mb_event_create: {
    parameters: [
      "u32", // uint32_t device
      "i32", // int32_t timing
      "buffer", // uint32_t *event
    ],
    result: "i32",
  },
  mb_event_destroy: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t event
    ],
    result: "i32",
  },
  mb_event_record: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t event
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_event_query: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t event
    ],
    result: "i32",
  },
  mb_event_synchronize: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t event
    ],
    result: "i32",
  },
  mb_event_synchronize_async: {
    name: "mb_event_synchronize",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t event
    ],
    result: "i32",
  },
  mb_event_elapsed: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t start
      "u32", // uint32_t end
      "buffer", // double *milliseconds
    ],
    result: "i32",
  },
  mb_memset: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "u32", // uint32_t value
      "u32", // uint32_t width
      "f64", // double count
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_copy_in: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double destination
      "buffer", // const uint8_t *source
      "f64", // double bytes
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_copy_in_async: {
    name: "mb_copy_in",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
      "f64", // double destination
      "buffer", // const uint8_t *source
      "f64", // double bytes
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_copy_out: {
    parameters: [
      "u32", // uint32_t device
      "buffer", // uint8_t *destination
      "f64", // double source
      "f64", // double bytes
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_copy_out_async: {
    name: "mb_copy_out",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
      "buffer", // uint8_t *destination
      "f64", // double source
      "f64", // double bytes
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_copy: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double destination
      "f64", // double source
      "f64", // double bytes
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_module_load: {
    parameters: [
      "u32", // uint32_t device
      "buffer", // const uint8_t *image
      "f64", // double bytes
      "buffer", // uint32_t *module
    ],
    result: "i32",
  },
  mb_module_unload: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t module
    ],
    result: "i32",
  },
  mb_function: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t module
      "buffer", // const uint8_t *name
      "u32", // uint32_t name_length
      "buffer", // uint32_t *function
    ],
    result: "i32",
  },
  mb_launch: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t function
      "u32", // uint32_t grid_x
      "u32", // uint32_t grid_y
      "u32", // uint32_t grid_z
      "u32", // uint32_t block_x
      "u32", // uint32_t block_y
      "u32", // uint32_t block_z
      "u32", // uint32_t shared_bytes
      "u32", // uint32_t stream
      "buffer", // const uint8_t *args
      "u32", // uint32_t args_bytes
    ],
    result: "i32",
  },
  mb_host_alloc: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double bytes
      "buffer", // double *address
    ],
    result: "i32",
  },
  mb_host_free: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
    ],
    result: "i32",
  },
  mb_host_write: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "buffer", // const uint8_t *source
      "f64", // double bytes
    ],
    result: "i32",
  },
  mb_host_read: {
    parameters: [
      "u32", // uint32_t device
      "buffer", // uint8_t *destination
      "f64", // double address
      "f64", // double bytes
    ],
    result: "i32",
  },
  mb_wrap: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "f64", // double bytes
    ],
    result: "i32",
  },
  mb_unwrap: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
    ],
    result: "i32",
  },
  mb_capture_begin: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_capture_end: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
      "buffer", // uint32_t *graph
    ],
    result: "i32",
  },
  mb_capture_status: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t stream
      "buffer", // int32_t *capturing
    ],
    result: "i32",
  },
  mb_graph_launch: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t graph
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_graph_destroy: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t graph
    ],
    result: "i32",
  },
  mb_plain_alloc: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "buffer", // double *address
    ],
    result: "i32",
  },
  mb_plain_free: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
    ],
    result: "i32",
  },
  mb_pool_alloc: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "u32", // uint32_t stream
      "buffer", // double *address
    ],
    result: "i32",
  },
  mb_pool_free: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double address
      "u32", // uint32_t stream
    ],
    result: "i32",
  },
  mb_pool_trim: {
    parameters: [
      "u32", // uint32_t device
    ],
    result: "i32",
  },
  mb_time_plain: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "u32", // uint32_t n
      "buffer", // double *alloc_ns
      "buffer", // double *free_ns
    ],
    result: "i32",
  },
  mb_time_pool: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "u32", // uint32_t stream
      "i32", // int32_t warm
      "u32", // uint32_t n
      "buffer", // double *alloc_ns
      "buffer", // double *free_ns
    ],
    result: "i32",
  },
  mb_time_vmm: {
    parameters: [
      "u32", // uint32_t device
      "f64", // double size
      "f64", // double extent_size
      "u32", // uint32_t n
      "buffer", // double *stages
    ],
    result: "i32",
  },
  mb_time_launch: {
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t function
      "u32", // uint32_t stream
      "buffer", // const uint8_t *args
      "u32", // uint32_t args_bytes
      "i32", // int32_t synchronize
      "u32", // uint32_t n
      "buffer", // double *launch_ns
    ],
    result: "i32",
  },
  mb_time_launch_async: {
    name: "mb_time_launch",
    nonblocking: true,
    parameters: [
      "u32", // uint32_t device
      "u32", // uint32_t function
      "u32", // uint32_t stream
      "buffer", // const uint8_t *args
      "u32", // uint32_t args_bytes
      "i32", // int32_t synchronize
      "u32", // uint32_t n
      "buffer", // double *launch_ns
    ],
    result: "i32",
  },
} as const satisfies Deno.ForeignLibraryInterface;

/** Version of the interface that this table was written for: `MB_ABI_VERSION`. */
export const ABI_VERSION = 3;

/** What a call returned: `MbStatus`. */
export const Status = {
  OK: 0,
  NOT_READY: 1,
  BAD_ARGUMENT: 2,
  BAD_HANDLE: 3,
  OUT_OF_MEMORY: 4,
  OUT_OF_ADDRESSES: 5,
  NO_LIBRARY: 6,
  NO_DEVICE: 7,
  UNSUPPORTED: 8,
  NOT_MAPPED: 9,
  NOT_FOUND: 10,
  LOST: 11,
  LIMIT: 12,
  DRIVER: 13,
} as const;

/** Backends: `MbBackendId`. */
export const Backend = { HOST: 0, CUDA: 1, HIP: 2 } as const;

/** Access rights: `MbAccess`. */
export const AccessFlag = { NONE: 0, READ: 1, READ_WRITE: 3 } as const;

/** Indices of device properties: `MbProperty`. */
export const Property = {
  TOTAL_MEMORY: 0,
  GRANULARITY: 1,
  GRANULARITY_ADVISED: 2,
  VMM: 3,
  POOLS: 4,
  MAJOR: 5,
  MINOR: 6,
  PROCESSORS: 7,
  DRIVER_VERSION: 8,
  INTEGRATED: 9,
  EXTENT_LIMIT: 10,
  COUNT: 11,
} as const;
