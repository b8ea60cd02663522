/* The way of an allocation into the device's table of them and out again. */
#ifndef MOONBRIGHT_TRACKING_H
#define MOONBRIGHT_TRACKING_H

#include "device.h"

/* A record that is not in the table yet. */
int32_t tracking_new(AllocationKind kind, uint64_t size, Allocation **allocation);
/* status: of the driver's allocation, which is passed on. Tracks the record and gives its
 * address, or frees it. */
int32_t tracking_finish_alloc(MbDevice *device, Allocation *allocation, int32_t status,
                              double *address);
/* Takes it out, before the driver frees it, so that nobody else frees it as well. */
int32_t tracking_take(MbDevice *device, AllocationKind kind, double address,
                      Allocation **allocation);
/* status: of the driver's free, which is passed on. Frees the record, or tracks it again. */
int32_t tracking_finish_free(MbDevice *device, Allocation *allocation, int32_t status);

#endif
