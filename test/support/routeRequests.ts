// The most expensive known requests of each route, over a facilitator with a long history. A route without parameters
// needs no entry: it is requested as declared, with the largest page.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { channelIdIn, placeOf, signerOf, signVoucher } from "../../examples/batch/vouchers.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { Facilitator } from "./facilitator.ts"
import { eventually } from "./eventually.ts"
import type { Asked } from "./routeCosts.ts"

export const keys = { shop: "0123456789abcdef-shop", ops: "0123456789abcdef-operator" }

/** Requests of a route, one for each round; a route's status is 2xx unless one is expected here. */
export interface Case {
  readonly asked: (round: number) => Asked
  readonly status?: number
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}`, "content-type": "application/json" })
const network = "stellar:testnet"
const state = { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }

const post =
  (path: string, body: (round: number) => unknown, headers: Record<string, string> = bearer(keys.shop)) =>
  (round: number): Asked => ({ path, init: { method: "POST", headers, body: JSON.stringify(body(round)) } })

const get =
  (path: string, headers: Record<string, string> = bearer(keys.ops)) =>
  (): Asked => ({ path, init: { headers } })

const signed = (pair: Keypair, challenge: string): string =>
  Buffer.from(pair.sign(createHash("sha256").update(`Stellar Signed Message:\n${challenge}`).digest())).toString(
    "base64"
  )

/** A channel's steps at the store, each round over its own channel. */
const channelCases = Effect.fnUntraced(function* (facilitator: Facilitator, rounds: number) {
  const ask = (path: string, body: object) =>
    Effect.map(
      facilitator.ask(`/batch/v1/${path}`, {
        method: "POST",
        headers: bearer(keys.shop),
        body: JSON.stringify({ network, ...body })
      }),
      ({ json }) => json
    )
  const { receiverAuthorizer } = yield* ask("authorizer", {})
  const { kinds } = (yield* facilitator.ask("/supported", { headers: bearer(keys.shop) })).json
  const { batchContract } = kinds.find((one: any) => one.scheme === "batch-settlement").extra
  const channels = Array.from({ length: rounds }, () => {
    const signer = signerOf(Keypair.random().secret())
    const channelConfig = {
      payer: signer.address,
      payerAuthorizer: signer.address,
      receiver: Keypair.random().publicKey(),
      receiverAuthorizer,
      token: testnetUsdc,
      withdrawDelay: 900,
      salt: "00".repeat(32)
    }
    const channelId = channelIdIn(network, batchContract, channelConfig)
    const voucherOf = (max: bigint) => signVoucher(signer, placeOf(network, batchContract), channelId, max)
    return { channelId, channelConfig, voucherOf }
  })
  const step = (path: string, body: (channel: (typeof channels)[number]) => object): Case => ({
    asked: post(`/batch/v1/${path}`, (round) => ({ network, ...body(channels[round]!) }))
  })
  const payment = "request-0123456789"
  return {
    "POST /batch/v1/channels/reserve": step("channels/reserve", ({ channelConfig, voucherOf }) => ({
      payment,
      channelConfig,
      voucher: voucherOf(100n),
      price: "100",
      state,
      ttlSeconds: 60
    })),
    "POST /batch/v1/channels/charge": step("channels/charge", ({ channelId }) => ({
      payment,
      channelId,
      amount: "60"
    })),
    "POST /batch/v1/channels/release": step("channels/release", ({ channelId }) => ({ payment, channelId })),
    "POST /batch/v1/channels/sync": step("channels/sync", ({ channelId }) => ({
      channelId,
      state: { ...state, balance: "2000", onchainSyncedAt: Date.now() }
    })),
    "POST /batch/v1/channels/read": step("channels/read", () => ({})),
    "POST /batch/v1/channels/export": step("channels/export", () => ({})),
    "POST /batch/v1/authorizer": step("authorizer", () => ({})),
    "POST /batch/v1/policy": step("policy", () => ({ token: testnetUsdc, claimEverySeconds: 60 })),
    "POST /batch/v1/channels/refund": {
      status: 409,
      ...step("channels/refund", ({ channelId, voucherOf }) => ({ payment, channelId, voucher: voucherOf(60n) }))
    }
  } satisfies Record<string, Case>
})

/** Payments: the first rounds verify them, later rounds settle them. */
const paymentCases = Effect.fnUntraced(function* (facilitator: Facilitator, rounds: number, payTo: string) {
  const payer = yield* facilitator.account()
  const catalog = {
    info: { input: { type: "http", method: "GET" }, output: { type: "json", example: {} } },
    schema: { type: "object" }
  }
  const bodies = yield* Effect.forEach(Array.from({ length: 2 * rounds + 1 }), (_, at) =>
    Effect.map(
      facilitator.payment({
        payer,
        payTo,
        amount: 10_000n,
        resourceUrl: `https://costs.example/${at}`,
        extensions: { catalog, "payment-identifier": { info: { id: `costs-0123456789-${at}` } } }
      }),
      ({ body }) => body
    )
  )
  const terms = {
    scheme: "exact",
    network,
    amount: "10000",
    asset: testnetUsdc,
    payTo,
    maxTimeoutSeconds: 300,
    extra: { areFeesSponsored: true }
  }
  const settled = yield* facilitator.settle(bodies.pop(), bearer(keys.shop))
  return {
    hash: settled.json.transaction as string,
    cases: {
      "POST /verify": { asked: post("/verify", (round) => bodies[round]) },
      "POST /settle": { asked: post("/settle", (round) => bodies[rounds + round]) },
      "POST /prepare": {
        asked: post("/prepare", () => ({ x402Version: 2, paymentRequirements: terms, payer: payer.publicKey() }))
      }
    } satisfies Record<string, Case>
  }
})

