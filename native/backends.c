#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "forks.h"

int32_t backend_find(int32_t id, const MbBackend **backend) {
  int32_t status = forks_check();
  if (status != MB_OK) return status;
  forks_watch();
  switch (id) {
    case MB_BACKEND_HOST:
      *backend = &host_backend;
      return MB_OK;
    case MB_BACKEND_CUDA:
      *backend = &cuda_backend;
      return MB_OK;
    case MB_BACKEND_HIP:
      *backend = &hip_backend;
      return MB_OK;
    default:
      return error_set(MB_BAD_ARGUMENT, 0, "backend must be from 0 to 2, got %" PRId32, id);
  }
}

int32_t backend_library(const uint8_t *library, uint32_t length,
                        char copy[BACKEND_LIBRARY_CAPACITY], const char **path) {
  *path = NULL;
  if (length == 0) return MB_OK;
  *path = copy;
  return check_text("library", library, length, copy, BACKEND_LIBRARY_CAPACITY);
}

int32_t mb_device_count(int32_t backend, const uint8_t *library, uint32_t library_length,
                        uint32_t *count) {
  char copy[BACKEND_LIBRARY_CAPACITY];
  const char *path;
  const MbBackend *found;
  int32_t status = check_pointer("count", count);
  if (status == MB_OK) status = backend_library(library, library_length, copy, &path);
  if (status == MB_OK) status = backend_find(backend, &found);
  if (status == MB_OK) status = found->count(path, count);
  return status;
}

int32_t mb_device_properties(int32_t backend, const uint8_t *library, uint32_t library_length,
                             uint32_t ordinal, double *properties, uint8_t *name,
                             uint32_t name_capacity) {
  char copy[BACKEND_LIBRARY_CAPACITY], text[1024];
  const char *path;
  const MbBackend *found;
  MbDescription description = {0};
  int32_t status = check_pointer("properties", properties);
  if (status == MB_OK) status = check_pointer("name", name);
  if (status == MB_OK) status = check_count("name_capacity", name_capacity, UINT32_MAX);
  if (status == MB_OK) status = backend_library(library, library_length, copy, &path);
  if (status == MB_OK) status = backend_find(backend, &found);
  if (status == MB_OK) status = found->describe(path, ordinal, &description);
  if (status != MB_OK) return status;
  memcpy(properties, description.properties, sizeof description.properties);
  snprintf(text, sizeof text, "%s\n%s\n%s", description.name, description.architecture,
           description.limits);
  uint32_t length = error_cut(text, (uint32_t)strlen(text), name_capacity - 1);
  memcpy(name, text, length);
  name[length] = 0;
  return MB_OK;
}
