#include <stdlib.h>

#include "cuda.h"

typedef struct CudaGraph {
  CuGraphExec exec;
  CuGraph captured; /* what it was made of, if that could not be destroyed at once */
} CudaGraph;

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

/* Relaxed: while it goes on, memory is allocated, mapped and unmapped by this thread and by
 * others, which the stricter modes forbid. */
int32_t cuda_capture_begin(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  if (!api->has_graphs) {
    return error_set(MB_UNSUPPORTED, 0,
                     "the NVIDIA driver has no graphs: install one of CUDA 10.1 or later");
  }
  return cuda_check(api, api->cuStreamBeginCapture(stream, CU_CAPTURE_RELAXED),
                    "cuStreamBeginCapture");
}

/* One that something spoiled counts too: it has to be ended all the same. */
int32_t cuda_capture_status(void *self, void *stream, bool *capturing) {
  const CudaApi *api = api_of(self);
  int state = 0;
  CuResult result = api->has_graphs ? api->cuStreamIsCapturing(stream, &state) : CU_SUCCESS;
  *capturing = state != 0;
  return cuda_check(api, result, "cuStreamIsCapturing");
}

static int32_t instantiate(const CudaApi *api, CuGraph captured, CudaGraph **graph) {
  CudaGraph *made = calloc(1, sizeof *made);
  CuResult result;
  if (!made) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
  result = api->cuGraphInstantiateWithFlags
               ? api->cuGraphInstantiateWithFlags(&made->exec, captured, 0)
               : api->cuGraphInstantiate(&made->exec, captured, NULL, NULL, 0);
  if (result == CU_SUCCESS) {
    *graph = made;
  } else {
    free(made);
  }
  return cuda_check(api, result, "cuGraphInstantiate");
}

int32_t cuda_capture_end(void *self, void *stream, void **graph) {
  const CudaApi *api = api_of(self);
  CuGraph captured = NULL;
  CudaGraph *made = NULL;
  CuResult result = api->cuStreamEndCapture(stream, &captured);
  int32_t status = cuda_check(api, result, "cuStreamEndCapture");
  if (result == CU_ERROR_CAPTURE_INVALIDATED) {
    error_append(": something else used the stream through its handle or waited for the "
                 "device meanwhile: capture again without it");
  }
  if (status == MB_OK && graph) status = instantiate(api, captured, &made);
  /* What was instantiated is a copy. */
  if (captured && api->cuGraphDestroy(captured) != CU_SUCCESS && made) made->captured = captured;
  if (made) *graph = made;
  return status;
}

int32_t cuda_graph_launch(void *self, void *graph, void *stream) {
  const CudaApi *api = api_of(self);
  const CudaGraph *launched = graph;
  return cuda_check(api, api->cuGraphLaunch(launched->exec, stream), "cuGraphLaunch");
}

int32_t cuda_graph_destroy(void *self, void *graph) {
  const CudaApi *api = api_of(self);
  CudaGraph *destroyed = graph;
  int32_t status = MB_OK;
  if (destroyed->captured) {
    status = cuda_check(api, api->cuGraphDestroy(destroyed->captured), "cuGraphDestroy");
    if (status == MB_OK) destroyed->captured = NULL;
  }
  if (status == MB_OK) {
    status = cuda_check(api, api->cuGraphExecDestroy(destroyed->exec), "cuGraphExecDestroy");
  }
  if (status == MB_OK) free(destroyed);
  return status;
}
