import { assertEquals, assertThrows } from "@std/assert";
import { DriverError } from "../../lib/errors.ts";
import { Streams } from "../../lib/streams.ts";
import { GatedDriver } from "./support.ts";

function clocks(more = 0) {
  const driver = new GatedDriver();
  const streams = new Streams(driver);
  for (let count = 0; count < more; count++) streams.create();
  return { driver, streams };
}

Deno.test("freeing needs no event: an epoch passes with the next one", () => {
  const { driver, streams } = clocks();
  const epoch = streams.clocks[0]!.recorded;
  assertEquals(streams.isPassed(0, epoch), false);
  assertEquals(driver.log, []);
  streams.ensureTicked(0, epoch);
  streams.ensureTicked(0, epoch);
  assertEquals(driver.log.length, 1);
  streams.poll(0);
  assertEquals(streams.isPassed(0, epoch), false);
  driver.pass(0);
  streams.poll(0);
  assertEquals(streams.isPassed(0, epoch), true);
  assertEquals(streams.isPassed(0, streams.clocks[0]!.recorded), false);
});

Deno.test("polling stops at the first event that has not passed", () => {
  const { driver, streams } = clocks();
  for (let count = 0; count < 5; count++) streams.tick(0);
  driver.pass(0, 3);
  streams.poll(0);
  assertEquals(streams.clocks[0]!.completed, 3);
  driver.pass(0);
  streams.pollAll();
  assertEquals(streams.clocks[0]!.completed, 5);
});

Deno.test("events that have passed are recorded again", () => {
  const { driver, streams } = clocks();
  for (let count = 0; count < 10; count++) {
    streams.tick(0);
    driver.pass(0);
    streams.pollAll();
  }
  assertEquals(driver.live().events, 1);
  streams.tick(0);
  streams.tick(0);
  assertEquals(driver.live().events, 2);
  streams.close();
  assertEquals(driver.live().events, 0);
});

Deno.test("another stream sees a use once it waits for it on the device", () => {
  const { streams } = clocks(2);
  const epoch = streams.clocks[1]!.recorded;
  assertEquals(streams.isVisibleTo(1, 1, epoch), true);
  assertEquals(streams.isVisibleTo(2, 1, epoch), false);
  streams.join(2, 1);
  assertEquals(streams.isVisibleTo(2, 1, epoch), true);
  assertEquals(streams.isVisibleTo(0, 1, epoch), false);
  const later = streams.clocks[1]!.recorded;
  assertEquals(streams.isVisibleTo(2, 1, later), false);
});

Deno.test("waiting for an epoch waits for no later event, and for none if passed", () => {
  const { driver, streams } = clocks();
  const epoch = streams.clocks[0]!.recorded;
  streams.tick(0);
  streams.tick(0);
  streams.waitPassed(0, epoch);
  assertEquals(streams.clocks[0]!.completed, 1);
  driver.log.length = 0;
  streams.waitPassed(0, epoch);
  assertEquals(driver.log, []);
});

Deno.test("synchronizing passes everything up to now and nothing later", () => {
  const { streams } = clocks(1);
  const before = streams.clocks[1]!.recorded;
  streams.tick(1);
  streams.synchronize(1);
  assertEquals(streams.isPassed(1, before), true);
  const after = streams.clocks[1]!.recorded;
  assertEquals(streams.isPassed(1, after - 1), true);
  assertEquals(streams.isPassed(1, after), false);
});

Deno.test("a destroyed stream's slot is used again and its numbers go on", () => {
  const { streams } = clocks(2);
  streams.tick(1);
  streams.join(2, 1);
  streams.destroy(1);
  const { recorded } = streams.clocks[1]!;
  assertEquals(streams.isPassed(1, recorded - 1), true);
  assertEquals(streams.create(), 1);
  assertEquals(streams.isPassed(1, recorded), false);
  assertEquals(streams.isVisibleTo(2, 1, recorded), false);
  assertEquals(streams.create(), 3);
});

Deno.test("an event that can't be recorded is kept for later and nothing is noted", () => {
  const { driver, streams } = clocks();
  driver.failNext("recordEvent", 1, "driver");
  assertThrows(() => streams.tick(0), DriverError);
  assertEquals(streams.clocks[0]!.recorded, 0);
  streams.tick(0);
  assertEquals(driver.live().events, 1);
});

Deno.test("a refused wait leaves the other stream unseen", () => {
  const { driver, streams } = clocks(1);
  driver.failNext("waitEvent", 1, "driver");
  assertThrows(() => streams.join(0, 1), DriverError);
  assertEquals(streams.isVisibleTo(0, 1, 0), false);
});
