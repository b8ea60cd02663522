/* Streams that do nothing until they must, and then in a random order.
 *
 * Work is numbered as it is queued. What has to come first always has a lower number,
 * so the queue with the lowest one can always go on: nothing blocks for ever.
 */
#ifndef FAKE_STREAMS_H
#define FAKE_STREAMS_H

#include "kernel_guard.h"
#include "memory.h"

typedef struct Operation Operation;

typedef struct Queue {
  Operation *first, *last;
} Queue;

/* As the drivers tell it. */
typedef enum CaptureStatus {
  CAPTURE_NONE,
  CAPTURE_ACTIVE,
  CAPTURE_INVALIDATED
} CaptureStatus;

typedef struct Stream {
  Object base; /* dead once destroyed, though queued work still runs */
  bool blocking; /* whether it and the default stream wait for each other */
  Operation *first, *last;
  CaptureStatus capture;
  int capture_mode;
  Queue captured; /* what the capture noted instead of queueing it */
} Stream;

typedef struct Event {
  Object base;
  bool timing;
  Stream *stream; /* of the last record, NULL if there was none */
  uint64_t sequence;
  int64_t time_ns; /* when that record ran */
  uint32_t failed_queries;
} Event;

typedef enum OperationKind {
  OPERATION_COPY,
  OPERATION_FILL,
  OPERATION_LAUNCH,
  OPERATION_RECORD,
  OPERATION_WAIT,
  OPERATION_POOL_FREE
} OperationKind;

typedef struct CopyWork {
  uint64_t destination, source, bytes;
  /* Where each range must lie: in pinned memory, or &device_memory for whatever the device
   * may use. NULL: staged, below. */
  const RangeTable *destination_table, *source_table;
} CopyWork;

typedef struct FillWork {
  uint64_t destination, count;
  uint32_t value, width;
} FillWork;

typedef struct LaunchWork {
  MbHostKernel kernel;
  MbGeometry geometry;
  const Object *function; /* dead once its module is unloaded */
} LaunchWork;

typedef struct RecordWork {
  Event *event;
} RecordWork;

typedef struct WaitWork {
  const Stream *stream;
  uint64_t sequence;
} WaitWork;

typedef struct PoolFreeWork {
  uint64_t address;
} PoolFreeWork;

struct Operation {
  Operation *next;
  size_t extra_bytes;
  uint64_t sequence;
  OperationKind kind;
  union {
    CopyWork copy;
    FillWork fill;
    LaunchWork launch;
    RecordWork record;
    WaitWork wait;
    PoolFreeWork pool_free;
  } work;
  /* The staged source of a copy, or the argument block of a launch. */
  _Alignas(16) unsigned char bytes[];
};

static Stream default_stream = {.base = {OBJECT_STREAM, true, 0}, .blocking = true};
static Stream **streams; /* the default one, the living, and the dead with work left */
static size_t stream_count, stream_capacity;
static uint64_t last_sequence, operations_pending;
static bool context_lost;
static uint64_t random_state;

/* Set by the pools, which are built on streams. */
static void pool_free_run(uint64_t address, uint64_t sequence);

/* Any number below n: xorshift64*. */
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (uint32_t)((random_state * 0x2545F4914F6CDD1Du) >> 32) % n;
}

static void random_seed(uint64_t seed) {
  random_state = (seed + 1) * 0x9E3779B97F4A7C15u;
  if (random_state == 0) random_state = 1;
}

static void streams_add(Stream *stream) {
  if (stream_count == stream_capacity) {
    stream_capacity = stream_capacity == 0 ? 16 : stream_capacity * 2;
    streams = checked_realloc(streams, stream_capacity * sizeof *streams);
  }
  streams[stream_count++] = stream;
}

static Stream *stream_create(bool blocking) {
  Stream *stream = object_new(OBJECT_STREAM, sizeof *stream);
  stream->blocking = blocking;
  streams_add(stream);
  return stream;
}

