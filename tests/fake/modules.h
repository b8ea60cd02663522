/* Modules: shared objects whose kernels are MbHostKernel functions. They may claim to be for
 * the vendor's device (CLAIMED_MACHINE), for callers that look at an image before they pass
 * it on. */
#ifndef FAKE_MODULES_H
#define FAKE_MODULES_H

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_guard.h"
#include "objects.h"
#include "results.h"

typedef struct Module {
  Object base;
  void *library;
  int file; /* open as long as the library: its number is the library's name */
  const void *image;
  Elf64_Ehdr header; /* the image's, as it was */
} Module;

typedef struct Function {
  Object base;
  Module *module;
  MbHostKernel kernel;
} Function;

/* The driver is told no size: an image ends with its section headers. 0 if it is no
 * 64-bit shared object. */
static size_t image_size(const void *image) {
  Elf64_Ehdr header;
  if (memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) return 0;
  return header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
}

/* What objects of this process are for. */
#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#error "add this processor's ELF machine"
#endif

/* Puts the real machine into the copy of an image that claims to be for the device. */
static bool restore_machine(int file, const void *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (header.e_machine != CLAIMED_MACHINE) return true;
  header.e_machine = NATIVE_MACHINE;
  return pwrite(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

static bool write_all(int file, const char *bytes, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, bytes, size);
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

static Result module_load(const void *image, Module **loaded) {
  const size_t size = image_size(image);
  if (size == 0) return RESULT_INVALID_IMAGE;
  const int file = memfd_create("fake-module", MFD_CLOEXEC);
  if (file < 0) return RESULT_OPERATING_SYSTEM;
  void *library = NULL;
  if (write_all(file, image, size) && restore_machine(file, image)) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    close(file);
    return RESULT_INVALID_IMAGE;
  }
  Module *module = object_new(OBJECT_MODULE, sizeof *module);
  module->library = library;
  module->file = file;
  module->image = image;
  memcpy(&module->header, image, sizeof module->header);
  *loaded = module;
  return RESULT_SUCCESS;
}

/* Whether the caller still keeps the image where it was. */
__attribute__((unused)) static bool module_image_is_kept(const Module *module) {
  return memcmp(module->image, &module->header, sizeof module->header) == 0;
}

/* Queued launches of its kernels must have run. */
static void module_unload(Module *module) {
  for (size_t i = 0; i < object_count; i++)
    if (objects[i]->kind == OBJECT_FUNCTION && ((Function *)objects[i])->module == module)
      objects[i]->alive = false;
  module->base.alive = false;
  dlclose(module->library);
  close(module->file);
}

static Result module_function(Module *module, const char *name, Function **found) {
  MbHostKernel kernel;
  void *symbol = dlsym(module->library, name);
  if (symbol == NULL) return RESULT_NOT_FOUND;
  memcpy(&kernel, &symbol, sizeof kernel);
  Function *function = object_new(OBJECT_FUNCTION, sizeof *function);
  function->module = module;
  function->kernel = kernel;
  *found = function;
  return RESULT_SUCCESS;
}

#endif
