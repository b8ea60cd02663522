#include <inttypes.h>
#include <string.h>

#include "captures.h"
#include "check.h"

static int32_t check_fill(uint32_t value, uint32_t width) {
  if (width != 1 && width != 2 && width != 4) {
    return error_set(MB_BAD_ARGUMENT, 0, "width must be 1, 2 or 4 bytes, got %" PRIu32, width);
  }
  if (width < 4 && value >> 8 * width) {
    return error_set(MB_BAD_ARGUMENT, 0, "value %" PRIu32 " does not fit into %" PRIu32 " bytes",
                     value, width);
  }
  return MB_OK;
}

int32_t mb_memset(uint32_t device, double address, uint32_t value, uint32_t width,
                  double count, uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, elements;
  int32_t status = check_fill(value, width);
  if (status == MB_OK) status = check_size("count", count, 1, &elements);
  /* width * elements stays below 2^55. */
  if (status == MB_OK) status = check_address("address", address, width, elements * width, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, elements * width, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = d->backend->fill(d->self, start, value, width, elements, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

static size_t chunk_length(uint64_t left) {
  return left < STAGING_CHUNK_BYTES ? (size_t)left : STAGING_CHUNK_BYTES;
}

/* A copy that was queued without its event: the chunk is safe only once the stream is. */
static void drain(MbDevice *device, void *stream) {
  MbError error;
  error_save(&error);
  device->backend->stream_synchronize(device->self, stream);
  error_restore(&error);
}

static int32_t copy_in(MbDevice *device, uint64_t destination, const uint8_t *source,
                       uint64_t bytes, void *stream) {
  for (uint64_t done = 0; done < bytes;) {
    size_t length = chunk_length(bytes - done);
    StagingChunk *chunk;
    int32_t status = staging_take(device, &chunk);
    if (status != MB_OK) return status;
    memcpy(chunk->memory, source + done, length);
    status = device->backend->copy_in(device->self, destination + done, chunk->memory, length,
                                      stream);
    if (status == MB_OK) status = device->backend->event_record(device->self, chunk->event, stream);
    if (status != MB_OK) drain(device, stream);
    staging_give(device, chunk, status == MB_OK);
    if (status != MB_OK) return status;
    done += length;
  }
  return MB_OK;
}

int32_t mb_copy_in(uint32_t device, double destination, const uint8_t *source, double bytes,
                   uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, length;
  int32_t status = check_pointer("source", source);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("destination", destination, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, length, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = stream_pin_uncaptured(d, stream, "a copy from the host", &s);
  if (status == MB_OK) {
    status = copy_in(d, start, source, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

/* Queues the next piece into chunks[turn] while an earlier one is awaited and emptied. */
static int32_t copy_out_through(MbDevice *device, uint8_t *destination, uint64_t source,
                                uint64_t bytes, void *stream, StagingChunk *const *chunks,
                                uint32_t chunk_count) {
  uint64_t queued = 0, done = 0;
  uint32_t in_flight = 0, next_in = 0, next_out = 0;
  while (done < bytes) {
    StagingChunk *chunk;
    size_t length;
    int32_t status = MB_OK;
    while (queued < bytes && in_flight < chunk_count && status == MB_OK) {
      chunk = chunks[next_in];
      length = chunk_length(bytes - queued);
      status = device->backend->copy_out(device->self, chunk->memory, source + queued, length,
                                         stream);
      if (status == MB_OK) {
        status = device->backend->event_record(device->self, chunk->event, stream);
      }
      queued += length;
      next_in = (next_in + 1) % chunk_count;
      in_flight++;
    }
    chunk = chunks[next_out];
    if (status == MB_OK) status = device->backend->event_synchronize(device->self, chunk->event);
    if (status != MB_OK) {
      drain(device, stream);
      return status;
    }
    length = chunk_length(bytes - done);
    memcpy(destination + done, chunk->memory, length);
    done += length;
    next_out = (next_out + 1) % chunk_count;
    in_flight--;
  }
  return MB_OK;
}

static int32_t copy_out(MbDevice *device, uint8_t *destination, uint64_t source, uint64_t bytes,
                        void *stream) {
  StagingChunk *chunks[2] = {NULL, NULL};
  int32_t status = staging_take(device, &chunks[0]);
  if (status != MB_OK) return status;
  if (bytes > STAGING_CHUNK_BYTES) chunks[1] = staging_take_spare(device);
  status = copy_out_through(device, destination, source, bytes, stream, chunks,
                            chunks[1] ? 2 : 1);
  staging_give(device, chunks[0], false);
  if (chunks[1]) staging_give(device, chunks[1], false);
  return status;
}

int32_t mb_copy_out(uint32_t device, uint8_t *destination, double source, double bytes,
                    uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, length;
  int32_t status = check_pointer("destination", destination);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("source", source, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, length, MB_ACCESS_READ);
  if (status == MB_OK) status = stream_pin_uncaptured(d, stream, "a copy to the host", &s);
  if (status == MB_OK) {
    status = copy_out(d, destination, start, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_copy(uint32_t device, double destination, double source, double bytes,
                uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t to, from, length;
  int32_t status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("destination", destination, 1, length, &to);
  if (status == MB_OK) status = check_address("source", source, 1, length, &from);
  if (status == MB_OK && to < from + length && from < to + length) {
    status = error_set(MB_BAD_ARGUMENT, 0, "destination and source must not overlap");
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, to, length, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = range_check(d, from, length, MB_ACCESS_READ);
  if (status == MB_OK) status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = d->backend->copy(d->self, to, from, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}
