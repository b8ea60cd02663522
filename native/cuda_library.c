#include "cuda.h"
#include "vendor_library.h"

#define COUNT(symbols) (sizeof(symbols) / sizeof *(symbols))

#define CUDA_SYMBOL(member, name, parameters) {offsetof(CudaApi, member), name},
static const VendorSymbol symbols[] = {CUDA_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol pool_symbols[] = {CUDA_POOL_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol graph_symbols[] = {CUDA_GRAPH_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol instantiate_symbols[] = {CUDA_INSTANTIATE_SYMBOLS(CUDA_SYMBOL)};
#undef CUDA_SYMBOL

static int32_t fill(void *library, const char *name, void *table) {
  CudaApi *api = table;
  const char *missing = vendor_symbols(library, symbols, COUNT(symbols), api);
  if (missing) {
    return error_set(MB_NO_LIBRARY, 0,
                     "%s lacks the symbol %s: the NVIDIA driver is too old, install a newer one",
                     name, missing);
  }
  api->has_pools = !vendor_symbols(library, pool_symbols, COUNT(pool_symbols), api);
  vendor_symbols(library, instantiate_symbols, 1, api);
  vendor_symbols(library, instantiate_symbols + 1, 1, api);
  api->has_graphs = (api->cuGraphInstantiateWithFlags || api->cuGraphInstantiate) &&
                    !vendor_symbols(library, graph_symbols, COUNT(graph_symbols), api);
  return MB_OK;
}

static bool start(void *table) {
  CudaApi *api = table;
  api->initialized = api->cuInit(0);
  return api->initialized == CU_SUCCESS;
}

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
static VendorLibrary nvidia = {.driver = "NVIDIA driver",
                               .names = names,
                               .api_bytes = sizeof(CudaApi),
                               .fill = fill,
                               .start = start,
                               .lock = PTHREAD_MUTEX_INITIALIZER};

int32_t cuda_load(const char *library, const CudaApi **api) {
  const void *table = NULL;
  int32_t status = vendor_library_load(&nvidia, library, &table);
  *api = table;
  return status;
}
