#include "captures.h"

int32_t mb_graph_launch(uint32_t device, uint32_t graph, uint32_t stream) {
  MbDevice *d;
  MbObject *g, *s;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_GRAPH, graph, &g);
  if (status != MB_OK) return device_leave(d, status);
  status = stream_pin_uncaptured(d, stream, "another graph", &s);
  if (status == MB_OK) {
    status = d->backend->graph_launch(d->self, g->handle, s->handle);
    object_unpin(d, s);
  }
  object_unpin(d, g);
  return device_leave(d, status);
}

int32_t mb_graph_destroy(uint32_t device, uint32_t graph) {
  MbDevice *d;
  MbObject *claimed;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_claim(d, OBJECT_GRAPH, graph, &claimed);
  if (status == MB_OK) {
    status = d->backend->graph_destroy(d->self, claimed->handle);
    if (status == MB_OK) held_modules_release(d, &claimed->held);
    object_end_claim(d, OBJECT_GRAPH, graph, status == MB_OK);
  }
  return device_leave(d, status);
}
