// A request's body: within the limit, above it with and without declaring so, compressed, cut off, too slow.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { readBody } from "../../../kernel/http/readBody.ts"

type Body = ReadableStream<Uint8Array>

const streamOf = (...chunks: ReadonlyArray<Uint8Array>): Body =>
  new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    }
  })

const requestOf = (body: Body, headers: Record<string, string> = {}) =>
  HttpServerRequest.fromWeb(
    new Request("http://127.0.0.1/settle", { method: "POST", body, headers, duplex: "half" } as RequestInit)
  )

const read = (body: Body, headers?: Record<string, string>) => readBody(requestOf(body, headers), 8)

it.effect("joins the chunks of a body up to the limit", () =>
  Effect.gen(function* () {
    expect(yield* read(streamOf(new Uint8Array([1, 2, 3]), new Uint8Array([4, 5, 6, 7, 8])))).toEqual(
      new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8])
    )
    expect(yield* read(streamOf())).toEqual(new Uint8Array())
  })
)

it.effect("stops reading a body at the limit, regardless of Content-Length", () =>
  Effect.gen(function* () {
    let given = 0
    const endless: Body = new ReadableStream({
      pull: (controller) => {
        given += 1
        controller.enqueue(new Uint8Array(4))
      }
    })
    expect(yield* Effect.flip(read(endless))).toMatchObject({ status: 413 })
    expect(given).toBeLessThan(10)
    expect(yield* Effect.flip(read(streamOf(new Uint8Array(4)), { "content-length": "9" }))).toMatchObject({
      status: 413
    })
    expect(yield* Effect.flip(read(streamOf(new Uint8Array(9)), { "content-length": "4" }))).toMatchObject({
      status: 413
    })
  })
)

it.effect("refuses a compressed body", () =>
  Effect.gen(function* () {
    for (const encoding of ["gzip", "br", "identity, gzip"]) {
      expect(yield* Effect.flip(read(streamOf(new Uint8Array(1)), { "content-encoding": encoding }))).toMatchObject({
        status: 415
      })
    }
    expect(yield* read(streamOf(new Uint8Array(1)), { "content-encoding": "identity" })).toHaveLength(1)
  })
)

it.effect("waits ten seconds for a body and refuses a truncated one", () =>
  Effect.gen(function* () {
    const slow = yield* Effect.forkChild(Effect.flip(read(new ReadableStream({ start: () => undefined }))))
    yield* TestClock.adjust("10 seconds")
    expect(yield* Fiber.join(slow)).toMatchObject({ status: 400 })
    const broken: Body = new ReadableStream({ start: (controller) => controller.error(new Error("gone")) })
    expect(yield* Effect.flip(read(broken))).toMatchObject({ status: 400 })
  })
)
