/* Loading a vendor's library, and finding what it exports. */
#ifndef MOONBRIGHT_VENDOR_LIBRARY_H
#define MOONBRIGHT_VENDOR_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

typedef struct VendorSymbol {
  size_t offset; /* of its pointer in the vendor's table of functions */
  const char *name;
} VendorSymbol;

/* Fills in what a library exports, up to the first symbol that it lacks, which is returned;
 * null if it has them all. */
const char *vendor_symbols(void *library, const VendorSymbol *wanted, size_t count, void *api);

typedef struct VendorApi VendorApi;

typedef struct VendorLibrary {
  const char *driver;       /* as messages name it, such as "NVIDIA driver" */
  const char *const *names; /* where it usually is, best first; null at the end */
  size_t api_bytes;
  /* Fills the zeroed table in. name: of the library, for messages. */
  int32_t (*fill)(void *library, const char *name, void *api);
  /* Readies it for work. Asked again each time as long as it doesn't succeed: what was
   * lacking, such as a device file, may have come. */
  bool (*start)(void *api);
  pthread_mutex_t lock;
  VendorApi *loaded;
} VendorLibrary;

/* Loads it once per path and keeps it for good: drivers don't take being unloaded well.
 * path: null for the usual names. */
int32_t vendor_library_load(VendorLibrary *vendor, const char *path, const void **api);

#endif
