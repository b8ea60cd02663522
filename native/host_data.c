/* Work that streams of the host backend carry out, but for modules. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void fill(uint8_t *memory, uint32_t value, uint32_t width, uint64_t count) {
  if (width == 1) {
    memset(memory, (int)value, count);
  } else if (width == 2) {
    uint16_t *elements = (uint16_t *)(void *)memory;
    for (uint64_t i = 0; i < count; i++) elements[i] = (uint16_t)value;
  } else {
    uint32_t *elements = (uint32_t *)(void *)memory;
    for (uint64_t i = 0; i < count; i++) elements[i] = value;
  }
}

void host_run(HostDevice *device, HostWork *work) {
  switch (work->kind) {
    case HOST_FILL:
      fill(work->of.fill.memory, work->of.fill.value, work->of.fill.width, work->of.fill.count);
      break;
    case HOST_COPY:
      memcpy(work->of.copy.destination, work->of.copy.source, work->of.copy.bytes);
      break;
    case HOST_LAUNCH:
      work->of.launch.kernel(work->args, &work->of.launch.geometry);
      break;
    case HOST_MARK:
      host_marker_pass(device, work->of.marker);
      break;
    case HOST_WAIT:
      host_marker_wait(device, work->of.marker);
      break;
    case HOST_GRAPH:
      host_graph_run(device, work->of.graph.graph, work->of.graph.turn);
      break;
  }
}

static uint8_t *pointer(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

int32_t host_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream) {
  HostWork *work = host_new_work(HOST_FILL, 0);
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  work->of.fill.memory = pointer(address);
  work->of.fill.value = value;
  work->of.fill.width = width;
  work->of.fill.count = count;
  return host_enqueue(stream, work);
}

static int32_t enqueue_copy(void *stream, uint8_t *destination, const uint8_t *source,
                            size_t bytes) {
  HostWork *work = host_new_work(HOST_COPY, 0);
  if (!work) return MB_OUT_OF_MEMORY;
  work->of.copy.destination = destination;
  work->of.copy.source = source;
  work->of.copy.bytes = bytes;
  return host_enqueue(stream, work);
}

int32_t host_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream) {
  (void)self;
  return enqueue_copy(stream, pointer(destination), staged, bytes);
}

int32_t host_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  (void)self;
  return enqueue_copy(stream, staged, pointer(source), bytes);
}

int32_t host_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream) {
  (void)self;
  return enqueue_copy(stream, pointer(destination), pointer(source), bytes);
}

int32_t host_staging_alloc(void *self, size_t size, uint8_t **memory) {
  (void)self;
  *memory = malloc(size);
  if (*memory) return MB_OK;
  return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a staging chunk");
}

int32_t host_staging_free(void *self, uint8_t *memory) {
  (void)self;
  free(memory);
  return MB_OK;
}
