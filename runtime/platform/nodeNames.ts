// Resolves host names that callers chose, with separate `node:dns` resolvers, for Node and for Deno. They do not use
// the thread pool that `getaddrinfo` and payments' RPC connections share. Callers take turns, so a name server that
// never answers only delays the names of the caller that uses it. Each query has a resolver, which is cancelled when
// its caller stops waiting. The machine's hosts file comes first.
import { Context, Effect, Option } from "effect"
import { Resolver } from "node:dns/promises"
import { readFile } from "node:fs/promises"
import { FairScheduler } from "../../kernel/effect/FairScheduler.ts"
import { OnBehalfOf, type Outbound, OutboundFailed } from "../../kernel/platform/Outbound.ts"

/** Timeout of a name, including the time in the queue. */
const resolveTimeout = "3 seconds"

/** Maximum concurrent queries, in total and for one caller, and maximum waiting queries. */
const questionsMax = { concurrentMax: 128, perCallerMax: 8, waitingMax: 4_096 }

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

const isLoopbackName = (host: string) => host === "localhost" || host.endsWith(".localhost")

/** The addresses of a name in a hosts file. */
export const readHosts = (text: string, host: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const [address, ...names] = line.replace(/#.*$/, "").trim().toLowerCase().split(/\s+/)
    return address !== undefined && names.includes(host) ? [address] : []
  })

const hostsOf = (host: string) =>
  Effect.promise(() => readFile("/etc/hosts", "utf8").catch(() => "")).pipe(
    Effect.map((text) => readHosts(text, host)),
    Effect.map((found) => (found.length === 0 && isLoopbackName(host) ? ["127.0.0.1"] : found))
  )

type Answer = ReadonlyArray<string> | string

type Query = (resolver: Resolver) => Promise<Effect.Effect<ReadonlyArray<string>, OutboundFailed>>

const ask = (query: Query, servers: ReadonlyArray<string> | undefined) =>
  Effect.callback<ReadonlyArray<string>, OutboundFailed>((resume) => {
    const resolver = new Resolver({ timeout: 1_500, tries: 2 })
    if (servers !== undefined) resolver.setServers([...servers])
    void query(resolver).then(resume)
    return Effect.sync(() => resolver.cancel())
  })

/** Queries both families in parallel. */
const addressesOf =
  (host: string): Query =>
  async (resolver) => {
    const failing = (error: unknown): Answer => codeOf(error) ?? "EUNKNOWN"
    const answers = await Promise.all([resolver.resolve4(host).catch(failing), resolver.resolve6(host).catch(failing)])
    const found = answers.flatMap((answer) => (typeof answer === "string" ? [] : answer))
    if (found.length > 0) return Effect.succeed(found)
    const isAuthoritative = answers.every((answer) => answer === "ENOTFOUND")
    return Effect.fail(new OutboundFailed({ reason: "unresolved", ...(isAuthoritative ? { isAuthoritative } : {}) }))
  }

const textsOf =
  (host: string): Query =>
  (resolver) =>
    resolver.resolveTxt(host).then(
      (records) => Effect.succeed(records.map((parts) => parts.join(""))),
      () => unresolved
    )

/** Name servers to use instead of the machine's. */
export const NameServers = Context.Reference<ReadonlyArray<string> | undefined>("tollkeeper/platform/NameServers", {
  defaultValue: () => undefined
})

/** The last two labels of a name. */
const zoneOf = (host: string): string => host.replace(/\.$/, "").split(".").slice(-2).join(".")

const unresolved = Effect.fail(new OutboundFailed({ reason: "unresolved" }))

const inTime = <A>(asked: Effect.Effect<A, OutboundFailed>) =>
  Effect.catchTag(Effect.timeout(asked, resolveTimeout), "TimeoutError", () => unresolved)

/** Addresses and texts of names; queries of both kinds share the limits. */
export const makeNames = (servers?: ReadonlyArray<string>): Pick<Outbound["Service"], "resolve" | "texts"> => {
  const turns = new FairScheduler(questionsMax)
  const askInTurn = Effect.fnUntraced(function* (host: string, query: Query) {
    // The process itself asks on behalf of many callers: each zone counts as a caller.
    const caller = (yield* OnBehalfOf) || zoneOf(host)
    const answer = yield* turns.run({ name: caller, isFree: false }, ask(query, servers))
    return Option.isSome(answer) ? answer.value : yield* unresolved
  })
  const askAddresses = (host: string) => askInTurn(host, addressesOf(host))
  return {
    resolve: (host) =>
      inTime(Effect.flatMap(hostsOf(host), (found) => (found.length > 0 ? Effect.succeed(found) : askAddresses(host)))),
    texts: (host) => inTime(askInTurn(host, textsOf(host)))
  }
}
