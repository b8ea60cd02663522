/**
 * The opcodes of Python's pickle format, protocols 2 to 5. Each is a byte, followed by an
 * operand of fixed length, little-endian; in some the operand says how many bytes of a
 * string or integer follow. Names and meanings are those of Python's `pickletools`.
 *
 * @module
 */

/** Opcodes that the machine carries out. */
export const Op = {
  MARK: 0x28,
  STOP: 0x2e,
  POP: 0x30,
  POP_MARK: 0x31,
  BINBYTES: 0x42,
  SHORT_BINBYTES: 0x43,
  BINFLOAT: 0x47,
  BININT: 0x4a,
  BININT1: 0x4b,
  BININT2: 0x4d,
  NONE: 0x4e,
  BINSTRING: 0x54,
  SHORT_BINSTRING: 0x55,
  BINUNICODE: 0x58,
  EMPTY_LIST: 0x5d,
  APPEND: 0x61,
  DICT: 0x64,
  APPENDS: 0x65,
  BINGET: 0x68,
  LONG_BINGET: 0x6a,
  LIST: 0x6c,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  SETITEM: 0x73,
  TUPLE: 0x74,
  SETITEMS: 0x75,
  EMPTY_DICT: 0x7d,
  EMPTY_TUPLE: 0x29,
  PROTO: 0x80,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  LONG1: 0x8a,
  LONG4: 0x8b,
  SHORT_BINUNICODE: 0x8c,
  BINUNICODE8: 0x8d,
  BINBYTES8: 0x8e,
  EMPTY_SET: 0x8f,
  ADDITEMS: 0x90,
  FROZENSET: 0x91,
  MEMOIZE: 0x94,
  FRAME: 0x95,
  BYTEARRAY8: 0x96,
} as const;

/** Opcodes that make Python import, call or look up something, which is never done here. */
const EXECUTING: Readonly<Record<number, string>> = {
  0x50: "PERSID",
  0x51: "BINPERSID",
  0x52: "REDUCE",
  0x62: "BUILD",
  0x63: "GLOBAL",
  0x69: "INST",
  0x6f: "OBJ",
  0x81: "NEWOBJ",
  0x82: "EXT1",
  0x83: "EXT2",
  0x84: "EXT4",
  0x92: "NEWOBJ_EX",
  0x93: "STACK_GLOBAL",
  0x97: "NEXT_BUFFER",
  0x98: "READONLY_BUFFER",
};

/** Opcodes that Python writes in protocols 0 and 1 only, or not at all. */
const ANCIENT: Readonly<Record<number, string>> = {
  0x32: "DUP",
  0x46: "FLOAT",
  0x49: "INT",
  0x4c: "LONG",
  0x53: "STRING",
  0x56: "UNICODE",
  0x67: "GET",
  0x70: "PUT",
};

/** Stands in `OPERAND_BYTES` for an opcode that is not carried out. */
export const REFUSED = 255;

/** Bytes of the operand by opcode, or `REFUSED`. */
export const OPERAND_BYTES: Uint8Array = operandBytes();

function operandBytes(): Uint8Array {
  const table = new Uint8Array(256).fill(REFUSED);
  for (const opcode of Object.values(Op)) table[opcode] = 0;
  const longer: Readonly<Record<number, readonly number[]>> = {
    1: [
      Op.BININT1,
      Op.BINGET,
      Op.BINPUT,
      Op.PROTO,
      Op.SHORT_BINUNICODE,
      Op.SHORT_BINSTRING,
      Op.SHORT_BINBYTES,
      Op.LONG1,
    ],
    2: [Op.BININT2],
    4: [
      Op.BININT,
      Op.LONG_BINGET,
      Op.LONG_BINPUT,
      Op.BINUNICODE,
      Op.BINSTRING,
      Op.BINBYTES,
      Op.LONG4,
    ],
    8: [
      Op.BINFLOAT,
      Op.FRAME,
      Op.BINUNICODE8,
      Op.BINBYTES8,
      Op.BYTEARRAY8,
    ],
  };
  for (const [bytes, opcodes] of Object.entries(longer)) {
    for (const opcode of opcodes) table[opcode] = Number(bytes);
  }
  return table;
}

/** Why an opcode is not carried out. */
export function refusalOf(opcode: number): string {
  const executing = EXECUTING[opcode];
  if (executing !== undefined) {
    return `opcode ${executing} would have Python import, call or look up something, ` +
      "which a memory snapshot never needs and MoonBright never does; " +
      "don't load this file in Python either unless you trust it";
  }
  const ancient = ANCIENT[opcode];
  if (ancient !== undefined) {
    return `opcode ${ancient} belongs to pickle protocols 0 and 1; ${REWRITE}`;
  }
  return `there is no pickle opcode 0x${
    opcode.toString(16).padStart(2, "0")
  }; the file is damaged or no pickle`;
}

/** How to get a pickle of a protocol that is read here. */
export const REWRITE =
  "write it again in protocol 4, such as by pickle.dump(snapshot, file, protocol=4)";
