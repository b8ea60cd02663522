/* Modules of the host backend: shared objects, loaded from memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_image.h"
#include "host.h"

#if defined(__x86_64__)
enum { THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { THIS_MACHINE = EM_RISCV };
#else
enum { THIS_MACHINE = EM_NONE };
#endif

enum { PATH_BITS = 32, PATH_CAPACITY = 128 };

typedef struct HostModule {
  void *library;
  char path[PATH_CAPACITY];
} HostModule;

/* dlopen gives a library again that it has under the same path, and descriptors are used
 * again: each load writes its number into the path, as one slash more or one dot. */
static void unique_path(char *path, int descriptor) {
  static atomic_uint loads;
  unsigned number = atomic_fetch_add(&loads, 1);
  int length = snprintf(path, PATH_CAPACITY, "/proc/self/fd/");
  for (int bit = 0; bit < PATH_BITS; bit++) {
    length += snprintf(path + length, PATH_CAPACITY - (size_t)length, "%s",
                       number >> bit & 1 ? "./" : "/");
  }
  snprintf(path + length, PATH_CAPACITY - (size_t)length, "%d", descriptor);
}

static int32_t write_image(int file, const uint8_t *image, size_t bytes) {
  size_t written = 0;
  while (written < bytes) {
    ssize_t n = write(file, image + written, bytes - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return error_set(MB_OUT_OF_MEMORY, errno, "writing a module of %zu bytes to memory: %s",
                       bytes, strerror(errno));
    }
    written += (size_t)n;
  }
  return MB_OK;
}

static int32_t load_from(int file, const uint8_t *image, size_t bytes, HostModule *module) {
  int32_t status = write_image(file, image, bytes);
  if (status != MB_OK) return status;
  unique_path(module->path, file);
  module->library = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
  if (module->library) return MB_OK;
  return error_set(MB_DRIVER, 0, "dlopen of a module of %zu bytes: %s", bytes, dlerror());
}

int32_t host_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  HostModule *loaded;
  int file;
  int32_t status = elf_check_shared_object(image, bytes, THIS_MACHINE);
  (void)self;
  if (status != MB_OK) return status;
  file = memfd_create("moonbright-module", MFD_CLOEXEC);
  if (file < 0) return error_set(MB_LIMIT, errno, "memfd_create for a module: %s", strerror(errno));
  loaded = calloc(1, sizeof *loaded);
  status = loaded ? load_from(file, image, bytes, loaded)
                  : error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a module");
  close(file);
  if (status == MB_OK) {
    *module = loaded;
  } else {
    free(loaded);
  }
  return status;
}

int32_t host_module_unload(void *self, void *module) {
  HostModule *unloaded = module;
  (void)self;
  dlclose(unloaded->library);
  free(unloaded);
  return MB_OK;
}

/* dlsym also looks into what the object depends on, and finds data as well as code. */
static bool is_function_of(const HostModule *module, const void *symbol) {
  Dl_info info;
#ifdef __GLIBC__
  const Elf64_Sym *entry = NULL;
  if (!dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT)) return false;
  if (entry && ELF64_ST_TYPE(entry->st_info) != STT_FUNC) return false;
#else
  if (!dladdr(symbol, &info)) return false;
#endif
  return strcmp(info.dli_fname, module->path) == 0;
}

int32_t host_function(void *self, void *module, const char *name, void **function) {
  const HostModule *searched = module;
  void *symbol = dlsym(searched->library, name);
  (void)self;
  if (!symbol || !is_function_of(searched, symbol)) {
    return error_set(MB_NOT_FOUND, 0, "the module has no kernel \"%s\"", name);
  }
  *function = symbol;
  return MB_OK;
}

int32_t host_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes) {
  HostWork *work = host_new_work(HOST_LAUNCH, args_bytes);
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  memcpy(&work->of.launch.kernel, &function, sizeof function);
  work->of.launch.geometry = *geometry;
  if (args_bytes) memcpy(work->args, args, args_bytes);
  return host_enqueue(stream, work);
}
