/* The C interface of MoonBright's shim: everything that crosses from TypeScript.
 *
 * Only 32-bit integers, doubles and caller-owned buffers cross. Addresses, sizes
 * and counts that may pass 2^32 are doubles holding whole numbers below 2^53, so a
 * scoped --allow-ffi is enough and no call needs a bigint. Every function checks
 * its arguments, sets the device's context itself, may be called from any thread,
 * and returns an MbStatus. A failed batch call undoes all of its own work.
 *
 * Ids (devices, extents, streams, events, modules, functions, graphs) are slot numbers
 * with a generation, never pointers: a stale or invented id gives MB_BAD_HANDLE.
 * All but device ids belong to one open device. Stream id 0 is the device's default
 * stream.
 *
 * In a forked child of a process that had used the library every call on devices gives
 * MB_UNSUPPORTED, but mb_close, which leaves everything to the parent.
 */
#ifndef MOONBRIGHT_H
#define MOONBRIGHT_H

#include <stdint.h>

#define MB_ABI_VERSION 3

#define MB_API __attribute__((visibility("default")))

typedef enum MbStatus {
  MB_OK = 0,
  MB_NOT_READY = 1,      /* the event has not passed yet (not an error) */
  MB_BAD_ARGUMENT = 2,   /* null, misaligned, out of range, wrong count */
  MB_BAD_HANDLE = 3,     /* unknown or stale id */
  MB_OUT_OF_MEMORY = 4,  /* the device or the system has no memory left */
  MB_OUT_OF_ADDRESSES = 5, /* the reservation was refused */
  MB_NO_LIBRARY = 6,     /* the vendor's library is missing or lacks symbols */
  MB_NO_DEVICE = 7,      /* no such device */
  MB_UNSUPPORTED = 8,    /* the device or its driver can't do this */
  MB_NOT_MAPPED = 9,     /* the range is not (wholly) mapped and accessible */
  MB_NOT_FOUND = 10,     /* no kernel of that name in the module */
  MB_LOST = 11,          /* the context is dead: an earlier operation faulted */
  MB_LIMIT = 12,         /* a table of the shim or of the system is full */
  MB_DRIVER = 13         /* any other driver error: see mb_driver_code */
} MbStatus;

typedef enum MbBackendId { MB_BACKEND_HOST = 0, MB_BACKEND_CUDA = 1, MB_BACKEND_HIP = 2 } MbBackendId;

/* Access rights of a mapping. */
typedef enum MbAccess { MB_ACCESS_NONE = 0, MB_ACCESS_READ = 1, MB_ACCESS_READ_WRITE = 3 } MbAccess;

/* Indices into the array that mb_device_properties fills. */
typedef enum MbProperty {
  MB_PROP_TOTAL_MEMORY = 0,        /* bytes */
  MB_PROP_GRANULARITY = 1,         /* bytes: sizes and addresses of extents are multiples */
  MB_PROP_GRANULARITY_ADVISED = 2, /* bytes */
  MB_PROP_VMM = 3,                 /* 1 if memory can be mapped at chosen addresses */
  MB_PROP_POOLS = 4,               /* 1 if the driver has a stream-ordered pool */
  MB_PROP_MAJOR = 5,               /* compute capability, 0 elsewhere */
  MB_PROP_MINOR = 6,
  MB_PROP_PROCESSORS = 7,          /* multiprocessors, compute units or cores */
  MB_PROP_DRIVER_VERSION = 8,      /* as the vendor's library reports it, e.g. 13000 */
  MB_PROP_INTEGRATED = 9,          /* 1 if the memory is the host's own */
  MB_PROP_EXTENT_LIMIT = 10,       /* that may exist at once, 0 for no limit */
  MB_PROP_COUNT = 11
} MbProperty;

/* A kernel compiled for the host: called once per launch, loops over the grid itself. */
typedef struct MbGeometry {
  uint32_t grid[3], block[3], shared_bytes;
} MbGeometry;
typedef void (*MbHostKernel)(const void *args, const MbGeometry *geometry);

/* ---- the library ---- */
MB_API int32_t mb_abi_version(void);
/* The calling thread's last error as UTF-8, cut to capacity; returns its length. */
MB_API int32_t mb_error_text(uint8_t *text, uint32_t capacity);
/* The vendor's own code of the calling thread's last error, 0 if there was none. */
MB_API int32_t mb_driver_code(void);

/* ---- backends and devices ---- */
/* library: UTF-8 path or name of the vendor's library, length 0 for the usual places. */
MB_API int32_t mb_device_count(int32_t backend, const uint8_t *library, uint32_t library_length,
                               uint32_t *count);
