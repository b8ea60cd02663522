/* Drives every function of the shim on one backend, with good input and bad.
 *
 *   smoke_test host|cuda|hip|fake-cuda|fake-hip LIBRARY PATTERN_MODULE BUSY_MODULE
 *
 * LIBRARY "" is the usual place; the modules are kernels/pattern.c and kernels/busy.c in
 * the backend's form. The fake drivers can be told to fail.
 * Prints a line for each group of checks and exits with 1 if any check failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../native/moonbright.h"

#define GRANULE ((double)(2 << 20))
enum { WORDS_PER_GRANULE = (2 << 20) / 8 };

static struct {
  int32_t backend;
  bool fake;
  const uint8_t *library;
  uint32_t library_length;
  uint8_t *pattern, *busy; /* module images */
  double pattern_bytes, busy_bytes;
} setup;

/* Functions of the vendors by what they do. */
typedef struct VendorNames {
  const char *create, *release, *map, *unmap, *set_access, *synchronize, *copy_in,
      *event_record, *stream_synchronize, *begin_capture, *instantiate, *pinned_address,
      *pinned_alloc, *pinned_free, *out_of_memory, *illegal_address;
} VendorNames;

static const VendorNames cuda_names = {
    .create = "cuMemCreate",
    .release = "cuMemRelease",
    .map = "cuMemMap",
    .unmap = "cuMemUnmap",
    .set_access = "cuMemSetAccess",
    .synchronize = "cuStreamSynchronize",
    .copy_in = "cuMemcpyHtoDAsync_v2",
    .event_record = "cuEventRecord",
    .stream_synchronize = "cuStreamSynchronize",
    .begin_capture = "cuStreamBeginCapture_v2",
    .instantiate = "cuGraphInstantiateWithFlags",
    .pinned_address = "cuMemHostGetDevicePointer_v2",
    .pinned_alloc = "cuMemHostAlloc",
    .pinned_free = "cuMemFreeHost",
    .out_of_memory = "cuMemCreate of 2097152 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)",
    .illegal_address = "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
};

static const VendorNames hip_names = {
    .create = "hipMemCreate",
    .release = "hipMemRelease",
    .map = "hipMemMap",
    .unmap = "hipMemUnmap",
    .set_access = "hipMemSetAccess",
    .synchronize = "hipStreamSynchronize",
    .copy_in = "hipMemcpyHtoDAsync",
    .event_record = "hipEventRecord",
    .stream_synchronize = "hipStreamSynchronize",
    .begin_capture = "hipStreamBeginCapture",
    .instantiate = "hipGraphInstantiate",
    .pinned_address = "hipHostGetDevicePointer",
    .pinned_alloc = "hipHostMalloc",
    .pinned_free = "hipHostFree",
    .out_of_memory = "hipMemCreate of 2097152 bytes: hipErrorOutOfMemory (2)",
    .illegal_address = "hipStreamSynchronize: hipErrorIllegalAddress (700)",
};

static const VendorNames *vendor = &cuda_names;
static uint32_t (*fake_fail)(const char *name, uint32_t kth, int32_t code);
static int32_t (*fake_live)(int32_t what);
static int (*fake_stream_synchronize)(void *stream);

static atomic_int checks, failures;

static const char *error_text(void) {
  static _Thread_local char text[1025];
  int32_t length = mb_error_text((uint8_t *)text, sizeof text - 1);
  text[length] = 0;
  return text;
}

static void expect(int line, const char *call, int32_t wanted, int32_t got) {
  checks++;
  if (got == wanted) return;
  failures++;
  printf("  line %d: %s: wanted %d, got %d (%s)\n", line, call, wanted, got, error_text());
}

#define EXPECT(wanted, call) expect(__LINE__, #call, wanted, call)
#define OK(call) EXPECT(MB_OK, call)
#define BAD(call) EXPECT(MB_BAD_ARGUMENT, call)
#define STALE(call) EXPECT(MB_BAD_HANDLE, call)
#define CHECK(condition) expect(__LINE__, #condition, 1, (condition) ? 1 : 0)

/* With a NUL behind it. The size that files of the kernel's report is no guide. */
static uint8_t *read_file(const char *path, double *bytes) {
  enum { LARGEST = 1 << 20 };
  FILE *file = fopen(path, "rb");
  uint8_t *content = calloc(1, LARGEST + 1);
  if (!file || !content) {
    fprintf(stderr, "can't read %s\n", path);
    exit(2);
  }
  *bytes = (double)fread(content, 1, LARGEST, file);
  fclose(file);
  return content;
}

static uint32_t open_device(void) {
  uint32_t device = 0;
  OK(mb_open(setup.backend, setup.library, setup.library_length, 0, &device));
  return device;
}

static double reserve(uint32_t device, double size) {
  double address = 0;
  OK(mb_reserve(device, size, &address));
  CHECK(address > 0 && fmod(address, GRANULE) == 0);
  return address;
}

static void create(uint32_t device, uint32_t count, double granules, uint32_t *extents) {
  double sizes[64];
  for (uint32_t i = 0; i < count; i++) sizes[i] = granules * GRANULE;
  OK(mb_extents_create(device, count, sizes, extents));
}

static uint8_t byte_at(uint32_t device, double address) {
  uint8_t byte = 0;
  OK(mb_copy_out(device, &byte, address, 1, 0));
  return byte;
}

static double used_memory(uint32_t device) {
  double free_and_total[2] = {0, 0};
  OK(mb_memory_info(device, free_and_total));
  return free_and_total[1] - free_and_total[0];
}

static void test_library(void) {
  uint32_t count = 0, device = 0;
  double properties[MB_PROP_COUNT];
  uint8_t name[256], tiny[4];
  const uint8_t bad_name[] = {'a', 0, 'b'};
  const char *missing = "/no/such/library.so";
  const uint8_t *missing_path = (const uint8_t *)missing;
  uint32_t missing_length = (uint32_t)strlen(missing);
  CHECK(mb_abi_version() == MB_ABI_VERSION);
  OK(mb_device_count(setup.backend, setup.library, setup.library_length, &count));
  CHECK(count >= 1);
  OK(mb_device_properties(setup.backend, setup.library, setup.library_length, 0, properties,
                          name, sizeof name));
  CHECK(properties[MB_PROP_TOTAL_MEMORY] > 0 && properties[MB_PROP_GRANULARITY] == GRANULE);
  CHECK(properties[MB_PROP_VMM] == 1 && properties[MB_PROP_PROCESSORS] >= 1);
  CHECK(strchr((char *)name, '\n') != NULL);
  OK(mb_device_properties(setup.backend, setup.library, setup.library_length, 0, properties,
                          tiny, sizeof tiny));
  CHECK(tiny[3] == 0 && memcmp(tiny, name, 3) == 0);
  BAD(mb_device_count(setup.backend, setup.library, setup.library_length, NULL));
  BAD(mb_device_count(99, NULL, 0, &count));
  BAD(mb_device_count(-1, NULL, 0, &count));
  BAD(mb_device_count(setup.backend, NULL, 5, &count));
  BAD(mb_device_count(setup.backend, bad_name, 3, &count));
  BAD(mb_device_count(setup.backend, missing_path, 1000000, &count));
  for (int32_t gpu = MB_BACKEND_CUDA; gpu <= MB_BACKEND_HIP; gpu++) {
    EXPECT(MB_NO_LIBRARY, mb_device_count(gpu, missing_path, missing_length, &count));
    CHECK(strstr(error_text(), missing) != NULL);
  }
  CHECK(mb_error_text(NULL, 0) == (int32_t)strlen(error_text()));
  CHECK(mb_error_text(tiny, 4) == 4);
  BAD(mb_device_properties(setup.backend, setup.library, setup.library_length, 0, NULL, name,
                           sizeof name));
  BAD(mb_device_properties(setup.backend, setup.library, setup.library_length, 0, properties,
                           NULL, 8));
  BAD(mb_device_properties(setup.backend, setup.library, setup.library_length, 0, properties,
                           name, 0));
  EXPECT(MB_NO_DEVICE, mb_device_properties(setup.backend, setup.library, setup.library_length,
                                            4000000000u, properties, name, sizeof name));
  EXPECT(MB_NO_DEVICE,
         mb_open(setup.backend, setup.library, setup.library_length, 77, &device));
  BAD(mb_open(setup.backend, setup.library, setup.library_length, 0, NULL));
}

