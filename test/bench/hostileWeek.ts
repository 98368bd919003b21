// A hostile week over HTTP: honest sellers of six kinds (a GET page, only POST, a tool, an origin that does not answer,
// signed by the paid account, documents) and free payers that verify declarations of twelve hostile kinds against them.
// At the end of each simulated day every honest listing is resolved and searched for by its own question. Facilitator,
// ledger, origins and search are real; a day is a round of declarations, payments and due probes.
import { NodeServices } from "@effect/platform-node"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { sellingPage, startOrigin } from "../plugins/catalog/startOrigin.ts"
import { eventually } from "../support/eventually.ts"
import {
  bodyDeclaration,
  declaring,
  explain,
  type Json,
  mcpDeclaration,
  queryDeclaration,
  resolve
} from "../plugins/catalog/support.ts"

export interface WeekOptions {
  readonly sellers: number
  readonly hostile: number
  readonly days: number
  readonly database?: "pglite" | "postgres"
}

/**
 * One day's honest listings: how many resolve with their own text, and how many are on the first page for their
 * question.
 */
export interface DayFigures {
  readonly right: number
  readonly first: number
  readonly lost: ReadonlyArray<string>
}

const things = [
  "tide",
  "orchard",
  "glacier",
  "violin",
  "passport",
  "bakery",
  "satellite",
  "beehive",
  "ferry",
  "archive"
]
const services = ["forecast by the hour", "photo appraisal", "price history", "route planner", "licence check"]
const kinds = ["page", "post", "tool", "silent", "signed", "documents"] as const

/** Seconds that probes and indexes have to catch up at a day's end. */
const triesMax = 15

interface Seller {
  readonly kind: (typeof kinds)[number]
  readonly url: string
  readonly account: Keypair
  readonly subject: string
  readonly description: string
  readonly extension: Json
}

const startSeller = Effect.fnUntraced(function* (facilitator: Facilitator, at: number) {
  const origin = yield* startOrigin
  const account = yield* facilitator.account()
  const kind = kinds[at % kinds.length]!
  const subject = `${things[at % things.length]} ${services[Math.floor(at / things.length) % services.length]}`
  const description = `Gives the ${subject}, for one request, as data.`
  const payTo = account.publicKey()
  const page = sellingPage({ payTo, asset: testnetUsdc, description, declaration: queryDeclaration() })
  const terms = { scheme: "exact", network: "ledger:testnet", asset: testnetUsdc, amount: "1000", payTo }
  const accepts = [{ ...terms, maxTimeoutSeconds: 300 }]
  if (kind === "page") origin.answers.set("/v1/get", page)
  if (kind === "post") origin.answers.set("/v1/get", ({ method }) => (method === "POST" ? page : { status: 404 }))
  if (kind === "documents")
    origin.answers.set("/.well-known/x402", {
      status: 200,
      body: { payTo, resources: [{ resource: "/v1/get", method: "POST", description, accepts }] }
    })
  const base = kind === "silent" || kind === "signed" ? `https://seller${at}.example.com` : origin.url
  const extension =
    kind === "tool"
      ? mcpDeclaration("get", { description })
      : kind === "page" || kind === "signed"
        ? queryDeclaration()
        : bodyDeclaration()
  return { kind, url: `${base}/v1/get`, account, subject, description, extension } satisfies Seller
})

const padding = (at: number): string =>
  Array.from({ length: 8 }, (_, word) => createHash("md5").update(`${at} ${word}`).digest("hex").replace(/[0-9]/g, "z"))
    .map((text) => text.slice(0, 9))
    .join(" ")

/** One hostile declaration; the kinds take turns. */
const hostileOf = (seller: Seller, mine: string, at: number, subjects: string): Json => {
  const { account, description, url } = seller
  const payTo = account.publicKey()
  const nowhere = `https://nowhere${at}.example.net/v1`
  const [base, host] = [new URL(url).origin, new URL(url).host.replace(/\W/g, "-")]
  const copy = { payTo: mine, url: nowhere, about: { description } }
  const variants: ReadonlyArray<() => Json> = [
    () => ({ payTo, url, about: { description: `Lies ${at}` } }),
    () => ({ payTo, url, amount: 90_000_000n, about: { description: `Dear ${at}` }, extension: bodyDeclaration() }),
    () => ({ payTo: mine, url, about: { description } }),
    () => ({ payTo: mine, url: `${base}/v1/x${at}`, extension: queryDeclaration({ routeTemplate: "/v1/:any" }) }),
    () => ({ payTo: mine, url: `${base}/v1/GET`, about: { description } }),
    () => ({ payTo: mine, url: `${url};x=${at}`, about: { description } }),
    () => copy,
    () => ({ ...copy, about: { description: `${padding(at)} ${description} ${padding(-at)}` } }),
    () => ({ ...copy, extension: bodyDeclaration() }),
    () => ({ ...copy, extension: mcpDeclaration("get", { description }) }),
    () => ({ ...copy, about: { description: subjects } }),
    () => ({ ...copy, url: `https://${host}.example.org/v1/get`, about: { description, serviceName: "The original" } })
  ]
  return variants[at % variants.length]!()
}