/* name receives "device name\narchitecture\nlimits" as UTF-8 with a final NUL, cut to
 * name_capacity; limits say why memory can't be mapped at chosen addresses, if it can't. */
MB_API int32_t mb_device_properties(int32_t backend, const uint8_t *library,
                                    uint32_t library_length, uint32_t ordinal,
                                    double *properties /* [MB_PROP_COUNT] */, uint8_t *name,
                                    uint32_t name_capacity);
MB_API int32_t mb_open(int32_t backend, const uint8_t *library, uint32_t library_length,
                       uint32_t ordinal, uint32_t *device);
/* Releases all that the device still holds. Quiet on a lost context. */
MB_API int32_t mb_close(uint32_t device);
MB_API int32_t mb_memory_info(uint32_t device, double *free_and_total /* [2], bytes */);
/* Waits for all streams of the device; refused while one is capturing. */
MB_API int32_t mb_synchronize(uint32_t device);

/* ---- addresses and extents ---- */
MB_API int32_t mb_reserve(uint32_t device, double size, double *address);
/* address: as mb_reserve gave it; nothing may be mapped in the range. */
MB_API int32_t mb_unreserve(uint32_t device, double address);
MB_API int32_t mb_extents_create(uint32_t device, uint32_t count, const double *sizes,
                                 uint32_t *extents);
/* Extents still mapped somewhere are refused. */
MB_API int32_t mb_extents_release(uint32_t device, uint32_t count, const uint32_t *extents);
/* Maps the extents side by side from address on, then sets access (MbAccess) once for
 * the whole range. An extent may be mapped at several addresses. elapsed_ns: null, or
 * [2]: time of the map calls, time of the set-access call. */
MB_API int32_t mb_map(uint32_t device, double address, uint32_t count, const uint32_t *extents,
                      int32_t access, double *elapsed_ns);
/* The range must consist of whole mappings. */
MB_API int32_t mb_set_access(uint32_t device, double address, double size, int32_t access);
/* Each range must consist of whole mappings. HIP waits for all work on the device, the
 * others don't. */
MB_API int32_t mb_unmap(uint32_t device, uint32_t count, const double *addresses,
                        const double *sizes);

/* ---- streams and events ---- */
MB_API int32_t mb_stream_create(uint32_t device, uint32_t *stream);
MB_API int32_t mb_stream_destroy(uint32_t device, uint32_t stream);
MB_API int32_t mb_stream_synchronize(uint32_t device, uint32_t stream);
/* The vendor's own handle of a stream (0 on the host backend), for other libraries. */
MB_API int32_t mb_stream_handle(uint32_t device, uint32_t stream, uint64_t *handle);
/* Later work of the stream waits for the event's last record. */
MB_API int32_t mb_stream_wait(uint32_t device, uint32_t stream, uint32_t event);
/* timing: 1 if mb_event_elapsed will be asked. */
MB_API int32_t mb_event_create(uint32_t device, int32_t timing, uint32_t *event);
MB_API int32_t mb_event_destroy(uint32_t device, uint32_t event);
MB_API int32_t mb_event_record(uint32_t device, uint32_t event, uint32_t stream);
/* MB_OK once all work before the last record is done (also if never recorded), else MB_NOT_READY. */
MB_API int32_t mb_event_query(uint32_t device, uint32_t event);
MB_API int32_t mb_event_synchronize(uint32_t device, uint32_t event);
MB_API int32_t mb_event_elapsed(uint32_t device, uint32_t start, uint32_t end,
                                double *milliseconds);

/* ---- data: ranges must be mapped and accessible, or inside one plain, pooled or
 * page-locked allocation ---- */
/* width: 1, 2 or 4 bytes; count: elements; address aligned to width. Asynchronous. */
MB_API int32_t mb_memset(uint32_t device, double address, uint32_t value, uint32_t width,
                         double count, uint32_t stream);
/* In stream order through pinned staging. Returns when source may be reused. */
MB_API int32_t mb_copy_in(uint32_t device, double destination, const uint8_t *source,
                          double bytes, uint32_t stream);
/* In stream order through pinned staging. Returns when destination is filled. */
MB_API int32_t mb_copy_out(uint32_t device, uint8_t *destination, double source, double bytes,
                           uint32_t stream);
/* Device to device, in stream order, asynchronous; the ranges must not overlap. */
MB_API int32_t mb_copy(uint32_t device, double destination, double source, double bytes,
                       uint32_t stream);

/* ---- kernels ---- */
/* image: PTX or a code object for a GPU, a shared object for the host backend. One that is cut
 * off or of another kind is refused; beyond that it is code, and trusted as such. */
MB_API int32_t mb_module_load(uint32_t device, const uint8_t *image, double bytes,
                              uint32_t *module);
