// Requests to an origin for its statement on its resources. They read its well-known document, once for all resources
// and cached; then the live 402 of a resource, by each declared method that has no effect (GET, HEAD), or a tool by an
// unpaid call if that document allows it. If neither is possible, its list of resources in the shape of discovery or
// its OpenAPI document may supply the terms. Nothing else is ever requested: no body method, no dynamic route. Requests
// to one origin are counted, so that many listings under its name do not make us a flood; half of them are reserved for
// resources with evidence, and half of that half for probes caused by a seller's own payments and the schedule.
import { Context, Effect, Layer } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import type { FetchRefused } from "../../../kernel/http/safeFetch.ts"
import { BoundedMap } from "../../../kernel/cache/BoundedMap.ts"
import { Config } from "../Config.ts"
import { callTool, requestsOfCall, type ToolAnswer } from "./callTool.ts"
import { readOpenApi } from "./OpenApiWire.ts"
import { PricedAssets } from "./PricedAssets.ts"
import { readUnpaidCall } from "./ToolWire.ts"
import { type Declaration, type Identity, isRejection } from "../declaration/Declaration.ts"
import { readDeclaration } from "../declaration/DeclarationWire.ts"
import { makeCpuThrottle } from "../declaration/CpuThrottle.ts"
import { makeValidator } from "../declaration/validateInfo.ts"
import { OriginDocuments, originsMax } from "./OriginDocuments.ts"
import {
  type Live402,
  type NamedResource,
  type OriginOffer,
  type OriginStatement,
  readJson,
  readLive402,
  readLiveOffer,
  readManifest,
  readNames,
  readWellKnown,
  noOriginStatement
} from "./OriginWire.ts"

export interface AskedResource {
  readonly identity: Identity
  /** HTTP methods declared; empty for MCP. */
  readonly methods: ReadonlyArray<string>
  /** Methods that other recipients' claims name: only the recipients that their pages name count. */
  readonly claimedMethods?: ReadonlyArray<string>
  readonly isDynamic: boolean
  readonly share: Share
}

/**
 * Which share of an origin's requests it counts against: resources without evidence (`claimed`), probes caused by
 * payments that cost their payers nothing (`free`), or the seller's `own`. An earlier share never uses up a later one.
 */
export type Share = "claimed" | "free" | "own"

/**
 * Whether an endpoint there asks to be paid. `origin_gone` requires an authoritative answer (`OriginDocuments.isGone`);
 * `unknown`: the probe was impossible or inconclusive.
 */
export type Life = "alive" | "origin_gone" | "not_found" | "no_payment_required" | "unknown"

export interface OriginAnswer {
  readonly word: OriginStatement
  /** The origin's own declarations of the resource, one for each operation and option; may be empty. */
  readonly declarations: ReadonlyArray<Declaration>
  readonly life: Life
  /** For the operator: the requests made, and their results. */
  readonly detail: string
  /** The origin's name resolves to a private address; unless the settings allow that, it cannot be listed. */
  readonly isLocal: boolean
  /** Resources that the documents read for it name, whether or not they are to be listed. */
  readonly named?: ReadonlyArray<string>
}

/** Maximum live requests to one origin in a minute, of a share and the shares before it together. */
const livePerMinuteMax: Readonly<Record<Share, number>> = { claimed: 10, free: 15, own: 20 }
/** Declarations of origins are read in this share of the process's time. */
const readingPace = { share: 0.1, burstMillis: 500 }
const safeMethods = ["GET", "HEAD"]

interface Live {
  readonly word: OriginStatement
  readonly offer: OriginOffer | undefined
  readonly life: Life
  readonly detail: string
  readonly isLocal: boolean
}

/** The origin's documents on one resource. */
interface Documented {
  readonly offers: ReadonlyArray<OriginOffer>
  readonly methods: ReadonlyArray<string>
}

const lifeOf = ({ status }: Live402): Life => {
  if (status === 402) return "alive"
  if (status === 404 || status === 410) return "not_found"
  return status >= 200 && status < 300 ? "no_payment_required" : "unknown"
}

