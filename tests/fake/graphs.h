/* Captures and graphs. What a capture can't hold invalidates it, as on the real driver; some
 * of what that could hold does so too: the shim never puts events into a graph. */
#ifndef FAKE_GRAPHS_H
#define FAKE_GRAPHS_H

#include "streams.h"

typedef struct Graph {
  Object base;
  Queue operations;
} Graph;

typedef struct GraphExec {
  Object base;
  Queue operations;
  /* Of its last launch, NULL if there was none: launches come one after the other. */
  const Stream *last_stream;
  uint64_t last_sequence;
} GraphExec;

static void capture_invalidate(Stream *stream) {
  if (stream->capture == CAPTURE_ACTIVE) stream->capture = CAPTURE_INVALIDATED;
}

/* What putting work into a stream must fail with, or RESULT_SUCCESS. */
static Result capture_check_work(const Stream *stream) {
  if (stream->capture == CAPTURE_INVALIDATED) return RESULT_CAPTURE_INVALIDATED;
  for (size_t i = 0; stream == &default_stream && i < stream_count; i++) {
    if (!streams[i]->blocking || streams[i]->capture == CAPTURE_NONE) continue;
    capture_invalidate(streams[i]);
    return RESULT_CAPTURE_IMPLICIT;
  }
  return RESULT_SUCCESS;
}

/* For uses of a stream that no graph holds: as above, or fails with a code. */
static Result capture_forbid(Stream *stream, Result code) {
  const Result result = capture_check_work(stream);
  if (result != RESULT_SUCCESS || stream->capture == CAPTURE_NONE) return result;
  capture_invalidate(stream);
  return code;
}

/* For calls that wait for the whole context. */
static Result capture_forbid_any(void) {
  Result result = RESULT_SUCCESS;
  for (size_t i = 0; i < stream_count; i++) {
    if (streams[i]->capture == CAPTURE_NONE) continue;
    capture_invalidate(streams[i]);
    result = RESULT_CAPTURE_UNSUPPORTED;
  }
  return result;
}

/* For calls that only a relaxed capture lets through. */
static Result capture_forbid_unless_relaxed(void) {
  Result result = RESULT_SUCCESS;
  for (size_t i = 0; i < stream_count; i++) {
    if (streams[i]->capture != CAPTURE_ACTIVE ||
        streams[i]->capture_mode == CAPTURE_MODE_RELAXED)
      continue;
    capture_invalidate(streams[i]);
    result = RESULT_CAPTURE_UNSUPPORTED;
  }
  return result;
}

static Result capture_begin(Stream *stream, int mode) {
  if (stream == &default_stream) return RESULT_CAPTURE_UNSUPPORTED;
  if (stream->capture != CAPTURE_NONE) return RESULT_ILLEGAL_STATE;
  stream->capture = CAPTURE_ACTIVE;
  stream->capture_mode = mode;
  return RESULT_SUCCESS;
}

/* handle: 0 if there is no graph. */
static Result capture_end(Stream *stream, uintptr_t *handle) {
  const CaptureStatus ended = stream->capture;
  *handle = 0;
  if (ended == CAPTURE_NONE) return RESULT_ILLEGAL_STATE;
  stream->capture = CAPTURE_NONE;
  if (ended == CAPTURE_INVALIDATED) {
    queue_clear(&stream->captured);
    return RESULT_CAPTURE_INVALIDATED;
  }
  Graph *graph = object_new(OBJECT_GRAPH, sizeof *graph);
  graph->operations = stream->captured;
  stream->captured = (Queue){NULL, NULL};
  *handle = graph->base.handle;
  return RESULT_SUCCESS;
}

static Operation *operation_copy(const Operation *operation) {
  Operation *copy = operation_new(operation->kind, operation->extra_bytes);
  copy->work = operation->work;
  memcpy(copy->bytes, operation->bytes, operation->extra_bytes);
  return copy;
}

static GraphExec *graph_instantiate(const Graph *graph) {
  GraphExec *exec = object_new(OBJECT_GRAPH_EXEC, sizeof *exec);
  for (const Operation *each = graph->operations.first; each != NULL; each = each->next)
    queue_add(&exec->operations, operation_copy(each));
  return exec;
}

/* What is queued are copies: the graph may go at once. */
static void graph_launch(GraphExec *exec, Stream *stream) {
  if (exec->last_stream != NULL && exec->last_stream != stream) {
    Operation *turn = operation_new(OPERATION_WAIT, 0);
    turn->work.wait = (WaitWork){exec->last_stream, exec->last_sequence};
    stream_push(stream, turn);
  }
  for (const Operation *each = exec->operations.first; each != NULL; each = each->next) {
    exec->last_sequence = stream_push(stream, operation_copy(each));
    exec->last_stream = stream;
  }
}

static void graph_destroy(Graph *graph) {
  queue_clear(&graph->operations);
  graph->base.alive = false;
}

static void graph_exec_destroy(GraphExec *exec) {
  queue_clear(&exec->operations);
  exec->base.alive = false;
}

#endif
