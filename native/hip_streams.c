#include "hip.h"

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

void *hip_default_stream(void *self) {
  (void)self;
  return NULL;
}

int32_t hip_stream_create(void *self, void **stream) {
  const HipApi *api = api_of(self);
  HipStream created = NULL;
  HipResult result = api->hipStreamCreateWithFlags(&created, HIP_STREAM_NON_BLOCKING);
  *stream = created;
  return hip_check(api, result, "hipStreamCreateWithFlags");
}

int32_t hip_stream_destroy(void *self, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamDestroy(stream), "hipStreamDestroy");
}

int32_t hip_stream_synchronize(void *self, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamSynchronize(stream), "hipStreamSynchronize");
}

uint64_t hip_stream_handle(void *self, void *stream) {
  (void)self;
  return (uintptr_t)stream;
}

int32_t hip_stream_wait(void *self, void *stream, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
}

int32_t hip_event_create(void *self, int32_t timing, void **event) {
  const HipApi *api = api_of(self);
  HipEvent created = NULL;
  HipResult result = api->hipEventCreateWithFlags(&created, timing ? 0 : HIP_EVENT_DISABLE_TIMING);
  *event = created;
  return hip_check(api, result, "hipEventCreateWithFlags");
}

int32_t hip_event_destroy(void *self, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventDestroy(event), "hipEventDestroy");
}

int32_t hip_event_record(void *self, void *event, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventRecord(event, stream), "hipEventRecord");
}

/* Not ready is an answer, no error to keep a text for. */
int32_t hip_event_query(void *self, void *event) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipEventQuery(event);
  if (result == HIP_RESULT_NOT_READY) return MB_NOT_READY;
  return hip_check(api, result, "hipEventQuery");
}

int32_t hip_event_synchronize(void *self, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventSynchronize(event), "hipEventSynchronize");
}

int32_t hip_event_elapsed(void *self, void *start, void *end, double *milliseconds) {
  const HipApi *api = api_of(self);
  float elapsed = 0;
  HipResult result = api->hipEventElapsedTime(&elapsed, start, end);
  if (result == HIP_RESULT_NOT_READY) return MB_NOT_READY;
  *milliseconds = (double)elapsed;
  return hip_check(api, result, "hipEventElapsedTime");
}
