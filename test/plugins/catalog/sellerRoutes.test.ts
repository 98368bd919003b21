// A seller's routes: who may request a challenge, which bodies are read, and the answers to a probe.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AccountSignatures } from "../../../kernel/accounts/AccountSignatures.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Authentication, type Principal } from "../../../kernel/http/Authentication.ts"
import { OpenApi } from "../../../kernel/http/OpenApi.ts"
import { type Collected, collectingRouter } from "../../../kernel/plugin/Routes.ts"
import { addSellerRoutes } from "../../../plugins/catalog/administration/SellerRoutes.ts"
import { Challenges } from "../../../plugins/catalog/ownership/Challenges.ts"
import { OriginProbes } from "../../../plugins/catalog/ownership/OriginProbes.ts"
import { Recipients } from "../../../plugins/catalog/ownership/Recipients.ts"
import { layerTest } from "../../support/layerTest.ts"

const seller: Principal = { owner: "key:seller", source: "key:seller", keyed: true }
const payTo = "GSELLER"
const signed = { payTo, challenge: "the challenge", signature: "by the seller" }

/** The routes for a caller, and the recipients that were bound. */
const world = (caller: Principal | undefined, host: string | undefined = "pay.example") => {
  const bound: Array<string> = []
  const layer = Layer.mergeAll(
    OpenApi.layer,
    layerTest(Authentication, {
      authenticate: () => Option.fromUndefinedOr(caller),
      challengeHost: () => host
    }),
    layerTest(AccountSignatures, { canSign: (account) => account === payTo }),
    layerTest(Network, { id: "ledger:testnet" }),
    layerTest(Challenges, {
      make: (_, account, { host }) =>
        Effect.succeed(
          host === "bad host"
            ? undefined
            : { challenge: `${account} at ${host}`, authorization: undefined, expiresAt: new Date(0) }
        ),
      isAnswered: (_principal, _payTo, _place, challenge, signature) =>
        Effect.succeed(challenge === signed.challenge && signature === signed.signature)
    }),
    layerTest(Recipients, {
      bind: (_, account) => Effect.sync(() => bound.push(account) === 1)
    }),
    layerTest(OriginProbes, {
      probe: (origin) =>
        Effect.succeed(
          origin === "" ? { _tag: "Refused" as const, detail: "no URL" } : { _tag: "Later" as const, seconds: 7 }
        )
    })
  )
  const send = (path: string, body?: unknown) =>
    Effect.gen(function* () {
      const collected: Array<Collected> = []
      yield* addSellerRoutes.pipe(Effect.provideService(HttpRouter.HttpRouter, collectingRouter(collected)))
      const [route] = collected.flatMap(({ routes }) => routes).filter((one) => path.startsWith(one.path))
      const init = { method: "POST", ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
      const request = HttpServerRequest.fromWeb(new Request(`http://pay.example${path}`, init))
      const response = yield* route!.handler.pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, request)
      ) as Effect.Effect<HttpServerResponse.HttpServerResponse>
      const web = HttpServerResponse.toWeb(response)
      return { status: web.status, json: (yield* Effect.promise(() => web.json())) as any, headers: web.headers }
    }).pipe(Effect.scoped, Effect.provide(layer))
  return { ask: (body: unknown) => send("/catalog/v1/challenge", body), bound, send }
}

it.effect("a key receives a challenge, and its signature binds the recipient", () => {
  const { ask, bound } = world(seller)
  return Effect.gen(function* () {
    const made = yield* ask({ payTo })
    expect([made.status, made.json]).toEqual([
      200,
      { payTo, challenge: "GSELLER at pay.example", expiresAt: "1970-01-01T00:00:00.000Z" }
    ])
    expect((yield* ask({ ...signed, signature: "by another" })).status).toBe(403)
    expect(bound).toEqual([])
    expect((yield* ask(signed)).json).toEqual({ payTo, grade: "declared" })
    // The second one is beyond the limit here.
    const full = yield* ask(signed)
    expect([full.status, full.json.details]).toEqual([403, ["this key has reached its limit of recipients"]])
  })
})

it.effect("a challenge requires a key, a listed host, and a valid name", () =>
  Effect.gen(function* () {
    const statusFor = (caller: Principal | undefined, host?: string) =>
      Effect.map(world(caller, host).ask({ payTo }), ({ status }) => status)
    expect(yield* statusFor(undefined)).toBe(401)
    const keyless = yield* world({ owner: "anonymous", source: "ip:203.0.113.7", keyed: false }).ask({ payTo })
    expect([keyless.status, keyless.json.details[0]]).toEqual([403, expect.stringContaining("FACILITATOR_API_KEYS")])
    expect(yield* statusFor(seller, "bad host")).toBe(400)
  })
)

it.effect("only a whole body of the right types is read", () => {
  const { ask, bound } = world(seller)
  const { challenge, signature } = signed
  const wrong = [
    undefined,
    null,
    7,
    "text",
    [],
    {},
    { payTo: 7 },
    { payTo: "GOTHER" },
    { payTo, challenge },
    { payTo, signature },
    { payTo, challenge, signature: 7 },
    { payTo, challenge: 7, signature }
  ]
  return Effect.gen(function* () {
    for (const body of wrong) expect((yield* ask(body)).status, JSON.stringify(body)).toBe(400)
    expect(bound).toEqual([])
  })
})

it.effect("a probe's refusal and its wait reach the caller", () =>
  Effect.gen(function* () {
    const { send } = world(seller)
    const refused = yield* send("/catalog/v1/look")
    expect([refused.status, refused.json.details]).toEqual([400, ["origin: no URL"]])
    const later = yield* send("/catalog/v1/look?origin=https://shop.example.com")
    expect([later.status, later.headers.get("retry-after")]).toEqual([429, "7"])
    expect((yield* world(undefined).send("/catalog/v1/look")).status).toBe(401)
  })
)
