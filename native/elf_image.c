#include "elf_image.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

bool elf_is_image(const uint8_t *image, size_t bytes) {
  return bytes >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0;
}

static int32_t bad(const char *why) {
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is no usable object: %s", why);
}

static bool inside(uint64_t offset, uint64_t length, uint64_t bytes) {
  return offset <= bytes && length <= bytes - offset;
}

/* Copies: an image need not be aligned. */
static Elf64_Ehdr header_of(const uint8_t *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  return header;
}

static Elf64_Phdr segment_of(const uint8_t *image, const Elf64_Ehdr *header, uint32_t index) {
  Elf64_Phdr segment;
  memcpy(&segment, image + header->e_phoff + index * sizeof segment, sizeof segment);
  return segment;
}

static int32_t check_segments(const uint8_t *image, size_t bytes, const Elf64_Ehdr *header) {
  if (!header->e_phnum) return MB_OK;
  if (header->e_phentsize != sizeof(Elf64_Phdr)) return bad("program headers of unknown size");
  if (!inside(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), bytes)) {
    return bad("its program headers lie beyond its end");
  }
  for (uint32_t i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, header, i);
    if (segment.p_type != PT_NULL && !inside(segment.p_offset, segment.p_filesz, bytes)) {
      return bad("a segment lies beyond its end");
    }
    if (segment.p_type == PT_LOAD && segment.p_filesz > segment.p_memsz) {
      return bad("a segment is larger in the file than in memory");
    }
  }
  return MB_OK;
}

static int32_t check_sections(const uint8_t *image, size_t bytes, const Elf64_Ehdr *header) {
  if (!header->e_shoff || !header->e_shnum) return MB_OK;
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return bad("section headers of unknown size");
  if (!inside(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), bytes)) {
    return bad("its section headers lie beyond its end: is it cut off?");
  }
  for (uint32_t i = 0; i < header->e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, image + header->e_shoff + i * sizeof section, sizeof section);
    /* Types of the vendors' own need not have bytes in the file. */
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS ||
        section.sh_type >= SHT_LOOS) {
      continue;
    }
    if (!inside(section.sh_offset, section.sh_size, bytes)) {
      return bad("a section lies beyond its end");
    }
  }
  return MB_OK;
}

int32_t elf_check(const uint8_t *image, size_t bytes) {
  Elf64_Ehdr header;
  int32_t status;
  if (!elf_is_image(image, bytes)) return bad("it does not begin as an ELF file");
  if (bytes < sizeof header) return bad("it is shorter than an ELF header");
  header = header_of(image);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad("it is not of 64 bits");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return bad("it is not little-endian");
  status = check_segments(image, bytes, &header);
  return status == MB_OK ? check_sections(image, bytes, &header) : status;
}

/* Whether one loaded segment holds the addresses; in_file: with bytes from the file. */
static bool is_loaded(const uint8_t *image, uint64_t address, uint64_t length, bool in_file) {
  const Elf64_Ehdr header = header_of(image);
  for (uint32_t i = 0; i < header.e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, &header, i);
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        inside(address - segment.p_vaddr, length,
               in_file ? segment.p_filesz : segment.p_memsz)) {
      return true;
    }
  }
  return false;
}

/* The loader computes where segments go from the first and the last. */
static int32_t check_loads(const uint8_t *image, const Elf64_Ehdr *header) {
  const uint64_t largest = UINT64_C(1) << 32;
  uint64_t end = 0;
  uint32_t loads = 0;
  for (uint32_t i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, header, i);
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr < end || segment.p_vaddr > largest || segment.p_memsz > largest) {
      return bad("its segments overlap or are too large");
    }
    end = segment.p_vaddr + segment.p_memsz;
    loads++;
  }
  return loads ? MB_OK : bad("it has nothing to load");
}

static bool is_address_tag(int64_t tag) {
  switch (tag) {
    case DT_HASH:
    case DT_GNU_HASH:
    case DT_STRTAB:
    case DT_SYMTAB:
    case DT_RELA:
    case DT_REL:
    case DT_JMPREL:
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_VERSYM:
    case DT_VERDEF:
    case DT_VERNEED:
      return true;
    default:
      return false;
  }
}

static int32_t check_dynamic(const uint8_t *image, const Elf64_Phdr *dynamic) {
  bool strings = false, symbols = false;
  if (!is_loaded(image, dynamic->p_vaddr, dynamic->p_filesz, true)) {
    return bad("its dynamic section is not loaded");
  }
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, image + dynamic->p_offset + at, sizeof entry);
    if (entry.d_tag == DT_NULL) {
      return strings && symbols ? MB_OK : bad("its dynamic section names no symbols");
    }
    if (is_address_tag(entry.d_tag) && !is_loaded(image, entry.d_un.d_ptr, 1, false)) {
      return bad("its dynamic section points outside of it");
    }
    strings |= entry.d_tag == DT_STRTAB;
    symbols |= entry.d_tag == DT_SYMTAB;
  }
  return bad("its dynamic section has no end");
}

int32_t elf_check_shared_object(const uint8_t *image, size_t bytes, uint16_t machine) {
  Elf64_Ehdr header;
  int32_t status = elf_check(image, bytes);
  if (status != MB_OK) return status;
  header = header_of(image);
  if (header.e_machine != machine) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "the module image is for ELF machine %u, this device needs %u",
                     header.e_machine, machine);
  }
  if (header.e_type != ET_DYN) return bad("it is not a shared object");
  status = check_loads(image, &header);
  if (status != MB_OK) return status;
  for (uint32_t i = 0; i < header.e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, &header, i);
    if (segment.p_type == PT_DYNAMIC) return check_dynamic(image, &segment);
  }
  return bad("it has no dynamic section");
}
