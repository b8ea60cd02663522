/* Loops that time the driver's calls without the cost of crossing into them. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "captures.h"
#include "check.h"
#include "clock.h"
#include "kernels.h"

static const uint32_t most_samples = 10000000;

/* Keeps the error of the call that failed while its leftovers are freed. */
#define KEEPING_ERROR(call)  \
  do {                       \
    MbError kept;            \
    error_save(&kept);       \
    call;                    \
    error_restore(&kept);    \
  } while (0)

static int32_t check_samples(uint32_t n, const double *samples) {
  int32_t status = check_count("n", n, most_samples);
  return status == MB_OK ? check_pointer("samples", samples) : status;
}

static int32_t time_plain(MbDevice *device, uint64_t size, uint32_t n, double *alloc_ns,
                          double *free_ns) {
  for (uint32_t i = 0; i < n; i++) {
    uint64_t address;
    int64_t started = clock_ns(), between;
    int32_t status = device->backend->plain_alloc(device->self, size, &address);
    if (status != MB_OK) return status;
    between = clock_ns();
    status = device->backend->plain_free(device->self, address, size);
    if (status != MB_OK) return status;
    free_ns[i] = (double)(clock_ns() - between);
    alloc_ns[i] = (double)(between - started);
  }
  return MB_OK;
}

int32_t mb_time_plain(uint32_t device, double size, uint32_t n, double *alloc_ns,
                      double *free_ns) {
  MbDevice *d;
  uint64_t bytes;
  int32_t status = check_samples(n, alloc_ns);
  if (status == MB_OK) status = check_samples(n, free_ns);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  return device_leave(d, time_plain(d, bytes, n, alloc_ns, free_ns));
}

static int32_t empty_pool(MbDevice *device, void *stream) {
  int32_t status = device->backend->stream_synchronize(device->self, stream);
  return status == MB_OK ? device->backend->pool_trim(device->self) : status;
}

static int32_t time_pool(MbDevice *device, uint64_t size, void *stream, bool warm, uint32_t n,
                         double *alloc_ns, double *free_ns) {
  uint64_t address;
  int32_t status;
  if (warm) {
    status = device->backend->pool_alloc(device->self, size, stream, &address);
    if (status != MB_OK) return status;
    status = device->backend->pool_free(device->self, address, size, stream);
    if (status != MB_OK) return status;
  }
  for (uint32_t i = 0; i < n; i++) {
    int64_t started, between;
    status = warm ? MB_OK : empty_pool(device, stream);
    if (status != MB_OK) return status;
    started = clock_ns();
    status = device->backend->pool_alloc(device->self, size, stream, &address);
    if (status != MB_OK) return status;
    between = clock_ns();
    status = device->backend->pool_free(device->self, address, size, stream);
    if (status != MB_OK) return status;
    free_ns[i] = (double)(clock_ns() - between);
    alloc_ns[i] = (double)(between - started);
  }
  return MB_OK;
}