const sign = (key: Keypair, text: string): string =>
  Buffer.from(key.sign(createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest())).toString("base64")

const run = Effect.fnUntraced(function* ({ database = "pglite", days, hostile, sellers: count }: WeekOptions) {
  const facilitator = yield* startFacilitator({
    database,
    closeMillis: 1_000,
    set: ["catalog_security.probe_pause_seconds=0"]
  })
  const buyers = yield* Effect.forEach([1, 2, 3], () => facilitator.account())
  const payers = yield* Effect.forEach(Array.from({ length: Math.ceil(hostile / 20) }), () => facilitator.account())
  const sellers = yield* Effect.forEach(Array.from({ length: count }), (_, at) => startSeller(facilitator, at))
  const subjects = sellers
    .map(({ subject }) => subject)
    .join(", ")
    .slice(0, 3_000)

  const pay = Effect.fnUntraced(function* (seller: Seller, buyer: Keypair) {
    const { account, description, extension, kind, url } = seller
    const one = { payer: buyer, payTo: account.publicKey(), url, about: { description }, extension }
    const body = yield* declaring(facilitator, one)
    // Busy and pending are retried with the same payment, as a seller does.
    yield* eventually(facilitator.settle(body), ({ json }) => json.success === true)
    if (kind !== "signed") return
    // A settled payment is shown; the account signs its hash.
    const explained = yield* eventually(explain(facilitator, url), ({ listings }) => listings[0]?.version > 0)
    const signature = sign(account, explained["listings"][0].versionHash)
    yield* facilitator.verify(yield* declaring(facilitator, { ...one, extension: { ...extension, signature } }))
  })
  const attack = (at: number) =>
    Effect.gen(function* () {
      const payer = payers[at % payers.length]!
      const mine = payers[(at + 1) % payers.length]!.publicKey()
      // Each kind meets each seller in turn.
      const seller = sellers[Math.floor(at / 12) % count]!
      const body = yield* declaring(facilitator, { payer, payTo: mine, ...hostileOf(seller, mine, at, subjects) })
      yield* facilitator.verify(body)
    })
  const isRight = ({ account, description, kind, url }: Seller) =>
    Effect.map(resolve(facilitator, url, kind === "tool" ? "get" : undefined), ({ json }) => {
      const found = json.resource as Json | undefined
      const [option] = found?.["accepts"] ?? []
      return found?.["description"] === description && option.payTo === account.publicKey() && option.amount === "1000"
    })
  const isFirst = ({ subject, url }: Seller) =>
    Effect.map(facilitator.ask(`/discovery/search?${new URLSearchParams({ query: subject })}`), ({ json }) =>
      (json.resources as ReadonlyArray<Json>).some((one) => one["resource"] === url)
    )

  const figures: Array<DayFigures> = []
  for (let day = 0; day < days; day++) {
    const from = Math.floor((day * hostile) / days)
    const until = Math.floor(((day + 1) * hostile) / days)
    const attacks = Array.from({ length: until - from }, (_, at) => from + at)
    yield* Effect.forEach(attacks, attack, { concurrency: 8, discard: true })
    const paid = sellers.filter((_, at) => day === 0 || at % days === day)
    yield* Effect.forEach(paid, (seller) => pay(seller, buyers[day % buyers.length]!), {
      concurrency: 4,
      discard: true
    })
    // Two rounds of probes, as on a real day. Afterwards the indexes contain the changes.
    for (const _ of [1, 2]) {
      yield* facilitator.sql`update catalog_probes set due_at = now()`
      yield* Effect.sleep("5 seconds")
    }
    const seen = Effect.forEach(sellers, (seller) => Effect.all([isRight(seller), isFirst(seller)]))
    let states = yield* seen
    for (let tries = 0; tries < triesMax && !states.every(([right, first]) => right && first); tries++) {
      yield* Effect.sleep("1 second")
      states = yield* seen
    }
    const lost = sellers.flatMap(({ kind, url }, at) => {
      const [right, first] = states[at]!
      return right && first ? [] : [`${kind} ${url}${right ? "" : " not right"}${first ? "" : " not on the page"}`]
    })
    const [right, first] = [0, 1].map((which) => states.filter((state) => state[which]).length)
    figures.push({ right: right!, first: first!, lost })
  }
  return figures as ReadonlyArray<DayFigures>
})

export const hostileWeek = (options: WeekOptions): Promise<ReadonlyArray<DayFigures>> =>
  Effect.runPromise(Effect.scoped(run(options)).pipe(Effect.provide(NodeServices.layer), Effect.orDie))
