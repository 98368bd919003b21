import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import { layer } from "../../../runtime/platform/nodeListeners.ts"

const local = { host: "127.0.0.1", port: 0, bodyBytesMax: 1_000 }
const get = (port: number, init?: RequestInit) => Effect.promise(() => fetch(`http://127.0.0.1:${port}/a?b=c`, init))

describe("nodeListeners", () => {
  it.live("hands over method, URL, headers and body, and sends the answer back", () =>
    Effect.gen(function* () {
      const listeners = yield* Listeners
      const { port } = yield* listeners.open(local, (request) =>
        Effect.promise(
          async () =>
            new Response(
              `${request.method} ${new URL(request.url).search} ${request.headers.get("x-mine")} ` +
                `${await request.text()}`,
              {
                status: 201,
                headers: { "x-yours": "2" }
              }
            )
        )
      )
      const answer = yield* get(port, { method: "POST", body: "hello", headers: { "x-mine": "1" } })
      expect(answer.status).toBe(201)
      expect(answer.headers.get("x-yours")).toBe("2")
      expect(yield* Effect.promise(() => answer.text())).toBe("POST ?b=c 1 hello")
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("answers 413 to a large body and 500 to a dying handler", () =>
    Effect.gen(function* () {
      const listeners = yield* Listeners
      const { port } = yield* listeners.open(local, () => Effect.die("boom"))
      expect((yield* get(port, { method: "POST", body: "x".repeat(1_001) })).status).toBe(413)
      expect((yield* get(port)).status).toBe(500)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("names the port that is already taken", () =>
    Effect.gen(function* () {
      const listeners = yield* Listeners
      const { port } = yield* listeners.open(local, () => Effect.succeed(new Response("")))
      const error = yield* Effect.flip(listeners.open({ ...local, port }, () => Effect.succeed(new Response(""))))
      expect(error).toMatchObject({ _tag: "ListenFailed", port })
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("closes with its scope and interrupts what is still being answered", () =>
    Effect.gen(function* () {
      const listeners = yield* Listeners
      const scope = yield* Scope.make()
      const started = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const { port } = yield* listeners
        .open(local, () =>
          Deferred.succeed(started, undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
        )
        .pipe(Scope.provide(scope))
      const request = get(port).pipe(Effect.exit)
      const fiber = yield* Effect.forkChild(request)
      yield* Deferred.await(started)
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.await(interrupted)
      yield* Effect.sync(() => fiber.interruptUnsafe())
      const after = yield* Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/`)).pipe(Effect.exit)
      expect(Exit.isFailure(after)).toBe(true)
    }).pipe(Effect.provide(layer))
  )
})
