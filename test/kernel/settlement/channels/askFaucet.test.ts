// The faucet that funds a sponsor of development: asked with the sponsor's address, never waited for without end.
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { askFaucet, faucetTimeout } from "../../../../kernel/settlement/channels/reconcileChannels.ts"

const faucet = "http://127.0.0.1:1/friendbot"

const asking = (answer: Parameters<typeof HttpClient.make>[0]) =>
  askFaucet(faucet, "GSPONSOR").pipe(Effect.provideService(HttpClient.HttpClient, HttpClient.make(answer)))

describe("a faucet", () => {
  it.effect("asks a faucet once for the address", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      yield* asking((request, url) => {
        asked.push(String(url))
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("", { status: 400 })))
      })
      expect(asked).toEqual([`${faucet}?addr=GSPONSOR`])
    })
  )

  it.effect("waits ten seconds for a silent faucet", () =>
    Effect.gen(function* () {
      let isLeft = false
      const waiting = yield* Effect.forkChild(
        asking(() => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isLeft = true)))),
        { startImmediately: true }
      )
      yield* TestClock.adjust(Duration.subtract(faucetTimeout, Duration.millis(1)))
      expect([waiting.pollUnsafe(), isLeft]).toEqual([undefined, false])
      yield* TestClock.adjust("1 millis")
      for (let turns = 0; turns < 10; turns++) yield* Effect.yieldNow
      expect([waiting.pollUnsafe()?._tag, isLeft]).toEqual(["Success", true])
      yield* Fiber.interrupt(waiting)
    })
  )

  it.effect("an unavailable faucet fails nothing", () =>
    asking((request) =>
      Effect.fail(
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.TransportError({ request, cause: "refused" })
        })
      )
    )
  )
})
