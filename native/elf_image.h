/* Loaders trust the tables of an ELF file: what they point to is checked first. That
 * keeps a cut, foreign or damaged file from ending the process; an object that is built
 * to do harm does it when it runs. */
#ifndef MOONBRIGHT_ELF_IMAGE_H
#define MOONBRIGHT_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

bool elf_is_image(const uint8_t *image, size_t bytes);
/* Checks the header, segments and sections. */
int32_t elf_check(const uint8_t *image, size_t bytes);
/* Checks what dlopen reads as well; machine as in the ELF header. */
int32_t elf_check_shared_object(const uint8_t *image, size_t bytes, uint16_t machine);

#endif