/* Every function that takes a device, with one that is not open. */
static void test_stale_device(uint32_t device) {
  double number = 0, pair[5];
  uint32_t id = 1;
  uint64_t handle;
  uint8_t byte = 1;
  int32_t capturing;
  STALE(mb_close(device));
  STALE(mb_memory_info(device, pair));
  STALE(mb_synchronize(device));
  STALE(mb_reserve(device, GRANULE, &number));
  STALE(mb_unreserve(device, GRANULE));
  pair[0] = GRANULE;
  STALE(mb_extents_create(device, 1, pair, &id));
  id = 1;
  STALE(mb_extents_release(device, 1, &id));
  STALE(mb_map(device, GRANULE, 1, &id, MB_ACCESS_READ, NULL));
  STALE(mb_set_access(device, GRANULE, GRANULE, MB_ACCESS_READ));
  STALE(mb_unmap(device, 1, pair, pair));
  STALE(mb_stream_create(device, &id));
  STALE(mb_stream_destroy(device, 1));
  STALE(mb_stream_synchronize(device, 0));
  STALE(mb_stream_handle(device, 0, &handle));
  STALE(mb_stream_wait(device, 0, 1));
  STALE(mb_event_create(device, 0, &id));
  STALE(mb_event_destroy(device, 1));
  STALE(mb_event_record(device, 1, 0));
  STALE(mb_event_query(device, 1));
  STALE(mb_event_synchronize(device, 1));
  STALE(mb_event_elapsed(device, 1, 1, &number));
  STALE(mb_memset(device, GRANULE, 0, 1, 1, 0));
  STALE(mb_copy_in(device, GRANULE, &byte, 1, 0));
  STALE(mb_copy_out(device, &byte, GRANULE, 1, 0));
  STALE(mb_copy(device, GRANULE, 2 * GRANULE, 1, 0));
  STALE(mb_module_load(device, &byte, 1, &id));
  STALE(mb_module_unload(device, 1));
  STALE(mb_function(device, 1, &byte, 1, &id));
  STALE(mb_launch(device, 1, 1, 1, 1, 1, 1, 1, 0, 0, &byte, 1));
  STALE(mb_host_alloc(device, 1, &number));
  STALE(mb_host_free(device, 1));
  STALE(mb_host_write(device, 1, &byte, 1));
  STALE(mb_host_read(device, &byte, 1, 1));
  STALE(mb_wrap(device, 1, 1));
  STALE(mb_unwrap(device, 1));
  STALE(mb_capture_begin(device, 1));
  STALE(mb_capture_end(device, 1, &id));
  STALE(mb_capture_status(device, 1, &capturing));
  STALE(mb_graph_launch(device, 1, 0));
  STALE(mb_graph_destroy(device, 1));
  STALE(mb_plain_alloc(device, 1, &number));
  STALE(mb_plain_free(device, 1));
  STALE(mb_pool_alloc(device, 1, 0, &number));
  STALE(mb_pool_free(device, 1, 0));
  STALE(mb_pool_trim(device));
  STALE(mb_time_plain(device, 1, 1, pair, pair));
  STALE(mb_time_pool(device, 1, 0, 1, 1, pair, pair));
  STALE(mb_time_vmm(device, GRANULE, GRANULE, 1, pair));
  STALE(mb_time_launch(device, 1, 0, &byte, 1, 0, 1, pair));
}

static void test_devices(void) {
  uint32_t device = open_device();
  double memory[2];
  BAD(mb_memory_info(device, NULL));
  OK(mb_memory_info(device, memory));
  CHECK(memory[0] > 0 && memory[1] >= memory[0]);
  OK(mb_synchronize(device));
  OK(mb_close(device));
  test_stale_device(device);
  test_stale_device(0);
  test_stale_device(UINT32_MAX);
}

static void test_reservations(uint32_t device) {
  const double bad_sizes[] = {0, -GRANULE, 1, GRANULE + 1, 0.5, NAN, INFINITY, -INFINITY, 1e300,
                              9007199254740992.0};
  double address = 0, large = 0;
  for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
    BAD(mb_reserve(device, bad_sizes[i], &address));
  }
  BAD(mb_reserve(device, GRANULE, NULL));
  EXPECT(MB_OUT_OF_ADDRESSES, mb_reserve(device, 2147483648.0 * GRANULE, &address));
  address = reserve(device, 4 * GRANULE);
  /* A sanitizer leaves little of the address space. */
  if (mb_reserve(device, 524288 * GRANULE, &large) == MB_OK) OK(mb_unreserve(device, large));
  BAD(mb_unreserve(device, address + GRANULE));
  BAD(mb_unreserve(device, address + 1));
  BAD(mb_unreserve(device, NAN));
  BAD(mb_unreserve(device, 0));
  OK(mb_unreserve(device, address));
  BAD(mb_unreserve(device, address));
}

static void test_extents(uint32_t device) {
  double sizes[3] = {GRANULE, 3 * GRANULE, GRANULE}, used = used_memory(device);
  uint32_t ids[3] = {0, 0, 0}, twice[2], huge[2];
  BAD(mb_extents_create(device, 0, sizes, ids));
  BAD(mb_extents_create(device, UINT32_MAX, sizes, ids));
  BAD(mb_extents_create(device, 3, NULL, ids));
  BAD(mb_extents_create(device, 3, sizes, NULL));
  sizes[2] = GRANULE / 2;
  BAD(mb_extents_create(device, 3, sizes, ids));
  sizes[2] = GRANULE;
  OK(mb_extents_create(device, 3, sizes, ids));
  CHECK(ids[0] && ids[1] && ids[2] && ids[0] != ids[1] && ids[1] != ids[2]);
  twice[0] = twice[1] = ids[0];
  BAD(mb_extents_release(device, 2, twice));
  twice[1] = 0;
  STALE(mb_extents_release(device, 2, twice));
  BAD(mb_extents_release(device, 0, ids));
  BAD(mb_extents_release(device, 1, NULL));
  OK(mb_extents_release(device, 3, ids));
  STALE(mb_extents_release(device, 1, ids));
  CHECK(used_memory(device) == used);
  /* The second is larger than any memory: the first goes again. */
  sizes[1] = 4503599627370496.0;
  EXPECT(MB_OUT_OF_MEMORY, mb_extents_create(device, 2, sizes, huge));
  CHECK(used_memory(device) == used);
}

static void test_stale_ids(uint32_t device) {
  uint32_t first, id, again = 0;
  create(device, 1, 1, &first);
  OK(mb_extents_release(device, 1, &first));
  for (int i = 0; i < 3000; i++) {
    create(device, 1, 1, &id);
    again += id == first;
    OK(mb_extents_release(device, 1, &id));
  }
  CHECK(again == 0);
  STALE(mb_extents_release(device, 1, &first));
}

static void test_mappings(uint32_t device) {
  double address = reserve(device, 16 * GRANULE), times[2] = {-1, -1};
  double starts[3], sizes[3];
  uint32_t ids[4];
  create(device, 4, 2, ids);
  BAD(mb_map(device, address, 0, ids, 3, NULL));
  BAD(mb_map(device, address, 4, NULL, 3, NULL));
  BAD(mb_map(device, address, 4, ids, 2, NULL));
  BAD(mb_map(device, address, 4, ids, -1, NULL));
  BAD(mb_map(device, address + 512, 4, ids, 3, NULL));
  BAD(mb_map(device, NAN, 4, ids, 3, NULL));
  BAD(mb_map(device, GRANULE, 4, ids, 3, NULL));
  BAD(mb_map(device, address + 10 * GRANULE, 4, ids, 3, NULL));
  OK(mb_map(device, address + 2 * GRANULE, 4, ids, MB_ACCESS_READ_WRITE, times));
  CHECK(times[0] >= 0 && times[1] >= 0);
  /* Mapped: granules 2 to 9, two to a mapping. */
  BAD(mb_map(device, address + GRANULE, 1, ids, 3, NULL));
  BAD(mb_map(device, address + 9 * GRANULE, 1, ids, 3, NULL));
  BAD(mb_map(device, address + 4 * GRANULE, 1, ids, 3, NULL));
  BAD(mb_extents_release(device, 1, ids));
  BAD(mb_unreserve(device, address));
  starts[0] = address + 3 * GRANULE;
  sizes[0] = GRANULE;
  BAD(mb_unmap(device, 1, starts, sizes));
  starts[0] = address + 2 * GRANULE;
  BAD(mb_unmap(device, 1, starts, sizes));
  sizes[0] = 10 * GRANULE;
  EXPECT(MB_NOT_MAPPED, mb_unmap(device, 1, starts, sizes));
  EXPECT(MB_NOT_MAPPED, mb_set_access(device, address, 4 * GRANULE, 3));
  EXPECT(MB_NOT_MAPPED, mb_set_access(device, GRANULE, GRANULE, 3));
  BAD(mb_set_access(device, address + 2 * GRANULE, GRANULE, 3));
  BAD(mb_set_access(device, address + 2 * GRANULE, 2 * GRANULE, 2));
  BAD(mb_set_access(device, address + 2 * GRANULE, 0, 1));
  BAD(mb_unmap(device, 0, starts, sizes));
  BAD(mb_unmap(device, 1, NULL, sizes));
  BAD(mb_unmap(device, 1, starts, NULL));
  starts[0] = address + 6 * GRANULE;
  starts[1] = address + 2 * GRANULE;
  starts[2] = address + 4 * GRANULE;
  sizes[0] = 2 * GRANULE;
  sizes[1] = 4 * GRANULE;
  sizes[2] = 2 * GRANULE;
  BAD(mb_unmap(device, 3, starts, sizes));
  CHECK(strstr(error_text(), "two of the ranges") != NULL);
  OK(mb_unmap(device, 2, starts, sizes));
  EXPECT(MB_NOT_MAPPED, mb_unmap(device, 1, starts, sizes));
  OK(mb_extents_release(device, 3, ids));
  starts[0] = address + 8 * GRANULE;
  OK(mb_unmap(device, 1, starts, sizes));
  OK(mb_extents_release(device, 1, ids + 3));
  OK(mb_unreserve(device, address));
}