int32_t mb_time_pool(uint32_t device, double size, uint32_t stream, int32_t warm, uint32_t n,
                     double *alloc_ns, double *free_ns) {
  MbDevice *d;
  MbObject *s;
  uint64_t bytes;
  int32_t status = check_samples(n, alloc_ns);
  if (status == MB_OK) status = check_samples(n, free_ns);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK && warm != 0 && warm != 1) {
    status = error_set(MB_BAD_ARGUMENT, 0, "warm must be 0 or 1, got %" PRId32, warm);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(d, stream, "a timed loop", &s);
  if (status == MB_OK) {
    status = time_pool(d, bytes, s->handle, warm == 1, n, alloc_ns, free_ns);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

typedef struct VmmLoop {
  MbDevice *device;
  uint64_t address, extent_size;
  uint64_t *handles;
  uint32_t extents;
} VmmLoop;

/* Bytes that one call for `mapped` mappings side by side may take. */
static uint64_t call_bytes(const VmmLoop *loop, uint32_t mapped) {
  return loop->device->backend->single_mappings ? loop->extent_size
                                                : mapped * loop->extent_size;
}

static int32_t set_access(const VmmLoop *loop) {
  const uint64_t size = loop->extents * loop->extent_size, bytes = call_bytes(loop, loop->extents);
  int32_t status = MB_OK;
  for (uint64_t done = 0; done < size && status == MB_OK; done += bytes) {
    status = loop->device->backend->set_access(loop->device->self, loop->address + done, bytes,
                                               MB_ACCESS_READ_WRITE);
  }
  if (status == MB_OK && loop->device->backend->settle) {
    loop->device->backend->settle(loop->device->self);
  }
  return status;
}

/* Goes on after a failure, which it returns. */
static int32_t unmap(const VmmLoop *loop, uint32_t mapped) {
  const uint64_t size = mapped * loop->extent_size, bytes = call_bytes(loop, mapped);
  int32_t status = MB_OK;
  for (uint64_t done = 0; done < size; done += bytes) {
    int32_t one =
        loop->device->backend->unmap(loop->device->self, loop->address + done, bytes);
    if (one != MB_OK) status = one;
  }
  return status;
}

static void undo_vmm(VmmLoop *loop, uint32_t created, uint32_t mapped) {
  const MbBackend *backend = loop->device->backend;
  void *self = loop->device->self;
  unmap(loop, mapped);
  for (uint32_t i = 0; i < created; i++) {
    backend->extent_release(self, loop->handles[i], loop->extent_size);
  }
}

static int32_t time_vmm_once(VmmLoop *loop, double *stages) {
  const MbBackend *backend = loop->device->backend;
  void *self = loop->device->self;
  uint32_t created = 0, mapped = 0, released = 0;
  int64_t times[6];
  int32_t status = MB_OK;
  times[0] = clock_ns();
  for (; created < loop->extents && status == MB_OK; created++) {
    status = backend->extent_create(self, loop->extent_size, &loop->handles[created]);
    if (status != MB_OK) break;
  }
  times[1] = clock_ns();
  for (; mapped < loop->extents && status == MB_OK; mapped++) {
    status = backend->map(self, loop->address + mapped * loop->extent_size, loop->extent_size,
                          loop->handles[mapped]);
    if (status != MB_OK) break;
  }
  times[2] = clock_ns();
  if (status == MB_OK) status = set_access(loop);
  times[3] = clock_ns();
  if (status == MB_OK) status = unmap(loop, loop->extents);
  if (status != MB_OK) {
    KEEPING_ERROR(undo_vmm(loop, created, mapped));
    return status;
  }
  times[4] = clock_ns();
  for (; released < loop->extents; released++) {
    int32_t freed = backend->extent_release(self, loop->handles[released], loop->extent_size);
    if (freed != MB_OK) status = freed;
  }
  times[5] = clock_ns();
  for (int i = 0; i < 5; i++) stages[i] = (double)(times[i + 1] - times[i]);
  return status;
}

/* With vmm_lock. */
static int32_t time_vmm(MbDevice *device, uint64_t size, uint64_t extent_size, uint32_t n,
                        double *stages) {
  VmmLoop loop = {device, 0, extent_size, NULL, (uint32_t)(size / extent_size)};
  int32_t status;
  loop.handles = malloc(loop.extents * sizeof *loop.handles);
  if (!loop.handles) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a timed loop");
  status = device->backend->reserve(device->self, size, &loop.address);
  if (status == MB_OK) {
    for (uint32_t i = 0; i < n && status == MB_OK; i++) {
      status = time_vmm_once(&loop, stages + (size_t)i * 5);
    }
    if (status == MB_OK) {
      status = device->backend->unreserve(device->self, loop.address, size);
    } else {
      KEEPING_ERROR(device->backend->unreserve(device->self, loop.address, size));
    }
  }
  free(loop.handles);
  return status;
}

/* size is a multiple of extent_size, extent_size of the granularity. */
static int32_t check_extent_sizes(const MbDevice *device, double size, double extent_size,
                                  uint64_t *bytes, uint64_t *extent_bytes) {
  int32_t status = check_size("extent_size", extent_size, device->granularity, extent_bytes);
  if (status == MB_OK) status = check_size("size", size, *extent_bytes, bytes);
  if (status == MB_OK && *bytes / *extent_bytes > CHECK_LARGEST_COUNT) {
    status = error_set(MB_BAD_ARGUMENT, 0, "size holds more than %u extents",
                       CHECK_LARGEST_COUNT);
  }
  return status;
}

int32_t mb_time_vmm(uint32_t device, double size, double extent_size, uint32_t n,
                    double *stages) {
  MbDevice *d;
  uint64_t bytes, extent_bytes;
  int32_t status = check_samples(n, stages);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_extent_sizes(d, size, extent_size, &bytes, &extent_bytes);
  if (status == MB_OK) status = time_vmm(d, bytes, extent_bytes, n, stages);
  return device_leave_vmm(d, status);
}

/* Takes no lock of the shim's own, so that what it shows is the driver's. */
static int32_t time_launch(MbDevice *device, void *function, void *stream, const uint8_t *args,
                           uint32_t args_bytes, bool synchronize, uint32_t n,
                           double *launch_ns) {
  static const MbGeometry geometry = {{1, 1, 1}, {32, 1, 1}, 0};
  const uint32_t launches_between_drains = 256; /* a full queue would hold launches up */
  int32_t status = device->backend->stream_synchronize(device->self, stream);
  for (uint32_t i = 0; i < n && status == MB_OK; i++) {
    int64_t started = clock_ns();
    status = device->backend->launch(device->self, function, &geometry, stream, args, args_bytes);
    if (status == MB_OK && synchronize) {
      status = device->backend->stream_synchronize(device->self, stream);
    }
    launch_ns[i] = (double)(clock_ns() - started);
    if (status == MB_OK && !synchronize && (i + 1) % launches_between_drains == 0) {
      status = device->backend->stream_synchronize(device->self, stream);
    }
  }
  if (status == MB_OK) status = device->backend->stream_synchronize(device->self, stream);
  return status;
}

int32_t mb_time_launch(uint32_t device, uint32_t function, uint32_t stream, const uint8_t *args,
                       uint32_t args_bytes, int32_t synchronize, uint32_t n,
                       double *launch_ns) {
  MbDevice *d;
  MbObject *f, *s;
  int32_t status = check_samples(n, launch_ns);
  if (status == MB_OK) status = kernels_check_args(args, args_bytes);
  if (status == MB_OK && synchronize != 0 && synchronize != 1) {
    status = error_set(MB_BAD_ARGUMENT, 0, "synchronize must be 0 or 1, got %" PRId32,
                       synchronize);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_FUNCTION, function, &f);
  if (status == MB_OK) {
    status = stream_pin_uncaptured(d, stream, "a timed loop", &s);
    if (status != MB_OK) object_unpin(d, f);
  }
  if (status == MB_OK) {
    status = time_launch(d, f->handle, s->handle, args, args_bytes, synchronize == 1, n,
                         launch_ns);
    object_unpin(d, f);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}
