#include "hip.h"
#include "vendor_library.h"

#define COUNT(symbols) (sizeof(symbols) / sizeof *(symbols))

#define HIP_SYMBOL(result, name, parameters) {offsetof(HipApi, name), #name},
static const VendorSymbol symbols[] = {HIP_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol properties_symbols[] = {HIP_PROPERTIES_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol vmm_symbols[] = {HIP_VMM_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol pool_symbols[] = {HIP_POOL_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol graph_symbols[] = {HIP_GRAPH_SYMBOLS(HIP_SYMBOL)};
#undef HIP_SYMBOL

static int32_t fill(void *library, const char *name, void *table) {
  HipApi *api = table;
  const char *missing = vendor_symbols(library, symbols, COUNT(symbols), api);
  if (!missing && vendor_symbols(library, properties_symbols, 1, api)) {
    missing = vendor_symbols(library, properties_symbols + 1, 1, api);
  }
  if (missing) {
    return error_set(MB_NO_LIBRARY, 0,
                     "%s lacks the symbol %s: ROCm's HIP runtime is too old, install a newer one",
                     name, missing);
  }
  api->has_vmm = !vendor_symbols(library, vmm_symbols, COUNT(vmm_symbols), api);
  api->has_pools = !vendor_symbols(library, pool_symbols, COUNT(pool_symbols), api);
  api->has_graphs = !vendor_symbols(library, graph_symbols, COUNT(graph_symbols), api);
  return MB_OK;
}

static bool start(void *table) {
  HipApi *api = table;
  api->initialized = api->hipInit(0);
  return api->initialized == HIP_RESULT_SUCCESS;
}

static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                    "libamdhip64.so", NULL};
static VendorLibrary amd = {.driver = "HIP runtime (ROCm)",
                            .names = names,
                            .api_bytes = sizeof(HipApi),
                            .fill = fill,
                            .start = start,
                            .lock = PTHREAD_MUTEX_INITIALIZER};

int32_t hip_load(const char *library, const HipApi **api) {
  const void *table = NULL;
  int32_t status = vendor_library_load(&amd, library, &table);
  *api = table;
  return status;
}