static void test_access(uint32_t device) {
  double address = reserve(device, 8 * GRANULE), both = 4 * GRANULE;
  uint8_t bytes[16] = {1, 2, 3};
  uint32_t ids[2];
  create(device, 2, 2, ids);
  OK(mb_map(device, address, 2, ids, MB_ACCESS_READ, NULL));
  EXPECT(MB_NOT_MAPPED, mb_copy_in(device, address, bytes, 16, 0));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address, 0, 1, 16, 0));
  OK(mb_copy_out(device, bytes, address, 16, 0));
  OK(mb_set_access(device, address, both, MB_ACCESS_READ_WRITE));
  OK(mb_memset(device, address, 7, 1, both, 0));
  CHECK(byte_at(device, address + both - 1) == 7);
  OK(mb_set_access(device, address + 2 * GRANULE, 2 * GRANULE, MB_ACCESS_READ));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address + GRANULE, 0, 1, 2 * GRANULE, 0));
  OK(mb_memset(device, address + GRANULE, 9, 1, GRANULE, 0));
  CHECK(byte_at(device, address + 2 * GRANULE) == 7);
  OK(mb_set_access(device, address, both, MB_ACCESS_NONE));
  EXPECT(MB_NOT_MAPPED, mb_copy_out(device, bytes, address, 16, 0));
  OK(mb_set_access(device, address, both, MB_ACCESS_READ_WRITE));
  CHECK(byte_at(device, address + GRANULE) == 9);
  EXPECT(MB_NOT_MAPPED, mb_copy_out(device, bytes, address + both - 8, 16, 0));
  EXPECT(MB_NOT_MAPPED, mb_copy_out(device, bytes, address - 8, 16, 0));
  OK(mb_unmap(device, 1, &address, &both));
  OK(mb_map(device, address, 2, ids, MB_ACCESS_NONE, NULL));
  EXPECT(MB_NOT_MAPPED, mb_copy_out(device, bytes, address, 16, 0));
  OK(mb_unmap(device, 1, &address, &both));
  OK(mb_extents_release(device, 2, ids));
  OK(mb_unreserve(device, address));
}

static void test_aliasing(uint32_t device) {
  double address = reserve(device, 8 * GRANULE), all = 4 * GRANULE, elsewhere;
  uint32_t id, listed[2];
  create(device, 1, 2, &id);
  listed[0] = listed[1] = id;
  OK(mb_map(device, address, 2, listed, MB_ACCESS_READ_WRITE, NULL));
  elsewhere = reserve(device, 2 * GRANULE);
  OK(mb_map(device, elsewhere, 1, &id, MB_ACCESS_READ, NULL));
  OK(mb_memset(device, address + 100, 42, 1, 1, 0));
  OK(mb_synchronize(device));
  CHECK(byte_at(device, address + 2 * GRANULE + 100) == 42);
  CHECK(byte_at(device, elsewhere + 100) == 42);
  OK(mb_unmap(device, 1, &address, &all));
  CHECK(byte_at(device, elsewhere + 100) == 42);
  BAD(mb_extents_release(device, 1, &id));
  all = 2 * GRANULE;
  OK(mb_unmap(device, 1, &elsewhere, &all));
  OK(mb_extents_release(device, 1, &id));
  OK(mb_unreserve(device, elsewhere));
  OK(mb_unreserve(device, address));
}

#ifndef __SANITIZE_THREAD__ /* which dies itself when there are no areas left */
/* One area of memory for each mapping of the same extent: more than the system allows. */
static void test_area_limit(uint32_t device) {
  double bytes = 0, address = 0;
  uint8_t *limit = read_file("/proc/sys/vm/max_map_count", &bytes);
  uint32_t count = (uint32_t)strtoul((const char *)limit, NULL, 10) + 10, id, *ids;
  free(limit);
  if (count > 200000) return; /* it would take long */
  ids = malloc(count * sizeof *ids);
  create(device, 1, 1, &id);
  for (uint32_t i = 0; i < count; i++) ids[i] = id;
  OK(mb_reserve(device, count * GRANULE, &address));
  EXPECT(MB_LIMIT, mb_map(device, address, count, ids, MB_ACCESS_READ_WRITE, NULL));
  CHECK(strstr(error_text(), "vm.max_map_count") != NULL);
  CHECK(strstr(error_text(), "undoing") == NULL);
  OK(mb_extents_release(device, 1, &id));
  OK(mb_unreserve(device, address));
  free(ids);
}
#endif

/* The nth driver call fails, and nothing has changed. */
static void test_injected_failures(uint32_t device) {
  double address = reserve(device, 16 * GRANULE), used = used_memory(device);
  double starts[2] = {address, address + 4 * GRANULE}, sizes[2] = {2 * GRANULE, 2 * GRANULE};
  double granules[4] = {GRANULE, GRANULE, GRANULE, GRANULE};
  uint32_t ids[4], more[4];
  int32_t handles, mappings;
  fake_fail(vendor->create, 3, 2);
  EXPECT(MB_OUT_OF_MEMORY, mb_extents_create(device, 4, granules, ids));
  CHECK(strstr(error_text(), vendor->out_of_memory) != NULL);
  CHECK(mb_driver_code() == 2 && used_memory(device) == used);
  OK(mb_extents_create(device, 4, granules, ids));
  handles = fake_live(0);
  fake_fail(vendor->release, 3, 999);
  EXPECT(MB_DRIVER, mb_extents_release(device, 4, ids));
  CHECK(fake_live(0) == handles);
  fake_fail(vendor->map, 3, 1);
  EXPECT(MB_DRIVER, mb_map(device, address, 4, ids, 3, NULL));
  CHECK(fake_live(1) == 0);
  fake_fail(vendor->set_access, 1, 1);
  EXPECT(MB_DRIVER, mb_map(device, address, 4, ids, 3, NULL));
  CHECK(fake_live(1) == 0);
  OK(mb_map(device, address, 2, ids, MB_ACCESS_READ_WRITE, NULL));
  OK(mb_map(device, address + 4 * GRANULE, 2, ids + 2, MB_ACCESS_READ, NULL));
  OK(mb_memset(device, address, 5, 1, 2 * GRANULE, 0));
  OK(mb_synchronize(device));
  mappings = fake_live(1);
  fake_fail(vendor->unmap, 2, 999);
  EXPECT(MB_DRIVER, mb_unmap(device, 2, starts, sizes));
  CHECK(strstr(error_text(), "undoing") == NULL);
  CHECK(fake_live(1) == mappings);
  CHECK(byte_at(device, address + GRANULE) == 5);
  OK(mb_memset(device, address, 6, 1, 2 * GRANULE, 0));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, starts[1], 6, 1, 1, 0));
  fake_fail(vendor->set_access, 1, 999);
  EXPECT(MB_DRIVER, mb_set_access(device, starts[0], sizes[0], MB_ACCESS_NONE));
  OK(mb_memset(device, address, 7, 1, 2 * GRANULE, 0));
  OK(mb_synchronize(device));
  /* The undo fails too: what is true is what is noted. The first range has two mappings,
   * for which HIP is called one by one. */
  fake_fail(vendor->unmap, setup.backend == MB_BACKEND_HIP ? 3 : 2, 999);
  fake_fail(vendor->map, 2, 999);
  EXPECT(MB_DRIVER, mb_unmap(device, 2, starts, sizes));
  CHECK(strstr(error_text(), "undoing failed too: 2097152 bytes") != NULL);
  CHECK(byte_at(device, address) == 7);
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address + GRANULE, 0, 1, 1, 0));
  OK(mb_map(device, address + GRANULE, 1, ids + 1, 3, NULL));
  OK(mb_unmap(device, 2, starts, sizes));
  fake_fail(vendor->create, 2, 2);
  EXPECT(MB_OUT_OF_MEMORY, mb_time_vmm(device, 4 * GRANULE, GRANULE, 1, (double[5]){0}));
  fake_fail(vendor->map, 2, 2);
  EXPECT(MB_OUT_OF_MEMORY, mb_time_vmm(device, 4 * GRANULE, GRANULE, 1, (double[5]){0}));
  CHECK(fake_live(0) == handles && fake_live(1) == 0);
  fake_fail(vendor->copy_in, 1, 999);
  OK(mb_map(device, address, 4, ids, 3, NULL));
  EXPECT(MB_DRIVER, mb_copy_in(device, address, (const uint8_t *)granules, 8, 0));
  fake_fail(vendor->event_record, 1, 999);
  EXPECT(MB_DRIVER, mb_copy_out(device, (uint8_t *)more, address, 8, 0));
  sizes[0] = 4 * GRANULE;
  OK(mb_unmap(device, 1, starts, sizes));
  OK(mb_extents_release(device, 4, ids));
  OK(mb_unreserve(device, address));
}

typedef struct Kernels {
  uint32_t pattern, busy, fill, verify, spin, empty;
} Kernels;

static uint32_t find_function(uint32_t device, uint32_t module, const char *name) {
  uint32_t function = 0;
  OK(mb_function(device, module, (const uint8_t *)name, (uint32_t)strlen(name), &function));
  return function;
}

static Kernels load_kernels(uint32_t device) {
  Kernels kernels = {0};
  OK(mb_module_load(device, setup.pattern, setup.pattern_bytes, &kernels.pattern));
  OK(mb_module_load(device, setup.busy, setup.busy_bytes, &kernels.busy));
  kernels.fill = find_function(device, kernels.pattern, "mb_pattern_fill");
  kernels.verify = find_function(device, kernels.pattern, "mb_pattern_verify");
  kernels.spin = find_function(device, kernels.busy, "mb_spin");
  kernels.empty = find_function(device, kernels.busy, "mb_empty");
  return kernels;
}

static void launch(uint32_t device, uint32_t function, uint32_t stream, const uint64_t *args,
                   uint32_t words) {
  OK(mb_launch(device, function, 4, 1, 1, 64, 1, 1, 0, stream, (const uint8_t *)args,
               words * 8));
}

static void spin(uint32_t device, Kernels kernels, uint32_t stream, uint64_t ms) {
  uint64_t args[] = {ms * 1000000};
  launch(device, kernels.spin, stream, args, 1);
}