/** The challenges of accounts, and the answers to them. */
const accountCases = Effect.fnUntraced(function* (facilitator: Facilitator, seller: Keypair, hash: string) {
  const account = seller.publicKey()
  const page = { "content-type": "application/json", "x-tollkeeper-page": "1" }
  const challengeAt = (path: string) =>
    Effect.map(
      facilitator.ask(path, { method: "POST", headers: page, body: JSON.stringify({ account }) }),
      ({ json }): string => json.challenge
    )
  const session = yield* challengeAt("/dashboard/account/challenge")
  const receipts = yield* challengeAt("/receipts/challenge")
  const opened = yield* facilitator.ask("/dashboard/account", {
    method: "POST",
    headers: page,
    body: JSON.stringify({ account, challenge: session, signature: signed(seller, session) })
  })
  const cookie = { cookie: opened.headers.get("set-cookie")!.split(";", 1)[0]! }
  const fresh = yield* challengeAt("/dashboard/account/challenge")
  const answer = { account, challenge: fresh, signature: signed(seller, fresh) }
  return {
    "POST /dashboard/account/challenge": { asked: post("/dashboard/account/challenge", () => ({ account }), page) },
    // Each challenge opens one session.
    "POST /dashboard/account": { asked: post("/dashboard/account", () => answer, page) },
    "POST /dashboard/session": { asked: post("/dashboard/session", () => ({ key: keys.shop }), page) },
    "GET /dashboard/account": { asked: get("/dashboard/account", cookie) },
    "GET /analytics/v1/account": { asked: get("/analytics/v1/account?days=0", cookie) },
    "GET /analytics/v1/account/transactions": {
      asked: get("/analytics/v1/account/transactions?days=0&limit=200", cookie)
    },
    "GET /catalog/v1/account": { asked: get("/catalog/v1/account", cookie) },
    "POST /receipts/challenge": { asked: post("/receipts/challenge", () => ({ account }), page) },
    "POST /receipts/:hash": {
      asked: post(
        `/receipts/${hash}?proof=1`,
        () => ({ account, challenge: receipts, signature: signed(seller, receipts) }),
        page
      )
    },
    "POST /catalog/v1/challenge": { asked: post("/catalog/v1/challenge", () => ({ payTo: account })) }
  } satisfies Record<string, Case>
})

const encoded = (url: string): string => encodeURIComponent(url)

