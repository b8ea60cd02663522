#include "vendor_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct VendorApi {
  VendorApi *next;
  void *api;
  bool started;
  char path[];
};

const char *vendor_symbols(void *library, const VendorSymbol *wanted, size_t count, void *api) {
  for (size_t i = 0; i < count; i++) {
    void *symbol = dlsym(library, wanted[i].name);
    if (!symbol) return wanted[i].name;
    memcpy((char *)api + wanted[i].offset, &symbol, sizeof symbol);
  }
  return NULL;
}

static int32_t open_path(const VendorLibrary *vendor, const char *path, void **library) {
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*library) return MB_OK;
  return error_set(MB_NO_LIBRARY, 0, "dlopen of \"%s\" for the %s: %s", path,
                   vendor->driver, dlerror());
}

/* The first of the usual names that can be opened. */
static int32_t open_usual(const VendorLibrary *vendor, void **library, const char **name) {
  char tried[768] = "";
  size_t length = 0;
  for (const char *const *each = vendor->names; *each; each++) {
    *library = dlopen(*each, RTLD_NOW | RTLD_LOCAL);
    if (*library) {
      *name = *each;
      return MB_OK;
    }
    snprintf(tried + length, sizeof tried - length, "%s%s (%s)", length ? ", " : "", *each,
             dlerror());
    length = strlen(tried);
  }
  return error_set(MB_NO_LIBRARY, 0,
                   "no %s found: %s: install it or give its library's path",
                   vendor->driver, tried);
}

static int32_t load(const VendorLibrary *vendor, const char *path, void *api) {
  const char *name = path;
  void *library = NULL;
  int32_t status =
      path ? open_path(vendor, path, &library) : open_usual(vendor, &library, &name);
  if (status != MB_OK) return status;
  status = vendor->fill(library, name, api);
  if (status != MB_OK) dlclose(library);
  return status;
}

/* With the lock. */
static int32_t find_or_load(VendorLibrary *vendor, const char *path, const void **api) {
  const char *key = path ? path : "";
  size_t length = strlen(key) + 1;
  VendorApi *entry = vendor->loaded;
  int32_t status;
  while (entry && strcmp(entry->path, key) != 0) entry = entry->next;
  if (entry) {
    if (!entry->started) entry->started = vendor->start(entry->api);
    *api = entry->api;
    return MB_OK;
  }
  entry = calloc(1, sizeof *entry + length);
  if (entry) entry->api = calloc(1, vendor->api_bytes);
  if (!entry || !entry->api) {
    free(entry);
    return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a library");
  }
  memcpy(entry->path, key, length);
  status = load(vendor, path, entry->api);
  if (status != MB_OK) {
    free(entry->api);
    free(entry);
    return status;
  }
  entry->started = vendor->start(entry->api);
  entry->next = vendor->loaded;
  vendor->loaded = entry;
  *api = entry->api;
  return MB_OK;
}

int32_t vendor_library_load(VendorLibrary *vendor, const char *path, const void **api) {
  int32_t status;
  pthread_mutex_lock(&vendor->lock);
  status = find_or_load(vendor, path, api);
  pthread_mutex_unlock(&vendor->lock);
  return status;
}