static void test_kernels(uint32_t device, Kernels kernels) {
  double address = reserve(device, 4 * GRANULE), size = 2 * GRANULE;
  uint64_t result[2] = {0, UINT64_MAX}, word = 0;
  uint64_t fill[] = {(uint64_t)address, WORDS_PER_GRANULE, 12345};
  uint64_t verify[] = {(uint64_t)address, WORDS_PER_GRANULE, 12345,
                       (uint64_t)(address + GRANULE)};
  const uint8_t *args = (const uint8_t *)fill;
  uint32_t ids[2], unused, module, function = kernels.fill;
  create(device, 2, 1, ids);
  OK(mb_map(device, address, 2, ids, 3, NULL));
  OK(mb_copy_in(device, address + GRANULE, (const uint8_t *)result, sizeof result, 0));
  launch(device, kernels.fill, 0, fill, 3);
  launch(device, kernels.verify, 0, verify, 4);
  OK(mb_copy_out(device, (uint8_t *)result, address + GRANULE, sizeof result, 0));
  CHECK(result[0] == 0 && result[1] == UINT64_MAX);
  OK(mb_copy_in(device, address + 8 * 1000, (const uint8_t *)&word, 8, 0));
  launch(device, kernels.verify, 0, verify, 4);
  OK(mb_copy_out(device, (uint8_t *)result, address + GRANULE, sizeof result, 0));
  CHECK(result[0] == 1 && result[1] == 1000);

  BAD(mb_launch(device, function, 0, 1, 1, 1, 1, 1, 0, 0, args, 24));
  BAD(mb_launch(device, function, 1, 65536, 1, 1, 1, 1, 0, 0, args, 24));
  BAD(mb_launch(device, function, 1, 1, 1, 1, 0, 1, 0, 0, args, 24));
  BAD(mb_launch(device, function, 1, 1, 1, 64, 64, 1, 0, 0, args, 24));
  BAD(mb_launch(device, function, 1, 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 0, args, 24));
  BAD(mb_launch(device, function, 1, 1, 1, 1, 1, 1, 0, 0, NULL, 24));
  BAD(mb_launch(device, function, 1, 1, 1, 1, 1, 1, 0, 0, args, UINT32_MAX));
  STALE(mb_launch(device, 0, 1, 1, 1, 1, 1, 1, 0, 0, args, 24));
  STALE(mb_launch(device, function, 1, 1, 1, 1, 1, 1, 0, 77, args, 24));
  EXPECT(MB_NOT_FOUND,
         mb_function(device, kernels.pattern, (const uint8_t *)"memcpy", 6, &unused));
  EXPECT(MB_NOT_FOUND,
         mb_function(device, kernels.pattern, (const uint8_t *)"mb_spin", 7, &unused));
  EXPECT(MB_NOT_FOUND,
         mb_function(device, kernels.busy, (const uint8_t *)"mb_pattern_fill", 15, &unused));
  BAD(mb_function(device, kernels.pattern, NULL, 3, &unused));
  BAD(mb_function(device, kernels.pattern, (const uint8_t *)"", 0, &unused));
  BAD(mb_function(device, kernels.pattern, (const uint8_t *)"a\0b", 3, &unused));
  BAD(mb_function(device, kernels.pattern, (const uint8_t *)"a", 1, NULL));
  STALE(mb_function(device, 999, (const uint8_t *)"a", 1, &unused));
  BAD(mb_module_load(device, NULL, 10, &module));
  BAD(mb_module_load(device, setup.pattern, setup.pattern_bytes, NULL));
  BAD(mb_module_load(device, setup.pattern, 0, &module));
  BAD(mb_module_load(device, setup.pattern, -5, &module));
  BAD(mb_module_load(device, setup.pattern, 1e15, &module));
  STALE(mb_module_unload(device, 999));

  /* Loaded again and again, each is its own, and functions go with their module. */
  for (int i = 0; i < 20; i++) {
    OK(mb_module_load(device, i % 2 ? setup.pattern : setup.busy,
                      i % 2 ? setup.pattern_bytes : setup.busy_bytes, &module));
    function = find_function(device, module, i % 2 ? "mb_pattern_fill" : "mb_empty");
    launch(device, function, 0, fill, i % 2 ? 3 : 1);
    OK(mb_module_unload(device, module));
    STALE(mb_launch(device, function, 1, 1, 1, 1, 1, 1, 0, 0, args, 24));
    STALE(mb_module_unload(device, module));
  }
  OK(mb_unmap(device, 1, &address, &size));
  OK(mb_extents_release(device, 2, ids));
  OK(mb_unreserve(device, address));
}

/* Cut or scrambled images are refused and crash nothing. */
static void test_bad_images(uint32_t device) {
  size_t bytes = (size_t)setup.pattern_bytes;
  uint8_t *image = malloc(bytes);
  uint32_t module;
  uint64_t random = 1;
  const size_t lengths[] = {1, 4, 16, 63, 64, 200, bytes / 2, bytes - 1};
  if (memcmp(setup.pattern, "\177ELF", 4) == 0) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      memcpy(image, setup.pattern, bytes);
      CHECK(mb_module_load(device, image, (double)lengths[i], &module) != MB_OK);
    }
    for (int i = 0; i < 200 && setup.backend == MB_BACKEND_HOST; i++) {
      /* Only offsets and counts in the header: nothing that code depends on. */
      memcpy(image, setup.pattern, bytes);
      random = random * 6364136223846793005u + 1442695040888963407u;
      memcpy(image + 32 + random % 32, &random, 1 + random % 4);
      if (mb_module_load(device, image, (double)bytes, &module) == MB_OK) {
        OK(mb_module_unload(device, module));
      }
    }
  }
  memset(image, 0, bytes);
  CHECK(mb_module_load(device, image, (double)bytes, &module) != MB_OK);
  free(image);
}

static void test_streams(uint32_t device, Kernels kernels) {
  uint32_t a, b, never, event, start, end;
  uint64_t handle = 1;
  double ms = -1, address = reserve(device, GRANULE), size = GRANULE;
  uint32_t id;
  bool real_time = !setup.fake; /* the fake runs work when it likes */
  create(device, 1, 1, &id);
  OK(mb_map(device, address, 1, &id, 3, NULL));
  BAD(mb_stream_create(device, NULL));
  OK(mb_stream_create(device, &a));
  OK(mb_stream_create(device, &b));
  BAD(mb_event_create(device, 0, NULL));
  BAD(mb_event_create(device, 2, &event));
  OK(mb_event_create(device, 0, &never));
  OK(mb_event_create(device, 0, &event));
  OK(mb_event_create(device, 1, &start));
  OK(mb_event_create(device, 1, &end));
  BAD(mb_stream_handle(device, a, NULL));
  OK(mb_stream_handle(device, 0, &handle));
  CHECK(handle == 0);
  OK(mb_stream_handle(device, a, &handle));
  CHECK((handle == 0) == (setup.backend == MB_BACKEND_HOST));
  BAD(mb_stream_destroy(device, 0));
  STALE(mb_stream_destroy(device, 12345));
  STALE(mb_stream_synchronize(device, 12345));
  STALE(mb_stream_wait(device, a, 12345));
  STALE(mb_stream_wait(device, 12345, event));
  STALE(mb_event_record(device, 12345, a));
  STALE(mb_event_record(device, event, 12345));
  STALE(mb_event_query(device, 12345));
  STALE(mb_event_synchronize(device, 12345));
  STALE(mb_event_destroy(device, 12345));
  STALE(mb_event_elapsed(device, 12345, end, &ms));
  BAD(mb_event_elapsed(device, start, end, NULL));
  BAD(mb_event_elapsed(device, start, end, &ms));
  OK(mb_event_query(device, never));
  OK(mb_event_synchronize(device, never));
  OK(mb_stream_wait(device, a, never));

  spin(device, kernels, a, 1);
  OK(mb_stream_synchronize(device, a));
  OK(mb_event_record(device, start, a));
  spin(device, kernels, a, 60);
  OK(mb_event_record(device, event, a));
  OK(mb_event_record(device, end, a));
  if (real_time) {
    EXPECT(MB_NOT_READY, mb_event_query(device, event));
    EXPECT(MB_NOT_READY, mb_event_elapsed(device, start, end, &ms));
    OK(mb_stream_synchronize(device, b)); /* streams don't wait for each other */
    EXPECT(MB_NOT_READY, mb_event_query(device, event));
  }
  /* The wait is for this record, even if the event is recorded again elsewhere. */
  OK(mb_memset(device, address, 0, 4, 4, 0));
  OK(mb_synchronize(device));
  spin(device, kernels, a, 40);
  OK(mb_memset(device, address, 1, 4, 1, a));
  OK(mb_event_record(device, event, a));
  OK(mb_stream_wait(device, b, event));
  OK(mb_event_record(device, event, 0));
  OK(mb_event_synchronize(device, event)); /* the later record, on an idle stream */
  OK(mb_copy(device, address + 4, address, 4, b));
  OK(mb_stream_synchronize(device, b));
  CHECK(byte_at(device, address + 4) == 1);
  OK(mb_event_query(device, event));
  OK(mb_event_elapsed(device, start, end, &ms));
  CHECK(ms >= 59 && ms < 5000);
  OK(mb_event_elapsed(device, end, start, &ms));
  CHECK(ms <= 0);
  OK(mb_event_record(device, never, 0));
  BAD(mb_event_elapsed(device, never, end, &ms));

  /* Destroying finishes the work; the memory is written. */
  spin(device, kernels, a, 20);
  OK(mb_memset(device, address + 8, 9, 1, 1, a));
  OK(mb_stream_destroy(device, a));
  CHECK(byte_at(device, address + 8) == 9);
  STALE(mb_stream_synchronize(device, a));
  STALE(mb_memset(device, address, 0, 1, 1, a));
  OK(mb_event_destroy(device, event));
  STALE(mb_event_record(device, event, b));
  OK(mb_stream_destroy(device, b));
  OK(mb_event_destroy(device, start));
  OK(mb_event_destroy(device, end));
  OK(mb_event_destroy(device, never));
  OK(mb_unmap(device, 1, &address, &size));
  OK(mb_extents_release(device, 1, &id));
  OK(mb_unreserve(device, address));
}