/* A stream without work left that nobody can name any more is forgotten. */
static void stream_forget_if_done(Stream *stream) {
  if (stream->base.alive || stream->first != NULL) return;
  for (size_t i = 0; i < stream_count; i++) {
    if (streams[i] != stream) continue;
    streams[i] = streams[--stream_count];
    return;
  }
}

/* Queued work still runs. */
static void stream_destroy(Stream *stream) {
  stream->base.alive = false;
  stream_forget_if_done(stream);
}

static Operation *operation_new(OperationKind kind, size_t extra_bytes) {
  Operation *operation = calloc(1, sizeof *operation + extra_bytes);
  if (operation == NULL) abort();
  operation->kind = kind;
  operation->extra_bytes = extra_bytes;
  return operation;
}

static void queue_add(Queue *queue, Operation *operation) {
  if (queue->last != NULL) queue->last->next = operation;
  else queue->first = operation;
  queue->last = operation;
}

/* While the stream is capturing it only notes the operation: the number means nothing. */
static uint64_t stream_push(Stream *stream, Operation *operation) {
  if (stream->capture == CAPTURE_ACTIVE) {
    queue_add(&stream->captured, operation);
    return 0;
  }
  operation->sequence = ++last_sequence;
  if (stream->last != NULL) stream->last->next = operation;
  else stream->first = operation;
  stream->last = operation;
  operations_pending++;
  return operation->sequence;
}

static Operation *stream_pop(Stream *stream) {
  Operation *operation = stream->first;
  stream->first = operation->next;
  if (stream->first == NULL) stream->last = NULL;
  operations_pending--;
  return operation;
}

/* Whether everything that was queued up to that number has run. */
static bool stream_passed(const Stream *stream, uint64_t sequence) {
  return stream->first == NULL || stream->first->sequence > sequence;
}

/* The stream that the first operation of this one waits for, NULL if it can run. */
static Stream *stream_blocker(const Stream *stream) {
  const Operation *next = stream->first;
  const WaitWork *wait = &next->work.wait;
  if (next->kind == OPERATION_WAIT && !stream_passed(wait->stream, wait->sequence))
    return (Stream *)wait->stream;
  if (stream != &default_stream)
    return stream->blocking && !stream_passed(&default_stream, next->sequence)
               ? &default_stream
               : NULL;
  for (size_t i = 0; i < stream_count; i++)
    if (streams[i] != stream && streams[i]->blocking &&
        !stream_passed(streams[i], next->sequence))
      return streams[i];
  return NULL;
}

/* Addresses are checked only now: unmapping does not wait for queued work. */
static bool copy_may_use(const RangeTable *table, uint64_t address, uint64_t bytes,
                         int access) {
  if (table == NULL) return true;
  return table == &device_memory ? device_covers(address, bytes, access)
                                 : range_covers(table, address, bytes, access);
}

static bool copy_run(const CopyWork *copy, const void *staged) {
  const void *source = copy->source_table ? (const void *)copy->source : staged;
  if (!copy_may_use(copy->source_table, copy->source, copy->bytes, ACCESS_READ) ||
      !copy_may_use(copy->destination_table, copy->destination, copy->bytes,
                    ACCESS_READ_WRITE))
    return false;
  memcpy((void *)copy->destination, source, copy->bytes);
  return true;
}

static bool fill_run(const FillWork *fill) {
  if (!device_covers(fill->destination, fill->count * fill->width,
                     ACCESS_READ_WRITE))
    return false;
  uint8_t *bytes = (uint8_t *)fill->destination;
  const uint16_t value16 = (uint16_t)fill->value;
  if (fill->width == 1) memset(bytes, (int)fill->value, fill->count);
  for (uint64_t i = 0; fill->width == 2 && i < fill->count; i++)
    memcpy(bytes + 2 * i, &value16, sizeof value16);
  for (uint64_t i = 0; fill->width == 4 && i < fill->count; i++)
    memcpy(bytes + 4 * i, &fill->value, sizeof fill->value);
  return true;
}

