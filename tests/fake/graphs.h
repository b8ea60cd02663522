/* Captures and graphs. What a capture can't hold invalidates it, as on the real driver; some
 * of what that could hold does so too: the shim never puts events into a graph. */
#ifndef FAKE_CUDA_GRAPHS_H
#define FAKE_CUDA_GRAPHS_H

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

/* What putting work into a stream must fail with, or CUDA_SUCCESS. */
static CUresult capture_check_work(const Stream *stream) {
  if (stream->capture == CAPTURE_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (size_t i = 0; stream == &default_stream && i < stream_count; i++) {
    if (!streams[i]->blocking || streams[i]->capture == CAPTURE_NONE) continue;
    capture_invalidate(streams[i]);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

/* For uses of a stream that no graph holds: as above, or fails with a code. */
static CUresult capture_forbid(Stream *stream, CUresult code) {
  const CUresult result = capture_check_work(stream);
  if (result != CUDA_SUCCESS || stream->capture == CAPTURE_NONE) return result;
  capture_invalidate(stream);
  return code;
}

/* For calls that wait for the whole context. */
static CUresult capture_forbid_any(void) {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < stream_count; i++) {
    if (streams[i]->capture == CAPTURE_NONE) continue;
    capture_invalidate(streams[i]);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

/* For calls that only a relaxed capture lets through. */
static CUresult capture_forbid_unless_relaxed(void) {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < stream_count; i++) {
    if (streams[i]->capture != CAPTURE_ACTIVE ||
        streams[i]->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
      continue;
    capture_invalidate(streams[i]);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

static CUresult capture_begin(Stream *stream, int mode) {
  if (stream == &default_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != CAPTURE_NONE) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = CAPTURE_ACTIVE;
  stream->capture_mode = mode;
  return CUDA_SUCCESS;
}

static CUresult capture_end(Stream *stream, CUgraph *handle) {
  const CaptureStatus ended = stream->capture;
  *handle = NULL;
  if (ended == CAPTURE_NONE) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = CAPTURE_NONE;
  if (ended == CAPTURE_INVALIDATED) {
    queue_clear(&stream->captured);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  Graph *graph = object_new(OBJECT_GRAPH, sizeof *graph);
  graph->operations = stream->captured;
  stream->captured = (Queue){NULL, NULL};
  *handle = (CUgraph)graph->base.handle;
  return CUDA_SUCCESS;
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