static void test_copies(uint32_t device, Kernels kernels) {
  enum { LARGEST = 20 << 20 };
  const double sizes[] = {1, 7, 4096, 4 << 20, (4 << 20) + 1, (8 << 20) + 5, LARGEST};
  double address = reserve(device, 32 * GRANULE), all = 32 * GRANULE, half = 16 * GRANULE;
  uint8_t *in = malloc(LARGEST), *out = malloc(LARGEST);
  uint32_t ids[16], stream;
  OK(mb_stream_create(device, &stream));
  create(device, 16, 2, ids);
  OK(mb_map(device, address, 16, ids, 3, NULL));
  for (size_t i = 0; i < LARGEST; i++) in[i] = (uint8_t)(i * 7 + (i >> 13));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double start = address + (i % 2 ? 3 : 0);
    memset(out, 0, LARGEST);
    spin(device, kernels, stream, 2);
    OK(mb_copy_in(device, start, in, sizes[i], stream));
    OK(mb_copy_out(device, out, start, sizes[i], stream));
    CHECK(memcmp(in, out, (size_t)sizes[i]) == 0);
  }
  OK(mb_copy_in(device, address, in, LARGEST, 0));
  OK(mb_copy(device, address + all - LARGEST, address, LARGEST, 0));
  OK(mb_copy_out(device, out, address + all - LARGEST, LARGEST, 0));
  CHECK(memcmp(in, out, LARGEST) == 0);
  OK(mb_memset(device, address, 0xABCD, 2, half / 2, 0));
  OK(mb_memset(device, address, 0x12345678, 4, 10, 0));
  OK(mb_copy_out(device, out, address, 64, 0));
  CHECK(out[0] == 0x78 && out[39] == 0x12 && out[40] == 0xCD && out[41] == 0xAB);
  CHECK(byte_at(device, address + half - 1) == 0xAB);

  BAD(mb_memset(device, address, 0, 3, 1, 0));
  BAD(mb_memset(device, address, 256, 1, 1, 0));
  BAD(mb_memset(device, address, 65536, 2, 1, 0));
  BAD(mb_memset(device, address + 1, 0, 2, 1, 0));
  BAD(mb_memset(device, address, 0, 1, 0, 0));
  BAD(mb_memset(device, address, 0, 4, 9007199254740991.0, 0));
  BAD(mb_memset(device, NAN, 0, 1, 1, 0));
  STALE(mb_memset(device, address, 0, 1, 1, 999));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address, 0, 1, all + 1, 0));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, 0, 0, 1, 1, 0));
  BAD(mb_copy_in(device, address, NULL, 1, 0));
  BAD(mb_copy_in(device, address, in, 0, 0));
  BAD(mb_copy_in(device, address, in, 1.5, 0));
  BAD(mb_copy_in(device, -address, in, 1, 0));
  STALE(mb_copy_in(device, address, in, 1, 999));
  BAD(mb_copy_out(device, NULL, address, 1, 0));
  BAD(mb_copy_out(device, out, address, 0, 0));
  BAD(mb_copy_out(device, out, INFINITY, 1, 0));
  STALE(mb_copy_out(device, out, address, 1, 999));
  BAD(mb_copy(device, address, address, 1, 0));
  BAD(mb_copy(device, address, address + 9, 10, 0));
  BAD(mb_copy(device, address, address + GRANULE, 0, 0));
  STALE(mb_copy(device, address, address + GRANULE, 1, 999));
  EXPECT(MB_NOT_MAPPED, mb_copy(device, address + all, address, 1, 0));
  OK(mb_stream_destroy(device, stream));
  OK(mb_synchronize(device));
  OK(mb_unmap(device, 1, &address, &all));
  OK(mb_extents_release(device, 16, ids));
  OK(mb_unreserve(device, address));
  free(in);
  free(out);
}

static void test_baselines(uint32_t device) {
  double plain[200], pooled = 0, again = 0, unused;
  uint8_t byte = 0;
  uint32_t stream;
  OK(mb_stream_create(device, &stream));
  BAD(mb_plain_alloc(device, 0, &unused));
  BAD(mb_plain_alloc(device, -1, &unused));
  BAD(mb_plain_alloc(device, 100, NULL));
  EXPECT(MB_OUT_OF_MEMORY, mb_plain_alloc(device, 1e15, &unused));
  for (int i = 0; i < 200; i++) {
    OK(mb_plain_alloc(device, 1000 + i * 100, &plain[i]));
    OK(mb_memset(device, plain[i], (uint32_t)i, 1, 1000 + i * 100, 0));
  }
  for (int i = 0; i < 200; i++) {
    CHECK(byte_at(device, plain[i] + 999 + i * 100) == i);
    EXPECT(MB_NOT_MAPPED, mb_memset(device, plain[i], 0, 1, 1001 + i * 100, 0));
  }
  BAD(mb_plain_free(device, plain[0] + 1));
  BAD(mb_pool_free(device, plain[0], 0));
  for (int i = 0; i < 200; i++) OK(mb_plain_free(device, plain[i * 7 % 200]));
  BAD(mb_plain_free(device, plain[0]));
  EXPECT(MB_NOT_MAPPED, mb_copy_out(device, &byte, plain[0], 1, 0));

  BAD(mb_pool_alloc(device, 0, stream, &unused));
  BAD(mb_pool_alloc(device, 100, stream, NULL));
  STALE(mb_pool_alloc(device, 100, 999, &unused));
  EXPECT(MB_OUT_OF_MEMORY, mb_pool_alloc(device, 1e15, stream, &unused));
  OK(mb_pool_alloc(device, 3 * GRANULE, stream, &pooled));
  OK(mb_memset(device, pooled, 5, 1, 3 * GRANULE, stream));
  OK(mb_copy_out(device, &byte, pooled + GRANULE, 1, stream));
  CHECK(byte == 5);
  STALE(mb_pool_free(device, pooled, 999));
  BAD(mb_plain_free(device, pooled));
  OK(mb_pool_free(device, pooled, stream));
  BAD(mb_pool_free(device, pooled, stream));
  OK(mb_pool_alloc(device, 3 * GRANULE, stream, &again));
  CHECK(setup.fake || again == pooled);
  OK(mb_pool_free(device, again, stream));
  OK(mb_stream_synchronize(device, stream));
  OK(mb_pool_trim(device));
  OK(mb_stream_destroy(device, stream));
}

static void test_pinned(uint32_t device, Kernels kernels) {
  double pinned = 0, other = 0, address = reserve(device, GRANULE), size = GRANULE, unused;
  uint8_t in[5000], out[5000];
  uint64_t *words, verify[4], fill[3];
  uint32_t id, stream;
  create(device, 1, 1, &id);
  OK(mb_map(device, address, 1, &id, 3, NULL));
  OK(mb_stream_create(device, &stream));
  for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * 7 + (i >> 8));
  BAD(mb_host_alloc(device, 0, &unused));
  BAD(mb_host_alloc(device, -1, &unused));
  BAD(mb_host_alloc(device, NAN, &unused));
  BAD(mb_host_alloc(device, 100, NULL));
  EXPECT(MB_OUT_OF_MEMORY, mb_host_alloc(device, 1e15, &unused));
  OK(mb_host_alloc(device, sizeof in, &pinned));
  OK(mb_host_alloc(device, 4096 * 8, &other));
  OK(mb_host_write(device, pinned, in, sizeof in));
  OK(mb_host_write(device, pinned + 10, in, 20));
  memmove(in + 10, in, 20);
  OK(mb_host_read(device, out, pinned, sizeof out));
  CHECK(memcmp(in, out, sizeof in) == 0);
  /* The host sees it where the device does. */
  CHECK(memcmp((void *)(uintptr_t)pinned, in, sizeof in) == 0);
  BAD(mb_host_write(device, pinned, NULL, 1));
  BAD(mb_host_write(device, pinned, in, 0));
  BAD(mb_host_write(device, NAN, in, 1));
  BAD(mb_host_read(device, NULL, pinned, 1));
  BAD(mb_host_read(device, out, pinned, -1));
  EXPECT(MB_NOT_MAPPED, mb_host_write(device, pinned, in, sizeof in + 1));
  EXPECT(MB_NOT_MAPPED, mb_host_write(device, pinned + sizeof in - 1, in, 2));
  EXPECT(MB_NOT_MAPPED, mb_host_read(device, out, address, 1));
  CHECK(strstr(error_text(), "no page-locked allocation") != NULL);
  BAD(mb_host_free(device, pinned + 1));
  BAD(mb_host_free(device, address));
  BAD(mb_plain_free(device, pinned));

  words = (uint64_t *)(uintptr_t)other;
  fill[0] = (uint64_t)other;
  fill[1] = 4096 - 2;
  fill[2] = 99;
  memcpy(verify, fill, sizeof fill);
  verify[3] = (uint64_t)other + 4094 * 8; /* the result is page-locked too */
  launch(device, kernels.fill, stream, fill, 3);
  OK(mb_stream_synchronize(device, stream));
  words[4094] = 0;
  words[4095] = UINT64_MAX;
  words[5]++;
  words[77] = 0;
  launch(device, kernels.verify, stream, verify, 4);
  OK(mb_stream_synchronize(device, stream));
  CHECK(words[4094] == 2 && words[4095] == 5);
  OK(mb_copy(device, address, pinned, sizeof in, stream));
  OK(mb_memset(device, pinned, 3, 1, sizeof in, stream));
  OK(mb_copy_out(device, out, address, sizeof out, stream));
  CHECK(memcmp(in, out, sizeof in) == 0);
  OK(mb_copy_out(device, out, pinned + 100, 100, stream));
  CHECK(out[0] == 3 && out[99] == 3);
  OK(mb_copy_in(device, pinned + 1, in, 10, stream));
  OK(mb_copy(device, other, pinned, 100, stream));
  OK(mb_stream_synchronize(device, stream));
  CHECK(memcmp((uint8_t *)words + 1, in, 10) == 0 && *(uint8_t *)words == 3);

  /* Freeing waits for who uses it. */
  spin(device, kernels, stream, 20);
  OK(mb_copy(device, address, pinned, 100, stream));
  OK(mb_host_free(device, pinned));
  BAD(mb_host_free(device, pinned));
  EXPECT(MB_NOT_MAPPED, mb_host_read(device, out, pinned, 1));
  EXPECT(MB_NOT_MAPPED, mb_copy(device, address, pinned, 1, stream));
  OK(mb_host_free(device, other));
  OK(mb_stream_destroy(device, stream));
  OK(mb_unmap(device, 1, &address, &size));
  OK(mb_extents_release(device, 1, &id));
  OK(mb_unreserve(device, address));
}

