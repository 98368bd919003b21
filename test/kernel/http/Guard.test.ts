// The outermost wrapper: whatever happens inside, a client gets JSON in the shape of its route, and nothing of the
// fault.
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Logger, References } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { guard } from "../../../kernel/http/Guard.ts"

const ask = (path: string, handler: Effect.Effect<HttpServerResponse.HttpServerResponse, unknown>) =>
  guard(handler).pipe(
    Effect.provideService(
      HttpServerRequest.HttpServerRequest,
      HttpServerRequest.fromWeb(new Request(`http://127.0.0.1${path}`, { method: "POST" }))
    )
  )

const bodyOf = (response: HttpServerResponse.HttpServerResponse): Promise<any> =>
  HttpServerResponse.toWeb(response).json()

describe("guard", () => {
  for (const [what, fault] of [
    ["a defect", Effect.die(new Error("the secret of the house"))],
    ["an error nobody expected", Effect.fail({ _tag: "Odd", text: "the secret of the house" })],
    ["a defect that is no Error", Effect.die("the secret of the house")],
    [
      "an exception",
      Effect.sync(() => {
        throw new Error("the secret of the house")
      })
    ]
  ] as const) {
    it.effect(`answers ${what} in the payment's shape, with a trace id and nothing else of it [S52, S55, S58]`, () =>
      Effect.gen(function* () {
        const verified = yield* ask("/verify?x=1", fault)
        expect(verified.status).toBe(500)
        const body = yield* Effect.promise(() => bodyOf(verified))
        expect(body).toEqual({
          isValid: false,
          invalidReason: "internal_error",
          invalidMessage: expect.any(String),
          traceId: expect.stringMatching(/^[0-9a-f]{32}$/)
        })
        const settled = yield* Effect.flatMap(ask("/settle", fault), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(settled).toMatchObject({ success: false, transaction: "", network: "", errorReason: "internal_error" })
        const slashed = yield* Effect.flatMap(ask("//verify/", fault), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(slashed).toEqual({ ...body, traceId: slashed.traceId })
        const other = yield* Effect.flatMap(ask("/supported", fault), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(other).toMatchObject({ error: "internal_error", traceId: expect.any(String) })
        expect(JSON.stringify([body, settled, other])).not.toContain("secret")
      })
    )
  }

  it.effect(
    "logs one line a request, without query, body or header, and the trace id beside a defect [S253, S258]",
    () => {
      const lines: Array<{ message: unknown; annotations: Record<string, unknown> }> = []
      const logger = Logger.make<unknown, void>(({ fiber, message }) => {
        lines.push({ message, annotations: { ...fiber.getRef(References.CurrentLogAnnotations) } })
      })
      return Effect.gen(function* () {
        yield* ask("/settlements?identifier=a-private-word", Effect.succeed(HttpServerResponse.empty({ status: 204 })))
        expect(lines).toEqual([
          {
            message: ["request"],
            annotations: {
              method: "POST",
              path: "/settlements",
              status: 204,
              milliseconds: expect.any(Number),
              traceId: expect.stringMatching(/^[0-9a-f]{32}$/)
            }
          }
        ])
        yield* ask("/settle", Effect.die("boom"))
        expect(lines[1]?.annotations).toEqual({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/), path: "/settle" })
        expect(JSON.stringify(lines)).not.toContain("private")
      }).pipe(Effect.provide(Logger.layer([logger])))
    }
  )

  it.effect("lets the interruption of a client that hung up pass as what it is", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(ask("/settle", Effect.interrupt))
      expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
    })
  )
})
