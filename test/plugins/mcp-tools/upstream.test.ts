// How long the body of a request that pays may take: nine tenths of its time from its beginning, waiting included.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { Config, type ConfigValues } from "../../../plugins/mcp-tools/Config.ts"
import { Upstreams } from "../../../plugins/mcp-tools/Upstream.ts"

const caps = { responseBytesMax: 1_000, timeoutMillis: 10_000, redirectsMax: 0, jsonDepthMax: 8, connectionsMax: 3 }

it.effect("a paid body's time counts from the call, whatever it waits for a connection or a name", () =>
  Effect.gen(function* () {
    const given: Array<number | undefined> = []
    const outbound = Outbound.of({
      resolve: () => Effect.as(Effect.sleep("1 second"), ["93.184.216.34"]),
      texts: () => Effect.die("must not be called"),
      send: ({ partMillis }) =>
        Effect.suspend(() => {
          given.push(partMillis)
          return Effect.as(Effect.sleep("2 seconds"), { status: 200, headers: {}, body: new Uint8Array() })
        })
    })
    const { within } = yield* Upstreams.pipe(
      Effect.provide(Upstreams.layer),
      Effect.provide(
        Layer.merge(Layer.succeed(Outbound, outbound), Layer.succeed(Config, { caps } as unknown as ConfigValues))
      )
    )
    const { fetch } = within({ allowLocal: false, allowPlain: false, isStranger: true })
    const request = { method: "GET", headers: {} }
    const send = (keepsPart: boolean) =>
      Effect.forkChild(fetch(new URL("https://seller.example.com/x"), { ...request, keepsPart }))
    const sent = [yield* send(true), yield* send(true), yield* send(false)]
    yield* TestClock.adjust("9 seconds")
    yield* Fiber.joinAll(sent)
    expect(given).toEqual([8_000, 5_000, undefined])
  })
)

it.effect.each(["http", "stdio"] as const)(
  "a seller that hangs delays no other seller of its agent over %s",
  (transport) =>
    Effect.gen(function* () {
      const outbound = Outbound.of({
        resolve: () => Effect.succeed(["93.184.216.34"]),
        texts: () => Effect.die("must not be called"),
        send: ({ url }) =>
          url.includes("hanging.example")
            ? Effect.never
            : Effect.succeed({ status: 200, headers: {}, body: new Uint8Array() })
      })
      const settings = { caps: { ...caps, connectionsMax: 6 }, transport } as unknown as ConfigValues
      const { within } = yield* Upstreams.pipe(
        Effect.provide(Upstreams.layer),
        Effect.provide(Layer.merge(Layer.succeed(Outbound, outbound), Layer.succeed(Config, settings)))
      )
      const { fetch } = within({ allowLocal: false, allowPlain: false, isStranger: true })
      const send = (host: string) => fetch(new URL(`https://${host}/x`), { method: "GET", headers: {} })
      for (let n = 0; n < 6; n++) yield* Effect.forkChild(send("hanging.example"))
      yield* TestClock.adjust("1 second")
      const other = yield* Effect.forkChild(send("other.example"))
      yield* TestClock.adjust("1 second")
      expect(other.pollUnsafe()).toMatchObject({ _tag: "Success" })
    })
)