const liveOf = (answer: Live402, { resource }: Identity, method: string): Live => ({
  word: readLive402(answer),
  offer: readLiveOffer(answer, resource, method),
  life: lifeOf(answer),
  detail: `, ${method} ${answer.status}`,
  isLocal: false
})

const liveOfTool = ({ isServedUnpaid, offer, status }: ToolAnswer): Live => ({
  word:
    offer === undefined
      ? noOriginStatement
      : { payTos: [...new Set(offer.offers.map(({ terms }) => terms.payTo))], delisted: false },
  offer,
  life:
    offer !== undefined ? "alive" : isServedUnpaid ? "no_payment_required" : status === 404 ? "not_found" : "unknown",
  detail: `, call ${status}`,
  isLocal: false
})

const unreached = (reason: FetchRefused["reason"], method: string, isGone: boolean): Live => ({
  word: noOriginStatement,
  offer: undefined,
  life: isGone ? "origin_gone" : "unknown",
  detail: `, ${method} ${reason}`,
  isLocal: reason === "blocked"
})

/**
 * Any sign of life outweighs the rest: a 402, or terms in the origin's documents for an operation that was not
 * requested or that answered without a payment (a trial). An operation that the documents name and the page does not
 * find may need its inputs. A requested page proves nothing about other operations (`isPartial`). Otherwise the first
 * result counts.
 */
const lifeOfAll = (
  live: ReadonlyArray<Live>,
  declarations: ReadonlyArray<Declaration>,
  asked: ReadonlyArray<string>,
  isPartial: boolean
): Life => {
  const isServed = live.some(({ life }) => life === "no_payment_required")
  const isDocumented = declarations.some(({ operation }) => isServed || !asked.includes(operation.method))
  if (isDocumented || live.some(({ life }) => life === "alive")) return "alive"
  const first = live[0]?.life ?? "unknown"
  const isOther = isPartial && (first === "not_found" || first === "no_payment_required")
  return isOther || (first === "not_found" && declarations.length > 0) ? "unknown" : first
}

/** The recipients that the documents name precede those of the live pages. */
const wordOfAll = (named: OriginStatement, live: ReadonlyArray<Live>): OriginStatement =>
  named.delisted || named.payTos.length > 0
    ? named
    : { payTos: [...new Set(live.flatMap(({ word }) => word.payTos))], delisted: false }

const isOf =
  ({ resource, toolName, type }: Identity) =>
  (one: NamedResource): boolean =>
    one.type === type && one.resource === resource && one.toolName === toolName

/** Reads one document of thousands of entries, after the requests of others. */
const inStep = <A>(read: () => A): Effect.Effect<A> => Effect.map(Effect.yieldNow, read)

/** Reads the operations of an origin's OpenAPI document. */
const makeOperations = Effect.gen(function* () {
  const { openApi } = yield* OriginDocuments
  const { assets } = yield* PricedAssets
  return (base: string, payTos: ReadonlyArray<string>) =>
    Effect.flatMap(openApi(base), ({ document }) =>
      inStep(() => readOpenApi(readJson(document), base, { assets, payTos }))
    )
})

