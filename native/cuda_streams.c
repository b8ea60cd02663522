#include "cuda.h"

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

void *cuda_default_stream(void *self) {
  (void)self;
  return NULL;
}

int32_t cuda_stream_create(void *self, void **stream) {
  const CudaApi *api = api_of(self);
  CuStream created = NULL;
  CuResult result = api->cuStreamCreate(&created, CU_STREAM_NON_BLOCKING);
  *stream = created;
  return cuda_check(api, result, "cuStreamCreate");
}

int32_t cuda_stream_destroy(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamDestroy(stream), "cuStreamDestroy");
}

int32_t cuda_stream_synchronize(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamSynchronize(stream), "cuStreamSynchronize");
}

uint64_t cuda_stream_handle(void *self, void *stream) {
  (void)self;
  return (uintptr_t)stream;
}

int32_t cuda_stream_wait(void *self, void *stream, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

int32_t cuda_event_create(void *self, int32_t timing, void **event) {
  const CudaApi *api = api_of(self);
  CuEvent created = NULL;
  CuResult result = api->cuEventCreate(&created, timing ? 0 : CU_EVENT_DISABLE_TIMING);
  *event = created;
  return cuda_check(api, result, "cuEventCreate");
}

int32_t cuda_event_destroy(void *self, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventDestroy(event), "cuEventDestroy");
}

int32_t cuda_event_record(void *self, void *event, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventRecord(event, stream), "cuEventRecord");
}

/* Not ready is an answer, no error to keep a text for. */
int32_t cuda_event_query(void *self, void *event) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuEventQuery(event);
  if (result == CU_ERROR_NOT_READY) return MB_NOT_READY;
  return cuda_check(api, result, "cuEventQuery");
}

int32_t cuda_event_synchronize(void *self, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventSynchronize(event), "cuEventSynchronize");
}

int32_t cuda_event_elapsed(void *self, void *start, void *end, double *milliseconds) {
  const CudaApi *api = api_of(self);
  float elapsed = 0;
  CuResult result = api->cuEventElapsedTime(&elapsed, start, end);
  if (result == CU_ERROR_NOT_READY) return MB_NOT_READY;
  *milliseconds = (double)elapsed;
  return cuda_check(api, result, "cuEventElapsedTime");
}