static void test_wrapped(uint32_t device) {
  /* Memory of another opening of the device stands for that of another library. */
  uint32_t other = open_device();
  double address = 0, plain, own = reserve(device, GRANULE);
  uint8_t out[3000];
  OK(mb_plain_alloc(other, 3000, &address));
  OK(mb_memset(other, address, 0, 1, 3000, 0));
  OK(mb_synchronize(other));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address, 1, 1, 10, 0));
  BAD(mb_wrap(device, 0, 10));
  BAD(mb_wrap(device, address, 0));
  BAD(mb_wrap(device, address, -1));
  BAD(mb_wrap(device, NAN, 10));
  BAD(mb_wrap(device, 9007199254740000.0, 10000));
  OK(mb_wrap(device, address + 1000, 1000));
  /* Apart from it, up to it, and every way to overlap. */
  OK(mb_wrap(device, address, 1000));
  OK(mb_unwrap(device, address));
  BAD(mb_wrap(device, address, 1001));
  BAD(mb_wrap(device, address + 1999, 2));
  BAD(mb_wrap(device, address + 1200, 10));
  BAD(mb_wrap(device, address, 3000));
  BAD(mb_wrap(device, address + 1000, 1000));
  BAD(mb_wrap(device, own + 5, 1));
  BAD(mb_wrap(device, own - 5, 6));
  OK(mb_plain_alloc(device, 4096, &plain));
  BAD(mb_wrap(device, plain + 4095, 1));
  OK(mb_memset(device, address + 1000, 7, 1, 1000, 0));
  OK(mb_copy_out(device, out, address + 1000, 1000, 0));
  CHECK(out[0] == 7 && out[999] == 7);
  OK(mb_copy_out(other, out, address, 3000, 0));
  CHECK(out[999] == 0 && out[1000] == 7 && out[1999] == 7 && out[2000] == 0);
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address + 999, 1, 1, 2, 0));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address + 1999, 1, 1, 2, 0));
  BAD(mb_unwrap(device, address + 1001));
  BAD(mb_plain_free(device, address + 1000));
  BAD(mb_unwrap(device, plain));
  OK(mb_unwrap(device, address + 1000));
  BAD(mb_unwrap(device, address + 1000));
  EXPECT(MB_NOT_MAPPED, mb_memset(device, address + 1000, 1, 1, 1, 0));
  OK(mb_plain_free(device, plain));
  OK(mb_unreserve(device, own));
  OK(mb_plain_free(other, address));
  OK(mb_close(other));
}

static int32_t is_capturing(uint32_t device, uint32_t stream) {
  int32_t capturing = -1;
  OK(mb_capture_status(device, stream, &capturing));
  return capturing;
}

/* Everything that would spoil a capture, and does not. */
static void test_capture_refusals(uint32_t device, Kernels kernels, uint32_t stream,
                                  double address, uint32_t graph) {
  uint8_t byte = 1;
  uint32_t event, unused;
  double pooled, pinned, times[2];
  OK(mb_event_create(device, 0, &event));
  OK(mb_event_record(device, event, 0));
  OK(mb_host_alloc(device, 10, &pinned));
  OK(mb_pool_alloc(device, 100, 0, &pooled));
  BAD(mb_capture_begin(device, stream));
  BAD(mb_stream_synchronize(device, stream));
  CHECK(strstr(error_text(), "end the capture first") != NULL);
  BAD(mb_synchronize(device));
  CHECK(strstr(error_text(), "end the captures first") != NULL);
  BAD(mb_event_record(device, event, stream));
  BAD(mb_stream_wait(device, stream, event));
  BAD(mb_copy_in(device, address, &byte, 1, stream));
  BAD(mb_copy_out(device, &byte, address, 1, stream));
  BAD(mb_pool_alloc(device, 100, stream, &pooled));
  BAD(mb_pool_free(device, pooled, stream));
  BAD(mb_host_free(device, pinned));
  BAD(mb_module_unload(device, kernels.busy));
  BAD(mb_graph_launch(device, graph, stream));
  BAD(mb_time_pool(device, 100, stream, 1, 1, times, times + 1));
  BAD(mb_time_launch(device, kernels.empty, stream, &byte, 1, 0, 1, times));
  BAD(mb_capture_end(device, stream, NULL));
  BAD(mb_capture_status(device, stream, NULL));
  CHECK(is_capturing(device, stream) == 1);
  OK(mb_event_synchronize(device, event));
  OK(mb_event_query(device, event));
  OK(mb_stream_wait(device, 0, event));
  OK(mb_stream_synchronize(device, 0));
  OK(mb_pool_free(device, pooled, 0));
  OK(mb_pool_trim(device));
  OK(mb_time_vmm(device, 4 * GRANULE, GRANULE, 1, (double[5]){0}));
  OK(mb_plain_alloc(device, 100, &pooled));
  OK(mb_plain_free(device, pooled));
  OK(mb_event_destroy(device, event));
  OK(mb_module_load(device, setup.busy, setup.busy_bytes, &unused));
  CHECK(is_capturing(device, stream) == 1);
}

static void test_graphs(uint32_t device, Kernels kernels) {
  double address = reserve(device, 2 * GRANULE), size = 2 * GRANULE;
  uint32_t ids[2], stream, other, graph, empty, unused, module;
  uint64_t fill[] = {(uint64_t)address, 64, 5};
  uint8_t first[512], again[512];
  create(device, 2, 1, ids);
  OK(mb_map(device, address, 2, ids, 3, NULL));
  OK(mb_stream_create(device, &stream));
  OK(mb_stream_create(device, &other));
  BAD(mb_capture_begin(device, 0));
  STALE(mb_capture_begin(device, 999));
  BAD(mb_capture_end(device, 0, &unused));
  BAD(mb_capture_end(device, stream, &unused));
  STALE(mb_capture_end(device, 999, &unused));
  STALE(mb_graph_launch(device, 0, stream));
  STALE(mb_graph_launch(device, 999, stream));
  STALE(mb_graph_destroy(device, 999));
  CHECK(is_capturing(device, 0) == 0 && is_capturing(device, stream) == 0);
  OK(mb_capture_begin(device, other));
  OK(mb_capture_end(device, other, &empty));

  launch(device, kernels.fill, stream, fill, 3);
  OK(mb_copy_out(device, first, address, 512, stream));
  OK(mb_memset(device, address, 1, 1, 512, stream));
  OK(mb_capture_begin(device, stream));
  OK(mb_memset(device, address, 2, 1, 512, stream));
  test_capture_refusals(device, kernels, stream, address, empty);
  launch(device, kernels.fill, stream, fill, 3);
  fill[0] = 0; /* the block was copied */
  OK(mb_copy(device, address + GRANULE, address, 512, stream));
  OK(mb_capture_end(device, stream, &graph));
  CHECK(is_capturing(device, stream) == 0);
  OK(mb_synchronize(device));
  CHECK(byte_at(device, address) == 1);
  for (int i = 0; i < 3; i++) {
    OK(mb_memset(device, address, 9, 1, size, i ? other : stream));
    OK(mb_graph_launch(device, graph, i ? other : stream));
    OK(mb_graph_launch(device, empty, i ? other : stream));
    OK(mb_copy_out(device, again, address + GRANULE, 512, i ? other : stream));
    CHECK(memcmp(first, again, 512) == 0);
  }
  STALE(mb_graph_launch(device, graph, 999));

  BAD(mb_module_unload(device, kernels.pattern));
  CHECK(strstr(error_text(), "destroy them first") != NULL);
  OK(mb_module_load(device, setup.busy, setup.busy_bytes, &module));
  for (int i = 0; i < 20; i++) {
    uint32_t running, spinning = find_function(device, module, "mb_spin");
    uint64_t ns = 1000000;
    OK(mb_capture_begin(device, stream));
    launch(device, spinning, stream, &ns, 1);
    OK(mb_memset(device, address, (uint32_t)i, 1, 512, stream));
    OK(mb_capture_end(device, stream, &running));
    OK(mb_graph_launch(device, running, stream));
    OK(mb_graph_launch(device, running, other));
    BAD(mb_module_unload(device, module));
    OK(mb_graph_destroy(device, running));
    STALE(mb_graph_destroy(device, running));
    OK(mb_stream_synchronize(device, other));
    CHECK(byte_at(device, address) == i);
  }
  OK(mb_module_unload(device, module));

  /* The stream's end is the capture's. */
  OK(mb_capture_begin(device, stream));
  OK(mb_memset(device, address, 77, 1, 512, stream));
  BAD(mb_synchronize(device));
  OK(mb_stream_destroy(device, stream));
  OK(mb_synchronize(device));
  CHECK(byte_at(device, address) == 19);
  OK(mb_graph_destroy(device, graph));
  OK(mb_graph_destroy(device, empty));
  OK(mb_stream_destroy(device, other));
  OK(mb_unmap(device, 1, &address, &size));
  OK(mb_extents_release(device, 2, ids));
  OK(mb_unreserve(device, address));
}

