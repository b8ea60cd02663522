#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

/* Loaded libraries are kept for good: drivers don't take being unloaded well. */
typedef struct LoadedLibrary {
  CudaApi api;
  struct LoadedLibrary *next;
  char path[];
} LoadedLibrary;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LoadedLibrary *loaded;

typedef struct Symbol {
  size_t offset; /* of its pointer in CudaApi */
  const char *name;
} Symbol;

#define CUDA_SYMBOL(member, name, parameters) {offsetof(CudaApi, member), name},
static const Symbol symbols[] = {CUDA_SYMBOLS(CUDA_SYMBOL)};
static const Symbol pool_symbols[] = {CUDA_POOL_SYMBOLS(CUDA_SYMBOL)};
static const Symbol graph_symbols[] = {CUDA_GRAPH_SYMBOLS(CUDA_SYMBOL)};
static const Symbol instantiate_symbols[] = {CUDA_INSTANTIATE_SYMBOLS(CUDA_SYMBOL)};
#undef CUDA_SYMBOL

/* The first symbol that the library lacks, null if it has them all. */
static const char *find_symbols(void *library, const Symbol *wanted, size_t count, CudaApi *api) {
  for (size_t i = 0; i < count; i++) {
    void *symbol = dlsym(library, wanted[i].name);
    if (!symbol) return wanted[i].name;
    memcpy((char *)api + wanted[i].offset, &symbol, sizeof symbol);
  }
  return NULL;
}

static int32_t open_library(const char *path, void **library) {
  char first[512];
  if (path) {
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library) return MB_OK;
    return error_set(MB_NO_LIBRARY, 0, "dlopen of \"%s\" as NVIDIA's driver library: %s", path,
                     dlerror());
  }
  *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (*library) return MB_OK;
  first[0] = 0;
  strncat(first, dlerror(), sizeof first - 1);
  *library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
  if (*library) return MB_OK;
  return error_set(MB_NO_LIBRARY, 0,
                   "no NVIDIA driver found: libcuda.so.1 (%s), libcuda.so (%s): install the "
                   "driver or give the library's path",
                   first, dlerror());
}

static int32_t load(const char *path, LoadedLibrary *entry) {
  CudaApi *api = &entry->api;
  void *library;
  const char *missing;
  int32_t status = open_library(path, &library);
  if (status != MB_OK) return status;
  missing = find_symbols(library, symbols, sizeof symbols / sizeof *symbols, api);
  if (missing) {
    dlclose(library);
    return error_set(MB_NO_LIBRARY, 0,
                     "%s lacks the symbol %s: the NVIDIA driver is too old, install a newer one",
                     path ? path : "libcuda.so.1", missing);
  }
  api->has_pools = !find_symbols(library, pool_symbols,
                                 sizeof pool_symbols / sizeof *pool_symbols, api);
  find_symbols(library, instantiate_symbols, 1, api);
  find_symbols(library, instantiate_symbols + 1, 1, api);
  api->has_graphs = (api->cuGraphInstantiateWithFlags || api->cuGraphInstantiate) &&
                    !find_symbols(library, graph_symbols,
                                  sizeof graph_symbols / sizeof *graph_symbols, api);
  api->initialized = api->cuInit(0);
  return MB_OK;
}

/* With the lock. */
static int32_t find_or_load(const char *path, const CudaApi **api) {
  const char *key = path ? path : "";
  size_t length = strlen(key) + 1;
  LoadedLibrary *entry = loaded;
  int32_t status;
  while (entry && strcmp(entry->path, key) != 0) entry = entry->next;
  if (!entry) {
    entry = calloc(1, sizeof *entry + length);
    if (!entry) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a library");
    memcpy(entry->path, key, length);
    status = load(path, entry);
    if (status != MB_OK) {
      free(entry);
      return status;
    }
    entry->next = loaded;
    loaded = entry;
  } else if (entry->api.initialized != CU_SUCCESS) {
    /* What was lacking at the last try, such as a device file, may have come. */
    entry->api.initialized = entry->api.cuInit(0);
  }
  *api = &entry->api;
  return MB_OK;
}

int32_t cuda_load(const char *library, const CudaApi **api) {
  int32_t status;
  pthread_mutex_lock(&lock);
  status = find_or_load(library, api);
  pthread_mutex_unlock(&lock);
  return status;
}
