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

/* With object_lock, as all whose names say so. Null for one that somebody is destroying. */
static MbObject *find_locked(MbDevice *device, ObjectKind kind, uint32_t id) {
  MbObject *found = table_find(table_of(device, kind), id);
  return found && !found->claimed ? found : NULL;
}

int32_t object_pin(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object) {
  MbObject *found;
  pthread_mutex_lock(&device->object_lock);
  found = kind == OBJECT_STREAM && id == 0 ? &device->default_stream
                                           : find_locked(device, kind, id);
  if (found) found->pins++;
  pthread_mutex_unlock(&device->object_lock);
  if (!found) return unknown(kind, id);
  *object = found;
  return MB_OK;
}

MbObject *object_pin_next(MbDevice *device, ObjectKind kind, uint32_t *id) {
  MbObject *found;
  pthread_mutex_lock(&device->object_lock);
  for (;;) {
    uint32_t next = table_next(table_of(device, kind), *id & ID_SLOT_MASK);
    found = next ? table_find(table_of(device, kind), next) : NULL;
    if (!found || !found->claimed) {
      *id = next;
      break;
    }
    pthread_cond_wait(&device->object_unpinned, &device->object_lock);
  }
  if (found) found->pins++;
  pthread_mutex_unlock(&device->object_lock);
  return found;
}

void object_unpin(MbDevice *device, MbObject *object) {
  pthread_mutex_lock(&device->object_lock);
  /* Who removes it waits for no pin, who changes its capture for no other than its own. */
  if (--object->pins <= 1) pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

/* Lets the lock go while it waits. */
static void claim_locked(MbDevice *device, MbObject *object) {
  object->claimed = true;
  while (object->pins) pthread_cond_wait(&device->object_unpinned, &device->object_lock);
}

static uint32_t next_function_of(const MbDevice *device, const MbObject *module, uint32_t id) {
  for (;;) {
    const MbObject *function;
    id = table_next(&device->functions, id & ID_SLOT_MASK);
    if (!id) return 0;
    function = table_find(&device->functions, id);
    if (function->module == module) return id;
  }
}

static void claim_functions_locked(MbDevice *device, const MbObject *module) {
  uint32_t id = 0;
  while ((id = next_function_of(device, module, id)) != 0) {
    claim_locked(device, table_find(&device->functions, id));
  }
}

static void end_function_claims_locked(MbDevice *device, const MbObject *module, bool destroyed) {
  uint32_t id = 0;
  while ((id = next_function_of(device, module, id)) != 0) {
    MbObject *function = table_find(&device->functions, id);
    function->claimed = false;
    if (destroyed) free(table_remove(&device->functions, id));
  }
}

int32_t object_claim(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object) {
  MbObject *found;
  bool held;
  pthread_mutex_lock(&device->object_lock);
  found = find_locked(device, kind, id);
  held = found && kind == OBJECT_MODULE && found->holders;
  if (found && !held) {
    claim_locked(device, found);
    if (kind == OBJECT_MODULE) claim_functions_locked(device, found);
  }
  pthread_mutex_unlock(&device->object_lock);
  if (held) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "graphs still hold kernels of the module %u: destroy them first", id);
  }
  if (!found) return unknown(kind, id);
  *object = found;
  return MB_OK;
}

void object_end_claim(MbDevice *device, ObjectKind kind, uint32_t id, bool destroyed) {
  MbObject *object;
  pthread_mutex_lock(&device->object_lock);
  object = table_find(table_of(device, kind), id);
  object->claimed = false;
  if (kind == OBJECT_MODULE) end_function_claims_locked(device, object, destroyed);
  if (destroyed) free(table_remove(table_of(device, kind), id));
  /* For who walks over the objects of the kind. */
  pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

bool object_remove_any(MbDevice *device, ObjectKind kind, MbObject *object) {
  uint32_t id = table_next(table_of(device, kind), 0);
  MbObject *claimed;
  if (!id || object_claim(device, kind, id, &claimed) != MB_OK) return false;
  *object = *claimed;
  object_end_claim(device, kind, id, true);
  return true;
}
