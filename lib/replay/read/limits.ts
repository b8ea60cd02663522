/**
 * How much a file may make a reader keep, however small the file was before it was
 * decompressed. All are far beyond what programs record.
 *
 * @module
 */

/** Events of all devices together: 29 bytes each. */
export const MAX_EVENTS = 2 ** 26;
/** Streams of a device. */
export const MAX_STREAMS = 2 ** 16;
/** Characters of a stream's name. */
export const MAX_STREAM_NAME = 1024;
/** Devices of a file. */
export const MAX_DEVICES = 1024;
/** Segments and live blocks at the end of the recording, together. */
export const MAX_SEGMENTS_AND_BLOCKS = 2 ** 22;
/** Values on the stack of the pickle machine, which bounds nesting too; Python leaves 2 000 for each level at most. */
export const MAX_STACK = 2 ** 20;
/** Objects that a pickle may name for later use: a byte each. */
export const MAX_MEMO = 2 ** 28;
/** Characters of a line of text. */
export const MAX_LINE = 2 ** 20;
/** Gzip within gzip within gzip. */
export const MAX_GZIP_LAYERS = 3;