/* A driver call of a capture fails: the stream is as before, and nothing is left. */
static void test_failing_graphs(uint32_t device) {
  uint32_t stream, graph;
  uint64_t handle = 0;
  double pinned;
  OK(mb_stream_create(device, &stream));
  fake_fail(vendor->begin_capture, 1, 999);
  EXPECT(MB_DRIVER, mb_capture_begin(device, stream));
  OK(mb_synchronize(device));
  OK(mb_capture_begin(device, stream));
  /* Another library waits for the stream. */
  OK(mb_stream_handle(device, stream, &handle));
  CHECK(fake_stream_synchronize((void *)(uintptr_t)handle) == 900);
  CHECK(is_capturing(device, stream) == 1);
  EXPECT(MB_DRIVER, mb_capture_end(device, stream, &graph));
  CHECK(strstr(error_text(), "capture again without it") != NULL);
  OK(mb_stream_synchronize(device, stream));
  OK(mb_capture_begin(device, stream));
  fake_fail(vendor->instantiate, 1, 2);
  EXPECT(MB_OUT_OF_MEMORY, mb_capture_end(device, stream, &graph));
  CHECK(fake_live(13) == 0 && fake_live(14) == 0);
  OK(mb_stream_synchronize(device, stream));
  fake_fail(vendor->pinned_address, 1, 801);
  EXPECT(MB_UNSUPPORTED, mb_host_alloc(device, 100, &pinned));
  fake_fail(vendor->pinned_alloc, 1, 2);
  EXPECT(MB_OUT_OF_MEMORY, mb_host_alloc(device, 100, &pinned));
  OK(mb_host_alloc(device, 100, &pinned));
  fake_fail(vendor->pinned_free, 1, 999);
  EXPECT(MB_DRIVER, mb_host_free(device, pinned));
  OK(mb_host_free(device, pinned));
  OK(mb_stream_destroy(device, stream));
}

static void test_timed_loops(uint32_t device, Kernels kernels) {
  enum { N = 600 };
  static double first[N * 5], second[N];
  uint64_t unused = 0;
  const uint8_t *args = (const uint8_t *)&unused;
  double used = used_memory(device);
  uint32_t stream;
  OK(mb_stream_create(device, &stream));
  OK(mb_time_plain(device, GRANULE, 10, first, second));
  CHECK(first[9] > 0 && second[9] > 0);
  OK(mb_time_pool(device, GRANULE, stream, 0, 10, first, second));
  OK(mb_time_pool(device, GRANULE, stream, 1, 10, first, second));
  CHECK(first[9] > 0 && second[9] > 0);
  OK(mb_time_vmm(device, 8 * GRANULE, 2 * GRANULE, 10, first));
  for (int i = 0; i < 50; i++) CHECK(first[i] > 0);
  OK(mb_time_launch(device, kernels.empty, stream, args, 8, 1, 100, first));
  OK(mb_time_launch(device, kernels.empty, stream, args, 8, 0, N, first));
  CHECK(first[N - 1] > 0);
  BAD(mb_time_plain(device, GRANULE, 0, first, second));
  BAD(mb_time_plain(device, GRANULE, UINT32_MAX, first, second));
  BAD(mb_time_plain(device, GRANULE, 1, NULL, second));
  BAD(mb_time_plain(device, GRANULE, 1, first, NULL));
  BAD(mb_time_plain(device, NAN, 1, first, second));
  BAD(mb_time_pool(device, GRANULE, stream, 2, 1, first, second));
  BAD(mb_time_pool(device, 0, stream, 1, 1, first, second));
  STALE(mb_time_pool(device, GRANULE, 999, 1, 1, first, second));
  BAD(mb_time_vmm(device, 3 * GRANULE, 2 * GRANULE, 1, first));
  BAD(mb_time_vmm(device, GRANULE, GRANULE / 2, 1, first));
  BAD(mb_time_vmm(device, GRANULE, GRANULE, 1, NULL));
  BAD(mb_time_vmm(device, 2097152 * GRANULE, GRANULE, 1, first));
  BAD(mb_time_launch(device, kernels.empty, stream, args, 8, 0, 0, first));
  BAD(mb_time_launch(device, kernels.empty, stream, NULL, 8, 0, 1, first));
  BAD(mb_time_launch(device, kernels.empty, stream, args, 8, 5, 1, first));
  STALE(mb_time_launch(device, 999, stream, args, 8, 0, 1, first));
  STALE(mb_time_launch(device, kernels.empty, 999, args, 8, 0, 1, first));
  OK(mb_stream_destroy(device, stream));
  OK(mb_pool_trim(device));
  CHECK(setup.backend != MB_BACKEND_HOST || used_memory(device) == used);
}

static void map_rounds(uint32_t device, int rounds) {
  double address = reserve(device, 8 * GRANULE), size = 2 * GRANULE;
  uint32_t ids[2];
  create(device, 2, 1, ids);
  for (int i = 0; i < rounds; i++) {
    double at = address + (i % 4) * size;
    OK(mb_map(device, at, 2, ids, 3, NULL));
    OK(mb_unmap(device, 1, &at, &size));
  }
  OK(mb_extents_release(device, 2, ids));
  OK(mb_unreserve(device, address));
}

static void test_rounds(uint32_t device) { map_rounds(device, 20000); }

typedef struct Worker {
  uint32_t device, stream;
  Kernels kernels;
  pthread_t thread;
} Worker;

static void *map_in_thread(void *argument) {
  map_rounds(((Worker *)argument)->device, 1000);
  return NULL;
}

/* Its own stream, memory and events, with staging and launches. */
static void *compute_in_thread(void *argument) {
  Worker *worker = argument;
  uint32_t device = worker->device, stream, event, id;
  double address = reserve(device, 2 * GRANULE), size = GRANULE, pooled;
  uint8_t bytes[512];
  create(device, 1, 1, &id);
  OK(mb_map(device, address, 1, &id, 3, NULL));
  OK(mb_stream_create(device, &stream));
  OK(mb_event_create(device, 1, &event));
  for (int i = 0; i < 300; i++) {
    uint64_t fill[] = {(uint64_t)address + 4096, 64, (uint64_t)i};
    OK(mb_memset(device, address, (uint32_t)i % 256, 1, 4096, stream));
    launch(device, worker->kernels.fill, stream, fill, 3);
    OK(mb_event_record(device, event, stream));
    OK(mb_stream_wait(device, 0, event));
    OK(mb_copy_out(device, bytes, address + 100, sizeof bytes, stream));
    CHECK(bytes[0] == i % 256 && bytes[511] == i % 256);
    OK(mb_copy_in(device, address, bytes, sizeof bytes, stream));
    OK(mb_event_query(device, event));
    OK(mb_pool_alloc(device, 4096, stream, &pooled));
    OK(mb_pool_free(device, pooled, stream));
  }
  OK(mb_event_destroy(device, event));
  OK(mb_stream_destroy(device, stream));
  OK(mb_synchronize(device));
  OK(mb_unmap(device, 1, &address, &size));
  OK(mb_extents_release(device, 1, &id));
  OK(mb_unreserve(device, address));
  return NULL;
}

/* Captures and graphs of its own, and page-locked memory, beside those of others. */
static void *capture_in_thread(void *argument) {
  Worker *worker = argument;
  uint32_t device = worker->device, stream, graph;
  double pinned;
  OK(mb_stream_create(device, &stream));
  for (int i = 0; i < 200; i++) {
    uint64_t fill[3] = {0, 64, (uint64_t)i}, word = 0, nothing = 0;
    OK(mb_host_alloc(device, 512, &pinned));
    OK(mb_host_write(device, pinned, (const uint8_t *)&nothing, 8));
    fill[0] = (uint64_t)pinned;
    OK(mb_capture_begin(device, stream));
    launch(device, worker->kernels.fill, stream, fill, 3);
    OK(mb_memset(device, pinned, (uint32_t)i % 256, 1, 4, stream));
    OK(mb_capture_end(device, stream, &graph));
    OK(mb_graph_launch(device, graph, stream));
    OK(mb_graph_destroy(device, graph));
    OK(mb_stream_synchronize(device, stream));
    OK(mb_host_read(device, (uint8_t *)&word, pinned, 8));
    CHECK((word & 255) == (uint64_t)(i % 256));
    /* Others may be capturing. */
    while (mb_host_free(device, pinned) == MB_BAD_ARGUMENT) sched_yield();
  }
  OK(mb_stream_destroy(device, stream));
  return NULL;
}

