#include <inttypes.h>

#include "hip.h"

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

static HipPointer pointer(uint64_t address) { return (HipPointer)(uintptr_t)address; }

int32_t hip_staging_alloc(void *self, size_t size, uint8_t **memory) {
  const HipApi *api = api_of(self);
  void *pinned = NULL;
  HipResult result = api->hipHostMalloc(&pinned, size, 0);
  *memory = pinned;
  return hip_check(api, result, "hipHostMalloc of %zu bytes for staging", size);
}

int32_t hip_staging_free(void *self, uint8_t *memory) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipHostFree(memory), "hipHostFree");
}

int32_t hip_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                 void *stream) {
  const HipApi *api = api_of(self);
  HipPointer start = pointer(address);
  HipResult result;
  if (width == 1) {
    result = api->hipMemsetD8Async(start, (unsigned char)value, count, stream);
  } else if (width == 2) {
    result = api->hipMemsetD16Async(start, (unsigned short)value, count, stream);
  } else {
    result = api->hipMemsetD32Async(start, (int)value, count, stream);
  }
  return hip_check(api, result,
                   "hipMemsetD%" PRIu32 "Async of %" PRIu64 " elements at 0x%" PRIx64, width * 8,
                   count, address);
}

int32_t hip_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                    void *stream) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipMemcpyHtoDAsync(pointer(destination), staged, bytes, stream);
  return hip_check(api, result, "hipMemcpyHtoDAsync of %zu bytes to 0x%" PRIx64, bytes,
                   destination);
}

int32_t hip_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipMemcpyDtoHAsync(staged, pointer(source), bytes, stream);
  return hip_check(api, result, "hipMemcpyDtoHAsync of %zu bytes from 0x%" PRIx64, bytes, source);
}

int32_t hip_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                 void *stream) {
  const HipApi *api = api_of(self);
  HipResult result =
      api->hipMemcpyDtoDAsync(pointer(destination), pointer(source), bytes, stream);
  return hip_check(api, result,
                   "hipMemcpyDtoDAsync of %" PRIu64 " bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                   bytes, source, destination);
}
