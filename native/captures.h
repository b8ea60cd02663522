/* Streams that note work for a graph instead of doing it, and what they can't be used for:
 * a driver would answer that by spoiling the capture, so it is refused before. */
#ifndef MOONBRIGHT_CAPTURES_H
#define MOONBRIGHT_CAPTURES_H

#include "device.h"

/* As object_pin, for a use that no graph can hold: MB_BAD_ARGUMENT while the stream is
 * capturing. what: the use, such as "an event". */
int32_t stream_pin_uncaptured(MbDevice *device, uint32_t stream, const char *what,
                              MbObject **pinned);
/* Before a wait for all streams: MB_BAD_ARGUMENT while one is capturing. After MB_OK none
 * begins to until captures_let. */
int32_t captures_hold_off(MbDevice *device, const char *what);
void captures_let(MbDevice *device);
/* Before a launch: lets the capture, if there is one, hold the kernel's module. */
int32_t capture_hold_module(MbDevice *device, const MbObject *function, MbObject *stream);
/* Ends the capture of a stream that is being destroyed, if there is one. */
void capture_abandon(MbDevice *device, MbObject *stream);
/* For closing. */
void captures_abandon_all(MbDevice *device);
/* Lets a graph's modules go. */
void held_modules_release(MbDevice *device, HeldModules *held);

#endif