/** The live requests to an origin, after its own document, and the parsing of its offers. */
const questions = Effect.gen(function* () {
  const config = yield* Config
  const { isGone, manifest, send } = yield* OriginDocuments
  const operations = yield* makeOperations
  const pace = makeCpuThrottle(readingPace)
  const options = { config: { ...config, requireValidSchema: false }, validate: makeValidator() }

  const read = (offers: ReadonlyArray<OriginOffer>) =>
    Effect.map(
      Effect.forEach(offers, ({ declaration, extensions, offers, sentKey }) =>
        pace(() =>
          offers.flatMap((offer) => {
            const found = readDeclaration(offer, sentKey, declaration, options)
            return isRejection(found) ? [] : [{ ...found, extensions }]
          })
        )
      ),
      (all) => all.flat()
    )

  const unreachedAt = (url: URL, method: string) => (refused: FetchRefused) =>
    Effect.map(isGone(url, refused), (gone) => unreached(refused.reason, method, gone))

  const askTool = (identity: Identity, args: Readonly<Record<string, unknown>>): Effect.Effect<Live> => {
    const endpoint = endpointOf(identity, config.resolvedMcpEndpoints)
    const called = Effect.map(callTool(send, endpoint, identity, args), liveOfTool)
    return Effect.catch(called, unreachedAt(endpoint, "call"))
  }

  const askLive = (identity: Identity, method: string): Effect.Effect<Live> =>
    send(new URL(identity.resource), method).pipe(
      Effect.map((answer) => liveOf(answer, identity, method)),
      Effect.catch(unreachedAt(new URL(identity.resource), method))
    )

  /** Reads the documents' offers of a resource whose live page gave no terms, and the methods that they name. */
  const documented = Effect.fnUntraced(function* (
    identity: Identity,
    base: string,
    document: Uint8Array
  ): Effect.fn.Return<Documented> {
    const find = (bytes: Uint8Array) => inStep(() => readManifest(readJson(bytes), base).filter(isOf(identity)))
    const offersIn = (named: ReadonlyArray<NamedResource>) =>
      named.find(({ offers }) => offers.length > 0)?.offers ?? []
    const own = yield* find(document)
    if (offersIn(own).length > 0) return { offers: offersIn(own), methods: [] }
    const listed = yield* find((yield* manifest(base)).document)
    if (offersIn(listed).length > 0 || identity.type === "mcp") return { offers: offersIn(listed), methods: [] }
    const { payTos } = readWellKnown(readJson(document), identity, base)
    const described = (yield* operations(base, payTos)).filter(isOf(identity))
    return {
      offers: described.flatMap(({ offers }) => offers),
      methods: [...own, ...listed, ...described].flatMap(({ methods }) => methods)
    }
  })

  /** All resources that an origin's documents name; documents in the cache are not requested again. */
  const namesOf = Effect.fnUntraced(function* (base: string, document: Uint8Array) {
    const names = (bytes: Uint8Array) => inStep(() => readNames(readJson(bytes), base))
    const listed = yield* names((yield* manifest(base)).document)
    const described = yield* operations(base, [])
    return [...(yield* names(document)), ...listed, ...described.map(({ resource }) => resource)]
  })

  return { askLive, askTool, documented, namesOf, read }
})

export class Origins extends Context.Service<
  Origins,
  {
    /** `later`: the origin's request limit is reached. */
    readonly ask: (resource: AskedResource) => Effect.Effect<OriginAnswer | "later">
    /** Converts an origin's offers to declarations; unreadable ones are left out. */
    readonly read: (offers: ReadonlyArray<OriginOffer>) => Effect.Effect<ReadonlyArray<Declaration>>
  }
