/* Stream-ordered pools. A freed block serves the same stream at once, any stream after its
 * free has run, and goes back to the device when the pool is trimmed or over its threshold. */
#ifndef FAKE_POOLS_H
#define FAKE_POOLS_H

#include "streams.h"

typedef struct Pool Pool;
struct Pool {
  Object base; /* dead once destroyed, though blocks may still be in use */
  uint64_t threshold, cached_bytes;
  Pool *next;
};

static Pool *pools; /* all there ever were */

static Pool *pool_create(void) {
  Pool *pool = object_new(OBJECT_POOL, sizeof *pool);
  pool->next = pools;
  pools = pool;
  return pool;
}

static void pool_range_set_cached(Range *range, bool cached) {
  Pool *pool = (Pool *)range->owner;
  range->cached = cached;
  range->access = cached ? ACCESS_NONE : ACCESS_READ_WRITE;
  mprotect((void *)range->begin, range->size, protection(range->access));
  if (cached) pool->cached_bytes += range->size;
  else pool->cached_bytes -= range->size;
}

/* Gives cached blocks back until no more than that many bytes are cached. */
static void pool_trim(Pool *pool, uint64_t keep) {
  for (size_t i = device_memory.count; i-- > 0 && pool->cached_bytes > keep;) {
    Range *range = &device_memory.items[i];
    if (range->owner != &pool->base || !range->cached) continue;
    pool->cached_bytes -= range->size;
    block_free(&device_memory, range);
  }
}

static void pools_trim(bool to_threshold) {
  for (Pool *pool = pools; pool != NULL; pool = pool->next)
    pool_trim(pool, to_threshold && pool->base.alive ? pool->threshold : 0);
}

static void pool_free_run(uint64_t address, uint64_t sequence) {
  Range *range = range_at(&device_memory, address);
  /* The same stream may have been given the block again before its free ran. */
  if (range == NULL || range->freed_on == NULL || range->free_sequence != sequence)
    return;
  pool_range_set_cached(range, true);
  Pool *pool = (Pool *)range->owner;
  if (!pool->base.alive) pool_trim(pool, 0);
}

static Range *pool_reusable(const Pool *pool, uint64_t size, const Stream *stream) {
  for (size_t i = 0; i < device_memory.count; i++) {
    Range *range = &device_memory.items[i];
    if (range->owner == &pool->base && range->size == size &&
        (range->cached || range->freed_on == &stream->base))
      return range;
  }
  return NULL;
}

static Result pool_alloc(Pool *pool, uint64_t bytes, const Stream *stream,
                           uint64_t *address) {
  if (bytes > memory_limit) return RESULT_OUT_OF_MEMORY;
  const uint64_t size = round_up(bytes, HOST_PAGE);
  Range *range = pool_reusable(pool, size, stream);
  if (range != NULL) {
    if (range->cached) pool_range_set_cached(range, false);
    range->freed_on = NULL;
    *address = range->begin;
    return RESULT_SUCCESS;
  }
  Result result =
      block_create(&device_memory, RANGE_POOLED, size, &pool->base, address);
  if (result != RESULT_OUT_OF_MEMORY) return result;
  /* The driver, too, waits for pending frees before it gives up. */
  streams_drain();
  if (context_lost) return RESULT_ILLEGAL_ADDRESS;
  pools_trim(false);
  return block_create(&device_memory, RANGE_POOLED, size, &pool->base, address);
}

static Result pool_free(uint64_t address, Stream *stream) {
  Range *range = range_at(&device_memory, address);
  if (range == NULL || range->kind != RANGE_POOLED || range->cached ||
      range->freed_on != NULL)
    return RESULT_INVALID_VALUE;
  Operation *operation = operation_new(OPERATION_POOL_FREE, 0);
  operation->work.pool_free.address = address;
  range->freed_on = &stream->base;
  range->free_sequence = stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static int32_t pooled_in_use(void) {
  int32_t in_use = 0;
  for (size_t i = 0; i < device_memory.count; i++) {
    const Range *range = &device_memory.items[i];
    in_use += range->kind == RANGE_POOLED && !range->cached && !range->freed_on;
  }
  return in_use;
}

#endif
