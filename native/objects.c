#include "objects.h"

#include <stdlib.h>

#include "device.h"

static MbTable *table_of(MbDevice *device, ObjectKind kind) {
  switch (kind) {
    case OBJECT_STREAM:
      return &device->streams;
    case OBJECT_EVENT:
      return &device->events;
    case OBJECT_MODULE:
      return &device->modules;
    case OBJECT_GRAPH:
      return &device->graphs;
    default:
      return &device->functions;
  }
}

static int32_t unknown(ObjectKind kind, uint32_t id) {
  static const char *const names[] = {"stream", "event", "module", "function", "graph"};
  return error_set(MB_BAD_HANDLE, 0, "no %s of this device has the id %u", names[kind], id);
}

int32_t object_add(MbDevice *device, ObjectKind kind, MbObject object, uint32_t *id) {
  MbObject *kept = malloc(sizeof *kept);
  int32_t status;
  if (!kept) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an id");
  *kept = object;
  pthread_mutex_lock(&device->object_lock);
  status = table_add(table_of(device, kind), kept, id);
  pthread_mutex_unlock(&device->object_lock);
  if (status != MB_OK) free(kept);
  return status;
}

int32_t object_pin(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object) {
  MbObject *found;
  pthread_mutex_lock(&device->object_lock);
  found = kind == OBJECT_STREAM && id == 0 ? &device->default_stream
                                           : table_find(table_of(device, kind), id);
  if (found) found->pins++;
  pthread_mutex_unlock(&device->object_lock);
  if (!found) return unknown(kind, id);
  *object = found;
  return MB_OK;
}

void object_unpin(MbDevice *device, MbObject *object) {
  pthread_mutex_lock(&device->object_lock);
  /* Who removes it waits for no pin, who changes its capture for no other than its own. */
  if (--object->pins <= 1) pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

/* With object_lock, which the wait lets go for a while. */
static MbObject *remove_locked(MbDevice *device, ObjectKind kind, uint32_t id) {
  MbObject *object = table_remove(table_of(device, kind), id);
  while (object && object->pins) {
    pthread_cond_wait(&device->object_unpinned, &device->object_lock);
  }
  return object;
}

static void remove_functions_locked(MbDevice *device, const MbObject *module) {
  uint32_t id = table_next(&device->functions, 0);
  while (id) {
    MbObject *function = table_find(&device->functions, id);
    if (function->module == module) free(remove_locked(device, OBJECT_FUNCTION, id));
    id = table_next(&device->functions, id & ID_SLOT_MASK);
  }
}

static bool is_held_locked(MbDevice *device, ObjectKind kind, uint32_t id) {
  MbObject *module = kind == OBJECT_MODULE ? table_find(&device->modules, id) : NULL;
  if (module) module->removed = !module->holders;
  return module && module->holders;
}

int32_t object_remove(MbDevice *device, ObjectKind kind, uint32_t id, MbObject *object) {
  MbObject *found;
  bool held;
  pthread_mutex_lock(&device->object_lock);
  held = is_held_locked(device, kind, id);
  found = held ? NULL : remove_locked(device, kind, id);
  if (found && kind == OBJECT_MODULE) remove_functions_locked(device, found);
  pthread_mutex_unlock(&device->object_lock);
  if (held) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "graphs still hold kernels of the module %u: destroy them first", id);
  }
  if (!found) return unknown(kind, id);
  *object = *found;
  free(found);
  return MB_OK;
}

bool object_remove_any(MbDevice *device, ObjectKind kind, MbObject *object) {
  uint32_t id = table_next(table_of(device, kind), 0);
  return id && object_remove(device, kind, id, object) == MB_OK;
}