/** Cases by method and path. `rows`: ids in the filled history. */
export const makeCases = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  rounds: number,
  rows: { readonly buyer: string; readonly seller: string; readonly settlement: string; readonly hash: string }
) {
  const seller = yield* facilitator.account()
  const { cases: payments, hash } = yield* paymentCases(facilitator, rounds, seller.publicKey())
  const listed = `https://costs.example/${2 * rounds}`
  yield* eventually(
    facilitator.ask(`/discovery/resource?type=http&url=${encoded(listed)}`),
    ({ status }) => status === 200
  )
  const words = Array.from({ length: 40 }, (_, at) => `weather${at}`).join(" ")
  const report = (path: string) => get(`/analytics/v1${path}?days=0&limit=1000`)
  const place = (role: string, address: string) => [
    [`GET /analytics/v1/${role}s`, report(`/${role}s`)],
    [`GET /analytics/v1/${role}s/:address`, report(`/${role}s/${address}`)],
    [`GET /analytics/v1/${role}s/:address/transactions`, report(`/${role}s/${address}/transactions`)],
    [`GET /analytics/v1/${role}s/:address/counterparties`, report(`/${role}s/${address}/counterparties`)]
  ]
  const gets = Object.fromEntries(
    [
      ...place("buyer", rows.buyer),
      ...place("seller", rows.seller),
      ["GET /analytics/v1/sellers/:address/resources", report(`/sellers/${rows.seller}/resources`)],
      ["GET /analytics/v1/overview/timeseries", get("/analytics/v1/overview/timeseries?days=0&bucket=hour")],
      ["GET /analytics/v1/transactions/:hash", report(`/transactions/${rows.hash}`)],
      ...["", "/observability", "/invocations"].map((part) => [
        `GET /analytics/v1/resources/:id${part}`,
        report(`/resources/1${part}`)
      ]),
      ["GET /analytics/v1/find", get("/analytics/v1/find?q=example")],
      ["GET /settlements", get(`/settlements?hash=${hash}`, bearer(keys.shop))],
      ["GET /settlements/events", get("/settlements/events?after=0", bearer(keys.shop))],
      ["GET /discovery/resources", get("/discovery/resources?limit=1000&include_unverified=true&type=http")],
      ["GET /discovery/resource", get(`/discovery/resource?type=http&url=${encoded(listed)}`)],
      ["GET /discovery/history", get(`/discovery/history?resource=${encoded(listed)}`)],
      ["GET /discovery/facets", get(`/discovery/facets?query=${encoded(words)}`)],
      ["GET /discovery/feed", get(`/discovery/feed?query=${encoded(words)}`)],
      ["GET /discovery/search", get(`/discovery/search?limit=200&matches=1&query=${encoded(words)}`)],
      ["GET /catalog/v1/observations", get(`/catalog/v1/observations?url=${encoded(listed)}`)],
      ...["listing", "calls", "uptime"].map((kind) => [
        `GET /badge/${kind}.svg`,
        get(`/badge/${kind}.svg?url=${encoded(listed)}&payTo=${seller.publicKey()}`)
      ]),
      ["GET /receipts/:hash", get(`/receipts/${hash}?proof=1`, bearer(keys.shop))],
      ["GET /log/:epoch/checkpoint", get("/log/1/checkpoint")],
      ["GET /dashboard/v1/settlements/:id", get(`/dashboard/v1/settlements/${rows.settlement}`)],
      ["GET /dashboard/v1/statement", get("/dashboard/v1/statement?month=2026-11")],
      ["GET /dashboard/web/:file", get("/dashboard/web/style.css")],
      ["GET /dashboard/library/:file", get("/dashboard/library/api.js")],
      ["GET /examples/receipts/:file", get("/examples/receipts/check.mjs")],
      ["GET /supported", get("/supported", bearer(keys.shop))],
      ["GET /metrics", get("/metrics")]
    ].map(([route, asked]) => [route, { asked }])
  ) as Record<string, Case>
  const refusedBy = (status: number, asked: Case["asked"]): Case => ({ asked, status })
  return {
    ...gets,
    "GET /demo/weather": refusedBy(402, get("/demo/weather")),
    "GET /log/tile/*": refusedBy(404, get("/log/tile/0/000")),
    "GET /log/:epoch/tile/*": refusedBy(404, get("/log/1/tile/0/000")),
    "POST /catalog/v1/moves": {
      asked: post(
        "/catalog/v1/moves",
        (round) => ({ url: `https://costs.example/${round}`, move: "quarantine", note: "measured" }),
        bearer(keys.ops)
      )
    },
    "POST /catalog/v1/look": {
      asked: (round: number) => ({
        path: `/catalog/v1/look?origin=http://127.0.0.1:${9 + round}`,
        init: { method: "POST", headers: bearer(keys.shop) }
      })
    },
    "POST /dashboard/v1/moves": {
      asked: post(
        "/dashboard/v1/moves",
        (round) => ({ move: "limit", name: "verify_per_second", value: String(100 + round), note: "measured" }),
        bearer(keys.ops)
      )
    },
    ...payments,
    ...(yield* channelCases(facilitator, rounds)),
    ...(yield* accountCases(facilitator, seller, hash))
  }
})
