// Answers in pages: bounded in space and time, and each caller has its share.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Config, type ConfigValues } from "../../../plugins/mcp-tools/Config.ts"
import { Pages } from "../../../plugins/mcp-tools/server/Pages.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"

const answers = { pagesLengthMax: 100, pagesMillis: 60_000, pageBytesMax: 1_000 }
const layer = Pages.layer.pipe(
  Layer.provide(Layer.merge(Layer.succeed(Config, { answers } as unknown as ConfigValues), NodeCrypto.layer))
)

it.effect("a caller that fills the space for pages drops only its own", () =>
  Effect.gen(function* () {
    const { put, read } = yield* Pages
    const text = (name: string) => name.padEnd(40)
    const quiet = yield* put("quiet", text("quiet"), undefined)
    const flood = yield* Effect.forEach(["one", "two", "three"], (name) => put("flood", text(name), undefined))
    const isThere = (principal: string, uri: string) => Effect.map(read(principal, uri), (page) => page !== undefined)
    expect(yield* Effect.forEach(flood, (uri) => isThere("flood", uri))).toEqual([false, false, true])
    expect([yield* isThere("quiet", quiet), yield* isThere("flood", quiet)]).toEqual([true, false])
    yield* put("flood", "x".repeat(200), undefined)
    expect(yield* isThere("quiet", quiet)).toBe(true)
    yield* TestClock.adjust("61 seconds")
    expect(yield* isThere("quiet", quiet)).toBe(false)
  }).pipe(Effect.provide(layer))
)
