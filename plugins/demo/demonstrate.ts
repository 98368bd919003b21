// The seller and the buyers: `GET /demo/weather` asks for payment as any seller does, `POST /demo/payments` makes a
// buyer with money, signs a payment by those very terms and returns it to the caller. The page at `/` shows the five
// steps of a payment with them. All keys here are worthless elsewhere.
import { Keypair } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Semaphore } from "effect"
import { Base64 } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import { Network } from "../../kernel/config/Network.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { LocalLedger } from "../ledger-local/contract.ts"
import { type DemoPayment, demoRoutes, type DemoRequired, paymentRoute, weatherRoute } from "./DemoWire.ts"
import { signPayment, type Terms } from "./signPayment.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Price, and balance of a new buyer, in atomic units. */
const price = 10_000n
const purse = 10_000_000n
/** Maximum buyers being made or waiting. */
const waitingMax = 10

const utf8 = new TextEncoder()

type DemoTerms = Terms & (typeof DemoRequired.Type)["accepts"][number]

const paymentRequired = (host: string, terms: DemoTerms): typeof DemoRequired.Type => ({
  x402Version: 2,
  error: "payment required",
  resource: {
    url: `http://${host}/demo/weather`,
    description: "The weather in Riga, made up: a demonstration",
    mimeType: "application/json"
  },
  accepts: [terms],
  extensions: {
    catalog: {
      info: {
        input: { type: "http", method: "GET" },
        output: { type: "json", example: { city: "Riga", celsius: 17 } }
      },
      schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { input: { type: "object" }, output: { type: "object" } },
        required: ["input"]
      }
    }
  }
})

const hostOf = ({ headers }: Request): string => headers["host"] ?? "127.0.0.1"
const away = (message: string) => json({ error: "temporarily_unavailable", message }, { status: 503 })

const addDemoRoutes = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const network = yield* Network
  const crypto = yield* Crypto
  const clock = yield* LedgerClock
  const oneAtATime = yield* Semaphore.make(1)
  let present = 0
  const usdc = [...network.assets.values()].find(({ symbol }) => symbol === "USDC")
  if (usdc === undefined) return
  const seller = Keypair.fromRawEd25519Seed(crypto.sha256(utf8.encode("tollkeeper demo seller"))).publicKey()
  yield* Effect.orDie(ledger.fund(seller, { usdcUnits: 0n }))
  const terms = {
    scheme: "exact",
    network: network.id,
    asset: usdc.contract,
    amount: price.toString(),
    payTo: seller,
    maxTimeoutSeconds: 300,
    extra: { areFeesSponsored: true }
  }

  const payment = Effect.fnUntraced(function* (request: Request) {
    const buyer = Keypair.fromRawEd25519Seed(crypto.randomBytes(32))
    yield* Effect.orDie(ledger.fund(buyer.publicKey(), { usdcUnits: purse }))
    const { time } = yield* clock.status
    const transaction = yield* signPayment(ledger, buyer, terms, time?.secondsPerLedger ?? 1)
    const { extensions, resource } = paymentRequired(hostOf(request), terms)
    return json({
      x402Version: 2 as const,
      buyer: buyer.publicKey(),
      paymentPayload: { x402Version: 2, payload: { transaction }, resource, accepted: terms, extensions },
      paymentRequirements: terms
    } satisfies typeof DemoPayment.Type)
  })

  const weather = (request: Request) =>
    Effect.sync(() => {
      const body = paymentRequired(hostOf(request), terms)
      return json(body, {
        status: 402,
        headers: { "payment-required": Base64.encode(utf8.encode(JSON.stringify(body))) }
      })
    })
  const payments = (request: Request) =>
    Effect.suspend(() => {
      if (present >= waitingMax) return Effect.succeed(away("too many buyers are being created; try again in a moment"))
      present += 1
      return payment(request).pipe(
        oneAtATime.withPermits(1),
        Effect.ensuring(Effect.sync(() => (present -= 1))),
        Effect.catchTag("LedgerRefuses", ({ message }) => Effect.succeed(away(message)))
      )
    })
  yield* addRoutes(demoRoutes, [route(weatherRoute, weather), route(paymentRoute, payments)])
})

export const layer = Layer.effectDiscard(addDemoRoutes)
