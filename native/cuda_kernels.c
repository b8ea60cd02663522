#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "elf_image.h"

/* The driver looks for the headers of several formats: zeroes follow a short image. */
enum { FATBIN_HEADER_BYTES = 16, PADDING_BYTES = 64 };
static const uint32_t fatbin_magic = 0xBA55ED50;

/* The driver is given no length: it believes what the image says of itself. */
static int32_t check_fatbin(const uint8_t *image, size_t bytes) {
  uint64_t length;
  if (bytes >= FATBIN_HEADER_BYTES) {
    memcpy(&length, image + 8, sizeof length);
    if (length <= bytes - FATBIN_HEADER_BYTES) return MB_OK;
  }
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is a fat binary that is cut off");
}

static int32_t check_image(const uint8_t *image, size_t bytes) {
  if (elf_is_image(image, bytes)) return elf_check(image, bytes);
  if (bytes >= sizeof fatbin_magic && memcmp(image, &fatbin_magic, sizeof fatbin_magic) == 0) {
    return check_fatbin(image, bytes);
  }
  /* PTX is text; a NUL at its end is usual. */
  while (bytes && !image[bytes - 1]) bytes--;
  if (bytes && !memchr(image, 0, bytes)) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is neither PTX nor a CUDA binary");
}

int32_t cuda_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  char log[512] = {0};
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CuModule loaded = NULL;
  CuResult result;
  uint8_t *copy;
  int32_t status = check_image(image, bytes);
  if (status != MB_OK) return status;
  copy = calloc(1, bytes + PADDING_BYTES);
  if (!copy) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a module");
  memcpy(copy, image, bytes);
  result = api->cuModuleLoadDataEx(&loaded, copy, 2, options, values);
  free(copy);
  if (result == CU_SUCCESS) {
    *module = loaded;
    return MB_OK;
  }
  status = cuda_check(api, result, "cuModuleLoadDataEx of %zu bytes", bytes);
  if (log[0]) error_append(": %s", log);
  return status;
}

int32_t cuda_module_unload(void *self, void *module) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  return cuda_check(api, api->cuModuleUnload(module), "cuModuleUnload");
}

int32_t cuda_function(void *self, void *module, const char *name, void **function) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuFunction found = NULL;
  CuResult result = api->cuModuleGetFunction(&found, module, name);
  *function = found;
  return cuda_check(api, result, "cuModuleGetFunction of \"%s\"", name);
}

int32_t cuda_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  const uint32_t *grid = geometry->grid, *block = geometry->block;
  union {
    const uint8_t *given;
    void *driver; /* which only reads it */
  } buffer = {args};
  void *extra[] = {CU_LAUNCH_BUFFER, buffer.driver, CU_LAUNCH_BUFFER_SIZE, &args_bytes,
                   CU_LAUNCH_END};
  CuResult result = api->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                        block[2], geometry->shared_bytes, stream, NULL,
                                        args_bytes ? extra : NULL);
  return cuda_check(api, result, "cuLaunchKernel of %u x %u x %u blocks of %u x %u x %u threads",
                     grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}