>()("tollkeeper/catalog/Origins") {
  static readonly layer = Layer.effect(
    Origins,
    Effect.gen(function* () {
      const config = yield* Config
      const { wellKnown } = yield* OriginDocuments
      const { askLive, askTool, documented, namesOf, read } = yield* questions
      const mayAsk = countQuestions()

      const ask = Effect.fn("Catalog.askOrigin")(function* (
        asked: AskedResource
      ): Effect.fn.Return<OriginAnswer | "later"> {
        const { identity, isDynamic } = asked
        const base = baseOf(identity, config.resolvedMcpEndpoints)
        const nothing = { word: noOriginStatement, declarations: [], life: "unknown" as const, isLocal: false }
        if (base === undefined) return { ...nothing, detail: "a symbolic name without an endpoint" }
        const { detail, document, isGone, isLocal } = yield* wellKnown(base)
        const named = readWellKnown(readJson(document), identity, base)
        if (named.delisted || isLocal)
          return { ...nothing, word: named, detail, isLocal, named: readNames(readJson(document), base) }
        const among = (methods: ReadonlyArray<string>) =>
          identity.type === "mcp" || isDynamic ? [] : safeMethods.filter((one) => methods.includes(one))
        const methods = among(asked.methods)
        const others = among(asked.claimedMethods ?? []).filter((one) => !methods.includes(one))
        const args = identity.type === "mcp" ? readUnpaidCall(readJson(document), identity, base) : undefined
        if (
          !(yield* mayAsk(
            base,
            asked.share,
            methods.length + others.length + (args === undefined ? 0 : requestsOfCall)
          ))
        )
          return "later"
        const pages =
          args === undefined
            ? yield* Effect.forEach(methods, (method) => askLive(identity, method))
            : [yield* askTool(identity, args)]
        // An operation that cannot be requested may be alive.
        const isPartial = identity.type === "http" && methods.length < asked.methods.length
        const claimed = yield* Effect.forEach(others, (method) => askLive(identity, method))
        const offered = pages.flatMap(({ offer }) => offer ?? [])
        // Without terms from a live page, the documents may supply them: for an operation that is not requested (a
        // POST), or that is served without payment as a trial.
        const isSilent = offered.length === 0 && isGone !== true
        const isNaming = isSilent && identity.type === "http"
        const said = isSilent ? yield* documented(identity, base, document) : { offers: offered, methods: [] }
        // Documents that name the resource by other methods only show that the declared ones are wrong: request the
        // page by theirs.
        const isOther = said.offers.length === 0 && !said.methods.some((method) => asked.methods.includes(method))
        const corrected = isOther ? among(said.methods) : []
        if (!(yield* mayAsk(base, asked.share, corrected.length))) return "later"
        const live = [...pages, ...(yield* Effect.forEach(corrected, (method) => askLive(identity, method)))]
        const offers = said.offers.length > 0 ? said.offers : live.flatMap(({ offer }) => offer ?? [])
        const word = wordOfAll(named, [...live, ...claimed])
        const recipients = (payTo: string) => word.payTos.length === 0 || word.payTos.includes(payTo)
        const declarations = (yield* read(offers)).filter(({ terms }) => recipients(terms.payTo))
        const reported = word.payTos.length > 0 ? word : { ...word, payTos: payTosOf(declarations) }
        return {
          word: reported,
          declarations,
          life:
            isGone === true && live.length === 0
              ? "origin_gone"
              : lifeOfAll(live, declarations, [...methods, ...corrected], isPartial),
          detail: `${detail}${[...live, ...claimed].map((one) => one.detail).join("")}`,
          isLocal: live.some((one) => one.isLocal),
          named: isNaming ? yield* namesOf(base, document) : readNames(readJson(document), base)
        }
      })

      return Origins.of({ ask: (asked) => Effect.catchDefect(ask(asked), unreadable), read })
    })
  )
}

const unreadableAnswer: OriginAnswer = {
  word: noOriginStatement,
  declarations: [],
  life: "unknown",
  detail: "unreadable",
  isLocal: false
}

/** The bytes are a stranger's: an error in reading them must not end the actor, and with it the process. */
const unreadable = (defect: unknown): Effect.Effect<OriginAnswer> =>
  Effect.as(Effect.logError("an origin's answer could not be read", defect), unreadableAnswer)

const payTosOf = (declarations: ReadonlyArray<Declaration>): ReadonlyArray<string> => [
  ...new Set(declarations.map(({ terms }) => terms.payTo))
]

/** URL of a resource: its own, or the endpoint of its symbolic name. */
const baseOf = ({ origin, resource }: Identity, endpoints: Readonly<Record<string, string>>): string | undefined => {
  if (origin !== undefined) return origin
  const endpoint = endpoints[resource]
  return endpoint === undefined ? undefined : new URL(endpoint).origin
}

/** URL to call a tool at: its resource, or the endpoint of a symbolic name. */
const endpointOf = ({ resource }: Identity, endpoints: Readonly<Record<string, string>>): URL =>
  new URL(endpoints[resource] ?? resource)

/** Whether this many more live requests may be sent to an origin in this minute. */
const countQuestions = () => {
  const asked = new BoundedMap<string, { readonly at: number; readonly count: Record<Share, number> }>(originsMax)
  return Effect.fnUntraced(function* (origin: string, share: Share, questions: number) {
    if (questions === 0) return true
    const now = yield* monotonicMillis
    const known = asked.get(origin)
    const mine =
      known === undefined || now - known.at >= 60_000 ? { at: now, count: { claimed: 0, free: 0, own: 0 } } : known
    asked.set(origin, mine)
    const { claimed, free, own } = mine.count
    const before = { claimed, free: claimed + free, own: claimed + free + own }
    if (before.own + questions > livePerMinuteMax.own || before[share] + questions > livePerMinuteMax[share])
      return false
    mine.count[share] += questions
    return true
  })
}
