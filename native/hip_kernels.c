#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "hip.h"

/* Several code objects in one file, as hipcc makes them: a magic word, their number, and for
 * each its place, its size, the length of its target's name and the name. */
static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC_BYTES = sizeof bundle_magic - 1, BUNDLE_ENTRY_BYTES = 24 };

static uint64_t word_at(const uint8_t *image, size_t offset) {
  uint64_t word;
  memcpy(&word, image + offset, sizeof word);
  return word;
}

/* The runtime is given no length: it believes what the image says of itself. */
static bool bundle_is_whole(const uint8_t *image, size_t bytes) {
  size_t at = BUNDLE_MAGIC_BYTES + sizeof(uint64_t);
  uint64_t entries;
  if (bytes < at) return false;
  entries = word_at(image, BUNDLE_MAGIC_BYTES);
  for (uint64_t i = 0; i < entries; i++) {
    uint64_t offset, size, name_bytes;
    if (bytes - at < BUNDLE_ENTRY_BYTES) return false;
    offset = word_at(image, at);
    size = word_at(image, at + 8);
    name_bytes = word_at(image, at + 16);
    at += BUNDLE_ENTRY_BYTES;
    if (name_bytes > bytes - at || offset > bytes || size > bytes - offset) return false;
    at += name_bytes;
  }
  return true;
}

static int32_t check_image(const uint8_t *image, size_t bytes) {
  if (elf_is_image(image, bytes)) return elf_check_shared_object(image, bytes, EM_AMDGPU);
  if (bytes >= BUNDLE_MAGIC_BYTES && memcmp(image, bundle_magic, BUNDLE_MAGIC_BYTES) == 0) {
    if (bundle_is_whole(image, bytes)) return MB_OK;
    return error_set(MB_BAD_ARGUMENT, 0,
                     "the module image is an offload bundle that is cut off");
  }
  return error_set(MB_BAD_ARGUMENT, 0,
                   "the module image is neither an AMD code object nor an uncompressed offload "
                   "bundle");
}

/* The runtime keeps no copy of an image: ours lives as long as the module. */
typedef struct HipImage {
  HipModule module;
  _Alignas(16) uint8_t bytes[]; /* the loader reads the tables in place */
} HipImage;

int32_t hip_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipImage *kept;
  HipResult result;
  int32_t status = check_image(image, bytes);
  if (status != MB_OK) return status;
  kept = malloc(sizeof *kept + bytes);
  if (!kept) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a module");
  memcpy(kept->bytes, image, bytes);
  result = api->hipModuleLoadData(&kept->module, kept->bytes);
  if (result == HIP_RESULT_SUCCESS) {
    *module = kept;
    return MB_OK;
  }
  free(kept);
  status = hip_check(api, result, "hipModuleLoadData of %zu bytes", bytes);
  if (result == HIP_RESULT_NO_BINARY_FOR_GPU) {
    error_append(": the image is for another architecture than the device's");
  }
  return status;
}

int32_t hip_module_unload(void *self, void *module) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipImage *kept = module;
  int32_t status = hip_check(api, api->hipModuleUnload(kept->module), "hipModuleUnload");
  if (status == MB_OK) free(kept);
  return status;
}

int32_t hip_function(void *self, void *module, const char *name, void **function) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipFunction found = NULL;
  HipResult result =
      api->hipModuleGetFunction(&found, ((HipImage *)module)->module, name);
  *function = found;
  return hip_check(api, result, "hipModuleGetFunction of \"%s\"", name);
}

/* The runtime counts threads along an axis in 32 bits. Only the first can have that many:
 * along the others there are fewer than 2^16 blocks. */
static int32_t check_geometry(const MbGeometry *geometry) {
  uint32_t blocks = geometry->grid[0], threads = geometry->block[0];
  if ((uint64_t)blocks * threads <= UINT32_MAX) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "a grid of %" PRIu32 " blocks of %" PRIu32
                   " threads has more than 2^32 - 1 threads along an axis",
                   blocks, threads);
}

int32_t hip_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                   const uint8_t *args, size_t args_bytes) {
  const HipApi *api = ((HipDevice *)self)->api;
  const uint32_t *grid = geometry->grid, *block = geometry->block;
  union {
    const uint8_t *given;
    void *runtime; /* which only reads it */
  } buffer = {args};
  void *extra[] = {HIP_ARGS_BUFFER, buffer.runtime, HIP_ARGS_BUFFER_SIZE, &args_bytes,
                   HIP_ARGS_END};
  HipResult result;
  int32_t status = check_geometry(geometry);
  if (status != MB_OK) return status;
  result = api->hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                      block[2], geometry->shared_bytes, stream, NULL,
                                      args_bytes ? extra : NULL);
  return hip_check(api, result,
                   "hipModuleLaunchKernel of %u x %u x %u blocks of %u x %u x %u threads",
                   grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}
