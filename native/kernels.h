/* What a launch and a timed loop of launches check alike. */
#ifndef MOONBRIGHT_KERNELS_H
#define MOONBRIGHT_KERNELS_H

#include "device.h"

int32_t kernels_check_args(const uint8_t *args, uint32_t args_bytes);

#endif
