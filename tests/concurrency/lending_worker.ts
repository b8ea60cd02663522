/**
 * Run as a worker by the tests: lends the address of a block on the host device, and frees
 * the block when it is told what the other side has written there.
 *
 * @module
 */

import { MoonBright } from "../../ffi/moonbright.ts";

/** What is lent. */
export interface Loan {
  address: number;
  bytes: number;
  /** What each byte holds. */
  value: number;
}

const scope = self as unknown as {
  onmessage: (event: MessageEvent<number>) => void;
  postMessage(message: Loan | string): void;
};

const mb = MoonBright.open({ device: "host" });
const block = mb.alloc(3 * mb.device.granularity);
block.fill(0x5a);
mb.synchronize();
scope.postMessage({
  address: block.address,
  bytes: block.size,
  value: 0x5a,
});
scope.onmessage = ({ data }) => {
  const same = block.read().every((byte) => byte === data);
  block.free();
  mb.close();
  scope.postMessage(same ? "seen" : "not seen");
};
