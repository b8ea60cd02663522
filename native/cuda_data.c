#include <inttypes.h>

#include "cuda.h"

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

int32_t cuda_staging_alloc(void *self, size_t size, uint8_t **memory) {
  const CudaApi *api = api_of(self);
  void *pinned = NULL;
  CuResult result = api->cuMemHostAlloc(&pinned, size, 0);
  *memory = pinned;
  return cuda_check(api, result, "cuMemHostAlloc of %zu bytes for staging", size);
}

int32_t cuda_staging_free(void *self, uint8_t *memory) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuMemFreeHost(memory), "cuMemFreeHost");
}

int32_t cuda_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result;
  if (width == 1) {
    result = api->cuMemsetD8Async(address, (unsigned char)value, count, stream);
  } else if (width == 2) {
    result = api->cuMemsetD16Async(address, (unsigned short)value, count, stream);
  } else {
    result = api->cuMemsetD32Async(address, value, count, stream);
  }
  return cuda_check(api, result,
                     "cuMemsetD%" PRIu32 "Async of %" PRIu64 " elements at 0x%" PRIx64, width * 8,
                     count, address);
}

int32_t cuda_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyHtoDAsync(destination, staged, bytes, stream);
  return cuda_check(api, result, "cuMemcpyHtoDAsync of %zu bytes to 0x%" PRIx64, bytes,
                     destination);
}

int32_t cuda_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyDtoHAsync(staged, source, bytes, stream);
  return cuda_check(api, result, "cuMemcpyDtoHAsync of %zu bytes from 0x%" PRIx64, bytes, source);
}

int32_t cuda_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyDtoDAsync(destination, source, bytes, stream);
  return cuda_check(api, result,
                     "cuMemcpyDtoDAsync of %" PRIu64 " bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                     bytes, source, destination);
}
