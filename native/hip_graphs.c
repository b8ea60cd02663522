#include <stdlib.h>

#include "hip.h"

typedef struct HipGraphParts {
  HipGraphExec exec;
  HipGraph captured; /* what it was made of, if that could not be destroyed at once */
} HipGraphParts;

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

/* Relaxed: while it goes on, memory is allocated, mapped and unmapped by this thread and by
 * others, which the stricter modes forbid. */
int32_t hip_capture_begin(void *self, void *stream) {
  const HipApi *api = api_of(self);
  if (!api->has_graphs) {
    return error_set(MB_UNSUPPORTED, 0, "the HIP runtime has no graphs: update ROCm");
  }
  return hip_check(api, api->hipStreamBeginCapture(stream, HIP_CAPTURE_RELAXED),
                   "hipStreamBeginCapture");
}

/* One that something spoiled counts too: it has to be ended all the same. */
int32_t hip_capture_status(void *self, void *stream, bool *capturing) {
  const HipApi *api = api_of(self);
  int state = 0;
  HipResult result =
      api->has_graphs ? api->hipStreamIsCapturing(stream, &state) : HIP_RESULT_SUCCESS;
  *capturing = state != 0;
  return hip_check(api, result, "hipStreamIsCapturing");
}

static int32_t instantiate(const HipApi *api, HipGraph captured, HipGraphParts **graph) {
  HipGraphParts *made = calloc(1, sizeof *made);
  HipResult result;
  if (!made) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
  result = api->hipGraphInstantiate(&made->exec, captured, NULL, NULL, 0);
  if (result == HIP_RESULT_SUCCESS) {
    *graph = made;
  } else {
    free(made);
  }
  return hip_check(api, result, "hipGraphInstantiate");
}

int32_t hip_capture_end(void *self, void *stream, void **graph) {
  const HipApi *api = api_of(self);
  HipGraph captured = NULL;
  HipGraphParts *made = NULL;
  HipResult result = api->hipStreamEndCapture(stream, &captured);
  int32_t status = hip_check(api, result, "hipStreamEndCapture");
  if (result == HIP_RESULT_CAPTURE_INVALIDATED) {
    error_append(": something else used the stream through its handle or waited for the "
                 "device meanwhile: capture again without it");
  }
  if (status == MB_OK && graph) status = instantiate(api, captured, &made);
  /* What was instantiated is a copy. */
  if (captured && api->hipGraphDestroy(captured) != HIP_RESULT_SUCCESS && made) {
    made->captured = captured;
  }
  if (made) *graph = made;
  return status;
}

int32_t hip_graph_launch(void *self, void *graph, void *stream) {
  const HipApi *api = api_of(self);
  const HipGraphParts *launched = graph;
  return hip_check(api, api->hipGraphLaunch(launched->exec, stream), "hipGraphLaunch");
}

int32_t hip_graph_destroy(void *self, void *graph) {
  const HipApi *api = api_of(self);
  HipGraphParts *destroyed = graph;
  int32_t status = MB_OK;
  if (destroyed->captured) {
    status = hip_check(api, api->hipGraphDestroy(destroyed->captured), "hipGraphDestroy");
    if (status == MB_OK) destroyed->captured = NULL;
  }
  if (status == MB_OK) {
    status = hip_check(api, api->hipGraphExecDestroy(destroyed->exec), "hipGraphExecDestroy");
  }
  if (status == MB_OK) free(destroyed);
  return status;
}