/* Runs the first operation of a stream that nothing blocks. */
static void stream_step(Stream *stream) {
  Operation *operation = stream_pop(stream);
  bool legal = true;
  mappings_reveal();
  switch (operation->kind) {
  case OPERATION_COPY:
    legal = copy_run(&operation->work.copy, operation->bytes);
    break;
  case OPERATION_FILL:
    legal = fill_run(&operation->work.fill);
    break;
  case OPERATION_LAUNCH:
    /* A graph may outlive the module whose kernel it holds. */
    legal = operation->work.launch.function->alive &&
            kernel_run_guarded(operation->work.launch.kernel, operation->bytes,
                               &operation->work.launch.geometry);
    break;
  case OPERATION_RECORD:
    if (operation->work.record.event->sequence == operation->sequence)
      operation->work.record.event->time_ns = clock_now_ns();
    break;
  case OPERATION_POOL_FREE:
    pool_free_run(operation->work.pool_free.address, operation->sequence);
    break;
  case OPERATION_WAIT:
    break;
  }
  free(operation);
  if (!legal) context_lost = true;
  stream_forget_if_done(stream);
}

/* Runs one operation: the stream's next, or what has to run before it can. */
static void stream_advance(Stream *stream) {
  for (Stream *blocker; (blocker = stream_blocker(stream)) != NULL;) stream = blocker;
  stream_step(stream);
}

/* Runs one operation of a stream chosen at random, if there is one. */
static void streams_advance_any(void) {
  if (operations_pending == 0) return;
  size_t i = random_below((uint32_t)stream_count);
  while (streams[i]->first == NULL) i = (i + 1) % stream_count;
  stream_advance(streams[i]);
}

static void streams_drain(void) {
  while (operations_pending != 0 && !context_lost) streams_advance_any();
}

/* Runs a stream up to a number. What else runs meanwhile, from nothing to most of it,
 * is another throw of the dice each time: both extremes find mistakes. */
static void stream_drain(Stream *stream, uint64_t sequence) {
  const uint32_t distraction = random_below(4);
  while (!stream_passed(stream, sequence) && !context_lost) {
    if (random_below(4) < distraction) streams_advance_any();
    else stream_advance(stream);
  }
}

static void event_record(Event *event, Stream *stream) {
  Operation *operation = operation_new(OPERATION_RECORD, 0);
  operation->work.record.event = event;
  event->stream = stream;
  event->sequence = stream_push(stream, operation);
  event->failed_queries = 0;
}

/* An event that was never recorded has passed. */
static bool event_passed(const Event *event) {
  return event->stream == NULL || stream_passed(event->stream, event->sequence);
}

/* Time passes while an event is polled, but never for long without an answer. */
static bool event_poll(Event *event) {
  enum { MOST_FAILED_QUERIES = 6 };
  if (event_passed(event)) return true;
  if (event->failed_queries++ == MOST_FAILED_QUERIES || random_below(4) == 0) {
    stream_drain(event->stream, event->sequence);
  } else {
    for (uint32_t steps = random_below(4); steps != 0 && !context_lost; steps--)
      streams_advance_any();
  }
  return event_passed(event);
}

static void queue_clear(Queue *queue) {
  while (queue->first != NULL) {
    Operation *next = queue->first->next;
    free(queue->first);
    queue->first = next;
  }
  queue->last = NULL;
}

static void stream_clear(Stream *stream) {
  while (stream->first != NULL) free(stream_pop(stream));
  queue_clear(&stream->captured);
  stream->capture = CAPTURE_NONE;
}

/* Drops all queued work and every stream; returns how many streams lived. */
static int32_t streams_wipe(void) {
  int32_t wiped = 0;
  for (size_t i = 0; i < stream_count; i++) {
    stream_clear(streams[i]);
    if (streams[i] == &default_stream) continue;
    wiped += streams[i]->base.alive;
    streams[i]->base.alive = false;
  }
  stream_count = 0;
  streams_add(&default_stream);
  return wiped;
}

#endif