MB_API int32_t mb_module_unload(uint32_t device, uint32_t module);
MB_API int32_t mb_function(uint32_t device, uint32_t module, const uint8_t *name,
                           uint32_t name_length, uint32_t *function);
/* args: the argument block, laid out as the kernel's parameters; copied before returning. */
MB_API int32_t mb_launch(uint32_t device, uint32_t function, uint32_t grid_x, uint32_t grid_y,
                         uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                         uint32_t shared_bytes, uint32_t stream, const uint8_t *args,
                         uint32_t args_bytes);

/* ---- page-locked host memory ---- */
/* Memory of the host that kernels and the data calls above use at the same address; what it
 * holds at first is left open. MB_UNSUPPORTED if the device can't address it so. On the
 * host backend it counts as the device's own memory. */
MB_API int32_t mb_host_alloc(uint32_t device, double bytes, double *address);
/* Waits for all work on the device; refused while a stream is capturing. */
MB_API int32_t mb_host_free(uint32_t device, double address);
/* Both copy at once, in no stream's order: the caller knows that no work is using the range.
 * The range must lie inside one allocation, else MB_NOT_MAPPED. */
MB_API int32_t mb_host_write(uint32_t device, double address, const uint8_t *source,
                             double bytes);
MB_API int32_t mb_host_read(uint32_t device, uint8_t *destination, double address,
                            double bytes);

/* ---- memory of others ---- */
/* Lets the data calls use a range that others allocated and that the device can reach; it
 * is neither checked for that nor ever freed. Must not overlap memory of this device or
 * another wrapped range. */
MB_API int32_t mb_wrap(uint32_t device, double address, double bytes);
/* Waits for nothing: queued work goes on using the range. */
MB_API int32_t mb_unwrap(uint32_t device, double address);

/* ---- graphs ---- */
/* From here on fills, copies on the device and launches put into the stream are noted
 * instead of done. Everything else that uses the stream is refused with MB_BAD_ARGUMENT and
 * leaves the capture as it is, as are waits for the whole device. Calls on addresses,
 * extents and other streams go on as ever. The default stream can't capture. */
MB_API int32_t mb_capture_begin(uint32_t device, uint32_t stream);
/* Ends the capture and makes a graph of what was noted. Where it fails the capture has ended
 * all the same, unless mb_capture_status says that the driver goes on with it. Destroying
 * the stream or closing the device ends a capture without a graph. */
MB_API int32_t mb_capture_end(uint32_t device, uint32_t stream, uint32_t *graph);
/* capturing: 1 or 0. */
MB_API int32_t mb_capture_status(uint32_t device, uint32_t stream, int32_t *capturing);
/* Does what was noted, in the stream's order and after the graph's launches so far. All
 * memory that the graph uses must be there as when it was captured. */
MB_API int32_t mb_graph_launch(uint32_t device, uint32_t graph, uint32_t stream);
/* Launches under way go on. Until then no module whose kernels it holds can be unloaded. */
MB_API int32_t mb_graph_destroy(uint32_t device, uint32_t graph);

/* ---- the driver's own allocators, as baselines ---- */
MB_API int32_t mb_plain_alloc(uint32_t device, double size, double *address);
MB_API int32_t mb_plain_free(uint32_t device, double address);
/* From a pool of the device's own that keeps what is freed until mb_pool_trim. */
MB_API int32_t mb_pool_alloc(uint32_t device, double size, uint32_t stream, double *address);
MB_API int32_t mb_pool_free(uint32_t device, double address, uint32_t stream);
MB_API int32_t mb_pool_trim(uint32_t device);

/* ---- timed loops: n samples in nanoseconds each, without the cost of crossing ---- */
MB_API int32_t mb_time_plain(uint32_t device, double size, uint32_t n, double *alloc_ns,
                             double *free_ns);
/* warm 0: the pool is emptied before each pair. */
MB_API int32_t mb_time_pool(uint32_t device, double size, uint32_t stream, int32_t warm,
                            uint32_t n, double *alloc_ns, double *free_ns);
/* size made of extents of extent_size, reserved once. stages: [n][5] create, map, set access,
 * unmap, release. */
MB_API int32_t mb_time_vmm(uint32_t device, double size, double extent_size, uint32_t n,
                           double *stages);
/* One block of 32 threads per launch. synchronize 1: each sample holds the wait for its end;
 * 0: the stream is drained now and then outside the samples. */
MB_API int32_t mb_time_launch(uint32_t device, uint32_t function, uint32_t stream,
                              const uint8_t *args, uint32_t args_bytes, int32_t synchronize,
                              uint32_t n, double *launch_ns);

#endif