/* Goes on until the stream or the device is gone under it. */
static void *launch_in_thread(void *argument) {
  const Worker *worker = argument;
  uint64_t unused = 0;
  int32_t status = MB_OK;
  while (status == MB_OK) {
    status = mb_launch(worker->device, worker->kernels.empty, 1, 1, 1, 1, 1, 1, 0,
                       worker->stream, (const uint8_t *)&unused, 8);
    if (status == MB_OK) status = mb_stream_synchronize(worker->device, worker->stream);
  }
  EXPECT(MB_BAD_HANDLE, status);
  return NULL;
}

static void pause_ms(long ms) {
  struct timespec time = {0, ms * 1000000};
  nanosleep(&time, NULL);
}

static void test_threads(uint32_t device, Kernels kernels) {
  Worker workers[4];
  for (int i = 0; i < 4; i++) {
    workers[i] = (Worker){device, 0, kernels, 0};
    pthread_create(&workers[i].thread, NULL, i < 2 ? map_in_thread : compute_in_thread,
                   &workers[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < 4; i++) {
    pthread_create(&workers[i].thread, NULL, i == 0 ? map_in_thread : capture_in_thread,
                   &workers[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < 10; i++) {
    OK(mb_stream_create(device, &workers[0].stream));
    pthread_create(&workers[0].thread, NULL, launch_in_thread, &workers[0]);
    pause_ms(2);
    OK(mb_stream_destroy(device, workers[0].stream));
    pthread_join(workers[0].thread, NULL);
  }
}

/* Closing with everything alive, work queued, and another thread at it. */
static void test_close_live(void) {
  for (int i = 0; i < 5; i++) {
    uint32_t device = open_device(), ids[3], event, stream, capturing, graph;
    double address = reserve(device, 64 * GRANULE), plain, pooled, pinned;
    Worker worker = {device, 0, load_kernels(device), 0};
    create(device, 3, 2, ids);
    OK(mb_map(device, address + 6 * GRANULE, 3, ids, 3, NULL));
    OK(mb_map(device, address + 20 * GRANULE, 3, ids, 1, NULL));
    OK(mb_stream_create(device, &stream));
    OK(mb_stream_create(device, &worker.stream));
    OK(mb_event_create(device, 1, &event));
    OK(mb_plain_alloc(device, 100, &plain));
    OK(mb_pool_alloc(device, 100, stream, &pooled));
    OK(mb_host_alloc(device, 100, &pinned));
    OK(mb_stream_create(device, &capturing));
    OK(mb_capture_begin(device, capturing));
    launch(device, worker.kernels.empty, capturing, (uint64_t[]){0}, 1);
    OK(mb_capture_end(device, capturing, &graph));
    spin(device, worker.kernels, stream, 20);
    OK(mb_graph_launch(device, graph, stream));
    OK(mb_capture_begin(device, capturing));
    launch(device, worker.kernels.empty, capturing, (uint64_t[]){0}, 1);
    OK(mb_memset(device, address + 6 * GRANULE, 1, 1, 6 * GRANULE, stream));
    OK(mb_event_record(device, event, stream));
    OK(mb_stream_wait(device, 0, event));
    OK(mb_copy_in(device, plain, (const uint8_t *)&plain, 8, 0));
    pthread_create(&worker.thread, NULL, launch_in_thread, &worker);
    pause_ms(2);
    OK(mb_close(device));
    pthread_join(worker.thread, NULL);
    STALE(mb_close(device));
  }
  /* Handles to operations: none may be left in the driver. */
  for (int what = 0; setup.fake && what <= 15; what++) CHECK(fake_live(what) == 0);
}

/* An injected failure that no context survives. */
static void test_injected_loss(void) {
  uint32_t device = open_device(), id;
  create(device, 1, 1, &id);
  fake_fail(vendor->synchronize, 1, 719);
  EXPECT(MB_LOST, mb_synchronize(device));
  CHECK(mb_driver_code() == 719);
  OK(mb_close(device));
}

/* A kernel writes where nothing is mapped. */
static void test_lost(void) {
  uint32_t device = open_device(), other, id;
  Kernels kernels = load_kernels(device);
  double free_and_total[2], address = reserve(device, 2 * GRANULE), size = GRANULE;
  uint64_t fill[] = {(uint64_t)(address + GRANULE), 64, 1};
  char first[1025];
  create(device, 1, 1, &id);
  OK(mb_map(device, address, 1, &id, 3, NULL));
  launch(device, kernels.fill, 0, fill, 3);
  EXPECT(MB_LOST, mb_synchronize(device));
  snprintf(first, sizeof first, "%s", error_text());
  CHECK(strstr(first, vendor->illegal_address) != NULL);
  EXPECT(MB_LOST, mb_memory_info(device, free_and_total));
  CHECK(strcmp(first, error_text()) == 0 && mb_driver_code() == 700);
  EXPECT(MB_LOST, mb_unmap(device, 1, &address, &size));
  EXPECT(MB_LOST, mb_stream_create(device, &other));
  OK(mb_close(device));
  STALE(mb_synchronize(device));
}

static void test_two_devices(void) {
  uint32_t a = open_device(), b = open_device(), id;
  double address = reserve(a, GRANULE);
  create(a, 1, 1, &id);
  CHECK(a != b);
  BAD(mb_map(b, address, 1, &id, 3, NULL) == MB_BAD_HANDLE ? MB_BAD_ARGUMENT : MB_OK);
  BAD(mb_unreserve(b, address));
  EXPECT(MB_NOT_MAPPED, mb_memset(b, address, 0, 1, 1, 0));
  OK(mb_close(a));
  OK(mb_synchronize(b));
  OK(mb_close(b));
}

static void find_fake(const char *library) {
  void *fake = dlopen(library, RTLD_NOW);
  void *fail = fake ? dlsym(fake, "fake_fail") : NULL;
  void *live = fake ? dlsym(fake, "fake_live") : NULL;
  void *synchronize = fake ? dlsym(fake, vendor->stream_synchronize) : NULL;
  if (!fail || !live || !synchronize) {
    fprintf(stderr, "%s is not the fake driver\n", library);
    exit(2);
  }
  memcpy(&fake_fail, &fail, sizeof fail);
  memcpy(&fake_live, &live, sizeof live);
  memcpy(&fake_stream_synchronize, &synchronize, sizeof synchronize);
}

static void report(const char *group) {
  static int last_checks, last_failures;
  printf("%-20s %6d checks, %d failed\n", group, checks - last_checks,
         failures - last_failures);
  last_checks = checks;
  last_failures = failures;
}

#define RUN(group, call) \
  do {                   \
    call;                \
    report(group);       \
  } while (0)

int main(int count, char **arguments) {
  uint32_t device;
  Kernels kernels;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count != 5) {
    fprintf(stderr, "usage: smoke_test host|cuda|hip|fake-cuda|fake-hip LIBRARY "
                    "PATTERN_MODULE BUSY_MODULE\n");
    return 2;
  }
  setup.fake = strncmp(arguments[1], "fake-", 5) == 0;
  setup.backend = strcmp(arguments[1], "host") == 0 ? MB_BACKEND_HOST
                  : strstr(arguments[1], "hip")     ? MB_BACKEND_HIP
                                                    : MB_BACKEND_CUDA;
  if (setup.backend == MB_BACKEND_HIP) vendor = &hip_names;
  setup.library = (const uint8_t *)arguments[2];
  setup.library_length = (uint32_t)strlen(arguments[2]);
  setup.pattern = read_file(arguments[3], &setup.pattern_bytes);
  setup.busy = read_file(arguments[4], &setup.busy_bytes);
  if (setup.fake) find_fake(arguments[2]);

  RUN("library", test_library());
  RUN("devices", test_devices());
  device = open_device();
  if (!device) return 1;
  RUN("reservations", test_reservations(device));
  RUN("extents", test_extents(device));
  RUN("stale ids", test_stale_ids(device));
  RUN("mappings", test_mappings(device));
  RUN("access", test_access(device));
  RUN("aliasing", test_aliasing(device));
#ifndef __SANITIZE_THREAD__
  if (setup.backend == MB_BACKEND_HOST) RUN("area limit", test_area_limit(device));
#endif
  if (setup.fake) RUN("injected failures", test_injected_failures(device));
  kernels = load_kernels(device);
  RUN("kernels", test_kernels(device, kernels));
  RUN("bad images", test_bad_images(device));
  RUN("streams", test_streams(device, kernels));
  RUN("copies", test_copies(device, kernels));
  RUN("baselines", test_baselines(device));
  RUN("page-locked", test_pinned(device, kernels));
  RUN("wrapped", test_wrapped(device));
  RUN("graphs", test_graphs(device, kernels));
  if (setup.fake) RUN("failing graphs", test_failing_graphs(device));
  RUN("timed loops", test_timed_loops(device, kernels));
  RUN("map rounds", test_rounds(device));
  RUN("threads", test_threads(device, kernels));
  OK(mb_close(device));
  RUN("two devices", test_two_devices());
  RUN("close with live", test_close_live());
  if (setup.fake) RUN("injected loss", test_injected_loss());
  /* A fault in a kernel ends a process that uses the real HIP. */
  if (setup.backend == MB_BACKEND_CUDA || setup.fake) RUN("lost", test_lost());
  free(setup.pattern);
  free(setup.busy);
  return failures ? 1 : 0;
}
